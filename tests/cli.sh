#!/bin/bash
# The command line from outside: exit statuses, where output goes, and every class of bad input. A bad
# input must end in its own exit status with something on stderr, never in a signal, and must leave no
# output behind. Runs build/fusec, or the program named in FUSEC.
set -u
cd "$(dirname "$0")/.."
root=$PWD
fusec=${FUSEC:-$root/build/fusec}
work=$root/build/cli${FUSEC:+.other}    # both may run at a time
export FUSEC_CACHE_DIR=$work/cache FUSEC_TUNING_FILE=$work/tuning NO_COLOR=1
rm -rf "$work"
mkdir -p "$work"
cd "$work" || exit 1
bad=0 tests=0

fail() {
    echo "FAILED: $*"
    sed 's/^/    | /' stderr | head -n 5
    bad=$((bad + 1))
}

# expect STATUS PATTERN ARGUMENTS...: the exit status, and a pattern that stderr (for 0: stdout) has. What `explain` says of a
# program that is there takes no NVRTC, unless it speaks of registers.
expect() {
    local status=$1 pattern=$2 got stream=stderr nvrtc=${FUSEC_NVRTC-}
    shift 2
    tests=$((tests + 1))
    case "${1-} ${2-} $pattern" in
    *regist* | *spill*) ;;
    "explain $root/"* | "explain chosen.fuse "* | "explain deep.fuse "* | "explain aside.fuse "*) nvrtc=/dev/null ;;
    esac
    FUSEC_NVRTC=$nvrtc timeout 60 "$fusec" "$@" >stdout 2>stderr <"${stdin:-/dev/null}"
    got=$?
    [ $status = 0 ] && stream=stdout
    if [ $got != $status ]; then fail "exit $got, not $status: fusec $*"
    elif [ -n "$pattern" ] && ! grep -q -e "$pattern" $stream; then fail "no '$pattern' on $stream: fusec $*"
    elif [ $status = 1 ] && ! [ -s stderr ]; then fail "silent: fusec $*"
    elif [ $status != 0 ] && [ $status != 4 ] && [ -s stdout ]; then
        fail "output in spite of an error: fusec $*"
    fi
}

also() {   # PATTERN: on what the last one printed, too
    tests=$((tests + 1))
    grep -q -e "$1" stdout || fail "no '$1' on stdout of the last one"
}

tensors() {   # FILE HEADER BYTES
    local length=${#2}
    {
        printf "\\x$(printf %02x $((length & 255)))\\x$(printf %02x $((length >> 8 & 255)))"
        printf '\0\0\0\0\0\0%s' "$2"
        head -c "$3" /dev/zero
    } >"$1"
}

cat >two.fuse <<'END'
graph first[M = 4](x : f32[M]) -> (y : f32[M]) { y = x + 1 }
graph second[M, N = 8](x : f32[M, N]) -> (y : f32[M], z : f32[M]) {
    y = sum[N](x)
    z = max[N](x)
}
END
cat >one.fuse <<'END'
graph one[M = 4, N = 8](x : f32[M, N], w : f32[N], eps : f32) -> (y : f32[M, N], s : f32[M]) {
    s = rsqrt(mean[N](x * x) + eps)
    y = x * s * w
}
END
echo 'graph g[M, N](x : f32[M, N]) -> (y : f32[M]) { y = sum[N](x) }' >sizeless.fuse
echo 'graph g[M = 4, N = 8](x : f32[M, N], y : f32[M, N]) -> (z : f32[M]) { z = sum[N](x) / sum[N](y) }' >unnamed.fuse
echo 'graph g(k : i32, b : bool) -> (y : i32[]) { y = where(b, k, 0) }' >scalars.fuse
echo 'graph g(n : u8) -> (y : u8[]) { y = n }' >bytes.fuse
echo 'graph g(n : i64) -> (y : i64[]) { y = n }' >long.fuse
echo 'graph g(n : i64 = -9007199254740993) -> (y : i64[]) { y = n }' >inexact.fuse
echo 'graph g[M = 4, N = 8](x : f32[M, N]) -> (y : f32[M, N]) { y = x * rsqrt(x) }' >nan.fuse

# ---- usage ----
expect 0 'fusec [0-9]' --version
expect 0 'usage:' --help
expect 0 'fusec [0-9]' version
expect 0 'usage:' help
expect 0 'usage: fusec run' help run
for command in emit check explain run bench tune fmt cache; do
    expect 0 "usage: fusec $command" $command --help
done
expect 0 '--device NAME  *cuda, the default' tune --help
grep -q 'cpu' stdout && fail 'tune --help: a device that tune refuses'
expect 2 'usage' 
expect 2 'FILE' emit
expect 2 'unknown option' one.fuse --arhc sm_80
expect 2 'did you mean' one.fuse --grahp one
expect 2 'hint: did you mean --arch' one.fuse --ARCH=sm_80
expect 2 'hint: fusec --help lists them all' one.fuse -q
expect 2 'hint: it is a command: fusec explain FILE' --explain one.fuse
expect 2 'hint: write --emit=ptx' one.fuse --ptx
expect 2 'hint: a scalar is set by --set eps=1e-3' run one.fuse --eps=1e-3
expect 2 'hint: write --device sim' run one.fuse --sim --verify
expect 2 'unknown command' exlpain one.fuse
expect 2 'hint: did you mean M' run one.fuse m=4
expect 2 'architecture' one.fuse --arch sm_12
expect 2 'the GPU that --arch names' explain one.fuse --memory 4800
for rate in 0 -5 4.8 fast; do expect 2 "cannot take '$rate'" one.fuse --arch sm_90a --memory=$rate; done
expect 0 '64 threads a row' explain "$root"/examples/layernorm.fuse N=2048 --arch sm_90a --memory 4800
expect 0 '128 threads a row' explain "$root"/examples/layernorm.fuse N=2048 --arch sm_90a --memory 3350
expect 0 '1 row at a time, 32 threads a row' explain "$root"/examples/layernorm.fuse N=77 --arch sm_90a --schedule row:threads=32,reads=2
# what the model expects, and of what else could be
expect 0 'model: about 2660 GB/s with many rows, where memory moves 3110; what takes longest is memory' explain "$root"/examples/layernorm_bwd.fuse --arch sm_90a
expect 0 ' 1750  instructions  warp-specialized:threads=64' explain "$root"/examples/layernorm_bwd.fuse --arch sm_90a --candidates
also 'rows: with a copy warp a CTA walks one'
also 'not listed: 13 that are the same plan'
expect 0 'model: has no figure for this plan: it sums the rows of each group' explain "$root"/examples/adaln_bwd.fuse --arch sm_90a
expect 2 'one CTA is none' explain "$root/examples/softmax.fuse" --schedule cluster:cluster=1
expect 2 'refused: row is for reductions inside rows' explain "$root/tests/golden/group_sums.fuse" --schedule cluster
expect 0 'besides, kernels write .* for each other' explain "$root/examples/cross_entropy_mean.fuse"
expect 0 'row:threads=128, as the model chooses' explain "$root"/tests/cases/held_short.fuse N=1000 --arch sm_90a
also 'rejected: row:threads=64: the rules. choice: the model expects'
expect 2 'no option --candidates' emit one.fuse --candidates
expect 0 '"chosen": true, "model_gbps": ' explain "$root"/examples/softmax.fuse --arch sm_90a --candidates --json
expect 0 '"reason": "rows: with a copy warp' explain "$root"/examples/layernorm_bwd.fuse --arch sm_90a --candidates --json
for name in layernorm_bwd softmax adaln_bwd; do    # the text that explain prints is that plan's
    "$fusec" explain "$root/examples/$name.fuse" --arch sm_90a 2>/dev/null |
        sed -n 's/^schedule: \(.*\), as the rules choose$/\1/p' >schedule.txt
    "$fusec" "$root/examples/$name.fuse" --arch sm_90a >chosen.cu
    "$fusec" "$root/examples/$name.fuse" --arch sm_90a --schedule "$(cat schedule.txt)" >named.cu
    tests=$((tests + 1))
    cmp -s chosen.cu named.cu || fail "$name: --schedule $(cat schedule.txt) prints another text"
done
expect 2 'cannot read' nothing.fuse
expect 2 'no size' sizeless.fuse
expect 2 'no size' run sizeless.fuse
expect 2 'no axis' one.fuse Q=3
expect 2 'no axis' run one.fuse Q=3
expect 2 'negative' one.fuse M=-1
expect 2 'without spaces' run one.fuse M = 64
expect 2 "'foo' is no number for scalar eps" run one.fuse --set eps=foo
expect 2 'no family' run one.fuse --schedule nothing --device cpu
[ -z "$(tail -c 1 stderr)" ] || fail 'a message ends without the end of its line'
expect 2 'cannot have 123456789012345678901234567890 elements' one.fuse M=123456789012345678901234567890
expect 2 'size' one.fuse M=2x
expect 2 'axis N is given twice' one.fuse N=4 N=5
expect 2 'axis N is given twice' run one.fuse N=4 M=2 N=4
expect 2 'no graph' one.fuse --graph tow
expect 2 'no output' one.fuse --outputs y,t
expect 2 'no output' run one.fuse --outputs t
expect 2 '^one.fuse: error: schedule refused' one.fuse --schedule nonsense
expect 2 "row has no key 'treads'" one.fuse --schedule row:treads=32
expect 2 "did you mean 'stages'" one.fuse --schedule row:stage=3
expect 2 'walks one at a time' explain "$root"/examples/rmsnorm_bwd.fuse N=6144 --arch sm_90a --schedule warp-specialized:rows=2
expect 0 'no faster than memory' explain "$root"/examples/rmsnorm_bwd.fuse N=12288 --arch sm_90a
sed s/bf16/f32/g "$root"/examples/layernorm.fuse >f32.fuse
for columns in 98304 98305 131072; do
    expect 0 'row, 16384 CTAs of 1024 threads' explain f32.fuse N=$columns --arch sm_80
    expect 0 'clusters of 16 CTAs' explain f32.fuse N=$columns --arch sm_90a
done
expect 2 'refused: groups: ' one.fuse N=256 --schedule row:groups=2
expect 0 '__global__' one.fuse N=256 --schedule row:groups=1
expect 0 'clusters of 2 CTAs' explain "$root/examples/softmax.fuse" --schedule cluster
expect 0 'clusters of 4 CTAs' explain "$root/examples/softmax.fuse" --schedule cluster:cluster=4
expect 2 'refused: cluster: ' explain "$root/examples/softmax.fuse" N=64 --schedule cluster
expect 2 'a number from 1 to' one.fuse --schedule row:stages=0
expect 2 "'stages' is given twice" one.fuse --schedule row:stages=2,stages=3
printf 'graph g[M = 4, Q = 3](x : f32[M]) -> (y : f32[M]) { y = x }\n' >idle.fuse
expect 0 '' check idle.fuse
grep -q "idle.fuse:1:16: warning: axis 'Q' is never used" stderr || fail 'an axis that nothing uses is not told'
printf 'graph g[M = 9, N = 4096, Z = 2](x : f32[M, N], w : f32[Z], z : f32[M, Z]) -> (y : f32[M, N], v : f32[M, Z]) {
    y = x / (1 + sum[N](x * x))
    v = z * w
}\n' >aside.fuse
expect 0 'why: y shares nothing with the other outputs, so its kernels have columns of their own, .N.' explain aside.fuse
expect 0 '^axes: rows M; columns N, Z$' explain aside.fuse
sed 's/v = z/v = sum[N](x * x) * z/' aside.fuse >joined.fuse
expect 0 'why: a kernel ends with sum.N.(x \* x): its rows are along \[N\] and the graph.s along \[Z\]' explain joined.fuse
expect 0 '^verified' run aside.fuse --device sim --verify --schedule row:reads=2
expect 0 '^axes: rows M; columns N$' explain aside.fuse --outputs y --schedule row    # Z is no axis of what is wanted
{   # a row's reductions that depend on each other 70 times: q is stored long before z is read
    echo 'graph g[M = 2, N = 300](x : f32[M, N], z : f32[M, N]) -> (o : f32[M, N], q : f32[M, N]) {'
    echo 't0 = x'
    for i in $(seq 70); do echo "t$i = t$((i - 1)) - max[N](t$((i - 1))) * 0.5"; done
    echo 'o = t70 + z q = t10 * 2 }'
} >deep.fuse
expect 0 '^verified' run deep.fuse --device sim --verify
expect 0 '^kernels: 1$' explain deep.fuse --schedule row:reads=2
! grep 'q may be' stdout || fail 'q may lie on what is read after it was stored'
for i in $(seq 1100); do echo "graph g$i(x : f32[]) -> (y : f32[]) { y = x }"; done >many.fuse
expect 0 '' check many.fuse
expect 0 '^g1100 for' explain many.fuse --graph g1100
printf 'graph e[A = 2, B = 2, C = 2](x : f32[A, B, C]) -> (y : f32[A, B, C]) { y = x }\n' >empty.fuse
expect 0 '4611686018427387904, 4' run empty.fuse A=0 B=4611686018427387904 C=4 --device cpu
printf '\114\0\0\0\0\0\0\0{"x":{"dtype":"F32","shape":[4611686018427387904,4,0],"data_offsets":[0,0]}}' >empty.safetensors
expect 0 '4611686018427387904, 4, 0' run empty.fuse --in empty.safetensors --device cpu
expect 3 'the strides reach beyond any memory' run empty.fuse --device sim --offset x=9223372036854775807
printf 'graph w[M = 4, N = 8](x : i64[M, N]) -> (y : bool[M, N]) { y = x + 1 > x }\n' >wraps.fuse
expect 0 'wrap_add(x_, 1) > x_' wraps.fuse
printf 'graph g[M = 9](x : f32[M]) -> (y : f32[M]) { y = where(0 < x < 1, x, 0) }\n' >chain.fuse
expect 0 '' check chain.fuse
grep -q "chain.fuse:1:56: warning: '<' compares a condition, which counts as 0 or 1" stderr || fail 'a chain of comparisons is not told'
{
    echo 'graph g[M = 4, N = 8](x : f32[M, N]) -> ('
    for i in $(seq 255); do echo "    y$i : f32[M, N],"; done | sed '$s/,$//'
    echo ') {'
    for i in $(seq 255); do echo "    y$i = x * $i"; done
    echo '}'
} >wide.fuse
expect 2 'no schedule: arguments: a kernel has 513, more than 512' wide.fuse
expect 0 '__global__' wide.fuse --outputs y1,y255
printf 'graph h[N = 4](x : f32[N], h : f16) -> (y : f32[N]) { y = x * h }\n' >narrow.fuse
expect 0 '^y ' run narrow.fuse --device cpu --set h=1e9
grep -q 'scalar h: f16 has no such number as 1e+09: it is inf' stderr || fail 'a scalar that becomes infinite is not told'
expect 2 'scalar eps is given twice' run one.fuse --set eps=1 --set eps=2
expect 2 "'1e400' is too large for scalar eps" run one.fuse --set eps=1e400
expect 2 'threads: 3 of a row are not whole warps of 32' "$root"/examples/softmax.fuse --schedule row:threads=3
expect 2 'threads: a CTA has up to 1024' "$root"/examples/softmax.fuse --schedule row:threads=99999
expect 0 'computes dx; partials of dgamma, dbeta' explain "$root"/examples/layernorm_bwd.fuse
expect 0 'computes dx, dscale, dshift$' explain "$root"/examples/adaln_bwd.fuse B=264 T=200
expect 0 '"kernels_read": 335561344' explain "$root"/examples/group_norm_bwd.fuse --json
expect 0 'a kernel ends with dgamma: it is complete when' explain "$root"/examples/layernorm_bwd.fuse --json
expect 2 '4 bytes or more at a time' explain "$root"/examples/layernorm.fuse N=1987 --schedule row:stages=3
expect 2 'for a part of one' explain "$root"/examples/layernorm.fuse N=64 --schedule warp-specialized
expect 2 'and these are of several' explain "$root"/tests/cases/several_axes.fuse S=824 --schedule warp-specialized
expect 2 'that share one, and have read it' explain "$root"/examples/layernorm_bwd.fuse N=79 --schedule grid-stride:stages=3
expect 0 'ring of 3 stages' explain "$root"/examples/layernorm_bwd.fuse N=1987 --schedule grid-stride:stages=3
expect 2 'shared memory has room for' explain "$root"/examples/layernorm_bwd.fuse --schedule grid-stride:stages=64
expect 0 'column, 132 CTAs' explain "$root"/tests/cases/sums_of_odd.fuse M=8192
expect 2 'over those of each group' explain "$root"/examples/adaln_bwd.fuse C=1024 --schedule warp-specialized
expect 0 'threads=128,limit=6, as --schedule asks' explain "$root"/examples/softmax.fuse N=4096 --arch sm_90a --schedule row:threads=128
# the rows of a group are in parts, which CTAs share out, or where groups are many whole groups: the same bits
expect 0 'B are in 66 parts, which the CTAs share out' explain "$root"/tests/golden/group_sums.fuse
expect 0 'B are in 66 parts, which one CTA takes' explain "$root"/tests/golden/group_sums.fuse B=1000
expect 0 'finish, 0 CTAs' explain "$root"/tests/golden/group_sums.fuse B=1000
expect 0 'kernels: 2, of which 1 runs at these sizes' explain "$root"/tests/golden/group_sums.fuse B=1000
expect 0 'B are in 1 part$' explain "$root"/tests/golden/group_sums.fuse T=64
expect 0 'B are in 3 parts' explain "$root"/tests/golden/group_sums.fuse --schedule column:ctas=3
for groups in 1 2 50; do
    expect 0 ' 7972527a5fb833a6$' run "$root"/tests/cases/first_of_groups.fuse B=$groups --device sim
