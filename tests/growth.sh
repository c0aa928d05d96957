#!/bin/bash
# Programs of very many values: the commands work with a small stack, for nothing recurses along a chain of values, and the
# time they take grows about as fast as the program (growth.c).
set -u
cd "$(dirname "$0")/.."
work=build/growth.d
mkdir -p $work
export FUSEC_NVRTC=/dev/null NO_COLOR=1
ulimit -s 256
bad=0

# 2^16 applications of a function, by functions that each call the one before twice.
{
    echo 'fn a0(x) = x * 1.001 + 0.5'
    for i in $(seq 16); do echo "fn a$i(x) = a$((i - 1))(a$((i - 1))(x))"; done
    printf 'graph deep[M = 1, N = 4](\n    x : f32[M, N]\n) -> (\n    y : f32[M, N]\n) {\n    y = a16(x)\n}\n'
} >$work/functions.fuse

awk 'BEGIN {
    print "graph deep[M = 1, N = 4](\n    x : f32[M, N]\n) -> (\n    y : f32[M, N]\n) {\n    v0 = x"
    for (i = 1; i < 80000; i++) print "    v" i " = v" i - 1 " * 1.001 + 0.5"
    print "    y = v79999\n}"
}' >$work/statements.fuse

for file in functions statements; do
    for command in 'check' 'emit --arch sm_90a' 'emit --emit=dot' 'explain --arch sm_90a' 'run --device cpu --verify' 'fmt'; do
        # shellcheck disable=SC2086
        timeout 60 build/fusec ${command%% *} $work/$file.fuse ${command#"${command%% *}"} >$work/out 2>$work/err ||
            { echo "FAILED: $command $file.fuse: exit status $?"; head -n 3 $work/err; bad=1; }
    done
    # no line holds more than a compiler can nest
    build/fusec $work/$file.fuse --arch sm_90a | awk 'length > 2000 { exit 1 }' || { echo "FAILED: a long line of $file.fuse"; bad=1; }
done

timeout 100 build/growth >$work/table || { cat $work/table; echo "FAILED: growth"; bad=1; }
[ $bad = 0 ] && echo "-- growth: $(wc -l <$work/table) shapes of programs with up to 16000 values, and two of 80000 and more"
exit $bad
