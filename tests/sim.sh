#!/bin/bash
# Every example on the simulator, at small sizes even and ragged, by every schedule that admits it; and
# some of the candidates of `fusec tune` (CANDIDATES=64: all).
#     tests/sim.sh        each of an example's schedules at one of three sizes in turn, and without those that show nothing new of it
#     tests/sim.sh all    all of them
set -u
cd "$(dirname "$0")/.."
. tests/of_type.sh
schedules='row row:reads=2 row:cluster=2 row:cluster=2,stages=1 row:cluster=2,stages=3 grid-stride grid-stride:cluster=2 grid-stride:stages=3
           warp-specialized warp-specialized:cluster=2'
sampled=' --sampled'
[ "${1:-}" != all ] || sampled=

sizes() {   # FILE ROWS COLUMNS OPTION...
    local file=$1 rows=$2 columns=$3
    shift 3
    if grep -q '^graph .*\[M = .*, N = ' "$file"; then
        echo "M=$rows N=$columns $*"
    elif grep -q '^graph .*\[M = .*, G = .*, K = ' "$file"; then
        echo "M=$rows G=$((columns / 16 + 1)) K=$((columns % 2 ? 15 : 16)) $*"
    elif grep -q '^graph .*\[B = [0-9]*, C = [0-9]*, S = ' "$file"; then
        echo "B=2 C=$rows S=$((columns / 2)) $*"
    elif grep -q '^graph .*, S = .*, G = .*, C = ' "$file"; then
        echo "B=1 S=$((columns / 4)) G=$rows C=4 $*"
    elif grep -q '^graph .*, C = .*, S = ' "$file"; then
        echo "B=1 G=$rows C=4 S=$((columns / 4)) $*"
    elif grep -q '^graph .*\[T = .*, K = .*, C = ' "$file"; then
        echo "T=$rows K=$((columns % 2 ? 17 : 3)) C=$columns $*"
    elif grep -q '^graph .*, T = .*, C = ' "$file"; then
        echo "B=2 T=$rows C=$columns $*"
    elif [ "$rows" -gt 8 ]; then
        echo "B=1 H=1 Q=$rows K=$columns $*"
    else
        echo "B=2 H=3 Q=$rows K=$columns $*"
    fi
}

list_cases() {   # FILE...
    local turn=0
    for file; do
        turn=$((turn + 1))
        # one SM: few CTAs, each of which walks many rows
        for size in "37 96 --sms 1" "5 229" "11 4100 --sms 1"; do
            echo "$file $(sizes "$file" $size)"
            turn=$((turn + 1))
            for schedule in $schedules; do
                turn=$((turn + 1))
                if [ -n "$sampled" ] && [ $((turn % 3)) != 0 ]; then
                    echo >>build/sim/unlisted
                else
                    echo "$file $(sizes "$file" $size) --schedule $schedule$sampled"
                fi
            done
        done
        echo "$file $(sizes "$file" 3 512) --schedule row:reads=2$sampled"    # in full tiles
    done
}

# what no example is
list_simple() {
    # the smallest that admits the family: a sample begins with it
    echo "examples/layernorm_bwd.fuse M=5 N=40 --schedule grid-stride"
    for size in "M=3 N=5000" "M=3 N=5001 --offset x=1" "M=0 N=5000"; do    # whose CTAs share a row
        echo "tests/golden/pointwise.fuse $size --schedule pointwise"
    done
    # means and squares over rows: of few teams and of many, of CTAs that share a row
    for size in "M=2101 C=24 --sms 1" "M=2101 C=229" "M=2051 C=520 --schedule column:rows=1"; do echo "tests/golden/column_moments.fuse $size"; done
    for schedule in warp-specialized grid-stride; do
        echo "tests/cases/moments_ride.fuse M=40 N=1028 --outputs y,mu,v,s --sms 1 --schedule $schedule:cluster=2"
    done
    echo "tests/cases/partial_columns.fuse M=0"    # an output that has other columns than its sum
    echo "examples/layernorm.fuse M=3 N=8680"    # a pair of CTAs whose last threads have less
    echo "examples/rmsnorm_residual.fuse M=3 N=7176"
    for name in column pointwise; do
        echo "tests/golden/$name.fuse M=37 N=96 --sms 1 --schedule $name"
        echo "tests/golden/$name.fuse M=5 N=229 --schedule $name"
    done
}

# rows of which a mask leaves a window: in registers, read again by each phase, shared by a cluster
list_windows() {
    for window in 0 1 37 5000; do
        echo "tests/golden/window.fuse B=1 H=2 Q=40 K=229 --set window=$window"
        echo "tests/golden/window.fuse B=1 H=2 Q=5 K=96 --sms 1 --set window=$window --schedule row:reads=2"
        echo "tests/golden/window.fuse B=1 H=1 Q=3 K=4100 --set window=$window --schedule row:cluster=2,stages=1"
    done
    for name in window_lengths window_kinds; do
        for schedule in row:reads=2 row:stages=3; do echo "tests/cases/$name.fuse --sms 1 --schedule $schedule"; done
    done
    echo "tests/cases/window_bwd.fuse K=229 --sms 1"
}

# elements that are compared with the largest of their block, in a kernel and across kernels
list_largest() {
    for size in "" "G=1 K=229" "M=5 G=40 K=512" "M=2 G=3 K=4100"; do echo "tests/cases/largest_of_blocks_bwd.fuse --sms 1 $size"; done
}

