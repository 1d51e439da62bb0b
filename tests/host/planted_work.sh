#!/usr/bin/env bash
# usage: planted_work.sh COUNTS BUILD PROGRAM
# work.sh must fail where the counts of the file are 3 % off.
set -uo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
awk -F': ' '/^ *"[a-z_0-9]+": [0-9]/ { comma = /,$/ ? "," : ""; printf "%s: %d%s\n", $1, $2 * 1.03, comma; next }
  { print }' "$1" > "$folder/counts.json"
DTM_UPDATE_COUNTS=0 bash "$(dirname "${BASH_SOURCE[0]}")/work.sh" "$folder/counts.json" "$2" "$3" product_nn
code=$?
[ "$code" != 77 ] || exit 77
[ "$code" = 1 ] && { echo "the planted change was seen"; exit 0; }
echo "FAILED: a change of 3 % was not seen (exit code $code)"
exit 1
