#!/bin/bash
# Programs of very many values: the commands work with a small stack, for nothing recurses along a chain of values, and the
# time they take grows about as fast as the program (growth.c).
set -u
cd "$(dirname "$0")/.."
work=build/deep
mkdir -p $work
export FUSEC_NVRTC=/dev/null NO_COLOR=1
ulimit -s 256
bad=0

# 2^14 applications of a function, by functions that each call the one before twice. A recursion of
# so many levels has 16 bytes of stack for each, which is less than any frame takes.
{
    echo 'fn a0(x) = x * 1.001 + 0.5'
    for i in $(seq 14); do echo "fn a$i(x) = a$((i - 1))(a$((i - 1))(x))"; done
    printf 'graph deep[M = 1, N = 4](\n    x : f32[M, N]\n) -> (\n    y : f32[M, N]\n) {\n    y = a14(x)\n}\n'
} >$work/functions.fuse

awk 'BEGIN {
    print "graph deep[M = 1, N = 4](\n    x : f32[M, N]\n) -> (\n    y : f32[M, N]\n) {\n    v0 = x"
    for (i = 1; i < 20000; i++) print "    v" i " = v" i - 1 " * 1.001 + 0.5"
    print "    y = v19999\n}"
}' >$work/statements.fuse

# 1000 functions that call each other, and as many levels of parentheses and calls.
awk 'BEGIN {
    print "fn a0(x) = x + 1"
    for (i = 1; i < 1000; i++) print "fn a" i "(x) = exp(a" i - 1 "(x * " i ".5))"
    print "graph nested[M = 1, N = 4](\n    x : f32[M, N]\n) -> (\n    y : f32[M, N],\n    z : f32[M, N]\n) {"
    for (i = 1; i < 330; i++) { inner = inner "a0(("; outer = outer ") + x)" }
    print "    y = a999(x)\n    z = " inner "x" outer "\n}"
}' >$work/nested.fuse

run() {
    timeout 60 build/fusec "$@" >$work/out 2>$work/err || { echo "FAILED: $*: exit status $?"; head -n 3 $work/err; bad=1; }
}
for file in $work/functions.fuse $work/statements.fuse; do
    run check $file
    run explain $file --arch sm_90a
    run emit $file --arch sm_90a --emit=dot
    run grad $file
    run run $file --device cpu --verify
    run emit $file --arch sm_90a
    # no line holds more than a compiler can nest
    awk 'length > 2000 { exit 1 }' $work/out || { echo "FAILED: a long line of $file"; bad=1; }
done
for stage in ast cuda; do run emit $work/nested.fuse --arch sm_90a --emit=$stage; done
run fmt $work/nested.fuse
run fmt $work/statements.fuse

timeout 100 build/growth >$work/table || { cat $work/table; echo "FAILED: growth"; bad=1; }
[ $bad = 0 ] && echo "-- growth: $(wc -l <$work/table) shapes of programs with up to 8000 values, and three that are long or deep"
exit $bad
