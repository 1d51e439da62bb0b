#!/usr/bin/env bash
# usage: headers.sh COMPILER BUDGET HEADER... -- [compiler options]
# CPU seconds (user + system) that each header costs the compiler in a unit of its own, beside its budget.
# The budgets are of a quiet machine on which a yardstick of three standard headers costs 0.16 s: the numbers are
# scaled by what it costs here. Noise remains: only three times the budget fails, in the best of three tries.
set -uo pipefail
export LC_ALL=C
compiler=$1 budget=$2
shift 2
headers=()
while [ "$1" != -- ]; do
  [[ $1 == *.cuh ]] || headers+=("$1")
  shift
done
shift
TIMEFORMAT='%U %S'
failed=0
over=0

cpu_seconds() {  # TEXT OPTIONS...: best of three, or the first below the budget; CCACHE_DISABLE: the cost, not the cache
  local text=$1 best=999 seconds
  shift
  for _ in 1 2 3; do
    seconds=$({ time printf '%b' "$text" |
      CCACHE_DISABLE=1 "$compiler" -std=c++20 -fsyntax-only "$@" -x c++ - >/dev/null 2>&1; } 2>&1 |
      awk '{ printf "%.3f", $1 + $2 }')
    best=$(awk -v a="$best" -v b="$seconds" 'BEGIN { print (b < a ? b : a) }')
    if awk -v s="$best" -v b="$budget" 'BEGIN { exit !(s <= b) }'; then break; fi
  done
  echo "$best"
}

yardstick=$(budget=0 cpu_seconds '#include <string_view>\n#include <array>\n#include <span>\n')
scale=$(awk -v y="$yardstick" 'BEGIN { print (y > 0.16 ? y / 0.16 : 1) }')
echo "yardstick $yardstick s, so the numbers are divided by $scale"
for header in "${headers[@]}"; do
  best=$(cpu_seconds "#include <$header>\n" "$@" | awk -v scale="$scale" '{ printf "%.3f", $1 / scale }')
  verdict=$(awk -v s="$best" -v b="$budget" 'BEGIN { print (s <= b ? "" : s <= 3 * b ? "over" : "TOO MUCH") }')
  printf '%6.2f s of %.2f s  %-45s %s\n' "$best" "$budget" "$header" "$verdict"
  [ -z "$verdict" ] || over=$((over + 1))
  [ "$verdict" != "TOO MUCH" ] || failed=$((failed + 1))
done
echo "${#headers[@]} headers, $over over the budget, $failed beyond three times the budget"
[ "$failed" = 0 ]
