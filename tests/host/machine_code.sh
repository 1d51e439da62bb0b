#!/usr/bin/env bash
# machine_code.sh OBJDUMP OBJECT: the micro kernels in it contain the multiply-adds of their own
# registers, whatever flags it was compiled with.
set -euo pipefail
objdump=$1 program=$2
[ -x "$objdump" ] || { echo "objdump is missing: nothing was looked at"; exit 77; }
[ "$(uname -m)" = x86_64 ] || { echo "no instruction sets but the portable one here"; exit 77; }

# Lines of disassembly of the micro kernels in a namespace that have the instruction and the register.
count() {
  "$objdump" -d -C --no-show-raw-insn "$program" |
    awk -v name="dtm::tiles::$1::micro_tile<$2" -v instruction="$3" -v register="$4" '
      /^[0-9a-f]+ </ { inside = index($0, name) > 0 }
      inside && index($0, instruction) && index($0, register) { found++ }
      END { print found + 0 }'
}

failed=0
expect() {  # least count, then as count
  local found
  found=$(count "${@:2}")
  echo "$2 $3: $found $4 with $5, at least $1 expected"
  [ "$found" -ge "$1" ] || failed=1
}
expect 24 avx512 float vfmadd zmm
expect 24 avx512 double vfmadd zmm
expect 12 avx2 float vfmadd ymm
expect 12 avx2 double vfmadd ymm
for wide in ymm zmm; do
  found=$(count portable float v "$wide")
  [ "$found" = 0 ] || { echo "portable float: $found instructions with $wide"; failed=1; }
done
exit "$failed"
