#!/usr/bin/env bash
# usage: packages.sh FOLDER
# What the two commands do about missing packages, on a pretended machine: without privileges, with sudo, as
# root, with everything there, and without apt.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
stubs=$1
rm -rf "$stubs"
mkdir -p "$stubs"
failed=0

stub() {  # NAME BODY
  printf '#!/bin/bash\n%s\n' "$2" >"$stubs/$1"
  chmod +x "$stubs/$1"
}
expect() {  # DESCRIPTION EXIT REGEX ['!'REGEX]
  local output code
  output=$(PATH="$stubs:$PATH" bash -c "set -euo pipefail; source '$here/../cmake/prepare.sh'
    install_packages present absent-a absent-b; echo goes on" </dev/null 2>&1)
  code=$?
  if [ "$code" != "$2" ] || ! grep -Eq -- "$3" <<<"$output" || { [ -n "${4:-}" ] && grep -Eq -- "$4" <<<"$output"; }; then
    echo "FAILED: $1 (exit code $code):"
    sed 's/^/    /' <<<"$output"
    failed=1
  fi
}

stub dpkg-query '[ "${@: -1}" = present ] && echo installed'
stub apt-get 'echo "apt-get $*"'
stub sudo '[ "$1" = -n ] && exit 1; echo "sudo $*"'
stub id 'echo 1000'
expect "no privileges" 1 '^Ask for:  apt-get install absent-a absent-b$' 'goes on|present'
stub sudo '[ "$1" = -n ] && exit 0; echo "sudo $*"'
expect "sudo" 0 '^sudo env DEBIAN_FRONTEND=noninteractive apt-get install .* absent-a absent-b$' 'install.* present'
stub id 'echo 0'
expect "root" 0 '^apt-get install .* absent-a absent-b$' 'sudo'
expect "root says it" 0 '^Installing: absent-a absent-b$'
stub apt-get '[ "$1" = update ]'
expect "a package that cannot be had" 1 'could not install: absent-a absent-b' 'goes on'
stub dpkg-query 'echo installed'
expect "nothing is missing" 0 '^goes on$' 'Installing|apt-get'
stub dpkg-query 'exit 1'
DTM_SKIP_PACKAGES=1 expect "told to leave the machine alone" 0 '^goes on$' 'Installing'
rm -rf "$stubs"
[ "$failed" = 0 ] && echo "packages: as they should"
