#!/bin/bash
# The command line from outside: exit statuses, where output goes, every class of bad input. Runs the
# parts in tests/cli/, two at a time; each runs alone, too. Tests build/fusec, or the program in FUSEC, another build of it.
#     tests/cli.sh        all parts
#     tests/cli.sh once   of build/fusec only the parts that leave something out where they test another build, which are the
#                         slow ones; of another build all except what mostly runs the simulator's compiler
set -u
cd "$(dirname "$0")/cli" || exit 1
log=../../build/cli${FUSEC:+.other}
rm -rf "$log"
mkdir -p "$log"

# The longest first.
parts=()
for part in simulator.sh $(ls ./*.sh | sed 's/^..//; /^lib.sh$/d; /^simulator.sh$/d'); do
    case ${1:-all}${FUSEC:+.other} in
    once) grep -q '\<first_build\>' "$part" || continue ;;
    once.other) [ "$part" != simulator.sh ] || continue ;;
    esac
    parts+=("$part")
done
# shellcheck disable=SC2016  # the inner shell expands it
printf '%s\n' "${parts[@]}" | xargs -P "${JOBS:-2}" -I @ sh -c './@ >"$1/@.log" 2>&1' sh "$log"
status=$?

# What each part says of a failure or of what it skipped, then one line for all. A part that has no
# last line did not come to its end.
cd "$log" || exit 1
for part in "${parts[@]}"; do
    grep -v '^-- command line, .* passed$' "$part.log"
    grep -q '^-- command line, .* passed$' "$part.log" || { echo "FAILED: tests/cli/$part ended early"; status=1; }
done
sed -n 's/^-- command line, .*: \([0-9]*\) of \([0-9]*\) passed$/\1 \2/p' ./*.log |
    awk -v parts=${#parts[@]} -v all="$(($(ls "$OLDPWD"/*.sh | wc -l) - 1))" '{ passed += $1; tests += $2 }
        END { print "-- command line: " passed " of " tests " passed in " parts " of " all " parts" }'
[ $status = 0 ]
