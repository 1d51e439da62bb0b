#!/usr/bin/env bash
# usage: page.sh PLANNER PAGE
# The block after a line <!-- planned OPTIONS --> of a page is what the planner prints with these options;
# DTM_UPDATE_DOCS=1 writes it.
set -euo pipefail
planner=$1 page=$2
fresh=$(mktemp)
trap 'rm -f "$fresh"' EXIT
skipping="" options=""
while IFS= read -r line; do
  if [ -n "$skipping" ]; then
    [ "$line" = '```' ] || continue
    skipping=""
  fi
  printf '%s\n' "$line" >>"$fresh"
  if [[ $line =~ ^\<\!--\ planned\ (.*)\ --\>$ ]]; then
    options=${BASH_REMATCH[1]}
  elif [ -n "$options" ] && [[ $line == '```'* ]]; then
    read -ra arguments <<<"$options"
    "$planner" "${arguments[@]}" | sed 's/ *$//' >>"$fresh"
    options="" skipping=1
  fi
done <"$page"
if cmp -s "$page" "$fresh"; then
  echo "up to date"
elif [ "${DTM_UPDATE_DOCS:-0}" = 1 ]; then
  cp "$fresh" "$page"
  echo "$page: rewritten"
else
  diff -u "$page" "$fresh" || true
  echo "$page is stale; DTM_UPDATE_DOCS=1 rewrites it"
  exit 1
fi
