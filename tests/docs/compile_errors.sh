#!/usr/bin/env bash
# usage: compile_errors.sh REPOSITORY COMPILER FLAG...
# The compiler messages in docs/ are g++ 12's; another version words them otherwise.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repository=$1
export DTM_DOCS_COMPILER=$2
shift 2
export DTM_DOCS_FLAGS="$*"
version=$("$DTM_DOCS_COMPILER" -dumpversion 2>/dev/null) || version=none
if ! [[ $version == 12* ]] || "$DTM_DOCS_COMPILER" --version | grep -qi clang; then
  echo "skipped: no g++ 12 here, but $version"
  exit 77
fi
exec bash "$here/sync.sh" "$repository" compiler
