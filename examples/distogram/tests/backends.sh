#!/usr/bin/env bash
# The emulated backend trains as the host does: the same losses, in fp32, but for roundings.
#   backends.sh PROGRAM MPIEXEC NUMPROC_FLAG RANKS ARGUMENT...
set -eu
program=$1 mpiexec=$2 numproc=$3 ranks=$4
shift 4
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for backend in host emulated; do
  "$mpiexec" "$numproc" "$ranks" "$program" --steps 3 --blocks 1 --channels 16 --backend $backend \
    --out "$folder/$backend" "$@"
  grep -q ", backend $backend," "$folder/$backend/report.txt"
done
paste -d, "$folder/host/loss.csv" "$folder/emulated/loss.csv" | awk -F, '
  NR == 1 { next }
  { difference = $2 - $5; if (difference < 0) difference = -difference
    print "step " $1 ": host " $2 ", emulated " $5
    if ($1 != $4 || !($2 > 0) || difference > 1e-4 * $2) wrong = 1 }
  END { exit wrong || NR != 4 }'
