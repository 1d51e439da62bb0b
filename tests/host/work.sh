#!/usr/bin/env bash
# usage: work.sh COUNTS BUILD PROGRAM [NAME...]
# How many instructions the host's loops need on small sizes, by valgrind, beside the counts of a file: more than
# 2 % more or less fails, on any machine and however busy it is. The counts belong to one compiler and
# one valgrind; with others the test is skipped (exit code 77). DTM_UPDATE_COUNTS=1 writes the file.
set -uo pipefail
export LC_ALL=C
counts=$1 build=$2 program=$3 names=${*:4}
how="where it is meant, DTM_UPDATE_COUNTS=1 ctest -R host.work writes $counts"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
command -v valgrind > "$folder/which" || { echo "skipped: valgrind is missing"; exit 77; }

field() { sed -nE "s/^ *\"$1\": \"?([^\",]*)\"?,?\$/\\1/p" "$counts"; }
made_by="$build with $(valgrind --version)"
update=${DTM_UPDATE_COUNTS:-0}
if [ "$update" != 1 ] && [ "$made_by" != "$(field made_by)" ]; then
  echo "skipped: the counts are those of $(field made_by), here is $made_by"
  exit 77
fi

written="{\n  \"made_by\": \"$made_by\""
failed=0
for name in ${names:-$("$program" --list)}; do
  valgrind --tool=callgrind --toggle-collect=measured --callgrind-out-file=/dev/null \
    "$program" "$name" > "$folder/out" 2>&1 || { cat "$folder/out"; exit 1; }
  count=$(sed -nE 's/^==[0-9]+== Collected : ([0-9]+).*/\1/p' "$folder/out")
  [ -n "$count" ] && [ "$count" -gt 0 ] || { echo "$name: valgrind counted nothing"; exit 1; }
  written+=",\n  \"$name\": $count"
  before=$(field "$name")
  if [ "$update" = 1 ]; then
    echo "$name $count"
  elif [ -z "$before" ]; then
    echo "FAILED: $name has no count; $how"
    failed=1
  else
    awk -v name="$name" -v now="$count" -v before="$before" 'BEGIN {
      change = 100 * (now - before) / before
      printf "%-26s %10d instructions, %10d before, %+.2f %% of 2\n", name, now, before, change
      exit change > 2 || change < -2 }' || failed=1
  fi
done
[ "$update" != 1 ] || printf "$written\n}\n" > "$counts"
[ "$failed" = 0 ] || echo "FAILED: $how"
exit "$failed"
