#!/usr/bin/env bash
# Wrong input under mpiexec: rank 0 says one sentence, all ranks end with a status that is not zero, in time.
#   refusals.sh PROGRAM MPIEXEC NUMPROC_FLAG DATA
set -u
program=$1 mpiexec=$2 numproc=$3 data=$4
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failures=0

# refused RANKS REGEX ARGUMENT...
refused() {
  local ranks=$1 pattern=$2 status said
  shift 2
  timeout 60 "$mpiexec" "$numproc" "$ranks" "$program" "$@" \
    >"$folder/stdout" 2>"$folder/stderr"
  status=$?
  said=$(grep '^distogram: ' "$folder/stderr")
  if [ $status = 0 ] || [ $status = 124 ] || [ "$(wc -l <<<"$said")" != 1 ] ||
    ! grep -qE "$pattern" <<<"$said"; then
    echo "FAILED ($ranks ranks, $*): status $status, expected one sentence like '$pattern', got:"
    cat "$folder/stderr"
    failures=$((failures + 1))
  else
    echo "ok: $said"
  fi
}

touch "$folder/empty.cif"
printf 'data_x\n_cell.length_a 1\n' >"$folder/no_atoms.cif"
grep -v '^ATOM' "$data/1gbt.cif" >"$folder/water.cif"
sed '0,/19.457 32.943/s//abc 32.943/' "$data/1a8o.cif" >"$folder/not_a_number.cif"
sed 's/ CA / CX /; s/ CB / CY /' "$data/1a8o.cif" >"$folder/no_centres.cif"
{ sed -n '1,/_atom_site.pdbx_PDB_model_num/p' "$data/1a8o.cif" | sed '/^_entity_poly_seq/d; /^1 [0-9]/d'
  grep '^ATOM' "$data/1a8o.cif" | awk '$9 <= 3'; } | sed '/^loop_/{N;/loop_\n#/d}' >"$folder/three.cif"

refused 4 'cannot be opened' --file "$folder/missing.cif"
refused 4 'is empty' --file "$folder/empty.cif"
refused 4 'no atoms' --file "$folder/no_atoms.cif"
refused 4 'no polymer chain' --file "$folder/water.cif"
refused 4 "atom 5 .*'abc'.*not a finite number" --file "$folder/not_a_number.cif"
refused 4 'none of the 70 residues' --file "$folder/no_centres.cif"
refused 4 "chain 'Q' .* are A" --chain Q
refused 4 '3 residues, fewer than the 4 .* smaller mesh' --file "$folder/three.cif" --mesh 1x4
refused 4 'not expected: --nonsense' --nonsense
refused 4 'needs 6 ranks, mpiexec started 4' --mesh 2x3
refused 2 'square mesh' --schedule cannon
refused 2 'emulated is compiled for --dtype fp32' --backend emulated --dtype bf16
refused 2 'verify compares the host backend' --verify --backend emulated
refused 2 'channels 32 is not compiled for fp32 on this backend, which has 16' --backend emulated --channels 32
ldd "$program" | grep -q libcudart || refused 2 'backend cuda was not compiled; configure with' --backend cuda
refused 2 'cannot be made' --out "$folder/empty.cif/out"
exit $((failures > 0))
