#!/usr/bin/env bash
# usage: planted.sh FOLDER
# Every rule of check.sh finds the offence planted for it, and nothing in a clean repository.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
rm -rf "$1"
failed=0

fresh() {
  rm -rf "$repository"
  mkdir -p "$repository"/include/dtm/{core,contract,serial,ops,modules,comm}
  printf '#pragma once\n#include <concepts>\n// using namespace std; in a comment\n' \
    >"$repository/include/dtm/core/clean.hpp"
  printf '#pragma once\n#include "dtm/backend/context.hpp"\n#include <vector>\n' \
    >"$repository/include/dtm/modules/clean.hpp"
  git -C "$repository" init -q
  commit
}
commit() {
  git -C "$repository" add -A
  git -C "$repository" -c user.name=test -c user.email=test@example.org commit -qm planted --allow-empty
}
plant() {  # RULE FILE TEXT
  fresh
  if ! "$here/check.sh" "$1" "$repository" >/dev/null; then
    echo "$1 complains about a clean repository"
    failed=1
  fi
  mkdir -p "$(dirname "$repository/$2")"
  printf "$3" >"$repository/$2"
  commit
  if "$here/check.sh" "$1" "$repository" >/dev/null; then
    echo "$1 does not see: $3"
    failed=1
  fi
}

repository=$1/repository
once='#pragma once\n'
plant pragma_once include/dtm/core/a.hpp 'struct a;\n'
plant no_using_namespace include/dtm/core/a.hpp "${once}using namespace std;\n"
plant macros_have_a_prefix include/dtm/core/a.hpp "$once#define MAX 1\n"
plant vocabulary_is_light include/dtm/core/a.hpp "$once#include <vector>\n"
plant vocabulary_is_light include/dtm/contract/a.hpp "$once#include <string>\n"
plant vocabulary_is_light include/dtm/core/a.hpp "$once#include \"dtm/core/errors.hpp\"\n"
plant dependencies_point_one_way include/dtm/core/a.hpp "$once#include \"dtm/comm/world.hpp\"\n"
plant dependencies_point_one_way include/dtm/comm/a.hpp "$once#include <dtm/modules/linear.hpp>\n"
plant dependencies_point_one_way include/dtm/ops/a.hpp "$once#include <nlohmann/json.hpp>\n"
plant modules_know_no_backend include/dtm/modules/a.hpp "$once#include <dtm/backend/host/gemm.hpp>\n"
plant modules_know_no_backend include/dtm/ops/a.hpp "$once#include <Eigen/Core>\n"
plant headers_are_short include/dtm/ops/a.hpp "$once$(printf '//\\n%.0s' {1..400})"
plant stands_alone include/dtm/ops/a.hpp "$once// see ../shared/design.md\n"
plant stands_alone tests/a.cpp '// /home/somebody/file\n'
plant top_level stray.txt 'x\n'
rm -rf "$1"
[ "$failed" = 0 ] && echo "every rule finds its planted offence"
