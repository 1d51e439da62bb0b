#!/usr/bin/env bash
# usage: build_consumer.sh CMAKE SOURCE BUILD FAILS_WITH [cmake options] -- [mpi|single|gpu]
# Configures, builds and runs a consumer in a fresh folder; with FAILS_WITH, configuring must fail with it.
set -euo pipefail
cmake=$1 source=$2 build=$3 fails_with=$4
shift 4
options=()
while [ "$1" != -- ]; do
  options+=("$1")
  shift
done
shift
rm -rf "$build"
if [ -n "$fails_with" ]; then
  if output=$("$cmake" -S "$source" -B "$build" "${options[@]}" 2>&1); then
    echo "configures, but must not"
    exit 1
  fi
  echo "$output"
  tr '\n' ' ' <<<"$output" | tr -s ' ' | grep -Eq "$fails_with"
  exit
fi
"$cmake" -S "$source" -B "$build" "${options[@]}"
"$cmake" --build "$build"
case "${1:-}" in
  mpi) mpiexec -n 2 "$build/consumer" ;;
  single) "$build/consumer" ;;
  gpu)  # runs, or says why it does not
    said=$(mpiexec -n 1 "$build/program" 2>&1) || true
    echo "$said"
    grep -qE '^NVIDIA .*: [-+.0-9e]+$|^refused: dtm cuda: .*(sees no GPU|no driver is installed)' <<<"$said" ;;
esac
