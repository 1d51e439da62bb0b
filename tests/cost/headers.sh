#!/usr/bin/env bash
# usage: headers.sh COMPILER BUDGET HEADER... -- [compiler options]
# CPU seconds (user + system) that each header costs the compiler in a unit of its own, beside its budget.
# A machine may be slow or busy: only three times the budget fails, in the best of three tries.
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
for header in "${headers[@]}"; do
  best=""
  for try in 1 2 3; do
    # CCACHE_DISABLE: the cost, not the cache
    seconds=$({ time printf '#include <%s>\n' "$header" |
      CCACHE_DISABLE=1 "$compiler" -std=c++20 -fsyntax-only "$@" -x c++ - >/dev/null 2>&1; } 2>&1 |
      awk '{ printf "%.3f", $1 + $2 }')
    best=$(awk -v a="${best:-999}" -v b="$seconds" 'BEGIN { print (b < a ? b : a) }')
    if awk -v s="$best" -v b="$budget" 'BEGIN { exit !(s <= b) }'; then break; fi
  done
  verdict=$(awk -v s="$best" -v b="$budget" 'BEGIN { print (s <= b ? "" : s <= 3 * b ? "over" : "TOO MUCH") }')
  printf '%6.2f s of %.2f s  %-45s %s\n' "$best" "$budget" "$header" "$verdict"
  [ -z "$verdict" ] || over=$((over + 1))
  [ "$verdict" != "TOO MUCH" ] || failed=$((failed + 1))
done
echo "${#headers[@]} headers, $over over the budget, $failed beyond three times the budget"
[ "$failed" = 0 ]
