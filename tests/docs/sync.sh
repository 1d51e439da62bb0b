#!/usr/bin/env bash
# usage: sync.sh REPOSITORY KIND...
# Parts of README.md and docs/ are not written by hand; a directive before them says what they are.
# All but the third are about the next code block:
#
#   <!-- from FILE NAME -->        FILE between its lines "// [NAME]", or "# [NAME]"
#   <!-- block FILE TEXT -->       the brace block of FILE whose first line has TEXT, and a line
#                                  "template" before it
#   <!-- generated WORD -->        what $DTM_DOCS_GENERATE WORD prints, up to <!-- end -->
#   <!-- drawn WORD -->            the same as a block
#   <!-- run_time ERROR -->        what $DTM_DOCS_RUN_TIME ERROR prints
#   <!-- compiler FILE REGEX -->   a case of a negative test, and what g++ 12 says to it
#   <!-- fragment -->              not compiled
#
# Compares the parts of the given kinds; with DTM_UPDATE_DOCS=1 they are rewritten. Kind "marked"
# checks that every C++ block has a directive.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$1"
shift
kinds=" $* "
made=" from block generated drawn run_time compiler "
pages=(README.md docs/*.md)
stale=0

between() {  # FILE NAME: the lines between the marks, without their common indentation
  awk -v mark="// [$2]" '{ line = $0; sub(/^ +/, "", line); sub(/^# /, "// ", line) }
    line == mark { inside = !inside; seen++; next }
    inside
    END { if (seen != 2) { print "no part [" mark "]"; exit 1 } }' "$1" | unindented
}

unindented() {
  awk '{ lines[NR] = $0 }
       $0 != "" { match($0, /^ */); if (least == "" || RLENGTH < least) least = RLENGTH }
       END { for (i = 1; i <= NR; i++) print substr(lines[i], least + 1) }'
}

block() {  # FILE TEXT: up to the closing brace at the indentation of the first line
  awk -v text="$2" '!inside && index($0, text) {
      inside = 1
      match($0, /^ */)
      indent = RLENGTH
      if (before ~ /^ *template </) print before
    }
    { before = $0 }
    inside { print; match($0, /^ */) }
    inside && RLENGTH == indent && /^ *}/ { done = 1; exit }
    END { if (!done) { print "no block with " text; exit 1 } }' "$1" | unindented
}

content() {  # KIND ARGUMENTS...
  case $1 in
    from) between "$2" "$3" ;;
    block) block "$2" "${*:3}" ;;
    generated | drawn) "$DTM_DOCS_GENERATE" "$2" | sed 's/ *$//' ;;
    run_time)  # neither times nor lines of headers are what a page is about
      $DTM_DOCS_RUN_TIME "$2" | sed -E 's# *$##; s#[^ "]*/(tests|include|examples)/#\1/#g
        s#(include/[a-z_/]+\.hpp):[0-9]+#\1#g; s# for [0-9.]+ s;# for 2.0 s;#' |
        fold -s -w 108 | sed 's/ *$//' ;;
    compiler) bash "$here/compiler_says.sh" "$2" "${*:3}" ;;
  esac
}

for page in "${pages[@]}"; do
  fresh=$(mktemp)
  old=""      # what is being skipped, up to a line "``` " or <!-- end -->
  pending=""  # content that waits for the opening fence
  marked=0 number=0
  while IFS= read -r line || [ -n "$line" ]; do
    number=$((number + 1))
    if [ -n "$old" ]; then
      if [ "$line" = "$old" ]; then old="" && printf '%s\n' "$line" >>"$fresh"; fi
      continue
    fi
    printf '%s\n' "$line" >>"$fresh"
    if [[ $line =~ ^\<\!--\ ([a-z_]+)(\ (.*))?\ --\>$ ]]; then
      kind=${BASH_REMATCH[1]} words=${BASH_REMATCH[3]:-}
      marked=1
      if [[ $made == *" $kind "* && $kinds == *" $kind "* ]]; then
        read -ra arguments <<<"$words"
        # without </dev/null mpiexec would read the page
        text=$(content "$kind" "${arguments[@]}" </dev/null) ||
          { echo "$page:$number: $line: cannot be made: $text"; stale=1; continue; }
        if [ "$kind" = generated ]; then
          printf '\n%s\n\n' "$text" >>"$fresh"
          old="<!-- end -->"
        else
          pending=$text
        fi
      fi
    elif [[ $line == '```'* ]]; then
      if [ "$line" = '```cpp' ] && [ "$marked" = 0 ] && [[ $kinds == *" marked "* ]]; then
        echo "$page:$number: a C++ block that is neither compiled nor marked as a fragment"
        stale=1
      fi
      if [ -n "$pending" ]; then
        printf '%s\n' "$pending" >>"$fresh"
        pending=""
        old='```'
      fi
      marked=0
    fi
  done <"$page"
  [ -z "$old" ] || { echo "$page: no line '$old' after the last directive"; stale=1; }
  if ! cmp -s "$page" "$fresh"; then
    if [ "${DTM_UPDATE_DOCS:-0}" = 1 ]; then
      cp "$fresh" "$page"
      echo "$page: rewritten"
    else
      diff -u "$page" "$fresh" | sed -n 1,60p
      echo "$page is stale; DTM_UPDATE_DOCS=1 rewrites it"
      stale=1
    fi
  fi
  rm -f "$fresh"
done
[ "$stale" = 0 ] && echo "up to date:$kinds"
