#!/bin/bash
# What the chosen schedules have to do with the GPU and the rows: what has no room elsewhere, what a
# GPU lacks, what a key brings about.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

sed s/bf16/f32/g "$root"/examples/layernorm.fuse >f32.fuse
for columns in 98304 98305 131072; do
    expect 0 'row, 16384 CTAs of 512 threads' explain f32.fuse N=$columns --arch sm_80
    expect 0 'clusters of .* CTAs' explain f32.fuse N=$columns --arch sm_90a
done
# rows too long for a CTA are shared by those of a cluster, and longer ones by groups
expect 0 'clusters of 16 CTAs' explain f32.fuse N=262144 --arch sm_90a
expect 0 'clusters of 16 CTAs' explain "$root"/examples/layernorm_bwd.fuse N=204800 --arch sm_90a
expect 0 'groups of 32 CTAs' explain "$root"/examples/layernorm_bwd.fuse N=300000 --arch sm_90a
expect 0 'groups of 128 CTAs share a row' explain "$root"/examples/layernorm.fuse M=4 N=4194304 --arch sm_90a
expect 0 'groups of 128 CTAs share a row' explain "$root"/tests/long/flat.fuse --arch sm_90a
expect 0 'x            2.1 MB a row' explain "$root"/tests/long/flat.fuse --arch sm_90a
# where there are none, or they do not hold it, a row is read again
expect 0 'is read again' explain "$root"/examples/rmsnorm.fuse N=65536 --arch sm_80
expect 0 '"rows_again": true' explain "$root"/examples/softmax.fuse M=3 N=8000001 --arch sm_90a --no-tuning --json
expect 0 '"rows_again": true' explain "$root"/tests/long/flat.fuse N=4194304 --arch sm_90a --no-tuning --json    # a graph without rows
expect 0 'the row stays in ' explain "$root"/tests/cases/heavy_norm.fuse
# a short row has a warp or a part of one, and a CTA has several rows
expect 0 'at a time, \(4\|8\|16\|32\) threads a row' explain "$root"/examples/layernorm.fuse N=77 --arch sm_90a
expect 0 '[0-9] rows at a time, 32 threads a row' explain "$root"/examples/layernorm.fuse N=77 --arch sm_90a --schedule row:threads=32,reads=2
# a key that is asked for brings about what it says
expect 0 'clusters of 8 CTAs' explain "$root"/examples/rmsnorm.fuse N=20000 --arch sm_90a --schedule warp-specialized:cluster=8
expect 0 'groups of 32 CTAs share a row' explain "$root"/examples/rmsnorm.fuse N=65536 --arch sm_90a --schedule row:cluster=32,threads=64
expect 0 'column vectors stay in registers' explain "$root"/examples/layernorm_bwd.fuse N=19457 --arch sm_90a --schedule warp-specialized:cluster=4,columns=registers
expect 0 'column vectors stay in shared memory' explain "$root"/examples/layernorm_bwd.fuse N=20480 --arch sm_90a --schedule warp-specialized:cluster=4,columns=shared
expect 0 'column vectors are read by each phase' explain "$root"/examples/rmsnorm.fuse N=140001 --arch sm_90a --schedule warp-specialized:columns=memory
expect 0 'stays in its stage' explain f32.fuse N=65536 --arch sm_90a --schedule row:row=ring
expect 0 'paced to the rate of memory' explain "$root"/examples/rmsnorm_bwd.fuse N=12288 --arch sm_90a --schedule warp-specialized:paced=1
expect 0 'which frees the stage for the next copy' explain "$root"/examples/rmsnorm_bwd.fuse N=2048 --arch sm_90a --schedule grid-stride:reuse=1
expect 0 'ring of 3 stages' explain "$root"/examples/rmsnorm.fuse N=65536 --arch sm_90a --schedule row:cluster=8,stages=3
expect 0 'a cluster has one row' explain "$root"/examples/rmsnorm.fuse N=65536 --arch sm_90a --schedule row:single=1
expect 0 'registers take the next' explain "$root"/examples/rmsnorm.fuse N=65536 --arch sm_90a --schedule row:refill=1
expect 0 'the row is read again' explain "$root"/examples/layernorm.fuse N=22528 --schedule row:reads=2
expect 0 'the row stays in ' explain "$root"/examples/layernorm.fuse N=8192 --schedule row:reads=1

finish
