#!/usr/bin/env bash
# usage: compile.sh NVCC FILE.cu FOLDER FLAG...
# Compiles device code for every architecture that is supported, warnings are errors; a kernel that
# spills registers or needs a stack is one, too. The object file goes to FOLDER.
set -uo pipefail
nvcc=$1 file=$2 folder=$3
shift 3
if ! [ -x "$nvcc" ]; then
  echo "skipped: no nvcc here"
  exit 77
fi
architectures=()
for architecture in 80 90 100; do
  "$nvcc" --list-gpu-code 2>/dev/null | grep -qx "sm_$architecture" &&
    architectures+=(-gencode "arch=compute_$architecture,code=sm_$architecture")
done
output=$("$nvcc" -std=c++20 "${architectures[@]}" -Xptxas -v --Werror all-warnings "$@" -c "$file" \
  -o "$folder/$(basename "$file").o" 2>&1) || { echo "$output"; exit 1; }
if grep -E 'stack frame' <<<"$output" | grep -vE ' 0 bytes stack frame, 0 bytes spill stores'; then
  echo "a kernel needs local memory"
  exit 1
fi
echo "$(grep -c 'Compiling entry function' <<<"$output") kernels"
