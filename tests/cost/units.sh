#!/usr/bin/env bash
# usage: units.sh syntax|object|case COMPILER BUDGET FILE... -- [compiler options]
# CPU seconds that each translation unit costs the compiler, beside its budget; see seconds.sh. syntax: checked
# only; object: compiled; case: the first case of a negative test with its headers precompiled, as in run_negative.sh.
set -uo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
source "$here/seconds.sh"
source "$here/../cmake/precompile.sh"
kind=$1 compiler=$2 budget=$3
shift 3
files=()
while [ "$1" != -- ]; do
  files+=("$1")
  shift
done
shift
refused() { ! "$@"; }
set_scale "$compiler"
for file in "${files[@]}"; do
  name=$(basename "$(dirname "$file")")/$(basename "$file")
  command=("$compiler" -std=c++20 "$@")
  case $kind in
    syntax) command+=(-fsyntax-only "$file") ;;
    object) command+=(-c -o /dev/null "$file") ;;
    case)
      precompile gcc "$compiler" "$file" "$@"
      # such a case must fail; that it does, and how, is the matter of the negative tests
      command=(refused "${command[@]}" -fsyntax-only "${precompiled[@]}" -DDTM_CASE=1 "$file") ;;
  esac
  measure "$name" "$budget" "" "${command[@]}"
done
closing_line "units ($kind)"