done
for groups in 1 2 30 40; do
    expect 0 ' 5ea457f1b1db0e79$' run "$root"/tests/cases/first_of_rides.fuse B=$groups --device sim --schedule grid-stride:ctas=20,rows=16
done
expect 0 'B are in 20 parts, which one CTA takes' explain "$root"/tests/cases/first_of_rides.fuse B=40 --schedule grid-stride:ctas=20,rows=16
expect 2 'more than 2147483647 columns' explain "$root"/examples/softmax.fuse N=3000000000
expect 2 'schedule refused' run one.fuse --schedule pointwise
expect 0 'by one bulk copy' explain "$root"/examples/layernorm.fuse N=11520 --arch sm_90a
expect 0 'clusters of 4 CTAs' explain "$root"/examples/softmax.fuse N=8192 --arch sm_90a --schedule row:bulk=1,cluster=4
expect 2 'bulk: sm_80 has no bulk copies' explain "$root"/examples/softmax.fuse --arch sm_80 --schedule row:bulk=1
expect 2 'bulk: for rows of whole blocks' explain "$root"/examples/softmax.fuse N=4001 --arch sm_90a --schedule row:bulk=1
expect 2 'bulk: 1 (a row comes' explain "$root"/examples/softmax.fuse --arch sm_90a --schedule row:bulk=2
expect 2 'reads: the row is too long' explain "$root"/examples/softmax.fuse N=1048576 --schedule row:reads=1
expect 0 'clusters of 8 CTAs' explain "$root"/examples/rmsnorm.fuse N=20000 --arch sm_90a --schedule warp-specialized:cluster=8
expect 0 'groups of 32 CTAs' explain "$root"/examples/layernorm_bwd.fuse N=300000 --arch sm_90a
expect 0 'clusters of 16 CTAs' explain "$root"/examples/layernorm_bwd.fuse N=204800 --arch sm_90a
expect 0 'ring of 2 stages' explain "$root"/examples/layernorm.fuse N=139264 --arch sm_90a
# what cannot be compared is not called right; a name is told once; a transposed tensor is shown
echo 'graph g[N = 4](x : f32[N]) -> (y : f32[N]) { y = 1 / (sin(x) * sin(x) + cos(x) * cos(x) - 1) }' >anything.fuse
expect 0 '  unchecked$' run anything.fuse --device sim --verify
expect 0 '4 of 4 elements are unchecked' run anything.fuse --device cpu --verify
echo 'graph g[N = 4](x : f32[N]) -> (y : f32[N]) { y = log(where(index(N) == 1, exp(x) - exp(x + 1e-9), exp(x))) }' >some.fuse
expect 0 '  partly unchecked$' run some.fuse --device sim --verify
also '1 of 4 elements are unchecked'
# a kernel that is broken behind the printer's back: of a graph with steps, too, each element is judged by itself
cat >stepped.fuse <<'END'
graph stepped[M = 32, N = 256](x : f32[M, N], s : f32[N]) -> (y : f32[M, N]) { y = round(x * s) * 0.25 }
END
cat >breaks <<'END'
#!/bin/sh
for word; do case $word in */unit.cpp) sed -i "s|\(y_out.i. = \)\(.*\);|\1$BROKEN;|" "${word%unit.cpp}kernel.cu" ;; esac done
exec g++ "$@"
END
chmod +x breaks
BROKEN='\2' CXX=$PWD/breaks expect 0 '  ok$' run stepped.fuse --device sim --verify
for BROKEN in '0.0f / 0' '1.0f / 0' '(\2) * 1.009f' 'col + i == N - 1 ? 12345 : (\2)' 'col + i == 7 ? 0.0f / 0 : (\2)'; do
    BROKEN=$BROKEN CXX=$PWD/breaks expect 4 '' run stepped.fuse --device sim --verify
    also '  WRONG$'
done
echo 'graph g[M = 64, N = 64](x : f32[M, N]) -> (mu : f32[N], y : f32[M, N]) { mu = mean[M](x)
 y = x - mu }' >centred.fuse
expect 0 'computes.* mu$' explain centred.fuse
grep -q 'mu, mu' stdout && fail 'explain: a result is named twice'
# column vectors of f32 that 48 registers have no room for
expect 0 'row:threads=64, as the rules' explain "$root"/tests/cases/channel_scales.fuse --arch sm_90a
# short rows: a norm's by one warp, a backward norm's by few teams; odd ones as longer odd ones
expect 0 'row:threads=32, as the rules' explain "$root"/examples/layernorm.fuse N=768 --arch sm_90a
expect 0 'row:threads=64, as the rules' explain "$root"/examples/layernorm.fuse N=720 --arch sm_90a
# sums of groups for which a CTA has just the registers; alone they pass through a ring
expect 0 'grid-stride:threads=512,stages=3, as the rules' explain "$root"/examples/adaln_bwd.fuse C=16384 --arch sm_90a
expect 0 'column:threads=192,rows=2,stages=4, as the rules' explain "$root"/tests/golden/group_sums.fuse C=3072 --arch sm_90a
expect 0 'threads=96,rows=4' explain "$root"/examples/rmsnorm_bwd.fuse N=1152 --arch sm_90a
expect 0 'threads=96,rows=5' explain "$root"/examples/rmsnorm_bwd.fuse N=1224 --arch sm_90a
expect 0 'threads=128,rows=3' explain "$root"/examples/layernorm_bwd.fuse N=3072 --arch sm_90a
expect 0 'threads=64,rows=6' explain "$root"/examples/layernorm_bwd.fuse N=895 --arch sm_90a
for columns in 712 824; do expect 0 'threads=64,rows=6,stages=3' explain "$root"/examples/layernorm_bwd.fuse N=$columns --arch sm_90a; done
for columns in 696 840; do expect 0 'threads=64,rows=8' explain "$root"/examples/layernorm_bwd.fuse N=$columns --arch sm_90a; done
# odd slices for which a CTA of few threads has registers, with their column vectors
for columns in 16385 19457 20479; do
    expect 0 'grid-stride:threads=256,cluster=2' explain "$root"/examples/layernorm_bwd.fuse N=$columns --arch sm_90a
