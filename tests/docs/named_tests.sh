#!/usr/bin/env bash
# usage: named_tests.sh REPOSITORY CTEST BUILD
# A promise in README.md or docs/ ends with "(tests: name, name)"; each name must be a test or a label.
set -uo pipefail
cd "$1"
known=$("$2" --test-dir "$3" --show-only=json-v1 | grep -oE '"(name|LABELS)" *: *"[^"]+"|^ *"[A-Za-z0-9_.]+",?$' |
  grep -oE '"[^"]+",?$' | tr -d '",' | sort -u)
missing=0 names=0
while IFS=: read -r file line text; do
  while read -r name; do
    names=$((names + 1))
    grep -qE "^${name//./\\.}(\.|$)" <<<"$known" || { echo "$file:$line: no test or label '$name'"; missing=1; }
  done < <(sed -E 's/.*\(tests: ([^)]*)\).*/\1/; s/, */\n/g; s/`//g' <<<"$text")
done < <(grep -HnE '\(tests: [^)]*\)' README.md docs/*.md)
[ "$names" -gt 0 ] || { echo "no promise names a test"; missing=1; }
[ "$missing" = 0 ] && echo "$names names of tests, all known"
