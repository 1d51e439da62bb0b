#!/usr/bin/env bash
# usage: run_mpi.sh MPIEXEC...
# Runs a test job. mpiexec answers 0 when a rank leaves by _exit(0) and the others are ended with it, so a
# job has passed only if the runner's closing line is there as well.
set -uo pipefail
exec 3>&1
closing=$("$@" 2>&1 | tee /dev/fd/3 | grep -E '^(passed|FAILED): [0-9]+ cases'; exit "${PIPESTATUS[0]}")
code=$?
if [ "$code" = 0 ] && [ -z "$closing" ]; then
  echo "FAILED: the job ended without the runner's closing line"
  code=88
fi
exit "$code"