done
expect 0 'warp-specialized:threads=352,cluster=2' explain "$root"/examples/layernorm_bwd.fuse N=16383 --arch sm_90a
expect 0 'warp-specialized:threads=384,cluster=4' explain "$root"/examples/layernorm_bwd.fuse N=20481 --arch sm_90a
expect 0 'grid-stride:threads=256,cluster=4' explain "$root"/examples/layernorm_bwd.fuse N=33001 --arch sm_90a
expect 0 'column vectors stay in registers' explain "$root"/examples/layernorm_bwd.fuse N=19457 --arch sm_90a --schedule warp-specialized:threads=576,cluster=2
expect 0 'column vectors stay in registers' explain "$root"/examples/rmsnorm.fuse N=140001 --arch sm_90a --schedule warp-specialized:cluster=16
expect 0 'schedule: warp-specialized:threads=512,cluster=32' explain "$root"/tests/cases/heavy_norm.fuse N=140001 --arch sm_90a --no-tuning
expect 0 'column vectors are read by each phase' explain "$root"/examples/rmsnorm.fuse N=262143 --arch sm_90a --schedule warp-specialized:cluster=16
# what the rules choose, at the ends of where they were measured. Another build of the same program, under sanitizers, chooses
# the same and has one in four to walk the code by.
lines=0
while read -r name dtype columns schedule; do
    case $name in '' | '#') continue ;; esac
    lines=$((lines + 1))
    [ -n "${FUSEC-}" ] && [ $((lines % 4)) != 0 ] && continue
    sed "s/bf16/$dtype/g" "$root/examples/$name.fuse" >chosen.fuse
    expect 0 "schedule: $schedule" explain chosen.fuse "N=$columns" --arch sm_90a --no-tuning
done <<'END'
layernorm_bwd bf16 897 grid-stride:threads=128,rows=4,stages=4
layernorm_bwd bf16 1215 grid-stride:threads=128,rows=4,stages=4
rmsnorm_bwd bf16 895 grid-stride:threads=64,rows=8
rmsnorm_bwd bf16 897 grid-stride:threads=128,rows=4,stages=4
rmsnorm_bwd bf16 1215 grid-stride:threads=128,rows=4,stages=4
rmsnorm_bwd bf16 4095 grid-stride:threads=256,rows=2
rmsnorm_bwd bf16 4607 warp-specialized:threads=288
rmsnorm_bwd bf16 8191 warp-specialized:threads=512
rmsnorm_bwd bf16 8193 grid-stride:threads=256,stages=4
rmsnorm_bwd bf16 10239 grid-stride:threads=256,stages=4
rmsnorm_bwd bf16 10241 warp-specialized:threads=384,cluster=2
rmsnorm_bwd bf16 38001 warp-specialized:threads=256,cluster=4
rmsnorm_bwd f16 38001 grid-stride:threads=256,cluster=4
rmsnorm_bwd bf16 40961 warp-specialized:threads=384,cluster=8

# column vectors that have no room beside the ring: more CTAs hold them, or more threads
layernorm_bwd f32 8821 warp-specialized:threads=288,cluster=2
rmsnorm_bwd_add bf16 12287 warp-specialized:threads=576,cluster=2
rmsnorm bf16 140001 warp-specialized:threads=672,cluster=16
rmsnorm bf16 196607 warp-specialized:threads=768,cluster=16
rmsnorm bf16 196609 warp-specialized:threads=480,cluster=32
rmsnorm bf16 262143 warp-specialized:threads=512,cluster=32
rmsnorm bf16 524289 warp-specialized:threads=672,cluster=64
rmsnorm bf16 786433 warp-specialized:threads=480,cluster=128
rmsnorm_quantized bf16 720001 warp-specialized:threads=768,cluster=64
rmsnorm_quantized bf16 900001 warp-specialized:threads=512,cluster=128
rmsnorm_quantized bf16 1000001 warp-specialized:threads=512,cluster=64
layernorm f16 300001 warp-specialized:threads=480,cluster=64
layernorm f16 500001 warp-specialized:threads=512,cluster=128
layernorm_residual bf16 163001 warp-specialized:threads=672,cluster=16
layernorm_residual bf16 172033 warp-specialized:threads=512,cluster=32
layernorm_residual bf16 300001 warp-specialized:threads=480,cluster=64
rmsnorm_bwd_add f16 163001 warp-specialized:threads=576,cluster=32
layernorm_residual f16 262143 warp-specialized:threads=512,cluster=64
layernorm_residual f16 360001 warp-specialized:threads=512,cluster=64
rmsnorm_quantized f32 400004 warp-specialized:threads=512,cluster=16
rmsnorm_quantized f32 400002 warp-specialized:threads=416,cluster=64

# one sum of more than 1 MB a row, of single elements somewhat more
rmsnorm_bwd bf16 262144 warp-specialized:threads=512,cluster=16
rmsnorm_bwd bf16 266240 warp-specialized:threads=544,cluster=32
rmsnorm_bwd bf16 276479 warp-specialized:threads=576,cluster=16
rmsnorm_bwd bf16 276481 warp-specialized:threads=544,cluster=32
rmsnorm_bwd bf16 360001 warp-specialized:threads=576,cluster=32
rmsnorm_bwd bf16 370001 warp-specialized:threads=544,cluster=64
layernorm_bwd bf16 300001 warp-specialized:threads=544,cluster=64
layernorm_residual f16 327680 warp-specialized:threads=320,cluster=32

# pairs and fours of 2 bytes
layernorm_bwd bf16 4098 grid-stride:threads=192
layernorm_bwd bf16 5124 grid-stride:threads=256
layernorm_bwd bf16 10242 grid-stride:threads=512
layernorm_bwd bf16 12290 grid-stride:threads=256,cluster=2
layernorm_bwd f16 8702 grid-stride:threads=256
layernorm_bwd f16 8706 grid-stride:threads=512
rmsnorm_bwd bf16 7170 grid-stride:threads=480
rmsnorm_bwd bf16 8194 grid-stride:threads=256
rmsnorm_bwd bf16 12292 warp-specialized:threads=416,cluster=2
rmsnorm_bwd f16 40962 grid-stride:threads=256,cluster=8
rmsnorm_bwd_add bf16 12290 warp-specialized:threads=640,cluster=2
rmsnorm_bwd_add bf16 20482 warp-specialized:threads=352,cluster=4
layernorm bf16 5122 row:threads=192,stages=1
layernorm bf16 16638 row:threads=512,stages=1
layernorm bf16 16642 row:threads=288,cluster=2,stages=1
layernorm bf16 20482 row:threads=320,cluster=2,stages=1
layernorm f16 20482 row:threads=352,cluster=2,stages=1,per_sm=2
layernorm bf16 130002 row:threads=512,cluster=8,stages=1
layernorm bf16 262146 row:threads=512,cluster=16,stages=2
layernorm bf16 12292 row:threads=416
layernorm bf16 36868 row:threads=320,cluster=4,stages=1
layernorm bf16 86020 row:threads=352,cluster=8,stages=3
layernorm_residual bf16 8194 warp-specialized:threads=640
layernorm_residual bf16 8196 row:threads=288
layernorm_residual f16 16638 row:threads=1024,stages=2
rmsnorm_quantized bf16 4098 row:threads=192,stages=1
rmsnorm_quantized bf16 16388 row:threads=480,stages=3

# odd rows that are read twice, or stored as bytes; even ones as bytes, through a ring, by threads whose tiles are full
softmax_bwd bf16 50257 row:threads=128,cluster=16,per_sm=8,
softmax_bwd bf16 51201 warp-specialized:threads=512,cluster=4
rmsnorm_quantized bf16 8191 row:threads=512
rmsnorm_quantized bf16 8193 row:threads=256,
rmsnorm_quantized bf16 16383 row:threads=256,
rmsnorm_quantized bf16 20481 row:threads=96,cluster=8
rmsnorm_quantized f16 32767 row:threads=128,cluster=8
rmsnorm_quantized bf16 32769 row:threads=160,cluster=8
rmsnorm_quantized bf16 57088 row:threads=512,cluster=2
rmsnorm_quantized bf16 57344 row:threads=640,cluster=2,stages=2
rmsnorm_quantized bf16 73728 row:threads=384,cluster=4,stages=3
rmsnorm_quantized bf16 131068 row:threads=512,cluster=4,stages=2
rmsnorm_quantized bf16 131072 row:threads=640,cluster=4,stages=2
rmsnorm_quantized f16 131072 row:threads=512,cluster=4,stages=2
rmsnorm_quantized bf16 262144 row:threads=640,cluster=8,stages=2
rmsnorm_quantized bf16 262272 row:threads=416,cluster=16

# softmax by pairs of CTAs, as many on an SM as keep memory busy
softmax bf16 5120 row:threads=320,limit=5
softmax bf16 6144 row:threads=192,cluster=2,limit=8
softmax f16 8192 row:threads=256,cluster=2,limit=6
rmsnorm bf16 6144 row:threads=384, as
rmsnorm bf16 7168 row:threads=224,cluster=2, as
rmsnorm f16 8192 row:threads=256,cluster=2, as
layernorm bf16 6144 row:threads=256, as
layernorm_residual f16 6144 row:threads=256, as

