#!/usr/bin/env bash
# usage: check.sh tiny|planted|peer PYTHON BUILD FOLDER
# The bench on sizes that need seconds. tiny: every case is in the table and in the files, without a
# PyTorch, which the table then says. planted: wrong formulas are found. peer: PyTorch, if there is
# one, computes what the serial modules compute.
set -uo pipefail
export PYTHONDONTWRITEBYTECODE=1
what=$1 python=$2 build=$3 folder=$4
here=$(dirname "${BASH_SOURCE[0]}")
mkdir -p "$folder"

fault() {
  echo "FAILED: $*"
  exit 1
}
bench() {
  code=0
  "$python" "$here/bench.py" --tiny --build "$build" --results "$folder" "$@" >"$folder/said.txt" 2>&1 || code=$?
  cat "$folder/said.txt"
}

names=$("$python" "$here/bench.py" --tiny --list) || fault "no list of cases"
case $what in
  tiny)
    bench --torch none
    [ "$code" = 0 ] || fault "status $code"
    for name in $names; do
      grep -q "^$name " "$folder/table.txt" || fault "$name is not in the table"
      grep -q ",$name," "$folder/results.csv" || fault "$name is not in results.csv"
      case $name in
        */forward/* | */both/*)
          grep -E "^$name " "$folder/table.txt" | grep -q "not installed" ||
            fault "the table does not say that PyTorch is missing for $name" ;;
      esac
    done
    ! grep -qE 'WRONG|unchecked' "$folder/table.txt" || fault "a number is wrong or not checked"
    "$python" -c 'import sys, xml.dom.minidom as x; x.parse(sys.argv[1])' "$folder/results.svg" ||
      fault "results.svg is not well-formed" ;;
  planted)
    bench --torch none --planted product triangle transition
    [ "$code" = 1 ] || fault "status $code with wrong formulas"
    for name in $(grep -E '^(triangle|transition)' <<<"$names"); do
      grep -E "^$name " "$folder/table.txt" | grep -q WRONG || fault "$name was taken for right"
    done
    grep -q 'product/tiny: dtm is wrong' "$folder/said.txt" || fault "a wrong product was taken for right" ;;
  peer)
    bench both
    ! grep -q '^PyTorch *not installed' "$folder/table.txt" || { echo "skipped: no PyTorch"; exit 77; }
    [ "$code" = 0 ] || fault "status $code" ;;
esac
echo "passed"
