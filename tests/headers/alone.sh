#!/usr/bin/env bash
# usage: alone.sh COMPILER OWN_INCLUDE HEADER... -- [-Ifolder...]
# Compiles every header alone, with warnings as errors. CUDA headers are nvcc's and left out.
set -uo pipefail
compiler=$1 own=$2
shift 2
headers=()
while [ "$1" != -- ]; do
  [[ $1 == *.cuh ]] || headers+=("$1")
  shift
done
shift
flags=(-std=c++20 -fsyntax-only -Wall -Wextra -Werror "-I$own")
for folder in "$@"; do  # other people's warnings are not ours
  [ "$folder" = -I ] || [ "$folder" = "-I$own" ] || flags+=(-isystem "${folder#-I}")
done
failed=0
for header in "${headers[@]}"; do
  printf '#include <%s>\n' "$header" | "$compiler" "${flags[@]}" -x c++ - ||
    { echo "does not compile alone: $header"; failed=$((failed + 1)); }
done
echo "$((${#headers[@]} - failed)) of ${#headers[@]} headers compile alone"
[ "$failed" = 0 ]
