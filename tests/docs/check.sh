#!/usr/bin/env bash
# usage: check.sh REPOSITORY
# Relative links lead somewhere, files named in `code` exist, no page names somebody's machine, and
# every compile error that a header can give is in docs/errors.md.
set -uo pipefail
export LC_ALL=C
cd "$1"
faults=0
fault() {
  echo "$*"
  faults=$((faults + 1))
}
anchors() { sed -nE 's/^#+ +(.*)$/\1/p' "$1" | tr 'A-Z ' 'a-z-' | tr -cd 'a-z0-9_\n-'; }

pages=(README.md docs/*.md)
links=0
for page in "${pages[@]}"; do
  folder=$(dirname "$page")
  while read -r target; do
    [[ $target =~ ^https?:// ]] && continue
    links=$((links + 1))
    path=${target%%#*} anchor=""
    [[ $target == *#* ]] && anchor=${target#*#}
    file=$page
    if [ -n "$path" ]; then file=$folder/$path; fi
    if [ ! -e "$file" ]; then
      fault "$page: link to $target leads nowhere"
    elif [ -n "$anchor" ] && ! anchors "$file" | grep -qx -- "$anchor"; then
      fault "$page: $file has no heading #$anchor"
    fi
  done < <(grep -oE '\]\([^) ]+\)' "$page" | sed -E 's/^\]\(//; s/\)$//')
  while read -r path; do
    [ -e "$path" ] || fault "$page: there is no $path"
  done < <(grep -oE '`(include|tests|examples|docs)/[A-Za-z0-9_./-]+`' "$page" | tr -d '`')
  while read -r header; do
    [ -e "include/$header" ] || fault "$page: there is no header $header"
  done < <(grep -oE '`dtm/[a-z0-9_/]+\.hpp`' "$page" | tr -d '`')
  grep -HnE '(^|[^A-Za-z0-9_.])/(work|home|root|tmp|Users)/|[A-Za-z]:\\|localhost' "$page" &&
    faults=$((faults + 1))
done
[ "$links" -gt 0 ] || fault "no relative link in any page"

for page in docs/*.md; do
  [ "$page" = docs/index.md ] || grep -q "($(basename "$page"))" docs/index.md ||
    fault "docs/index.md does not list $page"
done

# string literals are split over lines
classes=$(cat $(find include/dtm -name '*.hpp' | sort) | tr '\n"' '  ' | tr -s ' ' |
  grep -oE 'in the line that names [a-z_]+' | sed 's/.* //' | sort -u)
for class in $classes; do
  grep -q "\`$class\`" docs/errors.md || fault "docs/errors.md does not know $class"
done
[ -n "$classes" ] || fault "no compile error found in include/dtm"
for error in $(sed -nE 's/^class ([a-z_]+) : public error.*/\1/p' include/dtm/core/errors.hpp); do
  grep -q "\`$error\`" docs/errors.md || fault "docs/errors.md does not know $error"
done
[ "$faults" = 0 ] && echo "clean: $links links, $(wc -w <<<"$classes") compile errors"
