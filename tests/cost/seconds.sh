# Sourced by headers.sh and units.sh: CPU seconds (user + system) of a compiler, beside a budget.
#
# The budgets are of a quiet machine on which a yardstick of three standard headers costs 0.16 s: the numbers are
# scaled by what it costs here. Noise remains: only three times the budget fails, in the best of three tries.
export LC_ALL=C
TIMEFORMAT='%U %S'
measured=0
over=0
failed=0

cpu_seconds() {  # BUDGET TEXT COMMAND...: of the command that reads the text, "broken" where it fails
  # Best of three, or the first below the budget; what costs seconds is not compiled again for being over it.
  local budget=$1 text=$2 best=999 seconds
  shift 2
  for _ in 1 2 3; do
    # CCACHE_DISABLE: the cost, not the cache
    seconds=$({ time printf '%b' "$text" | CCACHE_DISABLE=1 "$@" >/dev/null 2>&1 || echo broken >&2; } 2>&1 |
      awk '{ seconds = $1 == "broken" ? $1 : sprintf("%.3f", $1 + $2) } END { print seconds }')
    if [ "$seconds" = broken ]; then best=broken; break; fi
    best=$(awk -v a="$best" -v b="$seconds" 'BEGIN { print (b < a ? b : a) }')
    if awk -v s="$best" -v b="$budget" 'BEGIN { exit !(s <= b || s > 1 && s <= 3 * b) }'; then break; fi
  done
  echo "$best"
}

set_scale() {  # COMPILER
  local yardstick
  yardstick=$(cpu_seconds 0 '#include <string_view>\n#include <array>\n#include <span>\n' \
    "$1" -std=c++20 -fsyntax-only -x c++ -)
  scale=$(awk -v y="$yardstick" 'BEGIN { print (y > 0.16 ? y / 0.16 : 1) }')
  echo "yardstick $yardstick s, so the numbers are divided by $scale"
}

measure() {  # NAME BUDGET TEXT COMMAND...
  local name=$1 budget=$2 best verdict
  best=$(cpu_seconds "$2" "${@:3}")
  if [ "$best" = broken ]; then
    verdict="DOES NOT COMPILE"
  else
    best=$(awk -v s="$best" -v scale="$scale" 'BEGIN { printf "%.3f", s / scale }')
    verdict=$(awk -v s="$best" -v b="$budget" 'BEGIN { print (s <= b ? "" : s <= 3 * b ? "over" : "TOO MUCH") }')
  fi
  printf '%6.2f s of %.2f s  %-45s %s\n' "${best/broken/0}" "$budget" "$name" "$verdict"
  measured=$((measured + 1))
  [ -z "$verdict" ] || over=$((over + 1))
  [[ $verdict != [A-Z]* ]] || failed=$((failed + 1))
}

closing_line() {  # WHAT: fails where something is beyond three times its budget
  echo "$measured $1, $over over the budget, $failed that fail (beyond three times the budget, or not compiled)"
  [ "$failed" = 0 ]
}
