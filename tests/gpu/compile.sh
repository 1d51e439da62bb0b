#!/usr/bin/env bash
# usage: compile.sh OBJECT NVCC [ARGUMENT...]
# Compiles one unit with nvcc. What ptxas says about the kernels goes to OBJECT.log, in files of
# its own for the dependencies; a warning fails.
set -uo pipefail
object=$1
shift
log=$object.log
"$@" -Werror all-warnings -Xptxas -v -MD -MF "$object.d" -o "$object" >"$log" 2>&1
code=$?
if [ "$code" != 0 ]; then
  grep -vE '^ptxas info|bytes stack frame' "$log"
  rm -f "$object"
fi
exit "$code"
