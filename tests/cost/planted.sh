#!/usr/bin/env bash
# usage: planted.sh FOLDER CLANG [compiler options]
# instantiations.sh finds growth that is planted, in the counts and in a unit, and passes what it should.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=$1 clang=$2
shift 2
options=("$@")
rm -rf "$folder"
mkdir -p "$folder"
cp "$here"/units/{types,contracts}.cpp "$folder"  # the cheap ones
right=$folder/right.json counts=$folder/counts.json
wrong=0

run() { bash "$here/instantiations.sh" "$counts" "$clang" "$folder"/{types,contracts}.cpp -- "${options[@]}" 2>&1; }
expect() {  # WHAT EXIT REGEX
  local output code
  output=$(run)
  code=$?
  if [ "$code" != "$2" ] || ! grep -qE -- "$3" <<<"$output"; then
    echo "$1: exit code $code instead of $2, or no line matches: $3"
    echo "$output"
    wrong=1
  fi
}
doctored() {  # NAME PERCENT...: counts that the units have grown from by so much
  cp "$right" "$counts"
  while [ $# -gt 0 ]; do
    awk -v name="\"$1\":" -v grown="$2" '$1 == name { comma = /,$/ ? "," : ""
      $0 = "  " name " " int($2 / (1 + grown / 100) + 0.5) comma } { print }' "$counts" >"$counts.new"
    mv "$counts.new" "$counts"
    shift 2
  done
}

unset DTM_UPDATE_COUNTS
if ! output=$(DTM_UPDATE_COUNTS=1 run); then
  echo "$output"
  exit 1
fi
cp "$counts" "$right"
expect "nothing changed" 0 'median unit: \+0\.00 %'
doctored types 5
expect "a unit grows by 5 %" 1 '^types .*TOO MUCH'
expect "the way out is said" 1 'DTM_UPDATE_COUNTS=1 ctest'
expect "the templates are listed" 1 '^ +[0-9]+ std::'
doctored types 2.5 contracts 2.5
expect "both units grow by 2.5 %" 1 'more than 2 % on the median'
doctored types 1.7
expect "a unit grows by 1.7 %" 0 'note: grows'
doctored types -6
expect "a unit falls by 6 %" 0 'note: falls'
sed -E 's/clang version [0-9.]+/clang version 0.0.0/' "$right" >"$counts"
expect "counts of another clang" 77 '^skipped: the counts are those of clang version 0\.0\.0'
grep -v '"types"' "$right" >"$counts"
expect "no count of a unit" 1 '^types: no count'
cp "$right" "$counts"
cat >>"$folder/contracts.cpp" <<'UNIT'
template <int N>
struct planted : planted<N - 1> {};
template <>
struct planted<0> {};
planted<100> more;
UNIT
expect "a unit that instantiates more" 1 '^contracts .*TOO MUCH'
rm -rf "$folder"
[ "$wrong" = 0 ] && echo "planted growth is found"