# rows that come to shared memory by one copy, each for a CTA or cluster of its own, or (ctas) for the same one after the other
list_bulk() {
    for name in layernorm rmsnorm softmax softmax_bwd layernorm_residual rmsnorm_residual rmsnorm_quantized cross_entropy; do
        echo "examples/$name.fuse M=5 N=1208 --schedule row:bulk=1"
        echo "examples/$name.fuse M=3 N=4096 --schedule row:bulk=1,cluster=4"
    done
    echo "examples/layernorm.fuse M=7 N=1208 --offset x=3 --offset gamma=1 --schedule row:bulk=1,ctas=2"
    echo "examples/layernorm.fuse M=7 N=2056 --sms 1 --schedule row:bulk=1,cluster=2,ctas=4"
    echo "examples/softmax_bwd.fuse M=7 N=2056 --stride y=2057,1 --schedule row:bulk=1,cluster=2,ctas=2,threads=64"
    echo "examples/layernorm.fuse M=3 N=11520"
    echo "examples/softmax_causal.fuse B=2 H=2 Q=3 K=1032 --schedule row:bulk=1,ctas=3"
}

# what other types' rows are given: registers that the next row refills, one copy, shorter slices, a ring of few threads
list_types() {
    echo "$(of_type sim layernorm f16) M=3 N=33792 --sms 4"
    echo "$(of_type sim layernorm f32) M=2 N=20480"
    echo "$(of_type sim layernorm f32) M=2 N=22528 --offset x=1"
    echo "$(of_type sim rmsnorm_residual f32) M=2 N=17408"
    echo "$(of_type sim rmsnorm_quantized f16) M=5 N=13312 --sms 1"
    echo "$(of_type sim rmsnorm_quantized f32) M=3 N=38912 --sms 4"
    echo "examples/layernorm_residual.fuse M=2 N=36864"
    for size in "N=4100 --sms 1" "B=1 T=37 N=64 --sms 1"; do echo "tests/cases/scalars_of_two_axes.fuse $size"; done
    # rows of two axes that are evenly apart, and of a view that has others between them
    for size in "T=5 N=4100 --sms 1" "B=37 T=2 N=64 --sms 1"; do echo "tests/cases/rows_of_two_axes.fuse $size"; done
    echo "tests/cases/rows_of_two_axes.fuse T=5 N=4100 --sms 1 --stride dy=24624,4104,1"
    # columns of several axes that lie side by side, and do not
    for size in "" "B=3 C=64 --sms 1" "C=5 W=2" "--stride x=140,22,3,1" "--stride y=147,24,3,1 --offset a=1" "C=2 --stride a=22,3,1 --offset x=1" "C=40 --schedule row:reads=2" "C=40 --stride x=1000,22,3,1 --schedule row:reads=2"; do
        echo "tests/cases/dense_columns.fuse $size"
    done
    for size in "" "H=14 W=14" "--stride x=200,40,6,1" "H=4 W=5 --stride y=120,24,6,1" "--offset x=1" "--schedule row:reads=2" "B=40 --stride x=200,40,6,1 --schedule row:reads=2"; do echo "tests/cases/dense_pixels.fuse $size"; done
    for size in "" "--stride x=150,25,1" "--stride dx=150,23,1 --offset dy=1" "H=8 --stride x=200,25,1 --schedule grid-stride:stages=3" "M=177 H=64 D=12" "M=9 H=80 --stride x=1800,22,1 --schedule grid-stride:cluster=2,stages=3" "M=9 H=80 --stride dy=1800,22,1 --schedule grid-stride:stages=4"; do
        echo "tests/cases/dense_sums.fuse --sms 1 $size"
    done
    for size in "C=40 --schedule row:stages=3" "C=40 --stride x=1000,22,3,1 --schedule row:stages=2,reuse=1" "C=200 --stride x=5000,24,3,1 --schedule row:cluster=2,stages=2"; do echo "tests/cases/dense_columns.fuse --sms 2 $size"; done
    for size in "B=3 S=100" "B=3 S=100 --stride x=6000,55,11,1" "B=40 S=9 --stride y=500,55,11,1 --offset x=1"; do
        echo "examples/group_norm_nhwc_silu.fuse G=5 C=10 $size --sms 2"
        echo "tests/bench/tiles/group_norm_nhwc_bwd.fuse G=5 C=10 ${size//y=/dx=} --sms 2"
    done
    # kernels without sums that walk rows, and groups of rows, with column vectors in registers
    walk=pointwise:exact=1,threads=16,rows=8,stages=3,reuse=1,axes=last,live=1,part=16+column:exact=1,threads=8,rows=16,stages=4,axes=last,row=ring,live=1,part=64
    for size in "B=3 S=70" "B=40 S=9" "B=2 S=300 C=40" "B=3 S=71 --stride x=9100,128,1 --stride y=9200,129,1" "B=5 S=0"; do
        echo "tests/bench/graphs/instance_norm_nhwc.fuse --sms 2 $size"
        [ "$size" = "B=5 S=0" ] || echo "tests/bench/graphs/instance_norm_nhwc.fuse --sms 2 $size --schedule $walk"
    done
    # CTAs of a cluster that take turns along a row, by runs of lines and along all columns; lines that are columns together
    turns=row:exact=1,threads=64,cluster=4,reads=2,axes=wider
    for size in "B=5 C=8 S=49" "B=3 C=8 S=729" "B=1 C=8 S=9" "B=0 C=8 S=9"; do
        for name in batchnorm batchnorm_bwd; do
            echo "examples/$name.fuse $size --sms 2 --schedule row:axes=wider"
            [ "$size" = "B=0 C=8 S=9" ] || echo "examples/$name.fuse $size --sms 2 --schedule pointwise:exact=1,threads=32,axes=wider+$turns"
        done
    done
    echo "examples/batchnorm.fuse B=9 C=8 S=48 --sms 2 --schedule pointwise:exact=1,threads=32,axes=last+${turns/wider/last}"
    for size in "" "B=3 --stride x=1200,50,1" "B=2 --stride dx=1300,49,1 --offset dy=1"; do echo "tests/cases/wide_lines.fuse --sms 2 $size --schedule row:axes=wider"; done
    for size in "" "O=40 --stride w=240,9,1" "O=3 --stride moved=230,9,1 --offset g=1"; do echo "tests/cases/wide_taps.fuse --sms 2 $size"; done
    for size in "" "Q=40" "W=300 Q=2 --stride x=80,25,3,1" "Q=40 --stride least=25,3,1"; do echo "tests/cases/wide_groups.fuse --sms 2 $size"; done
    for size in "" "K=2000" "K=2000 --schedule row:reads=2" "K=257 M=3 --schedule row:reads=2"; do echo "tests/cases/groups_behind.fuse --sms 2 $size"; done
    for strides in "" "--stride x1=3000,4,1"; do echo "tests/cases/apart_in_ring.fuse --sms 1 $strides"; done
    for size in "" "A=3 Q=5 K=24"; do echo "tests/cases/runs_of_one_warp.fuse $size --schedule row:threads=32"; done
    for size in M=700 M=3 "M=90 --stride x=136,1"; do echo "tests/bench/tiles/batchnorm_nhwc.fuse --sms 1 $size"; done
    for size in "M=3 G=3" "M=2 G=5 K=24"; do echo "tests/bench/graphs/swiglu_fp8.fuse $size"; done
    # as many neighbouring rows as the threads of a row have columns at a time
    for size in "C=16 S=8" "C=128 S=64" "C=512 S=64" "C=37 S=24 --schedule row:threads=8,rows=4,lanes=8,vec=4" \
        "C=20 S=9 --schedule row:threads=32,rows=4,lanes=8,vec=2"; do
        echo "examples/layernorm_channels.fuse B=2 $size"
    done
    for strides in "" "--stride x=2600,40,1 --stride gamma=33,1" "--stride q=2700,33,1 --stride e=99,1 --offset x=1"; do
        for schedule in row row:stages=2 row:cluster=2 row:reads=2 row:cluster=2,stages=2; do
            echo "examples/rmsnorm_mxfp8.fuse M=5 G=65 --sms 1 $strides --schedule $schedule"
        done
    done
    for size in "" "N=3 --stride x=130,50,15,7,1" "N=2 H=14 W=14 --stride dy=1300,600,196,14,1" "N=40 --stride dx=90,42,14,7,1 --offset dy=1"; do
        echo "tests/cases/dense_pixels_bwd.fuse $size"
    done
    # column vectors that later phases read a tile ahead: in two of them, in parts of a row, of f32
    echo "examples/rmsnorm_quantized.fuse M=3 N=3000"
    echo "$(of_type sim layernorm f32) M=2 N=50000 --sms 4"
}

