#!/bin/bash
# Printed text and the dumps of the stages; several graphs in one file.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

printf 'graph w[M = 4, N = 8](x : i64[M, N]) -> (y : bool[M, N]) { y = x + 1 > x }\n' >wraps.fuse
expect 0 'wrap_add(x_, 1) > x_' wraps.fuse
# only what is at least 1, however it is computed, is divided by quickly
printf 'graph s[M = 4, N = 8](x : f32[M, N]) -> (y : f32[M, N]) { y = x / (1.0 + exp(-x)) }\n' >silu.fuse
expect 0 'quick_quotient(x_, 1.0f + expf(-x_))' silu.fuse
printf 'graph s[M = 4, N = 8](x : f32[M, N]) -> (y : f32[M, N]) { y = x / (0.5 + exp(-x)) }\n' >half.fuse
expect 0 'x_ / (0.5f + expf(-x_))' half.fuse
printf 'graph s[M = 4, N = 8](x : f32[M, N]) -> (y : f32[M, N]) { y = x / (1.0 + x) }\n' >signed.fuse
expect 0 'x_ / (1.0f + x_)' signed.fuse
{
    echo 'graph g[M = 4, N = 8](x : f32[M, N]) -> ('
    for i in $(seq 255); do echo "    y$i : f32[M, N],"; done | sed '$s/,$//'
    echo ') {'
    for i in $(seq 255); do echo "    y$i = x * $i"; done
    echo '}'
} >wide.fuse
expect 2 'no schedule: arguments: a kernel has 513, and the limit is 512' wide.fuse
expect 0 '__global__' wide.fuse --outputs y1,y255

# what rows of several axes have of their own is read a row ahead
expect 0 'mu_next = next < rows' "$root"/tests/cases/scalars_of_two_axes.fuse N=4096 --arch sm_90a --no-tuning
# rows of two axes are one where tensors allow it, and another kernel is there for those that do not
expect 0 'x + row \* x_row' "$root"/tests/cases/rows_of_two_axes.fuse
expect 0 'x_B + t_ \* x_T' "$root"/tests/cases/rows_of_two_axes.fuse
# column vectors that a later phase reads come a tile early, but where they are wider than the row and registers short
expect 0 'load(gamma_next, gamma, col + step, N)' "$root"/examples/layernorm.fuse N=3584 --arch sm_90a --schedule row:early=1
sed 's/gamma *: bf16/gamma : f32/; s/beta *: bf16/beta : f32/' "$root/examples/layernorm.fuse" >wide.fuse
in_memory=(--arch sm_90a --schedule "row:threads=128,columns=memory")
expect 0 'load(gamma_v, gamma, col, N)' wide.fuse N=5120 "${in_memory[@]}"
# few rows have them in shared memory when they want them, as far as that does not keep other rows waiting
expect 0 'gamma_v = held.gamma\[t\]' wide.fuse N=5000 "${in_memory[@]}"
expect 0 '40960 are faster in a grid of up to 204 CTAs' wide.fuse N=5000 "${in_memory[@]}"
expect 0 '"smem_bytes": 0, "few_ctas": 204, "few_bytes": 40960,' explain wide.fuse N=5120 --json "${in_memory[@]}"
expect 0 'MAX_DYNAMIC_SHARED_SIZE_BYTES' wide.fuse N=6144 --arch sm_90a --schedule row:threads=192,columns=memory
expect 0 '41.0 kB of dynamic shared memory where the grid has up to 204 CTAs' explain wide.fuse N=5120 "${in_memory[@]}"
expect 0 'launch_bounds__(128, 6)' "$root"/examples/layernorm.fuse N=8192 --arch sm_90a --schedule row:threads=128,per_sm=6,cluster=1
# from how many bytes on rows have a pace
expect 0 'more data than L2 holds,' "$root"/examples/layernorm.fuse N=1023 --arch sm_90a --schedule warp-specialized
expect 0 'twice the data that L2 holds, or more,' "$root"/examples/layernorm_bwd.fuse N=12288 --arch sm_90a --schedule warp-specialized
# so much shared memory that one CTA more has no room, where it is asked for
expect 0 'reserved only to keep an SM to 11 CTAs' "$root"/examples/softmax.fuse N=2048 --arch sm_90a --schedule row:limit=11
expect 0 'reserved only to keep a second CTA off the SM;' "$root"/examples/rmsnorm.fuse N=2048 --arch sm_90a --schedule row:limit=1
expect 0 '^// shared memory  0 bytes' "$root"/examples/softmax.fuse N=2048 --arch sm_90a --schedule row:stages=1,reads=1,cluster=1
expect 0 'at most 11 CTAs an SM' emit "$root"/examples/softmax.fuse N=2048 --arch sm_90a --emit plan --schedule row:limit=11
echo 'graph g[B = 3, G = 2, C = 5, S = 0](x : bf16[B, G, C, S]) -> (y : f32[G, C]) { y = sum[B, S](x) }' >empty.fuse
expect 0 's = 0' empty.fuse
grep -q '[%/] S\b' stdout && fail 'emit: a division by the size of an empty axis'
echo 'graph g[B = 1, C = 1073741832](x : u8[B, C]) -> (y : u8[C]) { y = max[B](x) }' >wide.fuse
expect 2 'that are reduced over rows are not supported' explain wide.fuse
expect 0 '__launch_bounds__([0-9]*, 6)' emit "$root"/examples/layernorm.fuse N=4096 --arch sm_90a --schedule row:per_sm=6
echo 'graph g[M = 4, N = 8](x : f32[M, N], y : f32[M, N]) -> (z : f32[M]) { z = sum[N](x) / sum[N](y) }' >unnamed.fuse

