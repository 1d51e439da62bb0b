#!/usr/bin/env bash
# usage: compiler_says.sh FILE REGEX | compiler_says.sh FILE uncommented
# The first case of a negative test (path below the repository) with a matching line
# "// case n: ...", and the two lines of $DTM_DOCS_COMPILER that matter: which type fails, and why.
# Or those lines about a program whose call behind "// apply" is uncommented. $DTM_DOCS_FLAGS has
# the include folders.
set -uo pipefail
export LC_ALL=C
file=$1
number=0
if [ "$2" = uncommented ]; then
  file=$(mktemp --suffix=.cpp)
  trap 'rm -f "$file"' EXIT
  sed -E 's#^( *)// (apply<.*;).*#\1\2#' "$1" >"$file"
else
  number=$(grep -m1 -E "^// case [0-9]+: .*$2" "$file" | sed -E 's/^[^0-9]*([0-9]+).*/\1/')
  [ -n "$number" ] || { echo "no case of $file is about $2"; exit 1; }
  awk -v start="#if DTM_CASE == $number" '$0 == start { inside = 1; next }
    inside && /^#endif/ { exit }
    inside' "$file"
  echo
fi
# shellcheck disable=SC2086
if output=$($DTM_DOCS_COMPILER -std=c++20 -fsyntax-only -fno-diagnostics-show-caret \
    $DTM_DOCS_FLAGS "-DDTM_CASE=$number" "$file" 2>&1); then
  echo "$1: $2 compiles"
  exit 1
fi
fold_words() { fold -s -w 108 | sed 's/ *$//'; }
error=$(grep -m1 -E ': error: ' <<<"$output") || { echo "$output"; exit 1; }
class=$(sed -nE 's/.* stands? in the line that names ([a-z_]+).*/\1/p' <<<"$error")
[ -z "$class" ] ||
  grep -m1 -E "In instantiation of .*[:' ]$class<" <<<"$output" |
  sed -E 's/^[^ ]*: //; s/:$//' | fold_words
sed -E 's/^.*: error: /error: /' <<<"$error" | fold_words
