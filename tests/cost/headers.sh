#!/usr/bin/env bash
# usage: headers.sh COMPILER BUDGET HEADER... -- [compiler options]
# CPU seconds that each header costs the compiler in a unit of its own, beside its budget; see seconds.sh.
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/seconds.sh"
compiler=$1 budget=$2
shift 2
headers=()
while [ "$1" != -- ]; do
  [[ $1 == *.cuh ]] || headers+=("$1")
  shift
done
shift
set_scale "$compiler"
for header in "${headers[@]}"; do
  measure "$header" "$budget" "#include <$header>\n" "$compiler" -std=c++20 -fsyntax-only "$@" -x c++ -
done
closing_line headers
