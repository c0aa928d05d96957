#!/bin/bash
# Schedules that --schedule asks for: what they make, and why they cannot be.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

expect 2 'cluster: the family cluster needs 2 to 16 CTAs' explain "$root/examples/softmax.fuse" --schedule cluster:cluster=1
expect 2 'refused: row needs a reduction inside rows; this graph has none' explain "$root/tests/golden/group_sums.fuse" --schedule cluster
expect 2 '^one.fuse: error: schedule refused' one.fuse --schedule nonsense
expect 2 "row has no key 'treads'" one.fuse --schedule row:treads=32
expect 2 "did you mean 'stages'" one.fuse --schedule row:stage=3
expect 0 'a ring of [0-9]* stages in shared memory, 2 rows each' explain "$root"/examples/rmsnorm_bwd.fuse N=4096 --arch sm_90a --schedule warp-specialized:rows=2,threads=128
expect 2 'scalars: ' explain "$root"/examples/layernorm_bwd.fuse N=4096 --arch sm_90a --schedule warp-specialized:exact=1,threads=256,stages=3,per_sm=1,row=ring,scalars=1,live=1
expect 2 'refused: groups: only the family warp-specialized' one.fuse N=256 --schedule row:groups=2
expect 0 '__global__' one.fuse N=256 --schedule row:groups=1
expect 0 'a copy warp fills the ring; 2 groups of 6 warps take its rows in turn' explain "$root"/examples/rmsnorm_bwd.fuse N=4096 --arch sm_90a --schedule warp-specialized:threads=192,groups=2
also "after the last row 2 teams add their sums in the ring's memory"
expect 0 'the copy warp hands registers over' explain "$root"/examples/rmsnorm_bwd.fuse N=4096 --arch sm_90a --schedule warp-specialized:threads=256,registers=1
expect 2 'registers: 192 threads compute, and whole warpgroups of 128 must' explain "$root"/examples/rmsnorm_bwd.fuse N=4096 --arch sm_90a --schedule warp-specialized:threads=192,groups=1,registers=1
expect 2 'registers: only the copy warp of the family warp-specialized hands them over' explain "$root"/examples/layernorm.fuse N=4096 --arch sm_90a --schedule row:registers=1
expect 2 'registers: warps of sm_120a cannot hand them over' explain "$root"/examples/layernorm_bwd.fuse N=4096 --arch rtx5090 --schedule warp-specialized:registers=1
expect 2 'registers: the only value is 1' explain "$root"/examples/layernorm_bwd.fuse N=4096 --arch sm_90a --schedule warp-specialized:registers=2
expect 2 'stages: must be a multiple of groups=2, at least 2' explain "$root"/examples/layernorm.fuse N=4096 --arch sm_90a --schedule warp-specialized:groups=2,stages=3
expect 2 'groups: 2 of 512 threads are more than the 992 of a CTA beside the copy warp' explain "$root"/examples/layernorm.fuse N=8192 --arch sm_90a --schedule warp-specialized:groups=2,threads=512
expect 2 'groups: up to 15 rows at a time, each with a barrier' explain "$root"/examples/layernorm.fuse --arch sm_90a --schedule warp-specialized:groups=16
expect 2 'groups: CTAs that share a row have one' explain "$root"/examples/layernorm.fuse N=8192 --arch sm_90a --schedule warp-specialized:groups=2,cluster=2
expect 2 'groups: so many have no room with the other keys given: a CTA has 1024 threads' explain "$root"/examples/layernorm.fuse N=1048576 --arch sm_90a --schedule warp-specialized:groups=2
expect 0 'clusters of 2 CTAs' explain "$root/examples/softmax.fuse" --schedule cluster
expect 0 'clusters of 4 CTAs' explain "$root/examples/softmax.fuse" --schedule cluster:cluster=4
expect 2 'refused: cluster: ' explain "$root/examples/softmax.fuse" N=64 --schedule cluster
expect 2 'a number from 1 to' one.fuse --schedule row:stages=0
expect 2 "'stages' is given twice" one.fuse --schedule row:stages=2,stages=3
expect 2 'threads: 3 for a row are not whole warps of 32' "$root"/examples/softmax.fuse --schedule row:threads=3
expect 2 'threads: a CTA has up to 1024' "$root"/examples/softmax.fuse --schedule row:threads=99999
expect 2 'threads: a CTA has up to 1024' explain "$root"/examples/layernorm_bwd.fuse --schedule warp-specialized:rows=65536,groups=65536,threads=65536
expect 2 'stages: a copy to the ring takes 4 bytes or more, and a thread.s elements are fewer' explain "$root"/examples/layernorm.fuse N=1987 --schedule row:stages=3
expect 2 'warp-specialized needs rows for two warps, and 64 columns fill only a part of one' explain "$root"/examples/layernorm.fuse N=64 --schedule warp-specialized
expect 2 'warp-specialized needs columns along one axis, and this graph has several' explain "$root"/tests/cases/several_axes.fuse S=824 --schedule warp-specialized
expect 0 'ring of 3 stages' explain "$root"/examples/layernorm_bwd.fuse N=79 --schedule grid-stride:stages=3
expect 0 'ring of 3 stages' explain "$root"/examples/layernorm_bwd.fuse N=1987 --schedule grid-stride:stages=3
expect 2 'shared memory has room for' explain "$root"/examples/layernorm_bwd.fuse --schedule grid-stride:stages=64
expect 2 'warp-specialized has no sums that keep row axes, and this graph has one' explain "$root"/tests/golden/group_sums.fuse --schedule warp-specialized
expect 0 '^  adaln_bwd: warp-specialized' explain "$root"/examples/adaln_bwd.fuse C=1024 --schedule warp-specialized    # its sums apart
also '^  adaln_bwd_2: column'
expect 0 ': row,.* of 128 threads$' explain "$root"/examples/softmax.fuse N=4096 --arch sm_90a --schedule row:threads=128
expect 2 'more than 2147483647 columns' explain "$root"/examples/softmax.fuse N=3000000000
expect 2 'schedule refused' run one.fuse --schedule pointwise
expect 0 'one bulk copy brings the row to shared memory' explain "$root"/examples/layernorm.fuse N=11520 --arch sm_90a --schedule row:bulk=1
expect 0 'clusters of 4 CTAs' explain "$root"/examples/softmax.fuse N=8192 --arch sm_90a --schedule row:bulk=1,cluster=4
expect 2 'bulk: sm_80 has no bulk copies' explain "$root"/examples/softmax.fuse --arch sm_80 --schedule row:bulk=1
expect 2 'bulk: needs rows along one axis that are whole blocks of 16 bytes and fit shared memory, more' explain "$root"/examples/softmax.fuse N=4001 --arch sm_90a --schedule row:bulk=1
expect 2 'bulk: the only value is 1 (one bulk copy brings a row to shared memory, and each CTA or' explain "$root"/examples/softmax.fuse --arch sm_90a --schedule row:bulk=2
expect 2 'reads: the row is too long' explain "$root"/examples/softmax.fuse N=8000001 --schedule row:reads=1
expect 2 'rows: CTAs that share a row take one row at a time' explain "$root"/examples/rmsnorm.fuse N=12290 --arch sm_90a --schedule row:cluster=2,threads=128,rows=2
expect 2 'a cluster of 32 needs more than 4096 columns (64 vectors a CTA); this graph has 4090' explain "$root"/examples/rmsnorm.fuse N=4090 --arch sm_90a --schedule warp-specialized:cluster=32
expect 2 'cluster: a cluster of sm_90a has up to 16 CTAs; larger groups need a multiple of 32, and the' explain "$root"/examples/rmsnorm_bwd.fuse N=270336 --arch sm_90a --schedule grid-stride:cluster=32
expect 2 'stages: warp-specialized needs a ring of two stages or more' explain "$root"/examples/rmsnorm_bwd.fuse N=270336 --arch sm_90a --schedule warp-specialized:stages=1
expect 2 'cluster: a group this large in the family row reads a row again in each phase: it has up to 992 threads' explain "$root"/examples/layernorm.fuse N=1048576 --arch sm_90a --schedule row:cluster=32,reuse=1
expect 2 'reuse: needs the family row or grid-stride, rows that fit registers and that the first phase' explain "$root"/examples/layernorm_bwd.fuse N=1000 --arch sm_90a --schedule grid-stride:reuse=1
expect 2 'reuse: the only value is 1 (a row moves from its stage to registers, which frees the stage' explain "$root"/examples/layernorm.fuse N=65536 --arch sm_90a --schedule row:reuse=2
expect 2 'reuse: needs the family row or grid-stride, rows that fit registers and that the first phase' explain "$root"/examples/layernorm.fuse N=8192 --arch sm_90a --schedule warp-specialized:reuse=1
expect 0 "4 teams add their sums in the ring's memory" explain "$root"/examples/layernorm_bwd.fuse N=2048 --arch sm_90a --schedule grid-stride:rows=4,stages=2,reuse=1
expect 2 'bulk: needs rows along one axis that are whole blocks of 16 bytes and fit shared memory, more' explain "$root"/examples/softmax.fuse N=4096 --arch sm_90a --schedule row:bulk=1,reuse=1
expect 2 'limit: it is below per_sm' explain "$root"/examples/softmax.fuse N=2048 --arch sm_90a --schedule row:per_sm=6,limit=3
expect 2 'limit: no amount of shared memory admits exactly 32 of these CTAs to an SM' explain "$root"/examples/rmsnorm.fuse --arch sm_90a --schedule row:threads=32,limit=32
expect 2 'limit: only for kernels of the family row that have reductions, and no part of a row in shared' explain "$root"/tests/golden/pointwise.fuse --schedule pointwise:limit=2
expect 0 '264 CTAs of [0-9]* threads, 2 an SM' explain "$root"/examples/layernorm_bwd.fuse N=2048 --arch sm_90a --schedule grid-stride:stages=1,per_sm=2
expect 2 "limit: only for kernels of the family row that have reductions, and no part of a row in shared" explain "$root"/examples/layernorm_bwd.fuse N=2048 --arch sm_90a --schedule warp-specialized:limit=2
expect 2 'schedule refused: cluster' explain "$root"/examples/layernorm.fuse N=262144 --arch sm_120 --schedule row:cluster=16
expect 0 'warp-specialized, 128 CTAs' explain "$root"/examples/layernorm_bwd.fuse N=262144 --arch sm_90a --schedule warp-specialized:cluster=32,ctas=528
expect 2 '2 (each phase reads it)' explain "$root"/examples/softmax_bwd.fuse --schedule row:reads=3
expect 0 'the row is read again' explain "$root"/examples/softmax_bwd.fuse --schedule row:reads=2
echo 'graph g[B = 4, C = 8, S = 64](x : f32[B, C, S]) -> (y : f32[B, C, S]) { y = x - mean[C, S](x) }' >several.fuse
expect 0 'the row stays in registers' explain several.fuse --schedule row:reads=1
expect 0 '^v .* ok$' run "$root/tests/cases/runs_of_one_warp.fuse" --device sim --verify --schedule row:threads=32
expect 0 '^verified' run several.fuse --device sim --verify --stride x=640,80,1
expect 0 '^verified' run several.fuse --device sim --verify --stride x=640,77,1 --offset x=3
expect 0 '^verified' run several.fuse --device sim --verify --schedule row:reads=2 --stride x=700,80,1
expect 2 "warp-specialized needs columns along one axis, and this graph has several" explain several.fuse C=64 S=256 --schedule warp-specialized
expect 2 'ctas: each row, or each part of a row, has a CTA of its own in this kernel' explain "$root"/tests/bench/graphs/add.fuse --schedule pointwise:ctas=4
expect 0 ': row, 4 CTAs' explain "$root"/examples/layernorm.fuse --arch sm_90a --schedule row:ctas=4    # through a ring
expect 2 'cluster: sm_80 has no clusters' explain "$root"/examples/rmsnorm.fuse N=65536 --arch sm_80 --schedule row:cluster=8
expect 2 'cluster: a cluster of sm_90a has up to 16 CTAs; larger groups need a multiple of 32, and the' explain "$root"/examples/layernorm_bwd.fuse N=16384 --arch sm_90a --schedule grid-stride:cluster=64
expect 2 'cluster: a group this large in the family row reads a row again in each phase: it has up to 992 threads' explain "$root"/examples/rmsnorm.fuse N=65536 --arch sm_90a --schedule row:cluster=64,threads=1024
expect 2 'stages: these rows stay in registers or are read again in each phase, so they pass through no' explain "$root"/examples/rmsnorm.fuse N=65536 --arch sm_90a --schedule row:cluster=64,stages=2
expect 2 'all 256 CTAs must run at the same time, and the GPU has 132 SMs' explain "$root"/tests/long/flat.fuse --arch sm_90a --schedule row:cluster=256
expect 2 'ctas: each row, or each part of a row, has a CTA of its own in this kernel' explain "$root"/tests/long/flat.fuse --arch sm_90a --schedule row:ctas=64
expect 2 'per_sm: with this ring or group an SM holds up to 1' explain "$root"/tests/long/flat.fuse --arch sm_90a --schedule row:cluster=32,per_sm=2
expect 2 'stages: warp-specialized needs a ring of two stages or more' explain "$root"/examples/layernorm.fuse N=7168 --arch sm_90a --schedule warp-specialized:stages=1
expect 2 'of which 32 are the copy warp' explain "$root"/examples/layernorm.fuse N=7168 --arch sm_90a --schedule warp-specialized:threads=1024
expect 2 'a cluster of 32 needs more than 16384 columns (64 vectors a CTA); this graph has 14336' explain "$root"/examples/layernorm.fuse N=14336 --arch sm_90a --schedule warp-specialized:cluster=32
expect 2 'ends without a key' explain "$root"/examples/layernorm.fuse N=7168 --arch sm_90a --schedule row:
expect 2 'per_sm: ' explain "$root"/examples/layernorm.fuse N=4096 --arch sm_90a --schedule row:per_sm=40
expect 2 'a cluster of 8 needs more than 4096 columns (64 vectors a CTA); this graph has 512' explain "$root"/examples/rmsnorm.fuse N=512 --arch sm_90a --schedule row:cluster=8
expect 2 'cluster: 3 is not a power of two' explain "$root"/examples/softmax_bwd.fuse --schedule warp-specialized:cluster=3
expect 2 'all 64 CTAs must run at the same time, and the GPU has 4 SMs' run "$root"/examples/softmax.fuse M=4 N=50257 --device sim --schedule warp-specialized:cluster=64
# keys that complete schedules tell may be asked for alone, too
expect 0 'ring of .* stages' explain "$root"/examples/layernorm.fuse N=8192 --arch sm_90a --schedule row:lag=1
expect 0 'register prefetch' explain "$root"/examples/layernorm.fuse N=65536 --arch sm_90a --schedule row:refill=1
expect 0 'line-aligned' explain "$root"/examples/layernorm_bwd.fuse N=1987 --arch sm_90a --schedule grid-stride:lines=1
expect 2 'refill: this kernel cannot have it with the other keys given (1: register prefetch' \
    explain "$root"/examples/softmax.fuse N=256 --schedule row:refill=1
