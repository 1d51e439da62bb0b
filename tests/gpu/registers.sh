#!/usr/bin/env bash
# usage: registers.sh TABLE LOG
# What ptxas said about every kernel, against the committed table. Fails where a kernel spills more
# than it may, is not in the table, or is in the table and was not made. An architecture that the
# table does not have is not compared.
# DTM_UPDATE_REGISTERS=1 writes the table anew for the architectures of the log.
set -euo pipefail
export LC_ALL=C
table=$1
log=$2
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT

# arch registers spilled shared kernel, the spilled bytes being stores and loads together
c++filt <"$log" | awk '
  /Compiling entry function/ {
    arch = $0; sub(/.* for .sm_/, "", arch); sub(/[^0-9a-z].*/, "", arch)
    kernel = $0; sub(/.*entry function ./, "", kernel); sub(/. for .sm_.*/, "", kernel)
    sub(/^void dtm::gpu::detail::run_kernel</, "", kernel); sub(/ *>\([^()]*\)$/, "", kernel)
    gsub(/dtm::kernels::|dtm::/, "", kernel); gsub(/ >/, ">", kernel); gsub(/, /, ",", kernel)
  }
  /bytes spill stores/ { spilled = $5 + $9 }
  /Used [0-9]+ registers/ {
    registers = $0; sub(/.*Used /, "", registers); sub(/ registers.*/, "", registers)
    shared = 0
    if ($0 ~ /bytes smem/) { shared = $0; sub(/ bytes smem.*/, "", shared); sub(/.* /, "", shared) }
    print arch, registers, spilled, shared, kernel
  }' | sort -k5 -k1,1 -u >"$here/now"
[ -s "$here/now" ] || { echo "nvcc made no kernel"; exit 1; }

if [ "${DTM_UPDATE_REGISTERS:-0}" = 1 ]; then
  arches=$(cut -d' ' -f1 "$here/now" | sort -u | tr '\n' ' ')
  {
    sed -n '/^#/p' "$table"
    { awk -v arches=" $arches" '!/^#/ && index(arches, " " $1 " ") == 0' "$table"; cat "$here/now"; } |
      sort -k5 -k1,1
  } >"$here/table"
  cp "$here/table" "$table"
  echo "wrote $(wc -l <"$here/now") kernels to $table"
  exit 0
fi

awk '
  FNR == NR { if ($0 !~ /^#/ && NF) { key = $5 " " $1; known[key] = 1; tabled[$1] = 1; registers[key] = $2; spilled[key] = $3 } next }
  {
    if (!($1 in tabled)) { if (!untabled[$1]++) print "note: the table has nothing for sm_" $1; next }
    arches[$1] = 1; key = $5 " " $1; made[key] = 1; ++kernels
    if (!(key in known)) { print "not in the table: " $5 " for sm_" $1 ": " $2 " registers, " $3 " bytes spilled"; ++wrong }
    else if ($3 > spilled[key]) { print $5 " for sm_" $1 " spills " $3 " bytes, " spilled[key] " may be"; ++wrong }
    else if ($2 > registers[key] + 8) print "note: " $5 " for sm_" $1 " has " $2 " registers, had " registers[key]
  }
  END {
    for (key in known) {
      split(key, part, " ")
      if (part[2] in arches && !(key in made)) { print "in the table, but nvcc made no such kernel: " part[1] " for sm_" part[2]; ++wrong }
    }
    if (wrong) {
      print wrong " differences. Where they are meant, DTM_UPDATE_REGISTERS=1 with the same call writes the table anew:"
      exit 1
    }
    print kernels " kernels as in the table"
  }' "$table" "$here/now" || { echo "  DTM_UPDATE_REGISTERS=1 ctest -R gpu.registers"; exit 1; }
