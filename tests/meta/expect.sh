#!/usr/bin/env bash
# usage: expect.sh EXIT SECONDS REGEX... -- COMMAND...
# Runs a command that is wrong on purpose. EXIT is a number or "nonzero"; the command must end within
# SECONDS; every REGEX (grep -E) must match a line of its output, one that starts with '!' must not.
set -uo pipefail
export LC_ALL=C
exit_wanted=$1 seconds=$2
shift 2
regexes=()
while [ "$1" != -- ]; do
  regexes+=("$1")
  shift
done
shift

start=$(date +%s.%N)
output=$(timeout --kill-after=2 "$seconds" "$@" 2>&1)
exit_got=$?
took=$(awk -v a="$start" -v b="$(date +%s.%N)" 'BEGIN { printf "%.2f", b - a }')
failed=0
complain() { echo "FAILED: $1"; failed=1; }

if [ "$exit_got" = 124 ] || [ "$exit_got" = 137 ]; then
  complain "still running after $seconds s"
elif [ "$exit_wanted" = nonzero ]; then
  [ "$exit_got" != 0 ] || complain "exit code 0, but a failure was planted"
else
  [ "$exit_got" = "$exit_wanted" ] || complain "exit code $exit_got instead of $exit_wanted"
fi
for regex in "${regexes[@]}"; do
  if [ "${regex:0:1}" = '!' ]; then
    ! grep -Eq -- "${regex:1}" <<<"$output" || complain "a line matches: ${regex:1}"
  else
    grep -Eq -- "$regex" <<<"$output" || complain "no line matches: $regex"
  fi
done
echo "exit code $exit_got after $took s; the command printed:"
sed 's/^/    /' <<<"$output"
exit $failed