expect 2 "row: .shared. is not one of: registers ring memory" explain "$root"/examples/softmax.fuse --schedule row:row=shared
# of several kernels those have it that can
expect 0 'walks rows M, columns N; 1 row at a time, 96 threads' explain "$root"/examples/cross_entropy_mean.fuse --schedule row:threads=96
also '^kernels: 3'

# which axes are the columns is a key of a complete schedule: without it these texts would make another plan
for program in odd_images.fuse "wide_lines.fuse B=4096" wide_taps.fuse split_norm.fuse; do
    # shellcheck disable=SC2086
    set -- $program --arch h200
    expect 0 'axes=' "$root/tests/cases/$@" --emit=schedule
    schedule=$(cat stdout)
    expect 0 '__global__' "$root/tests/cases/$@" --schedule "$schedule"
    grep -v '^//' stdout >again.cu
    expect 0 '__global__' "$root/tests/cases/$@"
    tests=$((tests + 1))
    grep -v '^//' stdout | cmp -s - again.cu || fail "another text by its own schedule: $program"
done
expect 2 "refused: axes: this graph's columns can be reduced .N.$" "$root"/examples/softmax.fuse --schedule row:axes=wider
expect 2 "refused: axes: this graph's columns can be reduced .B, S., last .S. or split .C, S.$" "$root"/examples/batchnorm.fuse --schedule row:axes=wider
expect 2 'axes: .most. is not one of: reduced last split wider short' "$root"/examples/softmax.fuse --schedule row:axes=most

finish