# backward norms whose rows hand their stage on
layernorm_bwd bf16 24 grid-stride:threads=4,rows=32,stages=4, as
layernorm_bwd bf16 32 grid-stride:threads=4,rows=32,stages=2,per_sm=6,reuse=1, as
layernorm_bwd bf16 640 grid-stride:threads=64,rows=8,stages=3,per_sm=1,reuse=1, as
layernorm_bwd bf16 704 grid-stride:threads=96,rows=4,stages=3,per_sm=1,reuse=1, as
layernorm_bwd f16 768 grid-stride:threads=96,rows=4,stages=3,per_sm=1,reuse=1, as
layernorm_bwd bf16 832 grid-stride:threads=128,rows=4,stages=3,per_sm=1,reuse=1, as
layernorm_bwd bf16 904 grid-stride:threads=128,rows=4,stages=4, as
layernorm_bwd bf16 1024 grid-stride:threads=128,rows=4,stages=2,per_sm=1,reuse=1, as
layernorm_bwd bf16 1472 grid-stride:threads=96,rows=4,stages=2,per_sm=1,reuse=1, as
layernorm_bwd bf16 1480 grid-stride:threads=96,rows=5,stages=7, as
layernorm_bwd bf16 1536 grid-stride:threads=96,rows=5,stages=3,per_sm=1,reuse=1, as
layernorm_bwd bf16 1152 grid-stride:threads=96,rows=4,stages=2,per_sm=1,reuse=1, as
layernorm_bwd bf16 1096 grid-stride:threads=96,rows=4,stages=8, as
layernorm_bwd bf16 3000 grid-stride:threads=128,rows=3,stages=4, as
layernorm_bwd bf16 3072 grid-stride:threads=128,rows=3,stages=2,per_sm=1,reuse=1, as
layernorm_bwd f16 3840 grid-stride:threads=256,rows=2,stages=2,per_sm=1,reuse=1, as
layernorm_bwd bf16 4096 grid-stride:threads=256,rows=2,stages=3, as
layernorm_bwd f32 256 grid-stride:threads=32,rows=4,stages=2,per_sm=5,reuse=1, as
layernorm_bwd f32 512 grid-stride:threads=64,rows=8,stages=6, as
layernorm_bwd f32 576 grid-stride:threads=96,rows=5,stages=3,per_sm=1,reuse=1, as
rmsnorm_bwd bf16 512 grid-stride:threads=32,rows=4,stages=2,per_sm=5,reuse=1, as
rmsnorm_bwd bf16 640 grid-stride:threads=64,rows=8,stages=6, as
rmsnorm_bwd bf16 832 grid-stride:threads=128,rows=4,stages=3,per_sm=1,reuse=1, as
rmsnorm_bwd bf16 896 grid-stride:threads=64,rows=8,stages=6, as
rmsnorm_bwd f16 896 grid-stride:threads=128,rows=4,stages=3,per_sm=1,reuse=1, as
rmsnorm_bwd f16 960 grid-stride:threads=64,rows=8,stages=3,per_sm=1,reuse=1, as
rmsnorm_bwd bf16 1152 grid-stride:threads=96,rows=4,stages=2,per_sm=1,reuse=1, as
rmsnorm_bwd f32 1024 grid-stride:threads=256,rows=3,stages=2,per_sm=1,reuse=1, as
rmsnorm_bwd f32 1056 grid-stride:threads=160,rows=3,stages=2,per_sm=1,reuse=1, as
rmsnorm_bwd f32 1376 grid-stride:threads=192,rows=2,stages=2,per_sm=2,reuse=1, as
rmsnorm_bwd f32 1408 grid-stride:threads=192,rows=2,stages=2,per_sm=1,reuse=1, as
rmsnorm_bwd f32 1984 grid-stride:threads=256,stages=3, as
END
# weights of f32: backward as with narrow ones, forward with full tiles
while read -r name columns schedule; do
    sed -E 's/^( *(gamma|beta) *: )bf16/\1f32/' "$root/examples/$name.fuse" >chosen.fuse
    expect 0 "schedule: $schedule" explain chosen.fuse "N=$columns" --arch sm_90a --no-tuning
done <<END
layernorm_bwd 768 grid-stride:threads=96,rows=4,stages=3,per_sm=1,reuse=1, as
layernorm_bwd 10240 grid-stride:threads=512,stages=3, as
rmsnorm_bwd 12288 warp-specialized:threads=256,cluster=2,stages=4, as
layernorm 18432 row:threads=384,cluster=2,stages=4, as
layernorm 65536 row:threads=256,cluster=4,stages=2, as
rmsnorm 6144 row:threads=192, as
rmsnorm 8192 row:threads=256,cluster=2, as
END
for size in "layernorm_bwd bf16 1024 .*reuse=1, as" "layernorm_bwd bf16 3072 grid-stride:threads=128,rows=3,.*reuse=1, as" \
    "layernorm_bwd f32 1024 .*reuse=1, as" "layernorm_bwd f32 3072 grid-stride:threads=384,stages=4, as" "rmsnorm bf16 8192 row:threads=256, as"; do
    read -r name dtype columns schedule <<<"$size"    # where memory moves more
    sed "s/bf16/$dtype/g" "$root/examples/$name.fuse" >chosen.fuse
    expect 0 "schedule: $schedule" explain chosen.fuse "N=$columns" --arch sm_90a --memory 4800 --no-tuning
done
expect 0 'schedule: row:threads=512, as' explain "$root"/examples/rmsnorm.fuse N=8192 --arch sm_100a --no-tuning
expect 0 '^schedule: row:threads=512, as' explain "$root"/examples/softmax_causal.fuse K=8192 --arch sm_90a --no-tuning
if [ -e /dev/nvidiactl ]; then
    echo '-- command line: what is said without a GPU, skipped: there is one'
else
    expect 3 'hint: without a GPU' bench "$root"/examples/rmsnorm.fuse M=4
fi
# what rows of several axes have of their own is read a row ahead
expect 0 'mu_next = next < rows' "$root"/tests/cases/scalars_of_two_axes.fuse N=4096 --arch sm_90a --no-tuning
# rows of two axes are one where tensors allow it, and another kernel is there for those that do not
expect 0 'x + row \* x_row' "$root"/tests/cases/rows_of_two_axes.fuse
expect 0 'x_B + t_ \* x_T' "$root"/tests/cases/rows_of_two_axes.fuse
# column vectors that a later phase reads come a tile early, but where they are wider than the row and registers short
expect 0 'load(gamma_next, gamma, col + step, N)' "$root"/examples/layernorm.fuse N=3584 --arch sm_90a --no-tuning
sed 's/gamma *: bf16/gamma : f32/; s/beta *: bf16/beta : f32/' "$root/examples/layernorm.fuse" >wide.fuse
expect 0 'load(gamma_v, gamma, col, N)' wide.fuse N=5120 --arch sm_90a --no-tuning
# few rows have them in shared memory when they want them, as far as that does not keep other rows waiting
expect 0 'gamma_v = held.gamma\[t\]' wide.fuse N=5000 --arch sm_90a --no-tuning
expect 0 'A grid of up to 204 CTAs is faster with 40960 bytes' wide.fuse N=5000 --arch sm_90a --no-tuning
expect 0 '"smem_bytes": 0, "few_ctas": 204, "few_bytes": 40960,' explain wide.fuse N=5120 --arch sm_90a --no-tuning --json
expect 0 'MAX_DYNAMIC_SHARED_SIZE_BYTES' wide.fuse N=6144 --arch sm_90a --no-tuning
expect 0 '^few .* ok$' run "$root/tests/cases/named_few.fuse" --device sim --verify
expect 0 '41.0 kB of dynamic shared memory where the grid has up to 204 CTAs' explain wide.fuse N=5120 --arch sm_90a --no-tuning
expect 0 'column vectors are read with the row, into registers' explain "$root/tests/cases/wide_weights.fuse" N=12288 --arch sm_90a
expect 0 'launch_bounds__(128, 6)' "$root"/examples/layernorm.fuse N=8192 --arch sm_90a --no-tuning
expect 0 '"rows": 2, "cluster": 1, "threads_per_row": 256,' explain "$root"/examples/layernorm_bwd.fuse --arch sm_90a --no-tuning --json
expect 0 '"rows_again": true' explain "$root"/examples/softmax.fuse M=3 N=8000001 --arch sm_90a --no-tuning --json
expect 0 '"rows_again": true' explain "$root"/tests/long/flat.fuse N=4194304 --arch sm_90a --no-tuning --json    # a graph without rows
expect 2 'hint: it is a tensor, which --in brings' run "$root"/examples/rmsnorm.fuse M=3 N=8 --device cpu --set x=1
expect 2 '^fusec: error: --device cpu has no --arch' run "$root"/examples/rmsnorm.fuse M=3 N=8 --device cpu --arch sm_80
expect 0 '^mean .* <0.1% ' run "$root"/examples/layernorm.fuse M=3 N=300 --device cpu --verify
expect 0 '^?: the model does not know these: it sums the rows of each group apart' explain "$root"/examples/adaln_bwd.fuse --arch sm_90a --candidates
expect 2 '^fusec: error: --sms is of --device sim' run "$root"/examples/rmsnorm.fuse M=3 N=8 --device cpu --sms 3
expect 2 'rows: CTAs that share a row walk one at a time' explain "$root"/examples/rmsnorm.fuse N=12290 --arch sm_90a --schedule row:cluster=2,threads=64,rows=2
expect 2 'over 16384 columns; here are 12290' explain "$root"/examples/rmsnorm.fuse N=12290 --arch sm_90a --schedule warp-specialized:cluster=32
expect 0 "a row's B, H, Q are found by divisions: columns or an index" explain "$root"/examples/softmax_causal.fuse --arch sm_90a
expect 0 "a row's B, G are found by divisions: gamma does not have all" explain "$root"/examples/group_norm.fuse --arch sm_90a
expect 0 '^in place, where asked for, each input once: h may be x or residual, y may be x or residual' explain "$root"/examples/layernorm_residual.fuse --arch sm_90a
echo 'graph twice[M = 3, N = 4](x : f32[M, N], g : f32[N]) -> (h : f32[M, N], y : f32[M, N]) { h = x + g  y = h * sum[N](h) }' >twice.fuse
expect 0 'each input once: h may be x, y may be x$' explain twice.fuse --arch sm_90a --schedule row:reads=1
expect 0 'each input once: y may be x$' explain twice.fuse --arch sm_90a --schedule row:reads=2    # h is written before x is read again
expect 0 'read and 10.9 MB written' explain "$root"/examples/adaln_bwd.fuse B=264 T=16 --arch sm_90a --no-tuning    # by one kernel for two
expect 0 '^traffic: at least 0 bytes read' explain "$root"/examples/rmsnorm.fuse M=0 N=12290 --arch sm_90a
while read -r hint; do
    read -r text
    echo "$text" >wrong.fuse
    expect 1 "^  hint: $hint" check wrong.fuse