# rows that hand their stage on
list_reuse() {
    for schedule in row:cluster=2,reuse=1 row:cluster=2,stages=3,reuse=1,per_sm=2; do
        echo "examples/layernorm.fuse M=23 N=1040 --sms 1 --schedule $schedule"
        echo "examples/softmax_bwd.fuse M=23 N=1040 --sms 1 --offset y=3 --schedule $schedule"
    done
    echo "examples/rmsnorm_residual.fuse M=9 N=4096 --sms 2 --schedule row:cluster=4,stages=2,reuse=1"
    echo "examples/rmsnorm.fuse M=7 N=4104 --sms 1 --schedule row:threads=128,reuse=1"
    for stages in 1 2 4; do
        echo "examples/layernorm_bwd.fuse M=37 N=512 --sms 1 --schedule grid-stride:stages=$stages,reuse=1"
        echo "examples/layernorm_bwd.fuse M=13 N=576 --sms 2 --schedule grid-stride:rows=3,threads=32,stages=$stages,reuse=1"
    done
    echo "examples/rmsnorm_bwd.fuse M=61 N=1536 --sms 2"
    echo "$(of_type sim layernorm_bwd f32) M=41 N=1024 --sms 2"
    echo "tests/cases/scalars_in_ring.fuse S=18 N=576 --sms 1 --schedule grid-stride:threads=32,rows=8,reuse=1"
}

list_candidates() {
    for name in layernorm_bwd softmax rmsnorm; do
        for size in "M=9 N=1040" "M=7 N=4100 --sms 1"; do
            echo "examples/$name.fuse $size --candidates ${CANDIDATES:-4}"
        done
    done
}

