#!/bin/bash
# What explain says of a plan: kernels, traffic, reasons, the model and its candidates, in words and
# in JSON.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# what the model expects of the plan, and of what else could be
expect 0 'model: about [0-9]* GB/s with many rows, where memory moves [0-9]*; bound by memory' explain "$root"/examples/layernorm_bwd.fuse --arch sm_90a
also '^schedule: .* (\(the cost model.s choice\|from the table of h100, .*\))$'
expect 0 '^     [0-9]*  memory        grid-stride:exact=1,threads=' explain "$root"/examples/layernorm_bwd.fuse --arch sm_90a --candidates
also '^  \*  [0-9]*  [a-z]* .*:exact=1,threads='
also '^not listed: [0-9]* that the model expects to be slower'
also '^refused: 1 family'
also '^  pointwise: pointwise is for graphs without reductions; this graph has reductions inside rows'
[ "$(grep -c '^  .*:exact=1,' stdout)" = 40 ] || fail 'explain --candidates does not list 40'
expect 0 'model: ranks such plans, and gives no speed: it has sums that keep row axes' explain "$root"/examples/adaln_bwd.fuse --arch sm_90a
expect 0 'kernels also write .* for each other' explain "$root/examples/cross_entropy_mean.fuse"
expect 0 '^other columns: C (axes=last), 1.[0-9]*x the time by the cost model$' explain "$root/examples/group_norm_nhwc_silu.fuse" --arch sm_90a
also '^why 4 kernels: .*mean\[C\](\.\.\. - mean + mean\[S\](\.\.\.))'
expect 0 '"chosen": true, "model_gbps": ' explain "$root"/examples/softmax.fuse --arch sm_90a --candidates --json
expect 0 '"schedule": "pointwise", "reason": "pointwise is for graphs' explain "$root"/examples/layernorm_bwd.fuse --arch sm_90a --candidates --json
expect 2 'stand for several schedules in a list of candidates: write one of their values' explain "$root"/examples/softmax.fuse --schedule 'row:threads=128[,per_sm=6]'
# narrow stores want no more threads to a row; vectors of a group, in f32, stay in registers
expect 0 '^schedule: row:threads=4,rows=32 ' explain "$root/tests/bench/graphs/gelu_quant.fuse" --arch h200
expect 0 '^schedule: pointwise:exact=1,threads=16,rows=8,stages=8,' explain "$root/tests/bench/graphs/instance_norm_nhwc.fuse" --arch h200
for name in layernorm_bwd softmax adaln_bwd; do    # the text that explain prints is that plan's
    FUSEC_NVRTC=/dev/null "$fusec" explain "$root/examples/$name.fuse" --arch sm_90a 2>/dev/null |
        sed -n 's/^schedule: \(.*\) (\(the cost model.s choice\|from the table of h100.*\))$/\1/p' >schedule.txt
    "$fusec" "$root/examples/$name.fuse" --arch sm_90a >chosen.cu
    "$fusec" "$root/examples/$name.fuse" --arch sm_90a --schedule "$(cat schedule.txt)" >named.cu
    tests=$((tests + 1))
    cmp -s <(grep -v '^//   fusec ' chosen.cu) <(grep -v '^//   fusec ' named.cu) || fail "$name: --schedule $(cat schedule.txt) prints another text"
done
printf 'graph g[M = 9, N = 4096, Z = 2](x : f32[M, N], w : f32[Z], z : f32[M, Z]) -> (y : f32[M, N], v : f32[M, Z]) {
    y = x / (1 + sum[N](x * x))
    v = z * w
}\n' >aside.fuse
expect 0 'why: y shares nothing with the other outputs, so its kernels choose their own columns, .N.' explain aside.fuse
expect 0 '^axes: rows M; columns N, Z$' explain aside.fuse
sed 's/v = z/v = sum[N](x * x) * z/' aside.fuse >joined.fuse
expect 0 'why 3 kernels: sum.N.(x \* x): reduces along \[N\], and the graph.s columns are \[Z\]' explain joined.fuse
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
expect 0 'computes dx; partials of dgamma, dbeta' explain "$root"/examples/layernorm_bwd.fuse
expect 0 'computes dx, dscale, dshift$' explain "$root"/examples/adaln_bwd.fuse B=264 T=200
expect 0 '"kernels_read": 335561344' explain "$root"/examples/group_norm_bwd.fuse --json
expect 0 'dgamma, dbeta are complete only when' explain "$root"/examples/layernorm_bwd.fuse --json
# the rows of a group are in parts, which CTAs share out, or where groups are many whole groups
expect 0 'each B form 66 parts, divided among the CTAs' explain "$root"/tests/golden/group_sums.fuse
expect 0 'each B form 66 parts, which one CTA takes' explain "$root"/tests/golden/group_sums.fuse B=1000
expect 0 'finish, 0 CTAs' explain "$root"/tests/golden/group_sums.fuse B=1000
expect 0 'kernels: 2, of which 1 runs at these sizes' explain "$root"/tests/golden/group_sums.fuse B=1000
expect 0 'each B form 1 part$' explain "$root"/tests/golden/group_sums.fuse T=64
expect 0 'each B form 3 parts' explain "$root"/tests/golden/group_sums.fuse --schedule column:ctas=3
expect 0 'each B form 20 parts, which one CTA takes' explain "$root"/tests/cases/first_of_rides.fuse B=40 \
    --schedule grid-stride:exact=1,threads=2,rows=16,stages=8,ctas=20,per_sm=32,reuse=1,live=32,part=64+column:exact=1,threads=2,rows=64,stages=8,per_sm=8,reuse=1,live=8
