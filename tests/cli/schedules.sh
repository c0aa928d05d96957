#!/bin/bash
# Schedules that --schedule asks for: what they make, and why they cannot be.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

expect 2 'one CTA is none' explain "$root/examples/softmax.fuse" --schedule cluster:cluster=1
expect 2 'refused: row is for reductions inside rows' explain "$root/tests/golden/group_sums.fuse" --schedule cluster
expect 2 '^one.fuse: error: schedule refused' one.fuse --schedule nonsense
expect 2 "row has no key 'treads'" one.fuse --schedule row:treads=32
expect 2 "did you mean 'stages'" one.fuse --schedule row:stage=3
expect 2 'walks one at a time' explain "$root"/examples/rmsnorm_bwd.fuse N=6144 --arch sm_90a --schedule warp-specialized:rows=2
expect 2 'refused: groups: ' one.fuse N=256 --schedule row:groups=2
expect 0 '__global__' one.fuse N=256 --schedule row:groups=1
expect 0 'clusters of 2 CTAs' explain "$root/examples/softmax.fuse" --schedule cluster
expect 0 'clusters of 4 CTAs' explain "$root/examples/softmax.fuse" --schedule cluster:cluster=4
expect 2 'refused: cluster: ' explain "$root/examples/softmax.fuse" N=64 --schedule cluster
expect 2 'a number from 1 to' one.fuse --schedule row:stages=0
expect 2 "'stages' is given twice" one.fuse --schedule row:stages=2,stages=3
expect 2 'threads: 3 of a row are not whole warps of 32' "$root"/examples/softmax.fuse --schedule row:threads=3
expect 2 'threads: a CTA has up to 1024' "$root"/examples/softmax.fuse --schedule row:threads=99999
expect 2 '4 bytes or more at a time' explain "$root"/examples/layernorm.fuse N=1987 --schedule row:stages=3
expect 2 'for a part of one' explain "$root"/examples/layernorm.fuse N=64 --schedule warp-specialized
expect 2 'and these are of several' explain "$root"/tests/cases/several_axes.fuse S=824 --schedule warp-specialized
expect 0 'ring of 3 stages' explain "$root"/examples/layernorm_bwd.fuse N=79 --schedule grid-stride:stages=3
expect 0 'ring of 3 stages' explain "$root"/examples/layernorm_bwd.fuse N=1987 --schedule grid-stride:stages=3
expect 2 'shared memory has room for' explain "$root"/examples/layernorm_bwd.fuse --schedule grid-stride:stages=64
expect 2 'over those of each group' explain "$root"/tests/golden/group_sums.fuse --schedule warp-specialized
expect 0 '^  adaln_bwd: warp-specialized' explain "$root"/examples/adaln_bwd.fuse C=1024 --schedule warp-specialized    # its sums apart
also '^  adaln_bwd_2: column'
expect 0 ': row,.* of 128 threads$' explain "$root"/examples/softmax.fuse N=4096 --arch sm_90a --schedule row:threads=128
expect 2 'more than 2147483647 columns' explain "$root"/examples/softmax.fuse N=3000000000
expect 2 'schedule refused' run one.fuse --schedule pointwise
expect 0 'one bulk copy brings the row to shared memory' explain "$root"/examples/layernorm.fuse N=11520 --arch sm_90a --schedule row:bulk=1
expect 0 'clusters of 4 CTAs' explain "$root"/examples/softmax.fuse N=8192 --arch sm_90a --schedule row:bulk=1,cluster=4
expect 2 'bulk: sm_80 has no bulk copies' explain "$root"/examples/softmax.fuse --arch sm_80 --schedule row:bulk=1
expect 2 'bulk: for rows of whole blocks' explain "$root"/examples/softmax.fuse N=4001 --arch sm_90a --schedule row:bulk=1
expect 2 'bulk: 1 (a row comes' explain "$root"/examples/softmax.fuse --arch sm_90a --schedule row:bulk=2
expect 2 'reads: the row is too long' explain "$root"/examples/softmax.fuse N=8000001 --schedule row:reads=1
expect 2 'rows: CTAs that share a row walk one at a time' explain "$root"/examples/rmsnorm.fuse N=12290 --arch sm_90a --schedule row:cluster=2,threads=128,rows=2
expect 2 'over 4096 columns; here are 4090' explain "$root"/examples/rmsnorm.fuse N=4090 --arch sm_90a --schedule warp-specialized:cluster=32
expect 2 'multiples of 32, warp-specialized or row' explain "$root"/examples/rmsnorm_bwd.fuse N=270336 --arch sm_90a --schedule grid-stride:cluster=32
expect 2 'stages: a copy warp fills a ring' explain "$root"/examples/rmsnorm_bwd.fuse N=270336 --arch sm_90a --schedule warp-specialized:stages=1
expect 2 'without rows=, stages=, reuse= and bulk=' explain "$root"/examples/layernorm.fuse N=1048576 --arch sm_90a --schedule row:cluster=32,reuse=1
expect 2 'reuse: row or grid-stride' explain "$root"/examples/layernorm_bwd.fuse N=1000 --arch sm_90a --schedule grid-stride:reuse=1
expect 2 'reuse: 1 (a row goes on' explain "$root"/examples/layernorm.fuse N=65536 --arch sm_90a --schedule row:reuse=2
expect 2 'reuse: row or grid-stride' explain "$root"/examples/layernorm.fuse N=8192 --arch sm_90a --schedule warp-specialized:reuse=1
expect 0 "4 teams add their sums in the ring's memory" explain "$root"/examples/layernorm_bwd.fuse N=2048 --arch sm_90a --schedule grid-stride:rows=4,stages=2,reuse=1
expect 2 'without rows=, stages=, reuse=' explain "$root"/examples/softmax.fuse N=4096 --arch sm_90a --schedule row:bulk=1,reuse=1
expect 2 'limit: per_sm asks for more' explain "$root"/examples/softmax.fuse N=2048 --arch sm_90a --schedule row:per_sm=6,limit=3
expect 2 'limit: no shared memory lets 32' explain "$root"/examples/rmsnorm.fuse --arch sm_90a --schedule row:threads=32,limit=32
expect 2 'limit: only for kernels of the row' explain "$root"/tests/golden/pointwise.fuse --schedule pointwise:limit=2
expect 0 '264 CTAs of [0-9]* threads, 2 an SM' explain "$root"/examples/layernorm_bwd.fuse N=2048 --arch sm_90a --schedule grid-stride:stages=1,per_sm=2
expect 2 "limit: only for kernels of the row" explain "$root"/examples/layernorm_bwd.fuse N=2048 --arch sm_90a --schedule warp-specialized:limit=2
expect 2 'schedule refused: cluster' explain "$root"/examples/layernorm.fuse N=262144 --arch sm_120 --schedule row:cluster=16
expect 0 'warp-specialized, 128 CTAs' explain "$root"/examples/layernorm_bwd.fuse N=262144 --arch sm_90a --schedule warp-specialized:cluster=32,ctas=528
expect 2 '2 (each phase reads it)' explain "$root"/examples/softmax_bwd.fuse --schedule row:reads=3
expect 0 'the row is read again' explain "$root"/examples/softmax_bwd.fuse --schedule row:reads=2
echo 'graph g[B = 4, C = 8, S = 64](x : f32[B, C, S]) -> (y : f32[B, C, S]) { y = x - mean[C, S](x) }' >several.fuse
expect 0 'the row stays in registers' explain several.fuse --schedule row:reads=1
expect 0 '^verified' run several.fuse --device sim --verify --stride x=640,80,1
expect 0 '^verified' run several.fuse --device sim --verify --stride x=640,77,1 --offset x=3
expect 0 '^verified' run several.fuse --device sim --verify --schedule row:reads=2 --stride x=700,80,1
expect 2 "columns of one axis" explain several.fuse C=64 S=256 --schedule warp-specialized
expect 2 'ctas: here each row' explain "$root"/tests/golden/pointwise.fuse --schedule pointwise:ctas=4
expect 0 ': row, 4 CTAs' explain "$root"/examples/layernorm.fuse --arch sm_90a --schedule row:ctas=4    # through a ring
expect 2 'cluster: sm_80 has none' explain "$root"/examples/rmsnorm.fuse N=65536 --arch sm_80 --schedule row:cluster=8
expect 2 'of up to 16 CTAs' explain "$root"/examples/layernorm_bwd.fuse N=16384 --arch sm_90a --schedule grid-stride:cluster=64
expect 2 'with up to 992 threads each' explain "$root"/examples/rmsnorm.fuse N=65536 --arch sm_90a --schedule row:cluster=64,threads=1024
expect 2 'stages: here rows stay in registers or are read again' explain "$root"/examples/rmsnorm.fuse N=65536 --arch sm_90a --schedule row:cluster=64,stages=2
expect 2 'all 256 CTAs must run at once, and there are 132 SMs' explain "$root"/tests/long/flat.fuse --arch sm_90a --schedule row:cluster=256
expect 2 'ctas: here each row' explain "$root"/tests/long/flat.fuse --arch sm_90a --schedule row:ctas=64
expect 2 'per_sm: with a ring or a group it is planned' explain "$root"/tests/long/flat.fuse --arch sm_90a --schedule row:cluster=32,per_sm=2
expect 2 'stages: a copy warp fills a ring' explain "$root"/examples/layernorm.fuse N=7168 --arch sm_90a --schedule warp-specialized:stages=1
expect 2 '32 of them are the copy warp' explain "$root"/examples/layernorm.fuse N=7168 --arch sm_90a --schedule warp-specialized:threads=1024
expect 2 'over 16384 columns' explain "$root"/examples/layernorm.fuse N=14336 --arch sm_90a --schedule warp-specialized:cluster=32
expect 2 'ends without a key' explain "$root"/examples/layernorm.fuse N=7168 --arch sm_90a --schedule row:
expect 2 'per_sm: ' explain "$root"/examples/layernorm.fuse N=4096 --arch sm_90a --schedule row:per_sm=40
expect 2 'each of 8 CTAs wants over 64 vectors of a row, so over 4096 columns; here are 512' explain "$root"/examples/rmsnorm.fuse N=512 --arch sm_90a --schedule row:cluster=8
expect 2 'cluster: 3 is not a power of two' explain "$root"/examples/softmax_bwd.fuse --schedule warp-specialized:cluster=3
expect 2 'all 64 CTAs must run at once, and there are 4 SMs' run "$root"/examples/softmax.fuse M=4 N=50257 --device sim --schedule warp-specialized:cluster=64
# keys that complete schedules tell may be asked for alone, too
expect 0 'ring of .* stages' explain "$root"/examples/layernorm.fuse N=8192 --arch sm_90a --schedule row:lag=1
expect 0 'register prefetch' explain "$root"/examples/layernorm.fuse N=65536 --arch sm_90a --schedule row:refill=1
expect 0 'line-aligned' explain "$root"/examples/layernorm_bwd.fuse N=1987 --arch sm_90a --schedule grid-stride:lines=1
expect 2 'refill: not for this kernel, with the other keys as they are (1: register prefetch' \
    explain "$root"/examples/softmax.fuse N=256 --schedule row:refill=1
expect 2 "row: 'shared' is none of: registers ring memory" explain "$root"/examples/softmax.fuse --schedule row:row=shared
# of several kernels those have it that can
expect 0 'walks rows M, columns N; 1 row at a time, 96 threads' explain "$root"/examples/cross_entropy_mean.fuse --schedule row:threads=96
also '^kernels: 3'

finish
