#!/bin/bash
# Which plan is chosen for what kinds of rows: by length, dtype, GPU and weights.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

expect 0 '64 threads a row' explain "$root"/examples/layernorm.fuse N=2048 --arch sm_90a --memory 4800
expect 0 '128 threads a row' explain "$root"/examples/layernorm.fuse N=2048 --arch sm_90a --memory 3350
expect 0 '1 row at a time, 32 threads a row' explain "$root"/examples/layernorm.fuse N=77 --arch sm_90a --schedule row:threads=32,reads=2
expect 0 'no faster than memory' explain "$root"/examples/rmsnorm_bwd.fuse N=12288 --arch sm_90a
sed s/bf16/f32/g "$root"/examples/layernorm.fuse >f32.fuse
for columns in 98304 98305 131072; do
    expect 0 'row, 16384 CTAs of 1024 threads' explain f32.fuse N=$columns --arch sm_80
    expect 0 'clusters of 16 CTAs' explain f32.fuse N=$columns --arch sm_90a
done
expect 0 'column, 132 CTAs' explain "$root"/tests/cases/sums_of_odd.fuse M=8192
expect 0 'clusters of 8 CTAs' explain "$root"/examples/rmsnorm.fuse N=20000 --arch sm_90a --schedule warp-specialized:cluster=8
expect 0 'groups of 32 CTAs' explain "$root"/examples/layernorm_bwd.fuse N=300000 --arch sm_90a
expect 0 'clusters of 16 CTAs' explain "$root"/examples/layernorm_bwd.fuse N=204800 --arch sm_90a
expect 0 'ring of 2 stages' explain "$root"/examples/layernorm.fuse N=139264 --arch sm_90a
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
expect 0 'schedule: row:threads=512, as' explain "$root"/examples/rmsnorm.fuse N=8192 --arch sm_100a --no-tuning
expect 0 '^schedule: row:threads=512, as' explain "$root"/examples/softmax_causal.fuse K=8192 --arch sm_90a --no-tuning
expect 0 '"rows_again": true' explain "$root"/examples/softmax.fuse M=3 N=8000001 --arch sm_90a --no-tuning --json
expect 0 '"rows_again": true' explain "$root"/tests/long/flat.fuse N=4194304 --arch sm_90a --no-tuning --json    # a graph without rows
expect 0 'threads=96,rows=5' explain "$root"/examples/layernorm_bwd.fuse N=1217 --arch sm_90a
expect 0 'warp-specialized, 1056 CTAs' explain "$root"/examples/layernorm.fuse M=16384 N=1023 --arch sm_90a
# rows that hand their stage on
expect 0 'row:threads=448,cluster=8,stages=1,per_sm=1,reuse=1, as the rules' explain "$root"/examples/layernorm.fuse N=163840 --arch sm_90a
expect 0 'stages=1,per_sm=3,reuse=1, as the rules' explain "$root"/examples/layernorm.fuse N=65536 --arch sm_90a --memory 4800
expect 0 'the next row to be copied takes the stage' explain "$root"/examples/rmsnorm_bwd.fuse N=2048 --arch sm_90a
expect 0 'ring of 7 stages' explain "$root"/tests/cases/bias_gradient.fuse N=1280 --arch sm_90a
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
expect 0 '512 threads a row' explain "$root"/examples/softmax_bwd.fuse N=16383 --arch sm_80
# a long row has a cluster to itself, unless it is to pass through a ring or to be refilled
expect 0 'row, 131072 CTAs of 256' explain "$root"/examples/rmsnorm.fuse N=65536 --arch sm_90a
expect 0 'ring of 3 stages' explain "$root"/examples/rmsnorm.fuse N=65536 --arch sm_90a --schedule row:cluster=8,stages=3
expect 0 'registers take the next' explain "$root"/examples/rmsnorm.fuse N=65536 --arch sm_90a --schedule row:cluster=8,stages=1
expect 0 'is read again' explain "$root"/examples/rmsnorm.fuse N=65536 --arch sm_80
# a plain layer norm is read again by rule, where it is plain and the caches hold it
expect 0 'the row is read again' explain "$root"/examples/layernorm.fuse N=22528
expect 0 'the row stays in registers' explain "$root"/tests/cases/heavy_norm.fuse
expect 0 'the row stays in registers' explain "$root"/examples/layernorm.fuse N=8192 --schedule row:reads=1
# groups that read a row anew in each phase
expect 0 'groups of 64 CTAs share a row' explain "$root"/examples/layernorm.fuse M=4 N=4194304 --arch sm_90a
expect 0 'groups of 128 CTAs share a row' explain "$root"/tests/long/flat.fuse --arch sm_90a
expect 0 'x            2.1 MB a row' explain "$root"/tests/long/flat.fuse --arch sm_90a
expect 0 'groups of 32 CTAs share a row' explain "$root"/examples/rmsnorm.fuse N=65536 --arch sm_90a --schedule row:cluster=32,threads=64

finish