done <<'END'
write import "std"
import std
an axis stands in brackets; what has none has no brackets
graph nothing[](x : f32[]) -> (y : f32[]) { y = x }
outputs stand in parentheses
graph g[N = 4](x : f32[N]) -> y : f32[N] { y = x }
a reduction is called, as in sum
graph g[N = 4](x : f32[N]) -> (y : f32[N]) { y = x * size[N] }
write where(condition, a, b)
graph g[N = 4](x : f32[N]) -> (y : f32[N]) { y = x if x > 0 else 0 }
'N' is an axis: it goes in brackets
graph g[N = 4](x : f32[N]) -> (y : f32[]) { y = max(x, N) }
axes are told by their names
graph g[M = 3, N = 4](x : f32[M, N]) -> (y : f32[M]) { y = mean[-1](x) }
it can be reduced over its own axes, as in mean\[N\]
graph g[M = 3, N = 4, H = 2](x : f32[M, N], w : f32[H]) -> (y : f32[M], z : f32[H]) { y = mean[H](x) z = w }
an element is picked by its index: sum.N.(where(index(N) == 0, x, 0))
graph g[M = 3, N = 4](x : f32[M, N]) -> (y : f32[M]) { y = x[:, 0] }
a comma is missing
graph g[M = 4 N = 8](x : f32[M, N]) -> (y : f32[M, N]) { y = x }
a comma is missing
graph g[N = 4](x : f32[N] gamma : f32[N]) -> (y : f32[N]) { y = x }
a parameter is written NAME : DTYPE
graph g[N = 4](x : f32[N], gamma) -> (y : f32[N]) { y = x }
a graph names its outputs
graph g[N = 4](x : f32[N]) { return x }
an axis has a size
graph g[M = , N = 8](x : f32[M, N]) -> (y : f32[M, N]) { y = x }
numbers have no suffix
graph g[N = 4](x : f32[N]) -> (y : f32[N]) { y = x + 1e-5f }
the '(' at wrong.fuse:1:.* is not closed
graph g[N = 4](x : f32[N]) -> (y : f32[N]) { y = x * (x + 1 }
the '\[' at wrong.fuse:1:.* is not closed
graph g[N = 4](x : f32[N) -> (y : f32[N]) { y = x }
the '(' at wrong.fuse:1:.* is not closed
graph g[N = 4](x : f32[N] -> (y : f32[N]) { y = x }
END
printf 'graph g[N = 4](x : f32[N]) -> (y : f32[N]) {\n    m = exp(x\n    y = m\n}\n' >wrong.fuse
expect 1 "^  hint: the '(' at wrong.fuse:2:12 is not closed" check wrong.fuse
: >wrong.fuse
expect 1 'wrong.fuse: error: the file has no graph, function or import' check wrong.fuse
# what has no room is said of the CTAs that were asked for
for refusal in 'grid-stride:cluster=32 of 32 CTAs are warp-specialized' 'grid-stride:cluster=8 cluster: 8 CTAs have no room' \
    'warp-specialized:stages=1 1 column accumulator of a row in one CTA needs'; do
    expect 2 "${refusal#* }" explain "$root"/examples/rmsnorm_bwd.fuse N=270336 --arch sm_90a --schedule "${refusal%% *}"
done
expect 0 '^  \*  ....  instructions  warp-specialized:threads=64$' explain "$root"/examples/layernorm_bwd.fuse --arch sm_90a --candidates --schedule warp-specialized:threads=64
expect 0 'threads=96,rows=5' explain "$root"/examples/layernorm_bwd.fuse N=1217 --arch sm_90a
expect 0 'warp-specialized, 1056 CTAs' explain "$root"/examples/layernorm.fuse M=16384 N=1023 --arch sm_90a
# from how many bytes on rows have a pace
expect 0 'for more data than L2 holds,' "$root"/examples/layernorm.fuse N=1023 --arch sm_90a
expect 0 'for twice the data that L2 holds, or more,' "$root"/examples/layernorm_bwd.fuse N=12288 --arch sm_90a
# rows that hand their stage on
expect 0 'row:threads=448,cluster=8,stages=1,per_sm=1,reuse=1, as the rules' explain "$root"/examples/layernorm.fuse N=163840 --arch sm_90a
expect 0 'stages=1,per_sm=3,reuse=1, as the rules' explain "$root"/examples/layernorm.fuse N=65536 --arch sm_90a --memory 4800
expect 0 'the next row to be copied takes the stage' explain "$root"/examples/rmsnorm_bwd.fuse N=2048 --arch sm_90a
expect 2 'reuse: row or grid-stride' explain "$root"/examples/layernorm.fuse N=1048576 --arch sm_90a --schedule row:cluster=32,reuse=1
expect 2 'reuse: row or grid-stride' explain "$root"/examples/layernorm_bwd.fuse N=1000 --arch sm_90a --schedule grid-stride:reuse=1
expect 2 'reuse: 1 (a row goes on' explain "$root"/examples/layernorm.fuse N=65536 --arch sm_90a --schedule row:reuse=2
expect 2 'reuse: row or grid-stride' explain "$root"/examples/layernorm.fuse N=8192 --arch sm_90a --schedule warp-specialized:reuse=1
expect 0 'the sums of 4 teams meet where the ring was' explain "$root"/examples/layernorm_bwd.fuse N=2048 --arch sm_90a --schedule grid-stride:stages=2,reuse=1
expect 0 'ring of 7 stages' explain "$root"/tests/cases/bias_gradient.fuse N=1280 --arch sm_90a
expect 2 'without rows=, stages=, reuse=' explain "$root"/examples/softmax.fuse N=4096 --arch sm_90a --schedule row:bulk=1,reuse=1
echo 'graph g[M = 4, N = 3000](x : f32[M, N], w : f32[N]) -> (y : f32[M, N]) { y = x * w }' >cut.fuse
expect 0 '1 x 4 elements a thread, the last tile not full' explain cut.fuse --arch sm_90a
# advice stops where it was measured, and what it names does not read rows again
expect 0 'clusters of 16 CTAs' explain f32.fuse N=262144 --arch sm_90a --memory 4800
expect 0 'stays in its stage' explain f32.fuse N=262144 --arch sm_90a --memory 4800
expect 0 'threads=96' explain "$root"/examples/layernorm.fuse N=1032 --arch sm_90a --memory 4800
expect 0 '4 x 8 elements a thread$' explain "$root"/examples/layernorm_bwd.fuse N=131072 --arch sm_90a --memory 4800
expect 0 'clusters of 16 CTAs' explain "$root"/examples/layernorm_bwd.fuse N=229376 --arch sm_90a
expect 0 'clusters of 4 CTAs' explain "$root"/examples/layernorm_bwd.fuse N=45056 --arch sm_90a
sed 's/bf16/f32/g' "$root"/examples/rmsnorm_bwd.fuse >rmsnorm_bwd.f32.fuse
sed 's/bf16/f32/g' "$root"/examples/softmax_bwd.fuse >softmax_bwd.f32.fuse
expect 0 'groups of 32 CTAs' explain rmsnorm_bwd.f32.fuse N=155648 --arch sm_90a
expect 0 'groups of 64 CTAs' explain rmsnorm_bwd.f32.fuse N=196608 --arch sm_90a
expect 0 'clusters of 8 CTAs' explain softmax_bwd.f32.fuse N=20480 --arch sm_90a
expect 0 'clusters of 8 CTAs' explain softmax_bwd.f32.fuse N=9216 --arch sm_90a
for row in "rmsnorm 8191 4" "rmsnorm_residual 8191 8" "layernorm_residual 16383 8" "layernorm 8190 2" "softmax 24001 8" "cross_entropy 16383 4" "rmsnorm_quantized 16383 4"; do
    read -r name columns ctas <<<"$row"
    sed 's/bf16/f32/g' "$root/examples/$name.fuse" >"$name.f32.fuse"
    expect 0 "clusters of $ctas CTAs" explain "$name.f32.fuse" N="$columns" --arch sm_90a
done
expect 0 'clusters of 4 CTAs' explain "$root"/examples/softmax_bwd.fuse N=12287 --arch sm_90a
expect 0 'clusters of 2 CTAs' explain "$root"/examples/softmax_masked.fuse K=16384 --arch sm_90a
expect 0 '448 threads a row' explain "$root"/examples/layernorm_bwd.fuse N=147456 --arch sm_90a
sed 's/M = 4, N = 8/M, N/' one.fuse >open.fuse
expect 0 'constexpr int N = 64' open.fuse N=64 --arch sm_90a
mv stdout open.cu
expect 0 '' open.fuse N=64 M=777 --arch sm_90a
cmp -s stdout open.cu || fail 'the text depends on the number of rows'
expect 2 "axis 'N' has no size" open.fuse M=64
expect 2 "axis 'M' has no size" explain open.fuse N=64
expect 2 "axis 'N' has no size: give N=SIZE" run open.fuse --device cpu    # the second that lacks one
# so much shared memory that one CTA more has no room, where more make memory slower, or where it is asked for
expect 0 'unused: it keeps an SM to 11 CTAs' explain "$root"/examples/softmax.fuse N=2048 --arch sm_90a
expect 0 'used: it keeps an SM to 11 CTAs' "$root"/examples/softmax.fuse N=2048 --arch sm_90a
expect 0 ', no dynamic shared memory' "$root"/examples/softmax.fuse N=2048 --arch sm_100a
expect 0 ', no dynamic shared memory' "$root"/examples/softmax_causal.fuse K=2048 --arch sm_90a
expect 0 'unused: it keeps an SM to 5 CTAs' explain "$root"/examples/layernorm.fuse N=2048 --arch sm_80 --schedule row:limit=5
expect 0 'used: it keeps an SM to 1 CTA\.' "$root"/examples/rmsnorm.fuse N=2048 --arch sm_90a --schedule row:limit=1
expect 0 ', no dynamic shared memory' "$root"/examples/softmax.fuse N=2048 --arch sm_90a --schedule row:limit=16
expect 2 'limit: per_sm asks for more' explain "$root"/examples/softmax.fuse N=2048 --arch sm_90a --schedule row:per_sm=6,limit=3
expect 2 'limit: no shared memory lets 31' explain "$root"/examples/rmsnorm.fuse --arch sm_90a --schedule row:threads=32,limit=31
expect 0 ', no dynamic shared memory' "$root"/examples/softmax_causal.fuse K=2056 --arch sm_90a
expect 0 '"limit": 11' explain "$root"/examples/softmax.fuse N=2048 --arch sm_90a --json
expect 0 'at most 11 CTAs an SM' emit "$root"/examples/softmax.fuse N=2048 --arch sm_90a --emit plan
expect 0 '512 threads a row' explain "$root"/examples/softmax_bwd.fuse N=16383 --arch sm_80
expect 2 'limit: only for kernels of the row' explain "$root"/tests/golden/pointwise.fuse --schedule pointwise:limit=2
expect 0 '264 CTAs of 512 threads, 2 an SM' explain "$root"/examples/layernorm_bwd.fuse N=2048 --arch sm_90a --schedule grid-stride:stages=1,per_sm=2
expect 2 "limit: only for kernels of the row" explain "$root"/examples/layernorm_bwd.fuse N=2048 --arch sm_90a --schedule warp-specialized:limit=2
expect 2 'schedule refused: cluster' explain "$root"/examples/layernorm.fuse N=262144 --arch sm_120 --schedule row:cluster=16
expect 0 'warp-specialized, 128 CTAs' explain "$root"/examples/layernorm_bwd.fuse N=262144 --arch sm_90a --schedule warp-specialized:cluster=32,ctas=528
# a long row has a cluster to itself, unless it is to pass through a ring or to be refilled
expect 0 'row, 131072 CTAs of 256' explain "$root"/examples/rmsnorm.fuse N=65536 --arch sm_90a
expect 0 'ring of 3 stages' explain "$root"/examples/rmsnorm.fuse N=65536 --arch sm_90a --schedule row:cluster=8,stages=3
expect 0 'registers take the next' explain "$root"/examples/rmsnorm.fuse N=65536 --arch sm_90a --schedule row:cluster=8,stages=1
expect 0 'is read again' explain "$root"/examples/rmsnorm.fuse N=65536 --arch sm_80
expect 2 '2 (each phase reads it)' explain "$root"/examples/softmax_bwd.fuse --schedule row:reads=3
expect 0 'the row is read again' explain "$root"/examples/softmax_bwd.fuse --schedule row:reads=2
echo 'graph g[B = 4, C = 8, S = 64](x : f32[B, C, S]) -> (y : f32[B, C, S]) { y = x - mean[C, S](x) }' >several.fuse
expect 0 'the row stays in registers' explain several.fuse --schedule row:reads=1
expect 0 '^verified' run several.fuse --device sim --verify --stride x=640,80,1
expect 0 '^verified' run several.fuse --device sim --verify --stride x=640,77,1 --offset x=3
expect 0 '^verified' run several.fuse --device sim --verify --schedule row:reads=2 --stride x=700,80,1
expect 0 'between them the row stays in registers' explain "$root"/examples/group_norm_bwd.fuse --arch sm_90a
expect 0 '512 threads a row, 8 elements a thread at a time' explain "$root"/examples/group_norm_bwd.fuse --arch sm_90a
echo 'graph g[B = 3, G = 2, C = 5, S = 0](x : bf16[B, G, C, S]) -> (y : f32[G, C]) { y = sum[B, S](x) }' >empty.fuse
expect 0 's_ = 0' empty.fuse
grep -q '[%/] S\b' stdout && fail 'emit: a division by the size of an empty axis'
echo 'graph g[B = 1, C = 1073741832](x : u8[B, C]) -> (y : u8[C]) { y = max[B](x) }' >wide.fuse
expect 2 'that are reduced over rows are not supported' explain wide.fuse
expect 2 "columns of one axis" explain several.fuse C=64 S=256 --schedule warp-specialized
# a plain layer norm is read again by rule, where it is plain and the caches hold it
expect 0 'the row is read again' explain "$root"/examples/layernorm.fuse N=22528
expect 0 'the row stays in registers' explain "$root"/tests/cases/heavy_norm.fuse
expect 0 'the row stays in registers' explain "$root"/examples/layernorm.fuse N=8192 --schedule row:reads=1
expect 2 'ctas: here each row' explain "$root"/examples/layernorm.fuse --schedule row:ctas=4
expect 2 'cluster: sm_80 has none' explain "$root"/examples/rmsnorm.fuse N=65536 --arch sm_80 --schedule row:cluster=8
expect 2 'of up to 16 CTAs' explain "$root"/examples/layernorm_bwd.fuse N=16384 --arch sm_90a --schedule grid-stride:cluster=64
# groups that read a row anew in each phase
expect 0 'groups of 64 CTAs share a row' explain "$root"/examples/layernorm.fuse M=4 N=4194304 --arch sm_90a
expect 0 'groups of 128 CTAs share a row' explain "$root"/tests/long/flat.fuse --arch sm_90a
expect 0 'x            2.1 MB a row' explain "$root"/tests/long/flat.fuse --arch sm_90a
expect 0 'groups of 32 CTAs share a row' explain "$root"/examples/rmsnorm.fuse N=65536 --arch sm_90a --schedule row:cluster=32,threads=64
expect 2 'with up to 992 threads each' explain "$root"/examples/rmsnorm.fuse N=65536 --arch sm_90a --schedule row:cluster=64,threads=1024
expect 2 'without rows=, stages= and bulk=' explain "$root"/examples/rmsnorm.fuse N=65536 --arch sm_90a --schedule row:cluster=64,stages=2
expect 2 'all 256 CTAs must run at once, and there are 132 SMs' explain "$root"/tests/long/flat.fuse --arch sm_90a --schedule row:cluster=256
expect 2 'ctas: here each row' explain "$root"/tests/long/flat.fuse --arch sm_90a --schedule row:ctas=64
expect 2 'with a ring or a group it is planned' explain "$root"/tests/long/flat.fuse --arch sm_90a --schedule row:cluster=32,per_sm=2
expect 2 'stages: a copy warp fills a ring' explain "$root"/examples/layernorm.fuse N=7168 --arch sm_90a --schedule warp-specialized:stages=1
expect 2 '32 of them are the copy warp' explain "$root"/examples/layernorm.fuse N=7168 --arch sm_90a --schedule warp-specialized:threads=1024
expect 2 'over 16384 columns' explain "$root"/examples/layernorm.fuse N=14336 --arch sm_90a --schedule warp-specialized:cluster=32
expect 2 'ends without a key' explain "$root"/examples/layernorm.fuse N=7168 --arch sm_90a --schedule row:
expect 2 'per_sm: up to 8; an SM holds 2048 threads and 32 CTAs' explain "$root"/examples/layernorm.fuse N=4096 --arch sm_90a --schedule row:per_sm=40
expect 0 '__launch_bounds__(256, 6)' emit "$root"/examples/layernorm.fuse N=4096 --arch sm_90a --schedule row:per_sm=6
expect 2 'each of 8 CTAs wants over 64 vectors of a row, so over 4096 columns; here are 512' explain "$root"/examples/rmsnorm.fuse N=512 --arch sm_90a --schedule row:cluster=8
expect 2 'cluster: 3 is not a power of two' explain "$root"/examples/softmax_bwd.fuse --schedule warp-specialized:cluster=3
expect 2 'all 64 CTAs must run at once, and there are 4 SMs' run "$root"/examples/softmax.fuse M=4 N=50257 --device sim --schedule warp-specialized:cluster=64
expect 0 'no kernel ran' run "$root"/examples/softmax.fuse M=4 N=8 --device cpu --verify
expect 0 'row_sum2 = 0;    // sum\[N\](y)' unnamed.fuse
expect 0 'the row stays in registers' explain "$root"/examples/layernorm_bwd.fuse --schedule row
expect 2 'no size' tune sizeless.fuse
expect 2 'no axis' tune one.fuse Q=3
expect 2 'no output' tune one.fuse --outputs t
expect 2 'no --device cpu' tune one.fuse --device cpu
expect 2 'no --device tpu' tune one.fuse --device tpu
expect 2 'no option --schedule' tune one.fuse --schedule row
expect 2 'no option --no-tuning' tune one.fuse --no-tuning
expect 2 'no scalar' run one.fuse --set esp=1
expect 2 'no value for k' run scalars.fuse --set k=1.5
expect 2 'no value for k' run scalars.fuse --set k=inf
expect 2 'no value for b' run scalars.fuse --set b=2
expect 2 'no value for n' run bytes.fuse --set n=300
expect 0 '^y ' run long.fuse --set n=9007199254740992 --device cpu
expect 2 'beyond 2^53' run long.fuse --set n=9007199254740993 --device cpu
expect 1 'beyond 2^53' check inexact.fuse
expect 0 '^y .* 7 ' run scalars.fuse --set k=7 --set b=true --device cpu
expect 2 'axes' run one.fuse --stride x=1
expect 2 'last axis' run one.fuse M=5 N=6 --stride x=12,2
expect 2 'no input' run one.fuse --offset z=1

# ---- several graphs ----
expect 0 '' check two.fuse
expect 0 'second' two.fuse M=4
expect 2 'first, second' run two.fuse M=4
expect 2 'first, second' explain two.fuse M=4
expect 2 'first, second' bench two.fuse M=4
expect 2 'first, second' tune two.fuse M=4
expect 0 '"graph": "second"' explain two.fuse --graph second M=4 --json
expect 0 '_finish", "schedule": "finish", "ctas": 128, "threads": 1024, "stages": 1, "groups": 1, "rows": 1,' \
    explain "$root"/examples/layernorm_bwd.fuse --json

# ---- stages ----
for stage in tokens ast graph analysis plan cuda; do
    expect 0 '[a-z]' emit one.fuse --emit=$stage
done
expect 0 'digraph' emit "$root/examples/layernorm_bwd.fuse" --emit=dot
# characters and names that other languages would have
for hint in 'x ? x : 0=where(c, a, b)' 'x @ x=sum\[K\](a \* b)'; do
    echo "graph g[N = 4](x : f32[N]) -> (y : f32[N]) { y = ${hint%%=*} }" >other.fuse
    expect 1 "hint: write ${hint#*=}" check other.fuse
done
for call in 'max\[N\](x, 0)=max(a, b)' 'softmax\[N\](x, 1)=softmax\[K\](x)'; do
    printf 'import "std"\ngraph g[N = 4](x : f32[N]) -> (y : f32[N]) { y = %s }' "${call%%=*}" | tr -d '\\' >other.fuse
    expect 1 "hint: .*${call#*=}" check other.fuse
done
echo 'import "stdlib" graph g[N = 4](x : f32[N]) -> (y : f32[N]) { y = x }' >other.fuse
expect 1 'hint: the standard library is: import "std"' check other.fuse
# the program's own definition is the second, wherever the first came from
printf 'import "std"\nfn relu(x) = x\ngraph g[N = 4](x : f32[N]) -> (y : f32[N]) { y = relu(x) }' >twice.fuse
expect 1 'twice.fuse:2:4: error: function .relu. is defined twice' check twice.fuse
# several graphs are one module
printf 'graph a[N = 4](x : f32[N]) -> (y : f32[N]) { y = x }\ngraph b[N = 4](x : f32[N]) -> (y : f32[N]) { y = -x }' >several.fuse
expect 0 '__global__' emit several.fuse
[ "$(grep -c 'ifndef FUSEC_SIM' stdout) $(grep -c '__global__' stdout)" = '1 2' ] || fail 'emit: a prelude for each graph'
# whose kernels have names of their own
printf 'graph a[M = 4, N = 4](x : f32[M, N]) -> (s : f32[N]) { s = sum[M](x) }\ngraph a_finish[N = 4](x : f32[N]) -> (y : f32[N]) { y = -x }' >several.fuse
expect 1 "both called 'a_finish'" emit several.fuse
expect 0 '__global__' emit several.fuse --graph a
# 1 + 2^-8 + 2^-40 is a tie for bf16 only if f32 has rounded it before
echo 'graph narrow[N = 8](x : f64[N], s : f64 = 1.00390625000091) -> (y : bf16[N]) { y = x * 0 + s }' >narrow.fuse
expect 0 '1.00781 ' run narrow.fuse --device cpu
expect 0 '1.00781 ' run narrow.fuse --device sim
# a row's scalars pass through the ring, behind the vectors, which so keep their place of a line
scalars=("$root/tests/cases/scalars_in_ring.fuse" --schedule grid-stride:threads=64,rows=8)
expect 0 'their scalars with them' explain "${scalars[@]}"
stage=$("$fusec" emit "${scalars[@]}" | sed -n '/struct alignas(128) Stage/,/};/s/.* \([a-z]*\)\[.*/\1/p' | xargs)
[ "$stage" = 'x dy shift kind bias' ] || fail "a stage holds $stage"
if command -v dot >/dev/null; then
    tests=$((tests + 1))
    for file in "$root"/examples/*.fuse; do
        "$fusec" emit "$file" --emit=dot | dot -Tsvg >dot.svg 2>stderr || fail "dot: $file"
    done
fi
stdin=one.fuse expect 0 '__global__' -
stdin=one.fuse expect 0 'mean' fmt -
expect 0 'registers' explain one.fuse

# ---- programs that are wrong ----
printf 'graph g[M](x : f32[M]) -> (y : f32[M]) { y = ' >cut.fuse
head -c 4096 /dev/urandom >binary.fuse
printf 'graph g[M = 2](x : f32[M]) -> (y : f32[M]) { y = x\0+ 1 }' >nul.fuse
head -c 3000000 /dev/zero | tr '\0' 'x' >megabyte.fuse
{
    printf 'graph g[M = 2](x : f32[M]) -> (y : f32[M]) { y = '
    head -c 200000 /dev/zero | tr '\0' '('
    printf 'x'
    head -c 200000 /dev/zero | tr '\0' ')'
    printf ' }'
} >deep.fuse
echo 'import "nowhere.fuse"' >import.fuse
echo 'import "cycle.fuse"' >cycle.fuse
: >empty.fuse
for file in cut binary nul megabyte deep import cycle; do
    expect 1 'error' check $file.fuse
    expect 1 'error' emit $file.fuse M=4
    expect 1 'error' run $file.fuse M=4
done
{    # a row's value of which each use is two of the one before: 2^40 ways down
    echo 'graph g[M, N](x : f32[M, N]) -> (y : f32[M, N]) {'
    echo 'r0 = mean[N](x)'
    for i in {1..40}; do echo "r$i = r$((i - 1)) * r$((i - 1)) - r$((i - 1))"; done
    echo 'y = x * r40 }'
} >squares.fuse
expect 0 'r40 = ' squares.fuse N=256 --arch sm_90a
expect 1 'empty.fuse: error: the file has no graph, function or import' check empty.fuse
expect 1 'graph' run empty.fuse
stdin=binary.fuse expect 1 'error' fmt -
expect 1 'overflow' one.fuse M=9223372036854775807

# ---- sizes ----
for sizes in 'M=0' 'M=1' 'N=0' 'N=1' 'M=0 N=0' 'M=3 N=7' 'M=1 N=1'; do
    expect 0 'ok' run one.fuse $sizes --verify --device cpu
done
expect 3 'memory' run one.fuse M=100000000 N=100000 --device cpu

# ---- sizes whose product is no tensor's ----
cat >apart.fuse <<'END'
graph apart[A = 65536, B = 65536, C = 65536, D = 65536](a : f32[A], b : f32[B], c : f32[C], d : f32[D]) -> (norm : f32[]) {
    norm = sqrt(sum[A](a * a) + sum[B](b * b) + sum[C](c * c) + sum[D](d * d))
}
END
expect 0 'global__' apart.fuse --arch sm_90a
expect 0 '^norm ' run apart.fuse --device cpu
expect 0 ' ok$' run apart.fuse --device sim --verify A=64 B=33 C=5 D=40
clip=$root/tests/cases/clip_by_norm.fuse
expect 0 'walks rows A, B,' explain "$clip" A=4096 B=14336 C=4096 D=4096 E=32000
expect 0 'traffic: at least 38.4 MB read and 38.4 MB' explain "$root/tests/cases/norms_of_three.fuse" A=100000 B=100000 C=100000 N=64
also 'walks rows B, columns N;'
also 'walks rows C, columns N;'
cat >exabytes.fuse <<'END'
graph exabytes[A = 4611686018427387904, B = 2, C = 0](x : u8[A, B], y : u8[A, B], w : u8[A, B, C]) -> (z : u8[B], e : u8[A, B, C]) {
    z = u8(max[A](f32(x + y)))
    e = w
}
END
expect 1 "the sizes of 'x' overflow" explain exabytes.fuse
expect 0 'read 9223372036854775807, write 1 bytes' emit exabytes.fuse B=1 --emit=analysis
expect 0 'write 0 bytes' emit exabytes.fuse B=1 --emit=analysis --outputs e
cat >nothing.fuse <<'END'
graph nothing[B = 9000000000000000000, C = 9000000000000000000, A = 0](x : f32[B, C, A], w : f32[C, A]) -> (
    y : f32[B, C, A], s : f32[A], t : f32[C, A]) {
    y = x * 2.0
    s = sum[B, C](x)
    t = w * 2.0
}
END
expect 0 ' 0 run at these sizes' explain nothing.fuse
expect 0 ' ok$' run nothing.fuse --device sim --verify

# ---- one element of a row, whatever is made of it ----
cat >picks.fuse <<'END'
graph picks[M = 64, N = 4096](x : bf16[M, N], i : i64[M], t : f32 = 0.5) -> (
    plain : f32[M], scaled : f32[M], divided : f32[M], negated : f32[M], turned : f32[M], within : f32[M], highest : f32[M]) {
    plain   = sum[N](where(index(N) == i, x, 0.0))
    scaled  = sum[N](where(index(N) == i, x * t, 0.0))
    divided = sum[N](where(index(N) == i, x / 2.0, 0.0))
    negated = -sum[N](where(i == index(N), bf16(-x), 0.0) * 3.0)
    turned  = sum[N](where(index(N) != i, 0.0, x))
    within  = mean[N](where(i >= 7 && index(N) == i - 7, x, 0.0))
    highest = max[N](where(index(N) == i, x, -inf))
}
END
for output in plain scaled divided negated turned within highest; do
    expect 0 '^traffic: at least 640 bytes read' explain picks.fuse --outputs $output
done
expect 0 '^within .* ok$' run picks.fuse M=9 N=40 --device sim --verify

# ---- what a row reduces to, for several ids of each ----
ids=$root/tests/cases/ids_of_rows.fuse
expect 0 '^traffic: at least 272.4 kB read' explain "$ids" M=64 K=16 N=2048 --outputs logp
also 'computes m, l'
also '^kernels: 2'
also 'a kernel ends with l: it is the same for several rows'
cat >scaled_ids.fuse <<'END'
graph scaled_ids[M = 64, K = 16, N = 2048](x : bf16[M, N], t : bf16[M, K], n : i64[M, K], w : bf16[K, N]) -> (
    y : bf16[M, K], c : f32[M, K], z : bf16[M, K, N]) {
    rstd = rsqrt(mean[N](x * x))
    y = t * rstd
    c = sum[N](where(index(N) < n, x, 0.0))
    z = x * w * rstd
}
END
expect 0 '^traffic: at least 264.2 kB read' explain scaled_ids.fuse --outputs y
expect 0 '^traffic: at least 4.2 MB read' explain scaled_ids.fuse --outputs c    # a row for each of its 16 sums
also 'read anew for each of the rows'
expect 0 '^kernels: 1' explain scaled_ids.fuse --outputs z    # where each element is needed anyway
for outputs in y c z y,c,z; do
    expect 0 ' ok$' run scaled_ids.fuse M=3 K=2 N=40 --device sim --verify --outputs $outputs
done

# ---- rows whose largest element is infinite ----
cat >infinite.fuse <<'END'
import "std"
graph infinite[M = 3, N = 4](kind : i64[M]) -> (y : f32[M], p : f32[M, N], l : f32[M, N]) {
    x = where(kind == 0, -inf, where(kind == 1 && index(N) == 2, inf, f32(index(N))))
    y = logsumexp[N](x)
    p = softmax[N](x)
    l = log_softmax[N](x)
}
END
expect 0 'together with largest' explain infinite.fuse --outputs y
also 'reductions: 2, in 2 phases'
for output in t u v w p; do
    expect 0 'together with m$' explain "$root/tests/cases/online_at.fuse" --outputs $output
done
sed 's/kind == 0/kind != 3/; s/\[M = 3/[M = 1/' infinite.fuse >low.fuse
sed 's/kind == 0/kind == 3/; s/kind == 1/kind != 3/; s/\[M = 3/[M = 1/' infinite.fuse >high.fuse
for device in cpu sim; do
    expect 0 '^y .* -inf ' run low.fuse --device $device
    also '4 of 4 elements are NaN'
    expect 0 '^y .* inf  .* inf ' run high.fuse --device $device
    also '4 of 4 elements are NaN'
done

# ---- bytes that persist are those of a tensor as it is stored ----
cat >narrow_rows.fuse <<'END'
graph narrow_rows[M = 8, N = 64](x : bf16[M, N], b : bool[M], h : bf16[M], d : f64[M]) -> (y : bf16[M, N]) {
    y = where(b, x - mean[N](where(b, x * h * f32(d), 0.0)), x * h * f32(d))
}
END
expect 0 ' b  *1 bytes* a row' explain narrow_rows.fuse
also ' h  *2 bytes a row'
also ' d  *8 bytes a row'
expect 0 '"name": "b", "bytes_per_row": 1}' explain narrow_rows.fuse --json

# ---- tensors ----
x='"x":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}'
w='"w":{"dtype":"F32","shape":[3],"data_offsets":[24,36]}'
e='"eps":{"dtype":"F32","shape":[],"data_offsets":[36,40]}'
tensors good "{$x,$w,$e}" 40
tensors no_eps "{$x,$w}" 36
tensors missing "{$x}" 24
tensors extra "{$x,$w,\"epz\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[36,40]}}" 40
tensors other "{$x,$w,\"bias\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[36,40]}}" 40
tensors dtype "{\"x\":{\"dtype\":\"F16\",\"shape\":[2,6],\"data_offsets\":[0,24]},$w}" 36
tensors rank "{\"x\":{\"dtype\":\"F32\",\"shape\":[6],\"data_offsets\":[0,24]},$w}" 36
tensors shape "{\"x\":{\"dtype\":\"F32\",\"shape\":[3,2],\"data_offsets\":[0,24]},$w}" 36
tensors truncated "{$x,$w}" 30
tensors overlap "{$x,\"w\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[12,24]}}" 24
tensors huge "{$x,\"w\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904],\"data_offsets\":[24,36]}}" 36
printf 'no tensors' >text
: >nothing
export device="--device cpu"
expect 0 '^y .*\[2, 3\]' run one.fuse --in good $device --verify
expect 0 '^y ' run one.fuse --in no_eps --set eps=1e-5 $device
expect 2 'would replace' run one.fuse --in no_eps --set eps=1e-5 --out ./no_eps $device
expect 0 '^y ' run one.fuse --in no_eps --set eps=1e-5 $device
expect 1 'eps' run one.fuse --in no_eps $device
expect 1 'the input w : .*\[N\] is missing' run one.fuse --in missing $device
expect 1 'epz' run one.fuse --in extra $device
expect 1 'hint: did you mean eps' run one.fuse --in extra $device
expect 1 'hint: there are x, w, eps' run one.fuse --in other $device
expect 2 'twice' run one.fuse --in good --in other $device
expect 1 'F16' run one.fuse --in dtype $device --set eps=1
expect 1 'has the shape \[6\], the graph wants \[M, N\]' run one.fuse --in rank $device --set eps=1
expect 1 'N = ' run one.fuse --in shape $device --set eps=1
expect 1 'M = 2' run one.fuse M=5 --in good $device
for file in truncated overlap huge text nothing absent .; do
    expect 1 '[a-z]' run one.fuse --in $file $device --set eps=1 --out leftover
done
[ -e leftover ] && fail 'an output file from a failed run'

# ---- outputs ----
expect 0 '' run one.fuse --in good $device --out result
expect 1 'x : .* is missing\|no input' run one.fuse --in result $device
expect 3 'cannot write' run one.fuse $device --out absent/result
expect 3 'cannot write' run one.fuse M=100000 N=100000 $device --out absent/result    # before there is anything to write
mkdir directory
expect 3 'cannot write directory: Is a directory' run one.fuse M=100000 N=100000 $device --out directory
for command in bench tune; do
    expect 3 'cannot write absent/result' $command one.fuse -o absent/result
done
echo kept >existing
expect 3 'memory' run one.fuse M=100000000 N=100000 $device --out existing
[ "$(cat existing)" = kept ] || fail 'a failed run has changed the file of its outputs'
for place in cpu sim; do
    expect 2 'on each other' run one.fuse --stride y=4,1 --device $place --set eps=1
done
printf 'graph g[N = 8](x : bf16[N]) -> (y : f32[N]) {\n    y = x.to(f32)\n}\n' >cast.fuse
expect 1 'write f32.x., not x.to.f32.' check cast.fuse
expect 0 'of 32 elements are NaN' run nan.fuse $device --verify
printf 'graph g[N = 8](x : f32[N]) -> (y : f32[N]) {\n    y = log(-1 - abs(x))\n}\n' >nowhere.fuse
expect 0 ' unchecked$' run nowhere.fuse $device --verify
CXX=/absent expect 3 'CXX names, cannot be run: /absent' run one.fuse --set eps=1 --device sim
TMPDIR=/absent expect 3 'cannot make a directory in /absent .*TMPDIR' run one.fuse --set eps=1 --device sim
FUSEC_SIM_KEEP=/absent/x expect 3 'SIM_KEEP names, /absent/x: No such file' run one.fuse --set eps=1 --device sim
expect 3 'cannot write' one.fuse -o absent/out.cu
expect 0 '' one.fuse -o out.cu
grep -q __global__ out.cu || fail '-o wrote no kernel'
ls -- *.cu.* result.* existing.* >/dev/null 2>&1 && fail 'a temporary file was left'
if [ -w /dev/full ]; then
    tests=$((tests + 1))
    "$fusec" one.fuse >/dev/full 2>stderr
    [ $? = 3 ] || fail 'a full stdout is not exit 3'
fi
tests=$((tests + 2))
"$fusec" run one.fuse --seed 3 $device >first 2>/dev/null
"$fusec" run one.fuse --seed 3 $device >second 2>/dev/null
"$fusec" run one.fuse --seed 4 $device >third 2>/dev/null
cmp -s first second || fail 'the same seed gives another result'
cmp -s first third && fail 'another seed gives the same result'
expect 0 'ok' run one.fuse M=5 N=6 --stride x=11,1 --offset x=3 --verify $device
expect 0 'ok' run one.fuse M=5 N=6 --stride x=0,1 --verify $device
expect 0 'ok' run one.fuse M=5 N=6 --stride y=9,1 --offset y=5 --verify $device

if command -v g++ >/dev/null || command -v clang++ >/dev/null; then
    expect 0 'ok' run "$root/examples/layernorm_bwd.fuse" M=13 N=96 --device sim --verify
    expect 0 'ok' run one.fuse M=5 N=7 --device sim --sms 2 --seed 5 --stride x=9,1 --verify
    expect 2 'last axis' run one.fuse M=5 N=6 --stride x=12,2 --device sim
    {
        echo "graph g[M = 4](x : f32[M]) -> ($(printf 'y%d : f32[M], ' {1..70}) z : f32[M]) { z = x"
        printf '    y%d = x\n' {1..70}
        echo '}'
    } >outputs.fuse
    expect 0 'ok' run outputs.fuse --device sim --verify
fi
expect 2 'sms' run one.fuse --device sim --sms 0

# ---- machine ----
if ! "$fusec" run one.fuse --device cuda >/dev/null 2>&1; then
    expect 3 '[a-z]' run one.fuse --device cuda
    expect 3 '[a-z]' bench one.fuse
    expect 3 '[a-z]' tune one.fuse
    expect 3 '[a-z]' tune one.fuse --json --device cuda
else
    expect 0 'default' tune one.fuse M=64 N=256
    expect 0 '"candidates"' tune one.fuse M=64 N=256 --json
fi
ls tuning.tmp* >/dev/null 2>&1 && fail 'a temporary file was left beside the tuning file'
# without a device, or for a named architecture, the tuning file is not even looked at
echo 'no tuning file' >tuning
expect 0 '__global__' one.fuse --arch sm_90a
[ -s stderr ] && fail 'emit --arch looks into the tuning file'
expect 0 'kernels' explain one.fuse --arch sm_90a
[ -s stderr ] && fail 'explain --arch looks into the tuning file'
expect 0 '__global__' one.fuse --no-tuning
expect 0 'ok' run one.fuse --device cpu --verify
rm -f tuning
FUSEC_NVRTC=/dev/null expect 3 'NVRTC' emit one.fuse --emit=cubin
# whoever takes a cubin that spills is told of it
spilling="$root/tests/cases/gelu_norm_bwd.fuse"
if ! "$fusec" emit "$spilling" --arch sm_90a --emit=cubin -o spilling.cubin 2>told; then
    echo '-- command line: what spills is not told, skipped: NVRTC makes no cubin'
elif ! grep -q 'spills' told; then
    fail "with this NVRTC $spilling does not spill: the check wants another program"
fi
# limits of a compilation: each is told with its value and where it is set
awk 'BEGIN { print "graph g[N = 8](x : f32[N]) -> (y : f32[N]) { v0 = x"
             for (i = 1; i < 500; i++) print "v" i " = v" (i - 1) " * x + " i
             print "y = v499 }" }' >long.fuse
expect 3 'long.fuse:[0-9]*:.*over 100 operations, its limit: option max_nodes, or --limit nodes=N' check long.fuse --limit nodes=100
expect 3 'over 100 operations' emit long.fuse --emit=graph --limit nodes=100
expect 3 'over 200000 bytes of memory, its limit: option max_bytes, or --limit bytes=B' emit long.fuse --limit bytes=200000
expect 3 'over 1e-09 seconds, its limit: option max_seconds, or --limit seconds=S' explain long.fuse --limit seconds=1e-9
expect 3 'over 100 operations' run long.fuse --device cpu --limit nodes=100
expect 0 'extern "C"' emit long.fuse --arch sm_90a --limit nodes=5000,seconds=60,bytes=100000000
for wrong in nodes=0 nodes=-1 nodes=x nodes nodes= steps=3 seconds=0 seconds=-1 seconds=nan seconds=x bytes=1.5 ,nodes=1 nodes=1,,bytes=2; do
    expect 2 '\-\-limit cannot take' check long.fuse --limit $wrong
done
expect 2 'has no option --limit' fmt long.fuse --limit nodes=1
# text is printed without NVRTC: FUSEC_NVRTC names a library that leaves a mark where it is opened
printf '#include <fcntl.h>\n__attribute__((constructor)) static void mark(void) { open("opened", O_CREAT | O_WRONLY, 0600); }\n' >mark.c
${CC:-gcc} -shared -fPIC mark.c -o mark.so
for kind in tokens ast graph analysis plan dot cuda; do
    FUSEC_NVRTC=$work/mark.so expect 0 '' emit "$spilling" --arch sm_90a --emit=$kind
done
[ -e opened ] && fail 'emit opens NVRTC to print text'
FUSEC_NVRTC=$work/mark.so expect 3 '' emit one.fuse --emit=cubin
[ -e opened ] || fail 'FUSEC_NVRTC does not name what is opened'
FUSEC_NVRTC=/dev/null expect 0 'kernels: 1' explain one.fuse
grep -q 'without NVRTC nothing is known of registers' stderr || fail 'explain without NVRTC is silent about registers'
FUSEC_NVRTC=/dev/null expect 0 '"registers": null, "spill_bytes": null' explain one.fuse --json

# ---- files are not trusted ----
mkfifo fifo
truncate -s 6G sparse.fuse
echo 'secret=1' >secrets
echo '{"graph": "secret"}' >>secrets
for import in fifo sparse.fuse /dev/zero secrets "$fusec" "$work"; do
    echo "import \"$import\" graph g[N = 4](x : f32[N]) -> (y : f32[N]) { y = x }" >import.fuse
    expect 1 'import.fuse:1:8: error: ' check import.fuse
    ! grep -q 'secret=' stderr || fail "the import of $import is shown"
done
expect 2 'it is a device' check /dev/zero
expect 2 'nobody writes to this FIFO' check fifo
expect 1 'too large for a program: it has more than 16777216 bytes' check sparse.fuse
head -c 20000000 /dev/zero >large
stdin=large expect 1 'too large for a program' check -
rm sparse.fuse large
echo 'fn twice(x) = 2 * x' >twice.import
echo 'import "twice.import" graph g[N = 4](x : f32[N]) -> (y : f32[N]) { y = twice(x) }' >import.fuse
expect 0 'y' run import.fuse --device cpu
expect 0 '__global__' <(cat one.fuse)
stdin=import.fuse expect 0 '__global__' -
expect 0 '' run import.fuse --device cpu --out kept.safetensors
chmod 640 kept.safetensors
expect 0 '' run import.fuse --device cpu --out kept.safetensors
[ "$(stat -c %a kept.safetensors)" = 640 ] || fail 'run --out changes the mode of a file'
head -c 90 kept.safetensors >cut.safetensors
expect 1 'cut.safetensors: ' run import.fuse --device cpu --in cut.safetensors
expect 1 'it is a device' run import.fuse --device cpu --in /dev/zero
# a file that is formatted keeps what it has, through a link, too
echo 'graph  g[M=2](x:f32[M])->(y:f32[M]){y=x+1}' >ugly.fuse
ln -s ugly.fuse linked.fuse
kept=$(id -u):$(id -g):4755
if [ "$(id -u)" = 0 ]; then
    chown 65534:1234 ugly.fuse
    kept=65534:1234:4755
else
    echo '-- command line: the owner of a formatted file, skipped: not root'
fi
chmod 4755 ugly.fuse
expect 0 '' fmt -w linked.fuse
[ -L linked.fuse ] && [ "$(stat -c %u:%g:%a ugly.fuse)" = "$kept" ] || fail "fmt -w leaves $(stat -c %u:%g:%a ugly.fuse), not $kept"
expect 0 '' fmt --check ugly.fuse
rm ugly.fuse linked.fuse fifo
# a cache that others may write to is told once, and not used
mkdir -p open/cache
chmod 777 open/cache
FUSEC_CACHE_DIR=$work/open/cache expect 0 'kernels: ' explain one.fuse
if grep -q ' registers a thread' stdout; then
    [ "$(grep -c 'open/cache is not used: others may write to it' stderr)" = 1 ] || fail 'a cache that is not trusted is not told, or told twice'
fi
[ -z "$(ls open/cache)" ] || fail 'a cache that is not trusted was written to'
FUSEC_SIM_KEEP=open/cache expect 3 'SIM_KEEP names, open/cache: others may write to it' run one.fuse --set eps=1 --device sim
FUSEC_CACHE_DIR=open/cache expect 3 'set FUSEC_CACHE_DIR' cache path

# ---- fmt, cache ----
expect 0 'graph' fmt one.fuse
cp stdout formatted.fuse
expect 0 '' fmt --check formatted.fuse
echo 'graph  g[M=2](x:f32[M])->(y:f32[M]){y=x+1} # kept' >ugly.fuse
expect 1 'canonical' fmt --check ugly.fuse
expect 0 '' fmt -w ugly.fuse
expect 0 '' fmt --check ugly.fuse
grep -q '# kept' ugly.fuse || fail 'fmt lost a comment'
# a comment stays in the list that it ends
printf 'graph g[M = 4](\n    x : f32[M]\n    # of x (all)\n) -> (\n    y : f32[M]\n    # of y\n) {\n    y = x\n}\n' >listed.fuse
expect 0 '' fmt --check listed.fuse
expect 0 '' fmt --check "$root"/examples/*.fuse
cp ugly.fuse neat.fuse
echo 'graph  g[M=2](x:f32[M])->(y:f32[M]){y=x+1}' >ugly.fuse
expect 1 'ugly.fuse is not' fmt --check ugly.fuse neat.fuse
expect 2 'No such file' fmt -w no-such.fuse ugly.fuse
expect 0 '' fmt --check ugly.fuse neat.fuse
expect 2 'takes one FILE' fmt ugly.fuse neat.fuse
expect 2 'goes with no' fmt -w ugly.fuse -
expect 0 "$work/cache" cache path
expect 0 '' cache list
expect 0 'removed' cache clear
cp "$root"/examples/rmsnorm_bwd.fuse sums.fuse    # whose second kernel is named after the first
expect 0 'kernels: 2' explain sums.fuse --arch sm_90a
grep -q ' registers a thread' stdout && expect 0 ' rmsnorm_bwd$' cache list
touch nowhere
FUSEC_CACHE_DIR=$work/nowhere/cache expect 0 'kernels: ' explain one.fuse
if ! grep -q ' registers a thread' stdout; then
    echo '-- command line: a cache that cannot be written, skipped: NVRTC makes no cubin'
elif [ "$(grep -c 'cannot be written' stderr)" != 1 ]; then
    fail 'a cache that cannot be written is not told, or told twice'
fi

# the same bits as the reference, signs of zeros among them, which --verify does not see
for device in sim cpu; do
    expect 0 '1d61ebe54804e487' run "$root"/tests/cases/divided_zeros.fuse --device $device
done

echo "-- command line: $((tests - bad)) of $tests passed"
[ $bad = 0 ]