# groups of warps that take the rows of a ring in turn: more rows than stages, and fewer than groups
list_turns() {
    for schedule in groups=2 groups=3,threads=64 groups=2,stages=2 groups=2,lag=1 groups=3,threads=64,stages=6,lag=1; do
        for name in layernorm_bwd rmsnorm_bwd layernorm softmax softmax_bwd cross_entropy; do
            echo "examples/$name.fuse M=37 N=1040 --sms 1 --schedule warp-specialized:$schedule"
        done
        echo "examples/layernorm_bwd.fuse M=3 N=1029 --sms 2 --offset x=1 --schedule warp-specialized:$schedule"
        echo "tests/cases/moments_ride.fuse M=40 N=1028 --outputs y,mu,v,s --sms 1 --schedule warp-specialized:$schedule"
    done
    # several rows in a stage, one of them short of a row at the end
    for schedule in rows=2,threads=64 rows=2,threads=64,groups=2 rows=3,threads=64,groups=2,lag=1 rows=2,threads=64,groups=2,stages=2; do
        echo "examples/layernorm_bwd.fuse M=37 N=1029 --sms 1 --schedule warp-specialized:$schedule"
        echo "examples/layernorm.fuse M=37 N=1040 --sms 1 --offset x=1 --schedule warp-specialized:$schedule"
        echo "examples/softmax_bwd.fuse M=5 N=2000 --sms 2 --schedule warp-specialized:$schedule"
        echo "examples/softmax_causal.fuse B=2 H=2 Q=5 K=1032 --sms 1 --schedule warp-specialized:$schedule"
        echo "tests/cases/moments_ride.fuse M=41 N=1028 --outputs y,mu,v,s --sms 1 --schedule warp-specialized:$schedule"
    done
    # with registers that the copy warp hands over
    for schedule in threads=128 threads=128,groups=2 threads=128,groups=3,lag=1 threads=256,cluster=2; do
        echo "examples/layernorm_bwd.fuse M=23 N=2056 --sms 1 --schedule warp-specialized:$schedule,registers=1"
        echo "examples/softmax.fuse M=23 N=2056 --sms 1 --schedule warp-specialized:$schedule,registers=1"
    done
    for name in layernorm layernorm_bwd; do
        echo "examples/$name.fuse M=19 N=1040 --sms 1 --schedule warp-specialized:groups=2,columns=shared"
        echo "examples/$name.fuse M=1 N=1040 --schedule warp-specialized:groups=3"
        echo "examples/$name.fuse M=0 N=1040 --schedule warp-specialized:groups=2"
    done
    echo "examples/layernorm_residual.fuse M=19 N=2056 --sms 1 --schedule warp-specialized:groups=2"
    echo "examples/softmax_causal.fuse B=2 H=2 Q=5 K=1032 --sms 1 --schedule warp-specialized:groups=2"
    echo "tests/cases/scalars_alone.fuse M=90 N=1040 --sms 1 --schedule warp-specialized:groups=2"
}

# groups of CTAs, which exchange through global memory, all of whose SMs there must be
list_groups() {
    echo "examples/layernorm_bwd.fuse M=10 N=16648 --sms 32 --schedule warp-specialized:cluster=32"
    echo "examples/softmax.fuse M=10 N=16648 --sms 32 --schedule warp-specialized:cluster=32,ctas=32"
    echo "examples/softmax_bwd.fuse M=7 N=16648 --sms 32 --schedule warp-specialized:cluster=32,ctas=32,stages=3"
    echo "examples/layernorm.fuse M=3 N=17407 --sms 32 --schedule warp-specialized:cluster=32,threads=64"
    echo "examples/layernorm.fuse M=3 N=32771 --sms 64 --schedule warp-specialized:cluster=64,threads=64"
    # that read a row anew in each phase
    for size in "N=16648 --schedule row:cluster=32,threads=64" "N=65543 --offset x=1" "N=65544" "N=65544 --sms 31"; do
        echo "tests/long/flat.fuse --sms 32 $size"
    done
    for size in "M=5 N=16648 --sms 32 --schedule row:cluster=32,ctas=32" "M=3 N=16647 --sms 64 --schedule row:cluster=32,threads=64" \
        "M=0 N=16648 --sms 32 --schedule row:cluster=32"; do
        echo "tests/long/three_reads.fuse $size"
    done
    echo "examples/group_norm.fuse B=1 G=3 C=4 S=4168 --sms 32 --schedule row:cluster=32,ctas=32"
    echo "examples/cross_entropy.fuse M=3 N=16651 --sms 32 --schedule row:cluster=32,ctas=32"
    echo "examples/softmax_bwd.fuse M=5 N=16648 --sms 32 --schedule row:cluster=32,ctas=64"
}