echo 'graph g[M = 64, N = 64](x : f32[M, N]) -> (mu : f32[N], y : f32[M, N]) { mu = mean[M](x)
 y = x - mu }' >centred.fuse
expect 0 'computes mu, y$' explain centred.fuse
grep -q 'mu, mu' stdout && fail 'explain: a result is named twice'
expect 0 'column vectors are read with the row, into registers' explain "$root/tests/cases/wide_weights.fuse" N=12288 --arch sm_90a --schedule row:columns=registers,stages=1
expect 0 '"rows": 2, "cluster": 1, "threads_per_row": 256,' explain "$root"/examples/layernorm_bwd.fuse --arch sm_90a --schedule grid-stride:threads=256,rows=2 --json
expect 0 '^1.00x: how many times as long as the fastest; no GB/s, for it has sums that keep row axes' explain "$root"/examples/adaln_bwd.fuse --arch sm_90a --candidates
expect 0 'where x is not read: 25 % is left where window has its default' explain "$root"/tests/golden/window.fuse --arch sm_90a
also '^traffic: at most 268.4 MB read'
expect 0 'where y, dy are not read: how much, rows tell; the model takes 50 % to be left' explain "$root"/examples/softmax_causal_bwd.fuse --arch sm_90a
expect 0 '^traffic: at least 67.1 MB read' explain "$root"/examples/softmax_causal.fuse --arch sm_90a --schedule row:stages=2
expect 0 "divides a row's number to find its index along each of B, H, Q, because the program has index(Q)" explain "$root"/examples/softmax_causal.fuse --arch sm_90a
expect 0 "divides a row's number to find its index along each of B, G, because gamma does not have all of these axes" explain "$root"/examples/group_norm.fuse --arch sm_90a
expect 0 '^in place, if asked for (each input for one output only): h may overwrite x or residual; y may overwrite x or residual' explain "$root"/examples/layernorm_residual.fuse --arch sm_90a
echo 'graph twice[M = 3, N = 4](x : f32[M, N], g : f32[N]) -> (h : f32[M, N], y : f32[M, N]) { h = x + g  y = h * sum[N](h) }' >twice.fuse
expect 0 'each input for one output only): h may overwrite x; y may overwrite x$' explain twice.fuse --arch sm_90a --schedule row:reads=1
expect 0 'each input for one output only): y may overwrite x$' explain twice.fuse --arch sm_90a --schedule row:reads=2    # h is written before x is read again
expect 0 'read and 10.9 MB written' explain "$root"/examples/adaln_bwd.fuse B=264 T=16 --arch sm_90a --no-tuning    # by one kernel for two
expect 0 '^traffic: at least 0 bytes read' explain "$root"/examples/rmsnorm.fuse M=0 N=12290 --arch sm_90a
expect 0 '^  \*  .* warp-specialized:exact=1,threads=64,' explain "$root"/examples/layernorm_bwd.fuse --arch sm_90a --candidates --schedule warp-specialized:threads=64
echo 'graph g[M = 4, N = 3000](x : f32[M, N], w : f32[N]) -> (y : f32[M, N]) { y = x * w }' >cut.fuse
expect 0 '1 vector of 4 elements a thread, the last tile not full' explain cut.fuse --arch sm_90a --schedule pointwise:tiles=1
expect 0 'reserved only to keep an SM to 5 CTAs' explain "$root"/examples/layernorm.fuse N=2048 --arch sm_80 --schedule row:limit=5
expect 0 '"limit": 11' explain "$root"/examples/softmax.fuse N=2048 --arch sm_90a --json --schedule row:limit=11
expect 0 'between them the row stays in registers' explain "$root"/examples/group_norm_bwd.fuse --arch sm_90a
channels=("$root"/examples/layernorm_channels.fuse --arch sm_90a --schedule row:threads=32,rows=8,lanes=8,vec=4)
expect 0 'rows B, S, columns C; 8 x 4 rows at a time, 32 threads a row, 6 columns of 4 neighbouring rows a thread' explain "${channels[@]}"
also 'neighbours in memory along S: a warp has 16 of them, whose columns 4 warps share'
also '^model: ranks such plans, and gives no speed: its rows are neighbours in memory$'
cat >nchw.fuse <<'END'
import "std"
graph nchw[B = 8, C = 21, H = 64, W = 64](x : bf16[B, C, H, W], mask : u8[B, C]) -> (y : bf16[B, C, H, W]) {
    y = softmax[C](where(mask != 0, x, -inf))
}
END
expect 0 '^  mask  *21 bytes a row, read again by each phase$' explain nchw.fuse --arch sm_90a
also 'max.* and sum.* are not computed together, because rows are neighbours in memory$'
also 'between them the row stays in registers; each phase reads again: mask$'
also "along each of B, H, because mask does not have all of these axes$"
sed 's/x : bf16/x : f32/; s/mask != 0/x > 0/' nchw.fuse >unmasked.fuse
expect 0 'because columns lie between rows in memory$' explain unmasked.fuse --arch sm_90a
expect 0 '^// .*, from nchw.fuse:2-4$' emit nchw.fuse --arch sm_90a
echo 'graph line[N = 4](x : f32[N]) -> (y : f32[N]) { y = x }' >line.fuse
expect 0 '^// .*, from line.fuse:1$' emit line.fuse --arch sm_90a
expect 0 '^// columns  *32 threads a row (8 lanes of each of 4 warps); a thread has columns thread_in_row,$' emit "${channels[@]}"
expect 0 '512 threads a row, 8 elements a thread at a time' explain "$root"/examples/group_norm_bwd.fuse --arch sm_90a
expect 0 'the row stays in registers' explain "$root"/examples/layernorm_bwd.fuse --schedule row
expect 0 '_finish", "schedule": "finish", "ctas": 128, "threads": 1024, "stages": 1, "groups": 1, "rows": 1,' \
    explain "$root"/examples/layernorm_bwd.fuse --json

