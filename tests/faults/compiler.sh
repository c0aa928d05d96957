#!/bin/sh
# The simulator's compiler under the injector: g++ once for each text, then what it made.
folder=$FAULTS_BUILD/compiled
case "$1" in --version) exit 0 ;; esac
mkdir -p "$folder"
for last; do
    case "$previous" in -o) out=$last ;; esac
    previous=$last
done
text=$(dirname "$out")/kernel.cu
made=$folder/$(cksum <"$text" | tr ' ' -)-$(basename "$out")
test -f "$made" || { g++ "$@" && cp "$out" "$made.$$" && mv "$made.$$" "$made"; } || exit 1
cp "$made" "$out"