list_long_cases() {
    echo "tests/cases/largest_of_blocks_bwd.fuse M=1 G=2 K=120000 --sms 1"
    # tiles that are all full and yet checked
    echo "examples/layernorm_bwd.fuse M=3 N=32768 --schedule grid-stride:threads=512,cluster=2"
    echo "tests/cases/short_slices.fuse --sms 1 --schedule row:cluster=2,stages=1"
    echo "tests/cases/scalars_in_ring.fuse S=18 --sms 1 --schedule grid-stride:threads=64,rows=8"
    echo "tests/cases/scalars_in_ring.fuse S=19 --sms 1 --schedule grid-stride:threads=64,rows=9"
    echo "tests/cases/scalars_alone.fuse M=90 --sms 1"
    for rows in 32 96; do echo "tests/cases/sums_of_pairs.fuse --sms 1 --schedule grid-stride:rows=$rows"; done
    for name in softmax softmax_bwd rmsnorm rmsnorm_residual; do    # by blocks
        echo "examples/$name.fuse M=9 N=1023"
        echo "examples/$name.fuse M=7 N=2051"
    done
    echo "examples/rmsnorm.fuse M=7 N=1031 --offset x=5 --offset y=3"
    echo "examples/softmax_bwd.fuse M=7 N=1031 --offset dy=1 --stride y=1040,1"
    echo "examples/softmax.fuse M=7 N=1027 --schedule row:threads=64,rows=3"
    for schedule in row:cluster=2 row:cluster=4; do
        echo "examples/softmax.fuse M=3 N=2049 --offset y=3 --schedule $schedule"
    done
    echo "examples/softmax_masked.fuse B=2 H=2 Q=3 K=1027"
    echo "examples/softmax_masked.fuse B=1 H=1 Q=3 K=8197"
    echo "examples/rmsnorm.fuse M=9 N=1024 --schedule row:threads=64,limit=5"
    echo "examples/softmax_bwd.fuse M=3 N=11267 --offset y=1 --offset dx=3"
    # a mean and its squares: of short vectors, of three and four tiles, by pairs
    for columns in 1023 1987 1990 2304 3004 4090 7168 13312; do
        echo "examples/layernorm.fuse M=3 N=$columns --offset x=1"
    done
    echo "tests/cases/biased_sum.fuse M=3 N=4096"    # of several inputs, by pairs and fours
    echo "tests/cases/biased_sum.fuse M=2 N=16384"
    echo "tests/cases/wide_weights.fuse M=2 N=20480"
    echo "$(wide_of sim rmsnorm bf16) M=2 N=5632"
    # column vectors that stay in registers: more stages than rows, and more rows than stages
    echo "tests/long/kept_then_max.fuse --sms 16"
    echo "examples/layernorm.fuse M=9 N=114688 --sms 8 --offset x=3"
    echo "tests/cases/bias_gradient.fuse M=9 N=4096 --sms 2"
    echo "tests/cases/divided_rows.fuse N=1030"
    echo "examples/layernorm.fuse M=3 N=4098 --schedule row:cluster=2"
    echo "examples/layernorm.fuse M=7 N=16386 --sms 1"
    echo "examples/rmsnorm.fuse M=3 N=11008"
    echo "examples/softmax.fuse M=3 N=9002 --offset y=1"
    for name in layernorm_bwd rmsnorm_bwd; do    # whose rings are filled by blocks
        echo "examples/$name.fuse M=37 N=1023 --sms 1"
        echo "examples/$name.fuse M=37 N=1018 --sms 1 --offset x=1 --stride dy=1021,1"
        echo "examples/$name.fuse M=37 N=531 --sms 1 --schedule grid-stride:threads=32,rows=4"
    done
    echo "examples/layernorm_bwd.fuse M=9 N=7001 --sms 1"
    echo "examples/layernorm_bwd.fuse M=9 N=8184 --sms 1 --offset dy=1"
    echo "examples/layernorm_bwd.fuse M=9 N=12280 --sms 1"
    # two and three long rows a CTA, short ones in a long ring, a copy warp for few threads, many elements a thread
    for size in "M=7 N=4608" "M=9 N=5120" "M=5 N=6144" "M=5 N=11008" "M=120 N=640"; do
        echo "examples/layernorm_bwd.fuse $size --sms 1"
    done
    for size in "M=20 N=2048" "M=60 N=1536" "M=5 N=12288"; do
        echo "examples/rmsnorm_bwd.fuse $size --sms 1"
    done
    # asked for at a pace: alone, by pairs, with a lag
    for size in "M=7 N=12288 --sms 2" "M=5 N=20480 --sms 2 --offset dy=3" "M=7 N=9216 --sms 1"; do
        echo "examples/layernorm_bwd.fuse $size"
    done
    echo "examples/rmsnorm_bwd.fuse M=7 N=9216 --sms 1"
    # single elements by a copy warp: alone and by clusters, more rows than stages
    for size in "M=23 N=1023 --sms 1" "M=37 N=1401 --sms 1 --offset y=1" "M=11 N=8191 --sms 1" "M=13 N=16383 --sms 4 --stride x=16390,1" \
        "M=7 N=24577 --sms 2"; do
        echo "examples/layernorm.fuse $size"
    done
    echo "examples/layernorm.fuse M=3 N=1601 --schedule row:cluster=4,threads=64"    # whose last slice lacks a tile and more
    for size in "M=17 N=1987 --sms 1" "M=7 N=8193 --sms 1" "M=5 N=24575 --sms 4"; do echo "examples/layernorm_residual.fuse $size"; done
    for size in "M=7 N=9001 --sms 1" "M=9 N=12289 --sms 1"; do echo "examples/rmsnorm.fuse $size"; done
    echo "examples/rmsnorm_residual.fuse M=7 N=10501 --sms 2"
    for size in "M=7 N=10001 --sms 2" "M=6 N=20481 --sms 4 --offset dy=3" "M=5 N=16385 --sms 2 --offset x=1"; do echo "examples/layernorm_bwd.fuse $size"; done
    echo "examples/rmsnorm_bwd.fuse M=11 N=4095 --sms 1"
    echo "examples/rmsnorm.fuse M=7 N=24601 --sms 4"
    echo "examples/softmax_bwd.fuse M=5 N=33001 --sms 4"
    # vectors of 4 and 8 bytes: alone and by clusters, several rows a CTA
    for size in "M=5 N=5634 --sms 1 --offset x=2" "M=7 N=16642 --sms 4" "M=5 N=28676 --sms 4 --offset y=1"; do echo "examples/layernorm.fuse $size"; done
    for size in "M=9 N=4098 --sms 2" "M=7 N=12292 --sms 2 --offset dy=1"; do echo "examples/layernorm_bwd.fuse $size"; done
    echo "examples/layernorm_residual.fuse M=5 N=8194 --sms 2"
    echo "examples/rmsnorm_quantized.fuse M=9 N=4098 --sms 1"
    echo "examples/rmsnorm_bwd.fuse M=5 N=18434 --sms 2 --offset x=1"
    echo "examples/rmsnorm_bwd_add.fuse M=5 N=12290 --sms 4"
    # rows of four and of eight CTAs with two vectors a thread
    echo "examples/rmsnorm.fuse M=3 N=12288"
    echo "examples/rmsnorm_residual.fuse M=3 N=12288 --offset x=1"
    echo "examples/rmsnorm_bwd.fuse M=5 N=6144 --sms 1 --candidates ${CANDIDATES:-3}"
    echo "examples/rmsnorm_bwd.fuse M=7 N=14336 --sms 2 --offset x=1"
    echo "examples/softmax.fuse M=3 N=2051 --schedule row:cluster=16,threads=64"    # whose last CTAs have no columns
    echo "examples/softmax.fuse M=3 N=1123 --schedule row:cluster=8,threads=64"    # and less than a block
    echo "examples/softmax_bwd.fuse M=3 N=2051 --schedule row:cluster=16,threads=64"
    echo "tests/cases/names_of_lag.fuse M=5 N=4616 --sms 1"
    for size in "M=11 N=40" "M=9 N=301" "M=5 N=4096" "M=5 N=4100 --schedule row:reads=2" "M=3 N=2051 --schedule row:cluster=2" \
        "M=5 N=4104 --schedule row:cluster=2,stages=3"; do
        echo "tests/cases/places.fuse $size"
    done
    for name in picked picked_alone picked_chain; do
        for size in "M=300 N=40" "M=9 N=301" "M=5 N=4096 --sms 1" "M=5 N=16648 --sms 1"; do
            echo "tests/cases/$name.fuse $size"
        done
    done
    echo "tests/cases/picked_chain.fuse M=11 N=4096 --sms 1 --schedule warp-specialized:cluster=2"
    for size in "N=2049" "N=4096 --schedule row:cluster=2" "N=8200 --schedule warp-specialized:cluster=2"; do
        echo "tests/cases/picked_made.fuse M=7 $size"
    done
    # infinite maxima, in registers, streamed, by a cluster, through a ring, by a group
    for size in "N=2048" "N=2049 --schedule row:reads=2" "N=4100 --schedule row:cluster=2" "N=4096 --schedule warp-specialized" \
        "N=32776 --sms 32 --schedule warp-specialized:cluster=32"; do
        echo "tests/cases/std_extremes.fuse $size"
    done
    echo "examples/cross_entropy.fuse M=3 N=4096 --schedule row:cluster=2"
    for size in "M=300 N=40" "M=9 N=3001 --sms 2" "M=5 N=16648 --sms 1" "M=0 N=8" "M=3 N=0"; do
        echo "tests/cases/mean_cross_entropy.fuse $size"
    done
    echo "examples/softmax_causal.fuse B=1 H=1 Q=4 K=2048"
    for size in "N=40" "N=1030" "N=16648" "N=4616 --schedule grid-stride:cluster=2" "N=4104 --schedule warp-specialized:cluster=2"; do
        echo "tests/cases/places_summed.fuse M=11 --sms 1 $size"
    done
    for schedule in row:reads=2 row:cluster=2 row:cluster=2,stages=3 grid-stride:stages=3 grid-stride:cluster=2; do
        echo "tests/cases/several_axes.fuse S=824 --sms 1 --schedule $schedule"
        echo "tests/cases/several_axes.fuse S=824 --sms 1 --stride x=17000,4200,830,1 --stride y=16500,4122,824,1 --schedule $schedule"
        echo "examples/group_norm.fuse B=2 G=3 C=4 S=1032 --sms 2 --stride x=13000,4300,1040,1 --schedule $schedule"
    done
    # rows by groups: in one part and in several, for a CTA each and for one CTA; no rows, no groups; of single elements,
    # with a slice of the columns for each CTA
    for size in "T=64" "T=700" "T=300 C=264" "B=9 T=200" "B=9 T=200 --sms 1" "B=1 T=0" "B=0" "C=41 T=300" \
        "C=4099 T=130 H=1" "C=64 T=600" "B=5 --stride x=17000,8200,41,1 --offset x=3" \
        "B=3 --stride total=121,60,1 --offset least=1" "B=3 T=400 --schedule column:ctas=5"; do
        echo "tests/cases/group_sums.fuse $size"
    done
    # slices of the columns of a group, by several teams, in rings and not
    local first=row:exact=1,threads=512,reads=2,axes=last+column:exact=1,axes=last
    for schedule in threads=32,rows=4,tiles=1,stages=3,per_sm=2,live=2,part=64 threads=16,rows=8,tiles=2,live=2,part=64 \
        threads=64,rows=2,tiles=1,stages=2,reuse=1,per_sm=2,live=2,part=64 threads=32,rows=4,tiles=1,stages=3,row=ring,per_sm=2,live=2,part=64; do
        for size in "C=1032 T=300 B=1 --sms 1" "C=1024 B=9 --sms 2"; do
            echo "tests/cases/pooled_by_mask.fuse $size --schedule $first,$schedule"
        done
    done
    # rings of sums alone that run on from part to part, and parts of rows that have none
    for size in "B=3 T=67 C=2304 --sms 2" "B=5 T=66 C=640 --sms 1" "B=2 T=67 C=16648 --sms 1" "B=3 T=200 C=72"; do
        echo "tests/golden/group_sums.fuse $size"
    done
    # rows that a warp or a part of one has: two and three vectors a thread, a last one that is not full
    for columns in 72 96 100 112; do echo "examples/layernorm.fuse M=37 N=$columns"; done
    for columns in 40 96 320 768; do echo "examples/layernorm_bwd.fuse M=37 N=$columns"; done
    for columns in 72 160; do echo "examples/adaln_bwd.fuse B=2 T=67 C=$columns --sms 1"; done
    echo "examples/softmax_bwd.fuse M=37 N=160"
    echo "examples/rmsnorm_quantized.fuse M=37 N=320"
    echo "examples/layernorm.fuse M=7 N=96 --schedule row:threads=2"
    echo "examples/layernorm_bwd.fuse M=70 N=96 --sms 1 --schedule grid-stride:threads=32"
    # in chunks of parts; sums that ride on what else is done with each row
    for size in "B=3 T=1100 C=24 --schedule column:ctas=18,rows=8"; do
        echo "tests/cases/group_sums.fuse $size"
    done
    for size in "B=18 T=1100 C=17 --schedule grid-stride:ctas=18,rows=8" "B=3 T=1300 C=40" "B=5 T=130 C=1152 --sms 1" \
        "B=3 T=130 C=1030 --sms 2" "B=2 T=67 C=8200 --sms 1" "B=0" "T=0" "B=2 T=66 C=4099"; do
        echo "examples/adaln_bwd.fuse $size"
    done
    echo "examples/adaln_bwd.fuse B=3 T=131 C=1152 --sms 1 --schedule grid-stride:reuse=1,stages=1"
    # column vectors of each group in shared memory, sums beside those, other reductions, several axes of groups
    for size in "C=8192" "B=5 T=67 --sms 2"; do
        echo "tests/cases/held_by_group.fuse $size"
    done
    for size in "C=640" "C=640 B=7 T=3 --sms 2" "B=4 T=130 --sms 1"; do
        echo "tests/cases/many_of_groups.fuse $size"
    done
    for size in "T=900 --sms 2" "C=64" "B=4 T=65 C=41 --sms 1"; do
        echo "tests/cases/kinds_by_group.fuse $size"
    done
    for size in "B=7 T=300" "C=64 --sms 1"; do
        echo "tests/cases/ints_by_group.fuse $size"
    done
    echo "tests/cases/scalars_of_groups.fuse"
    echo "tests/cases/scalars_of_groups.fuse --sms 1"
    echo "tests/golden/group_sums.fuse B=2 T=130 C=96"
    echo "tests/golden/group_sums.fuse B=3 T=130 C=4096 --sms 2"
    echo "tests/golden/group_sums.fuse B=40 T=130 C=96"
    echo "tests/cases/names_of_lag.fuse M=5 N=16648 --sms 32 --schedule warp-specialized:cluster=32,ctas=32"
    echo "tests/cases/three_phases.fuse M=4 N=16640 --sms 32 --schedule warp-specialized:cluster=32,ctas=32"
    echo "tests/cases/wide_group.fuse M=10 N=8448 --sms 32 --schedule warp-specialized:cluster=32,ctas=32"
}

