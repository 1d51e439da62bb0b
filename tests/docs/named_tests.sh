#!/usr/bin/env bash
# usage: named_tests.sh REPOSITORY CTEST BUILD [ABSENT]
# A promise in README.md or docs/ has "(tests: `name`, `name`)"; each is a test or a label, or matches
# ABSENT, a regex of what this machine cannot build.
set -uo pipefail
cd "$1"
known=$("$2" --test-dir "$3" --show-only=json-v1 |
  grep -oE '"(name|LABELS)" *: *"[^"]+"|^ *"[A-Za-z0-9_.]+",?$' |
  grep -oE '"[^"]+",?$' | tr -d '",' | sort -u)
promised() {  # a promise may run over lines
  tr '\n' ' ' <"$1" | grep -oE '\(tests: [^)]*\)' | sed -E 's/^\(tests: //; s/\)$//' |
    tr -d '` ' | tr ',' '\n'
}
missing=0 names=0 absent=0
for page in README.md docs/*.md; do
  for name in $(promised "$page"); do
    names=$((names + 1))
    grep -qE "^${name//./\\.}(\.|$)" <<<"$known" && continue
    if [ -n "${4:-}" ] && grep -qxE "$4" <<<"$name"; then absent=$((absent + 1)) && continue; fi
    echo "$page: no test or label '$name'"
    missing=1
  done
done
[ "$names" -gt 0 ] || { echo "no promise names a test"; missing=1; }
[ "$missing" = 0 ] && echo "$names names of tests, all known; $absent of tests that are not built here"
