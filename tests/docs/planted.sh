#!/usr/bin/env bash
# usage: planted.sh FOLDER
# The checks of the documents find what is planted for them.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=$1
failed=0
unset DTM_UPDATE_DOCS

fresh() {
  rm -rf "$folder"
  mkdir -p "$folder"/{docs,tests,include/dtm/core,include/dtm/comm}
  printf '// [part]\n  int one = 1;\n// [part]\n' >"$folder/tests/code.cpp"
  printf 'class some_error : public error {\n' >"$folder/include/dtm/core/errors.hpp"
  printf '"dtm layout: wrong; Axis stands in the line "\n  "that names some_check"\n' \
    >"$folder/include/dtm/core/a.hpp"
  printf '[docs](docs/index.md)\n\n<!-- from tests/code.cpp part -->\n```cpp\nint one = 1;\n```\n' \
    >"$folder/README.md"
  printf '[errors](errors.md)\n' >"$folder/docs/index.md"
  printf '# A heading\n`some_error` `some_check` [up](#a-heading)\n' >"$folder/docs/errors.md"
}
plant() {  # CHECK FILE TEXT: the check passes, fails with the text added to the file
  fresh
  if ! output=$($1 2>&1); then
    echo "$1 complains about clean pages: $output"
    failed=1
  fi
  printf "$3" >>"$folder/$2"
  if $1 >/dev/null 2>&1; then
    echo "$1 does not see in $2: $3"
    failed=1
  fi
}
check() { bash "$here/check.sh" "$folder"; }
code() { bash "$here/sync.sh" "$folder" from marked; }

plant check README.md '[lost](docs/lost.md)\n'
plant check README.md '[lost](docs/errors.md#no-such-heading)\n'
plant check README.md '`tests/lost.cpp`\n'
plant check README.md '`dtm/lost.hpp`\n'
plant check README.md 'in /\x68ome/somebody/file\n'
plant check docs/unlisted.md 'a page\n'
plant check include/dtm/core/a.hpp '"dtm: Axis stands in the line that names another_check"\n'
plant check include/dtm/core/errors.hpp 'class another_error : public error {\n'
plant code tests/code.cpp '// [part]\n'
plant code README.md '```cpp\nint two = 2;\n```\n'
plant code README.md '<!-- from tests/code.cpp part -->\n```cpp\nint two = 2;\n```\n'
plant code README.md '<!-- from tests/code.cpp lost -->\n```cpp\n```\n'

fresh
printf '<!-- from tests/code.cpp part -->\n```cpp\nint two = 2;\n```\n' >>"$folder/README.md"
DTM_UPDATE_DOCS=1 code >/dev/null
code >/dev/null || { echo "DTM_UPDATE_DOCS=1 does not bring a page up to date"; failed=1; }
rm -rf "$folder"
[ "$failed" = 0 ] && echo "every planted fault is found"