# Each takes seconds, and a smaller case has most of what it shows.
list_slow() {
    echo "examples/layernorm.fuse M=2 N=1048584 --sms 32"
    echo "tests/long/kept_columns.fuse --sms 16"
    echo "examples/layernorm_bwd.fuse M=5 N=98304 --sms 16"
    echo "tests/cases/held_by_group.fuse C=12288 --sms 1"
    echo "tests/cases/group_sums.fuse B=10 T=1100 C=9 --schedule column:ctas=18,rows=8"
}

# what no rule chooses: complete schedules
list_complete() {
    echo "examples/layernorm.fuse M=7 N=2056 --sms 1 --schedule row:exact=1,threads=128,stages=3,row=ring,columns=shared,live=1"
    echo "examples/layernorm.fuse M=7 N=2056 --sms 1 --schedule row:exact=1,threads=160,stages=4,row=ring,lag=1,columns=memory,live=1"
    echo "examples/softmax.fuse M=5 N=1544 --sms 1 --schedule warp-specialized:exact=1,threads=64,vec=4,stages=4,row=ring,lag=1,paced=1,live=1"
    echo "examples/rmsnorm_residual.fuse M=5 N=1208 --schedule row:exact=1,threads=64,rows=2,convert=row,columns=memory,early=1"
    echo "examples/layernorm_residual.fuse M=5 N=2056 --schedule row:exact=1,threads=96,cluster=2,single=1,convert=halves"
    echo "examples/layernorm_bwd.fuse M=9 N=1536 --sms 1 --schedule grid-stride:exact=1,threads=96,stages=3,row=ring,lag=1,live=1"
    echo "examples/layernorm_bwd.fuse M=9 N=1536 --sms 1 --schedule grid-stride:exact=1,threads=192,vec=4,stages=2,rows=2,live=1"
}

