# Sourced by run_negative.sh and by tests/cost.

# precompile gcc|clang COMPILER FILE [compiler options]
# Compiles the #include lines that a file begins with, into a folder that goes with the next call or when the
# script ends, and sets `precompiled` to the options that use it; to none where there is nothing to include.
# Headers that do not compile are no reason to stop: compiling the file says so in its own words.
precompiled_folder=""
trap '[ -z "$precompiled_folder" ] || rm -rf "$precompiled_folder"' EXIT
precompile() {
  local kind=$1 compiler=$2 file=$3 includes options=()
  shift 3
  precompiled=()
  includes=$(awk '/^#include / { print; next } !/^$/ && !/^\/\// { exit }' "$file")
  [ -z "$precompiled_folder" ] || rm -rf "$precompiled_folder"
  precompiled_folder=""
  if [ -z "$includes" ] || ! precompiled_folder=$(mktemp -d); then return; fi
  echo "$includes" >"$precompiled_folder/begin.hpp"
  # what the headers alone instantiate is instantiated here, not in every case; g++ has no such option
  [ "$kind" = gcc ] || options+=(-fpch-instantiate-templates)
  if "$compiler" -std=c++20 "${options[@]}" -iquote "$(dirname "$file")" "$@" \
      -x c++-header "$precompiled_folder/begin.hpp" -o "$precompiled_folder/begin.hpp.gch" >/dev/null 2>&1; then
    precompiled=(-include "$precompiled_folder/begin.hpp")  # both compilers take begin.hpp.gch beside it
  fi
}
