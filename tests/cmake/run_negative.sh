#!/usr/bin/env bash
# usage: run_negative.sh gcc|clang COMPILER FILE [compiler options]
# Checks the cases of one file of programs that must not compile; see dtm_add_negative_test.
# Prints what each wrong case gave, and one line when all are right.
#
# Most of a compilation is the headers, and all cases of a file begin with the same ones. They are compiled
# once, before the control, into a folder of this run: it can be neither stale nor shared.
set -uo pipefail
export LC_ALL=C
source "$(dirname "${BASH_SOURCE[0]}")/precompile.sh"

kind=$1 compiler=$2 file=$3
shift 3
flags=(-std=c++20 -ftemplate-backtrace-limit=4)
if [ "$kind" = gcc ]; then
  flags+=(-fno-diagnostics-show-caret)  # compilers echo source lines; a regex must match the message
else
  flags+=(-fno-caret-diagnostics)
fi

cases=$(sed -nE 's#^[[:space:]]*// case ([0-9]+):.*#\1#p' "$file" | sort -nu)
sections=$(grep -oE 'DTM_CASE *== *[0-9]+' "$file" | grep -oE '[0-9]+$' | sort -nu)
failures=0
count=0

wrong() {  # case, reason, compiler output
  failures=$((failures + 1))
  echo "$file: case $1: $2"
  sed 's/^/    /' <<<"$3"
}

compile() {
  "$compiler" "${flags[@]}" -fsyntax-only "${precompiled[@]}" "$@" "-DDTM_CASE=$number" "$file" 2>&1
}

precompile "$kind" "$compiler" "$file" "${flags[@]}" "$@"
number=0
output=$(compile "$@") || wrong 0 "the control must compile" "$output"
[ -n "$cases" ] || wrong 0 "no line '// case n: regex' in this file" ""
for number in $sections; do
  [ "$number" = 0 ] || grep -qx "$number" <<<"$cases" ||
    wrong "$number" "has a section, but no line '// case $number: regex'" ""
done

for number in $cases; do
  [ "$number" = 0 ] && continue
  count=$((count + 1))
  grep -qx "$number" <<<"$sections" ||
    { wrong "$number" "has no section '#if DTM_CASE == $number'" ""; continue; }
  if output=$(compile "$@"); then
    wrong "$number" "compiles, but must not" "$output"
    continue
  fi
  errors=$(grep -cE ': (fatal )?error: ' <<<"$output")
  [ "$errors" = 1 ] || wrong "$number" "gives $errors errors instead of exactly one" "$output"
  while IFS= read -r regex; do
    grep -Eq -- "$regex" <<<"$output" || wrong "$number" "no line matches: $regex" "$output"
  done < <(sed -nE "s#^[[:space:]]*// case $number: *##p" "$file")
done

if [ "$failures" -gt 0 ]; then
  echo "FAILED: $failures complaints about $count cases ($kind)"
  exit 1
fi
echo "passed: the control compiles, $count cases fail with one error and the right message ($kind)"