rm -rf build/sim
mkdir -p build/sim
touch build/sim/unlisted
{
    [ -n "$sampled" ] || list_slow
    list_turns
    list_groups
    list_long_cases
    list_simple
    list_windows
    list_largest
    list_bulk
    list_types
    list_reuse
    list_complete
    list_candidates
    list_cases examples/*.fuse
} >build/sim/listed

# Of a sample the smallest case of each schedule that is asked for, and every twelfth one of those that follow by size; of
# cases that ask for none, those of each file.
if [ -n "$sampled" ]; then
    awk '{ size = 1
           for (i = 2; i <= NF && $i ~ /^[A-Z]=/; i++) size *= substr($i, 3) > 0 ? substr($i, 3) : 1e9    # what is empty shows least
           print (match($0, /--schedule [^ ]*/) ? substr($0, RSTART + 11, RLENGTH - 11) : $1) "\t" size "\t" $0 }' build/sim/listed |
        LC_ALL=C sort -s -t "$(printf '\t')" -k 1,1 -k 2,2n |
        awk -F '\t' 'seen[$1]++ % 12 { print $3 >"build/sim/left"; next } { print $3 }' >build/sim/cases
    cat build/sim/left >>build/sim/unlisted
else
    cp build/sim/listed build/sim/cases
