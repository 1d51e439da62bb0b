#!/usr/bin/env bash
# usage: named_tests.sh REPOSITORY CTEST BUILD
# A promise in README.md or docs/ has "(tests: `name`, `name`)"; each name must be a test or a label.
set -uo pipefail
cd "$1"
known=$("$2" --test-dir "$3" --show-only=json-v1 | grep -oE '"(name|LABELS)" *: *"[^"]+"|^ *"[A-Za-z0-9_.]+",?$' |
  grep -oE '"[^"]+",?$' | tr -d '",' | sort -u)
missing=0 names=0
for page in README.md docs/*.md; do
  while read -r name; do
    [ -n "$name" ] || continue
    names=$((names + 1))
    grep -qE "^${name//./\\.}(\.|$)" <<<"$known" || { echo "$page: no test or label '$name'"; missing=1; }
  done < <(tr '\n' ' ' <"$page" | grep -oE '\(tests: [^)]*\)' | sed -E 's/^\(tests: //; s/\)$//' | tr -d '` ' | tr ',' '\n')
done
[ "$names" -gt 0 ] || { echo "no promise names a test"; missing=1; }
[ "$missing" = 0 ] && echo "$names names of tests, all known"
