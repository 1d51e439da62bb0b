#!/usr/bin/env bash
# usage: instantiations.sh COUNTS CLANG UNIT... -- [compiler options]
# How many templates clang instantiates in each unit, beside the counts of a file. Unlike seconds, counts are the
# same on every machine, so a little growth is seen: 3 % of a unit or 2 % of the median unit fail, 1 % is noted.
# The counts belong to one clang and its standard library; with another one the test is skipped (exit code 77).
# DTM_UPDATE_COUNTS=1 writes the file.
set -uo pipefail
export LC_ALL=C
counts=$1 clang=$2
shift 2
units=()
while [ "$1" != -- ]; do
  units+=("$1")
  shift
done
shift
how="where the growth is wanted, DTM_UPDATE_COUNTS=1 ctest -R cost.instantiations writes $counts"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

field() { sed -nE "s/^ *\"$1\": \"?([^\",]*)\"?,?\$/\\1/p" "$counts"; }
compiler="$("$clang" --version | sed -nE '1s/.*(clang version [0-9.]+).*/\1/p') with libstdc++ $(
  "$clang" -std=c++20 -x c++ -include version -dM -E /dev/null | sed -nE 's/^#define __GLIBCXX__ //p')"
if [ "${DTM_UPDATE_COUNTS:-0}" != 1 ] && [ ! -f "$counts" ]; then
  echo "FAILED: there is no $counts; DTM_UPDATE_COUNTS=1 writes it"
  exit 1
elif [ "${DTM_UPDATE_COUNTS:-0}" != 1 ] && [ "$compiler" != "$(field compiler)" ]; then
  echo "skipped: the counts are those of $(field compiler), here is $compiler"
  exit 77
fi

events() { grep -oE '"name":"Instantiate(Class|Function)","args":\{"detail":"[^"<(]*' "$1"; }

written="{\n  \"compiler\": \"$compiler\""
growths=()
failed=0
for unit in "${units[@]}"; do
  name=$(basename "$unit" .cpp)
  # The trace stands beside the output, which -fsyntax-only does not have: only its name is given.
  output=$("$clang" -std=c++20 -fsyntax-only -ftime-trace -ftime-trace-granularity=0 -Xclang -o \
    -Xclang "$folder/$name.o" "$@" "$unit" 2>&1)
  if [ $? != 0 ] || [ ! -s "$folder/$name.json" ]; then
    echo "$unit does not compile, or leaves no trace"
    echo "$output"
    exit 1
  fi
  count=$(events "$folder/$name.json" | wc -l)
  written+=",\n  \"$name\": $count"
  [ "${DTM_UPDATE_COUNTS:-0}" != 1 ] || { echo "$name $count"; continue; }
  before=$(field "$name")
  if [ -z "$before" ]; then
    echo "$name: no count in $counts; DTM_UPDATE_COUNTS=1 writes it"
    failed=1
    continue
  fi
  growth=$(awk -v a="$before" -v b="$count" 'BEGIN { printf "%.3f", 100 * (b - a) / a }')
  growths+=("$growth")
  verdict=$(awk -v g="$growth" 'BEGIN {
    if (g > 3) print "TOO MUCH"
    else if (g > 1) print "note: grows"
    else if (g < -3) print "note: falls; please keep it, DTM_UPDATE_COUNTS=1 writes the file"
  }')
  printf '%-12s %6d instantiations, %6d before, %+6.2f %%  %s\n' "$name" "$count" "$before" "$growth" "$verdict"
  if [ "$verdict" = "TOO MUCH" ]; then
    failed=1
    echo "  the most frequent templates of $name:"
    events "$folder/$name.json" | sed 's/.*"detail":"//' | sort | uniq -c | sort -rn | head -10
  fi
done

if [ "${DTM_UPDATE_COUNTS:-0}" = 1 ]; then
  printf '%b\n}\n' "$written" >"$counts"
  echo "$counts is written"
  exit 0
fi
median=$(printf '%s\n' "${growths[@]}" | sort -g |
  awk '{ g[NR] = $1 } END { printf "%.3f", (g[int((NR + 1) / 2)] + g[int(NR / 2) + 1]) / 2 }')
printf 'the median unit: %+.2f %%\n' "$median"
if awk -v m="$median" 'BEGIN { exit !(m > 2) }'; then
  echo "TOO MUCH: more than 2 % on the median"
  failed=1
fi
[ "$failed" = 0 ] || echo "FAILED: more templates than before; $how"
exit "$failed"