# several graphs
cat >two.fuse <<'END'
graph first[M = 4](x : f32[M]) -> (y : f32[M]) { y = x + 1 }
graph second[M, N = 8](x : f32[M, N]) -> (y : f32[M], z : f32[M]) {
    y = sum[N](x)
    z = max[N](x)
}
END
expect 0 '' check two.fuse
expect 0 'second' two.fuse M=4
expect 2 'first, second' run two.fuse M=4
expect 2 'first, second' explain two.fuse M=4
expect 2 'first, second' bench two.fuse M=4
expect 2 'first, second' tune two.fuse M=4
expect 0 '"graph": "second"' explain two.fuse --graph second M=4 --json
# several graphs are one module
printf 'graph a[N = 4](x : f32[N]) -> (y : f32[N]) { y = x }\ngraph b[N = 4](x : f32[N]) -> (y : f32[N]) { y = -x }' >several.fuse
expect 0 '__global__' emit several.fuse
[ "$(grep -c 'ifndef FUSEC_SIM' stdout) $(grep -c '__global__' stdout)" = '1 2' ] || fail 'emit: a prelude for each graph'
# whose kernels have names of their own
printf 'graph a[M = 4, N = 4](x : f32[M, N]) -> (s : f32[N]) { s = sum[M](x) }\ngraph a_finish[N = 4](x : f32[N]) -> (y : f32[N]) { y = -x }' >several.fuse
expect 1 "both called 'a_finish'" emit several.fuse
expect 0 '__global__' emit several.fuse --graph a
expect 0 'row_sum2 = 0;    // sum\[N\](y)' unnamed.fuse

# dumps
for stage in tokens ast graph analysis plan cuda; do
    expect 0 '[a-z]' emit one.fuse --emit=$stage
done
expect 0 'digraph' emit "$root/examples/layernorm_bwd.fuse" --emit=dot
# a box for each kernel and phase; the kinds of reductions; partials between the kernels
for words in 'kernel layernorm_bwd: ' 'kernel layernorm_bwd_finish: finish' 'label="phase 1"' 'c1 = mean\[N\](wdy \* xhat)\\ninner' \
    'sum\[M\](dy)\\nouter' 'dbeta_partial : f32\[N\]\\npartials, one for each CTA' 'persistent: 8192 bytes a row' 'k0_.* -> s0' 's0 -> k1_'; do
    also "$words"
