#!/bin/bash
# The command line from outside: exit statuses, where output goes, every class of bad input. Runs the
# parts in tests/cli/, two at a time; each runs alone, too. Tests build/fusec, or the program in FUSEC, another build of it.
# FUSEC_IN_TURN=PROGRAM: of all parts but simulator.sh, whose time is the C++ compiler's, PROGRAM runs about every third
# command, a build under sanitizers.
set -u
cd "$(dirname "$0")/cli" || exit 1
log=../../build/cli${FUSEC:+.other}
rm -rf "$log"
mkdir -p "$log"

# The longest first.
parts=()
for part in simulator.sh $(ls ./*.sh | sed 's/^..//; /^lib.sh$/d; /^simulator.sh$/d'); do parts+=("$part"); done
# shellcheck disable=SC2016  # the inner shell expands it
printf '%s\n' "${parts[@]}" | xargs -P "${JOBS:-2}" -I @ sh -c '[ @ != simulator.sh ] || unset FUSEC_IN_TURN; ./@ >"$1/@.log" 2>&1' sh "$log"
status=$?

# What each part says of a failure or of what it skipped, then one line for all. A part that has no
# last line did not come to its end.
cd "$log" || exit 1
for part in "${parts[@]}"; do
    grep -v '^-- command line, .* passed$' "$part.log"
    grep -q '^-- command line, .* passed$' "$part.log" || { echo "FAILED: tests/cli/$part ended early"; status=1; }
done
sed -n 's/^-- command line, .*: \([0-9]*\) of \([0-9]*\) passed$/\1 \2/p' ./*.log |
    awk -v parts=${#parts[@]} '{ passed += $1; tests += $2 } END { print "-- command line: " passed " of " tests " passed in " parts " parts" }'
[ $status = 0 ]
