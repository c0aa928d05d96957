#!/bin/bash
# Fuzzing. `fuzz.sh replay` feeds the corpora to the targets under ASan and UBSan (build/asan must be
# built); `fuzz.sh` alone fuzzes each target with libFuzzer for $SECONDS_EACH seconds (60) and leaves
# what it finds in build/fuzz.
set -eu
cd "$(dirname "$0")/.."
targets=$(ls tests/fuzz/fuzz_*.c | sed 's/.*fuzz_\(.*\)\.c/\1/')

seeds() {   # TARGET
    ls -d tests/fuzz/corpus/"$1"/* 2>/dev/null || true
    [ "$1" = text ] && ls examples/*.fuse tests/golden/*.fuse src/frontend/std.fuse
    true
}

if [ "${1:-}" = replay ]; then
    for target in $targets; do
        build/asan/replay_"$target" $(seeds "$target")
        echo "-- fuzz corpus $target: $(seeds "$target" | wc -l) inputs"
    done
    exit 0
fi
for target in $targets; do
    corpus=build/fuzz/corpus_$target
    mkdir -p "$corpus"
    for seed in $(seeds "$target"); do   # some files of two folders have one name
        cp "$seed" "$corpus/$(echo "$seed" | tr / _)"
    done
    build/fuzz/fuzz_"$target" -dict=tests/fuzz/"$target".dict -max_total_time="${SECONDS_EACH:-60}" \
        -max_len=65536 -timeout=10 -artifact_prefix=build/fuzz/ "$corpus"
done
