#!/bin/bash
# clang compiles sources with warnings as errors, many of them in one process, for its start takes as long as a source. Its
# driver knows no such thing, so it is asked how it would compile the first, and that is done to all.
#     tests/lint.sh 'CLANG FLAG...' SOURCE...
set -eu
cd "$(dirname "$0")/.."
compile=$($1 -fsyntax-only -### "$2" 2>&1 | tail -n 1)
shift
case $compile in
*' "-cc1" '*" \"$1\"") ;;
*) echo "lint: clang does not say how it compiles $1: $compile"; exit 1 ;;
esac
export compile=${compile% *}
# shellcheck disable=SC2016  # the inner shell expands it
printf '%s\n' "$@" | xargs -P 2 -n 70 sh -c 'eval "$compile \"\$@\""' sh