done
printf 'graph g[M = 4, N = 8](x : f32[M, N]) -> (y : f32[M, N], zero : f32[M]) { y = x zero = 0 * sum[N](x) }\n' >copied.fuse
expect 0 'i1 -> k0_1;' emit copied.fuse --emit=dot
also 'k0_1 -> o0;'
expect 0 'k0 \[label="zeroes the mailbox"\]' emit "$root/examples/layernorm_bwd.fuse" N=294912 --emit=dot --arch sm_90a --schedule warp-specialized:cluster=32
# a row's scalars pass through the ring, behind the vectors, which so keep their place of a line
scalars=("$root/tests/cases/scalars_in_ring.fuse" --schedule "grid-stride:threads=64,rows=8")
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
{    # a row's value of which each use is two of the one before: 2^40 ways down
    echo 'graph g[M, N](x : f32[M, N]) -> (y : f32[M, N]) {'
    echo 'r0 = mean[N](x)'
    for i in {1..40}; do echo "r$i = r$((i - 1)) * r$((i - 1)) - r$((i - 1))"; done
    echo 'y = x * r40 }'
} >squares.fuse
expect 0 'r40 = ' squares.fuse N=256 --arch sm_90a
# text is printed without NVRTC: FUSEC_NVRTC names a library that leaves a mark where it is opened
printf '#include <fcntl.h>\n__attribute__((constructor)) static void mark(void) { open("opened", O_CREAT | O_WRONLY, 0600); }\n' >mark.c
${CC:-gcc} -shared -fPIC mark.c -o mark.so
for kind in tokens ast graph analysis plan dot cuda; do
    FUSEC_NVRTC=$work/mark.so expect 0 '' emit "$root/tests/cases/gelu_norm_bwd.fuse" --arch sm_90a --emit=$kind
done
[ -e opened ] && fail 'emit opens NVRTC to print text'
FUSEC_NVRTC=$work/mark.so expect 3 '' emit one.fuse --emit=cubin
[ -e opened ] || fail 'FUSEC_NVRTC does not name what is opened'
FUSEC_NVRTC=/dev/null expect 0 'kernels: 1' explain one.fuse
grep -q 'without NVRTC, registers and spills are unknown' stderr || fail 'explain without NVRTC is silent about registers'
FUSEC_NVRTC=/dev/null expect 0 '"registers": null, "spill_bytes": null' explain one.fuse --json

printf 'graph a[N = 4](x : f32[N]) -> (y : f32[N]) { y = x }\ngraph b[N = 4](x : f32[N]) -> (y : f32[N]) { y = -x }' >several.fuse
# the head says what prints a text again: all that it depends on, wherever it is printed
expect 0 '^//   fusec several.fuse --graph a N=4 --arch sm_90a$' emit several.fuse --arch sm_90a
also '^//   fusec several.fuse --graph b N=4 --arch sm_90a$'
for words in 'one.fuse N=8 --arch sm_80' 'one.fuse N=8 --outputs s --arch sm_90a --memory 4800 --schedule row:threads=32 --prelude include'; do
    # shellcheck disable=SC2086
    expect 0 "^//   fusec $words\$" emit $words
done
stdin=one.fuse expect 0 '^//   fusec - N=8 --arch sm_90a$' emit - --arch sm_90a
cp one.fuse "it's one.fuse"
cp one.fuse $'two\nlines.fuse'
for file in "it's one.fuse" $'two\nlines.fuse'; do
    "$fusec" "$file" --arch sm_90a >first.cu 2>stderr
    eval "set -- $(sed -n 's/^\/\/   fusec //p' first.cu)"
    "$fusec" "$@" >again.cu 2>stderr
    tests=$((tests + 1))
    cmp -s first.cu again.cu || fail "emit: the head's command prints another text: $*"
done
# helpers in the text, or by a header
expect 0 '^#include "fusec.cuh"$' one.fuse --arch sm_90a --prelude=include
grep -q 'DEVICE' stdout && fail 'emit: helpers in a text that includes them'
expect 0 '^#define DEVICE' one.fuse --arch sm_90a --prelude inline
expect 2 'hint: one of inline, include' one.fuse --prelude none

# no kernel has a parameter that it does not use
for program in "$root"/examples/*.fuse "$root"/tests/cases/{large_mean_over,ids_of_rows,sums_apart}.fuse; do
    "$fusec" "$program" --arch sm_90a 2>/dev/null
done >all.cu
awk '
    /^void .*\($/ { kernel = $2; parameters = ""; reading = 1; next }
    reading { parameters = parameters $0; if (/ \{$/) { reading = 0; inside = 1; body = "" } next }
    inside && /^}$/ {
        inside = 0
        kernels++
        sub(/\) \{$/, "", parameters)
        count = split(parameters, all, ",")
        for (i = 1; i <= count; i++) {
            name = all[i]
            sub(/.* /, "", name)
            if (body !~ ("[^A-Za-z0-9_]" name "[^A-Za-z0-9_]")) print kernel name " is not used"
        }
    }
    inside { body = body "\n" $0 }
    END { if (!kernels) print "no kernels" }' all.cu >unused
tests=$((tests + 1))
[ -s unused ] && fail "emit: $(cat unused)"

finish
