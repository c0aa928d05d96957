#!/bin/bash
# How time and memory grow with what one file holds: graphs, functions, outputs, parameters, bindings, errors.
#   tests/growth_files.sh           eight times as much takes no more than 24 times as long: the square would be 64 times
#   tests/growth_files.sh --times   a table for 1,000, 10,000 and 100,000 of each
# Processor time counts, so other processes do not matter much.
set -u
cd "$(dirname "$0")/.."
root=$PWD
fusec=${FUSEC:-$root/build/fusec}
work=$root/build/growth_files
mkdir -p "$work"
bad=0 tests=0

# generate KIND N: a file with N of them.
generate() {
    LC_ALL=C awk -v kind="$1" -v n="$2" '
    function repeat(text, between,    i, k, parts, count) {    # its number for each @
        count = split(text, parts, "@")
        for (i = 0; i < n; i++) {
            printf "%s%s", i ? between : "", parts[1]
            for (k = 2; k <= count; k++) printf "%s%s", i, parts[k]
        }
        print ""
    }
    function list(text) { repeat(text, ",\n") }
    function each(text) { repeat(text, "\n") }
    BEGIN {
        x = "graph g[M = 4, N = 64](x : f32[M, N]"
        y = ") -> (y : f32[M, N]) {"
        if (kind == "graphs") each("graph g@[M = 4, N = 64](x : f32[M, N]) -> (y : f32[M, N]) { y = x * @ }")
        if (kind == "functions") { each("fn fun@(x) { y = x + @  return y * y }"); print x y "y = fun0(x) }" }
        if (kind == "alike") { each("graph g[M = 4](x : f32[M]) -> (y : f32[M]) { y = x * @ }") }
        if (kind == "unused") { print x y "y = x"; each("u@ = x + @"); print "}" }
        if (kind == "unknown") { print x y "y = x"; each("u@ = nothing@ + @"); print "}" }
        if (kind == "broken") { print x y "y = x"; each("u@ = * + @"); print "}" }
        if (kind == "outputs") { print x ") -> ("; list("y@ : f32[M, N]"); print ") {"; each("y@ = x * @"); print "}" }
        if (kind == "tanhs") { print x y "v0 = x"; for (k = 1; k < n; k++) print "v" k " = v" k - 1 " + tanh(x * " k ")"; print "y = v" n - 1 "}" }
        if (kind == "sums") { print x ") -> ("; list("y@ : f32[N]"); print ") {"; each("y@ = sum[M](x * @)"); print "}" }
        if (kind == "unbound") { print x ") -> ("; list("y@ : f32[M, N]"); print ") {"; each("z@ = x * @"); print "}" }
        if (kind == "inputs") { print x ","; list("x@ : f32[M, N]"); print y "y = x + x0"; each("u@ = x@ * 2"); print "}" }
        if (kind == "scalars") { print x ","; list("s@ : f32 = 1"); print y "y = x"; each("u@ = x * s@"); print "}" }
    }' >"$work/$1.$2.fuse"
}

# measure KIND N COMMAND...: $seconds of processor time, and $status.
measure() {
    local file=$work/$1.$2.fuse TIMEFORMAT=%U
    [ -e "$file" ] || generate "$1" "$2"
    shift 2
    seconds=$({ time (ulimit -v 4000000; timeout 100 "$fusec" "$@" "$file" >/dev/null 2>"$work/stderr"; echo $? >"$work/status"); } 2>&1)
    status=$(cat "$work/status")
}

# grows STATUS KIND N COMMAND...
grows() {
    local wanted=$1 kind=$2 n=$3 first
    shift 3
    tests=$((tests + 1))
    if [ "$times" ]; then
        for count in 1000 10000 100000; do
            measure "$kind" $count "$@"
            printf '%-10s %7d  %-18s %8s s  exit %s\n' "$kind" $count "$*" "$seconds" "$status"
        done
        return
    fi
    measure "$kind" "$n" "$@"
    first=$seconds
    measure "$kind" $((8 * n)) "$@"
    if [ "$status" != "$wanted" ]; then
        echo "FAILED: exit $status, not $wanted: $* of $((8 * n)) $kind"
        head -n 3 "$work/stderr"
        bad=$((bad + 1))
    elif ! awk -v a="$first" -v b="$seconds" 'BEGIN { exit b > 24 * (a > 0.02 ? a : 0.02) }'; then
        echo "FAILED: $* takes $first s of $n $kind, $seconds s of $((8 * n))"
        bad=$((bad + 1))
    fi
}

times=
[ "${1-}" = --times ] && times=yes
rm -f "$work"/*.fuse
grows 0 graphs 1500 check
grows 0 graphs 1500 emit --emit=ast
grows 0 graphs 1500 emit --emit=graph
grows 0 graphs 150 emit --arch sm_90a
for kind in functions unused inputs scalars; do
    grows 0 $kind 2000 check
    grows 0 $kind 2000 emit --emit=graph
    grows 0 $kind 2000 emit --emit=plan --arch sm_90a
done
grows 0 functions 2000 emit --emit=tokens
grows 0 outputs 2000 fmt
grows 0 tanhs 1000 grad
grows 0 inputs 2000 grad
grows 2 graphs 1500 explain --arch sm_90a
for kind in outputs sums; do
    grows 0 $kind 2000 check
    grows 0 $kind 2000 emit --emit=graph
    grows 0 $kind 2000 emit --emit=analysis
    grows 2 $kind 2000 emit --emit=plan --arch sm_90a
done
for kind in alike unknown broken unbound; do grows 1 $kind 3000 check; done
[ $bad = 0 ] && echo "-- growth: $tests of $tests grow with what a file holds"
exit $bad