fi

# A file's cases go to one process, for many of its schedules are the same text, with those of other files that have few,
# for several texts are compiled at once; long lists begin first.
awk 'NR == FNR { count[$1]++; next }
     !list[$1] { if (count[$1] >= 8) list[$1] = ++lists
                 else { if (!room) { few = ++lists; room = 8 }
                        list[$1] = few
                        room = room > count[$1] ? room - count[$1] : 0 } }
     { print >("build/sim/" list[$1] ".list") }' build/sim/cases build/sim/cases
ls -S build/sim/*.list | xargs -P "$(nproc)" -I @ sh -c 'build/sim_cases <@ >@.out 2>@.err && exit
    grep -A 1 "^FAILED: " @.out || { echo "FAILED: sim_cases ended early, by the cases of @"; tail -n 3 @.err; }
    touch build/sim/failed'
awk -v left=$(wc -l <build/sim/unlisted) '/ texts, / { texts += $1; failed += $3; refused += $5; same += $8; left += $13 }
    END {
        printf "-- simulator: %d texts, %d failed; %d schedules refused, %d the same as another, %d left to make sim-all\n",
            texts, failed, refused, same, left
        exit !texts
    }' build/sim/*.out || touch build/sim/failed

# A schedule that no case admits is tested by none.
cat build/sim/*.out >build/sim/said
awk '
{ sub(/ --sampled$/, "") }
match($0, /--schedule .*/) { asked = substr($0, RSTART); if (NR == FNR) all[asked]++; else if (/^(refused|left out): /) refused[asked]++ }
END { for (s in all) if (refused[s] == all[s]) { print "FAILED: no case admits " s; bad = 1 } exit bad }
' build/sim/cases build/sim/said || touch build/sim/failed

# A variance and a norm far from 0: as exact as near it, wherever a row's elements are when they are added up.
far='large_mean N=519
large_mean N=16 M=40 --sms 1
large_mean N=8190
large_mean N=4096 --schedule row:threads=64
large_mean N=4096 --schedule row:bulk=1
large_mean N=4096 --schedule row:cluster=2
large_mean N=4096 --schedule warp-specialized:cluster=2
large_mean N=70001 M=1
large_mean M=2 N=16640 --sms 32 --schedule warp-specialized:cluster=32,ctas=32
large_mean_beside
large_mean_beside C=3000 S=8
large_mean_beside C=8000 S=40 B=1
large_mean_over
large_mean_over B=16 M=70 --sms 1 --outputs some_by --schedule column:rows=16
large_mean_kernels
large_mean_late'
is_near() {    # NAME OPTION...
    local said=build/sim/far.$BASHPID
    build/fusec run tests/cases/$1.fuse --device sim --verify "${@:2}" >$said 2>&1 &&
        awk '/_by .*\[/ { found++; if (!($(NF - 3) > 1 - 2e-6 && $(NF - 2) < 1 + 2e-6)) far = 1 } END { exit !found || far }' $said || {
        echo "FAILED: tests/cases/$1.fuse ${*:2}"
        cat $said
        touch build/sim/failed
    }
}
export -f is_near
xargs -L 1 -P "$(nproc)" bash -c 'is_near "$@"' is_near <<<"$far" || touch build/sim/failed

# A kernel that the C++ compiler breaks is noticed by what runs cases and by what replays programs, of a graph with steps, too.
mkdir -p build/sim/broken
echo '# seed: 1
graph stepped[M = 32, N = 256](x : f32[M, N], s : f32[N]) -> (y : f32[M, N]) { y = round(x * s) * 0.25 }' >build/sim/broken/stepped.fuse
cat >build/sim/breaks <<'END'
#!/bin/sh
for word; do case $word in */unit.cpp) sed -i "s|\(y_out.i. = \)\(.*\);|\1$BROKEN;|" "${word%unit.cpp}kernel.cu" ;; esac done
exec g++ "$@"
END
chmod +x build/sim/breaks
broken() {    # VALUE EXPECTED: the exit status of both, with this in place of each value that is stored
    local -x BROKEN=$1 CXX=$PWD/build/sim/breaks
    build/sim_cases <<<'build/sim/broken/stepped.fuse' >build/sim/broken/said 2>&1
    [ $? = "$2" ] || { echo "FAILED: sim_cases of a kernel that stores $1"; cat build/sim/broken/said; touch build/sim/failed; }
    build/prop --replay build/sim/broken --device sim --texts 1 --jobs 1 >build/sim/broken/said 2>&1
    [ $? = "$2" ] || { echo "FAILED: prop of a kernel that stores $1"; cat build/sim/broken/said; touch build/sim/failed; }
}
if command -v g++ >/dev/null; then
    broken '\2' 0
    for value in '0.0f / 0' '(\2) * 1.009f' 'col + i == N - 1 ? 12345 : (\2)'; do broken "$value" 1; done
fi
[ ! -e build/sim/failed ]
