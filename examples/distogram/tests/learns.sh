#!/usr/bin/env bash
# A short run under mpiexec writes its files, and the loss falls.
#   learns.sh PROGRAM MPIEXEC NUMPROC_FLAG RANKS ARGUMENT...
set -eu
program=$1 mpiexec=$2 numproc=$3 ranks=$4
shift 4
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$mpiexec" "$numproc" "$ranks" "$program" --steps 6 --blocks 1 --out "$folder/out" "$@"
test -s "$folder/out/report.txt"
test "$(head -c 4 "$folder/out/contacts.png" | tail -c 3)" = PNG
awk -F, 'NR == 2 { first = $2 } { last = $2 } END { exit !(NR == 7 && last < first) }' "$folder/out/loss.csv"