# The family cluster is the model's best of all that share rows; candidates keep to --schedule, and
# those that differ in per_sm alone are one line.
cat >residual.fuse <<'END'
graph rms[M = 8192, N = 5120](x : bf16[M, N], residual : bf16[M, N], gamma : bf16[N], eps : f32 = 1e-5) -> (
    h : bf16[M, N], y : bf16[M, N]) {
    h = bf16(x + residual)
    y = h * rsqrt(mean[N](h * h) + eps) * gamma
}
END
expect 0 '^schedule: row:threads=64,cluster=2 ' explain residual.fuse --arch h100 --schedule cluster:threads=64
expect 0 'per_sm=[0-9]*\.\.[0-9]' explain residual.fuse --arch h100 --schedule row:cluster=2 --candidates
tests=$((tests + 1))
sed -n '/^candidates/,/^refused/p' stdout | grep -E '[a-z-]+:exact=1' | grep -qvE 'row:exact=1.*cluster=2' && fail 'a candidate that --schedule excludes'
expect 2 'grid-stride needs a sum over rows (sum\[M\]); this graph has none' explain residual.fuse --arch h100 --schedule grid-stride
# ... and names the columns where a graph may have others, and the meaning of a key whose values are words
expect 2 'grid-stride needs a sum over rows (sum\[C\]); with the columns \[B, S\] this graph has none' \
    explain "$root"/examples/batchnorm.fuse S=49 --arch h100 --schedule grid-stride
expect 2 'columns: .C. is not one of: registers shared memory (where the column vectors' \
    explain residual.fuse --arch h100 --schedule row:columns=C
expect 2 'axes: .C. is not one of: reduced last split wider short (which axes are a row.s columns: ' \
    explain residual.fuse --arch h100 --schedule row:axes=C

# the few rows of a sum behind the first axis are columns; those along the first, most often the batch, are not compiled in
cat >experts.fuse <<'EOF'
graph experts[T = 4096, K = 8, C = 1024](x : bf16[T, K, C], w : f32[T, K]) -> (y : bf16[T, C]) { y = sum[K](x * w) }
EOF
expect 0 'axes: rows T, C; columns K .axes=short.' explain experts.fuse --arch h200
expect 0 'axes: rows T, K; columns C' explain experts.fuse K=17 --arch h200
cat >members.fuse <<'EOF'
graph members[E = 8, T = 4096, C = 1024](x : bf16[E, T, C]) -> (y : bf16[T, C]) { y = sum[E](x) }
EOF
expect 0 'axes: rows E, T; columns C' explain members.fuse --arch h200
# what a program declares says how many rows a group is likely to have: no team is without one; other sizes get the same kernel
expect 0 'walks rows E, columns C; [1248] rows* at a time' explain members.fuse --arch h200
"$fusec" members.fuse --arch h200 | sed 1,3d >declared.cu
"$fusec" members.fuse E=100 T=9 --arch h200 | sed 1,3d >other.cu
tests=$((tests + 1))
cmp -s declared.cu other.cu || fail 'sizes of rows change the kernel'
# ... also where another kernel of the plan has these rows as columns
cat >both.fuse <<'EOF'
graph both[A = 6, B = 4, C = 15, D = 17](x : f32[A, B, C, D], w : f32[C, D]) -> (o : f32[A, C, D], p : f32[A, C], q : f32[A, B, C], r : f32[A]) {
    v = sum[D](x)
    o = sum[B](x * w)
    p = min[B, D](x)
    q = v
    r = mean[B, C](v)
}
EOF
"$fusec" both.fuse --arch h100 | sed 1,3d >declared.cu
"$fusec" both.fuse B=1000 --arch h100 | sed 1,3d >other.cu
tests=$((tests + 1))
cmp -s declared.cu other.cu || fail 'sizes of rows change the kernel'

finish
