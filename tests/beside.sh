#!/bin/bash
# Runs commands two at a time, beginning with the first, and then prints what they said, in this order.
# Fails if one of them does.
#     tests/beside.sh 'COMMAND'...
set -u
cd "$(dirname "$0")/.." || exit 1
said=build/beside
rm -rf $said
mkdir -p $said
i=0
# shellcheck disable=SC2016  # the inner shell expands it
for command; do printf '%s\0' $((++i)) "$command"; done |
    xargs -0 -n 2 -P 2 sh -c 'sh -c "$2" >"$0/$1" 2>&1 || { echo "FAILED: $2" >>"$0/$1"; exit 1; }' $said
status=$?
for ((i = 1; i <= $#; i++)); do cat $said/$i; done
exit $status
