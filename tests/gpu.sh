#!/bin/bash
# make check-gpu: every example at its default sizes and at a grid of sizes, verified against the
# reference; memcheck and racecheck on a small size. Prints `skipped` when there is no GPU.
set -u
cd "$(dirname "$0")/.."
. tests/of_type.sh
device=${1:-cuda}
export FUSEC_TUNING_FILE=/dev/null

# rows -> B H Q for graphs with four axes
quad() {
    case $1 in
    1) echo "B=1 H=1 Q=1" ;;
    71) echo "B=1 H=1 Q=71" ;;
    216) echo "B=2 H=3 Q=36" ;;
    *) echo "B=1 H=3 Q=683" ;;
    esac
}

sizes() {   # FILE ROWS COLUMNS
    if grep -q '^graph .*\[M = .*, N = ' "$1"; then
        echo "M=$2 N=$3"
    elif grep -q '^graph .*\[M = .*, G = .*, K = ' "$1"; then
        echo "M=$2 G=$(($3 / 32 + 1)) K=$(($3 % 2 ? 31 : 32))"
    elif grep -q '^graph .*\[B = [0-9]*, C = [0-9]*, S = ' "$1"; then
        echo "B=2 C=$2 S=$(($3 / 2 + 1))"
    elif grep -q '^graph .*, S = .*, G = .*, C = ' "$1"; then
        echo "B=1 S=$(($3 / 5 + 1)) G=$2 C=5"
    elif grep -q '^graph .*, C = .*, S = ' "$1"; then
        echo "B=1 G=$2 C=5 S=$(($3 / 5 + 1))"
    elif grep -q '^graph .*\[T = .*, K = .*, C = ' "$1"; then
        echo "T=$2 K=$(($3 % 2 ? 17 : 3)) C=$3"
    elif grep -q '^graph .*, T = .*, C = ' "$1"; then
        echo "B=2 T=$((($2 + 1) / 2)) C=$3"
    else
        echo "$(quad "$2") K=$3"
    fi
}

list_cases() {
    for file in examples/*.fuse; do
        echo "$file"
        for rows in 1 71 216 2049; do
            for columns in 7 96 229 1023 1987 4096 12288; do
                echo "$file $(sizes "$file" $rows $columns)"
            done
        done
        for columns in 4095 20479 24576 32768 65535 262144; do
            echo "$file $(sizes "$file" 71 $columns)"
        done
    done
    for file in layernorm layernorm_bwd rmsnorm rmsnorm_bwd softmax softmax_bwd; do
        echo "examples/$file.fuse M=3 N=1048576"
        echo "examples/$file.fuse M=37 N=300001 --schedule warp-specialized:cluster=32"
        echo "examples/$file.fuse M=50 N=131072 --schedule warp-specialized:cluster=64,ctas=128"
    done
    # groups of warps that take rows in turn
    for file in layernorm layernorm_bwd rmsnorm rmsnorm_bwd softmax softmax_bwd cross_entropy; do
        for schedule in groups=2 groups=3,threads=64 groups=2,lag=1 groups=2,stages=2 rows=2,threads=128 rows=2,threads=128,groups=2; do
            for size in "M=1 N=1040" "M=2049 N=4096" "M=331 N=3003" "M=8197 N=2000"; do
                echo "examples/$file.fuse $size --schedule warp-specialized:$schedule"
            done
        done
    done
    # and registers that the copy warp hands over
    for schedule in threads=256 threads=128,groups=2 threads=128,groups=3 threads=256,groups=2,lag=1 threads=128,cluster=2; do
        for size in "M=1 N=4096" "M=2049 N=4096" "M=331 N=6152"; do
            echo "examples/layernorm_bwd.fuse $size --schedule warp-specialized:$schedule,registers=1"
            echo "examples/rmsnorm_bwd.fuse $size --schedule warp-specialized:$schedule,registers=1"
        done
    done
    # rows that the registers of the largest cluster hold, when shared memory has no room for two
    for columns in 393216 524288; do
        for file in rmsnorm layernorm rmsnorm_residual layernorm_residual; do
            echo "examples/$file.fuse M=19 N=$columns"
        done
    done
    for columns in 655360 786432 800000; do
        for file in rmsnorm layernorm rmsnorm_quantized; do
            echo "examples/$file.fuse M=19 N=$columns"
        done
    done
    # groups that read a row anew in each phase
    for size in "N=65544" "N=98305" "N=1048577" "N=4194304" "N=4194304 --offset x=1"; do
        echo "tests/long/flat.fuse $size"
    done
    for size in "N=1048576" "N=1000001" "N=65544 --schedule row:cluster=128" "M=331 N=65544 --schedule row:cluster=64"; do
        echo "tests/long/three_reads.fuse $size"
    done
    for file in layernorm softmax softmax_bwd cross_entropy rmsnorm_quantized layernorm_residual; do
        echo "examples/$file.fuse M=3 N=3000001"
        echo "examples/$file.fuse M=11 N=4194304"
        echo "examples/$file.fuse M=331 N=66000 --schedule row:cluster=32"
    done
    echo "examples/group_norm.fuse B=1 G=3 C=16 S=262144"
    for file in three_phases wide_group; do
        echo "tests/cases/$file.fuse M=19 N=65544 --schedule warp-specialized:cluster=32,ctas=32"
    done
    for file in layernorm_bwd rmsnorm_bwd; do
        for columns in 1000 1018 5120 6144 7001 8184; do
            echo "examples/$file.fuse M=2049 N=$columns"
        done
    done
    # rows that a warp or a part of one has: two and three vectors a thread, a last one that is not full
    for columns in 24 40 64 72 112 128 160 192 320 384 448; do
        for name in layernorm rmsnorm softmax softmax_bwd rmsnorm_quantized layernorm_residual layernorm_bwd rmsnorm_bwd; do
            echo "examples/$name.fuse M=2049 N=$columns"
        done
    done
    for size in "C=100 T=4097" "B=300 T=65 C=2304" "B=3 T=700 C=5120" "B=5 T=333 C=8192" "B=2 T=513 C=12296"; do
        echo "tests/golden/group_sums.fuse $size"
    done
    for columns in 72 128 160 256 320 13000 16384; do echo "examples/adaln_bwd.fuse B=5 T=333 C=$columns"; done
    for step in 0.00048828125 0.001953125 0.000003814697265625 0.25 16384 1e33; do
        echo "tests/cases/narrow_types.fuse M=1024 N=512 --set s=$step"
        echo "tests/cases/narrow_types.fuse M=257 N=511 --set s=$step"
    done
    # integers that wrap around; outputs that share nothing, with rows along other axes
    for size in "M=3 N=40" "M=331 N=4100" "M=17 N=70001"; do echo "tests/cases/wrapping.fuse $size"; done
    for size in "B=2 T=37" "B=5 T=333 Q=4096 K=8192" "B=300 T=65 Q=1152 K=72 V=7" "B=1 T=4097 Q=12288 K=1987" "B=0"; do
        echo "tests/cases/parts.fuse $size"
    done
    # elements that are compared with the largest of their block, in a kernel and across kernels
    for size in "M=4099 G=32 K=128" "M=9 G=2 K=120000"; do
        echo "tests/cases/largest_of_blocks_bwd.fuse $size"
    done
    for size in "B=1 T=65536 C=1152" "B=4 T=4099 C=1152" "B=300 T=257 C=1152" "B=3 T=1000 C=4104" "B=2 T=40000 C=64" \
        "B=2 T=0"; do
        echo "tests/golden/group_sums.fuse $size"
    done
    for size in "B=140 T=200 C=1152" "B=3 T=2000 C=1000" "B=200 T=1300 C=136" "B=300 T=65 C=1024" "B=5 T=333 C=3072"; do
        echo "examples/adaln_bwd.fuse $size"
    done
    for size in "T=64" "T=5000" "B=400 T=200" "B=2 C=4099" "B=300 T=1200 C=64"; do
        echo "tests/cases/group_sums.fuse $size"
    done
    # slices of the columns of a group, by several teams, in rings and not
    local first=row:exact=1,threads=512,reads=2,axes=last+column:exact=1,axes=last
    for schedule in threads=32,rows=4,tiles=1,stages=3,per_sm=2,live=2,part=64 threads=16,rows=8,tiles=2,live=2,part=64 \
        threads=64,rows=2,tiles=1,stages=2,reuse=1,per_sm=2,live=2,part=64 threads=32,rows=4,tiles=1,stages=3,row=ring,per_sm=2,live=2,part=64; do
        for size in "C=1032 T=300 B=1" "C=1024 B=64 T=517" "C=4104 B=3 T=900" "C=1032 B=400"; do
            echo "tests/cases/pooled_by_mask.fuse $size --schedule $first,$schedule"
        done
    done
    for size in "" "C=64 T=512 B=64" "C=333 T=1000" "C=7 T=3000"; do
        for name in pooled_by_mask attention_pool ends_with_earlier; do echo "tests/cases/$name.fuse $size"; done
    done
    for size in "" "B=300 H=7" "H=3000 M=1000" "M=77"; do echo "tests/cases/place_of_sums.fuse $size"; done
    for columns in 40 301 4096 16648 50257; do
        echo "tests/cases/places.fuse M=331 N=$columns"
        echo "tests/cases/places_summed.fuse M=331 N=$columns"
        echo "tests/cases/picked.fuse M=1331 N=$columns"
        echo "tests/cases/mean_cross_entropy.fuse M=1331 N=$columns"
        echo "tests/cases/picked_alone.fuse M=1331 N=$columns"
    done
    for columns in 32000 50304 128256 151936; do
        echo "examples/cross_entropy.fuse M=71 N=$columns"
    done
    for columns in 49152 98304 151936; do
        echo "examples/rmsnorm_quantized.fuse M=71 N=$columns"
    done
    for columns in 1208 12000 16384 152064; do
        for name in layernorm rmsnorm softmax softmax_bwd; do
            echo "examples/$name.fuse M=331 N=$columns --schedule row:bulk=1"
        done
        echo "examples/layernorm.fuse M=331 N=$columns --offset x=3 --schedule row:bulk=1,ctas=64"
    done
    for columns in 4608 5120 6400 8680 8704 9216 11264 13824 14848 17408 17928 18432 22528 26632 28672; do    # spread over more threads
        for name in layernorm layernorm_residual rmsnorm_residual softmax; do
            echo "examples/$name.fuse M=71 N=$columns"
        done
    done
    for columns in 4096 5632 7168 8192 9216 10240 12288 16384; do
        for name in wide_weights moments_f32 residual_f32 sum_to_bytes silu_to_bytes; do
            echo "tests/cases/$name.fuse M=71 N=$columns"
        done
    done
    for columns in 2816 3584 4608 5000 5001 6656 8192 12288; do    # column vectors of few rows in shared memory, of many not
        for name in examples/layernorm tests/cases/scaled_to_bytes tests/cases/wide_moments; do
            echo "$name.fuse M=3 N=$columns"
            echo "$name.fuse M=1031 N=$columns"
            echo "$name.fuse M=3 N=$columns --offset gamma=1"
        done
        echo "tests/cases/wide_moments.fuse M=71 N=$columns --offset beta=3"
    done
    for columns in 4608 9216 20480; do
        for rows in 3 1031; do echo "tests/cases/wide_weights.fuse M=$rows N=$columns"; done
    done
    for columns in 114688 122880 126976 147456 163840; do    # column vectors stay in registers
        echo "examples/layernorm.fuse M=71 N=$columns"
    done
    for columns in 196672 229376 262144; do
        echo "tests/long/kept_columns.fuse M=71 N=$columns"
    done
    # tiles that are full, by one CTA and by pairs, of tensors that begin anywhere, too
    for columns in 4096 6144 7168 8192; do
        for name in softmax layernorm rmsnorm softmax_bwd; do echo "examples/$name.fuse M=331 N=$columns"; done
        for offset in "x=1" "y=3" "x=4 --offset y=2"; do echo "examples/softmax.fuse M=71 N=$columns --offset $offset"; done
    done
    for columns in 192 1030 4096 12288; do
        echo "tests/cases/divided_rows.fuse M=12 N=$columns"
    done
    for columns in 2 4 6 96; do
        echo "tests/cases/sums_of_pairs.fuse M=331 N=$columns"
    done
    # columns of several axes that lie side by side, and do not
    for size in "" "B=300 C=64 H=7 W=7" "B=33 C=5 W=2" "B=33 --stride x=140,22,3,1" "B=33 --stride y=147,24,3,1 --offset a=1"; do
        echo "tests/cases/dense_columns.fuse $size"
    done
    for size in "" "M=5000" "M=5000 --stride x=150,25,1" "M=777 H=64 D=12 --offset dy=1" "M=777 --stride dx=150,23,1 --stride w=21,1"; do echo "tests/cases/dense_sums.fuse $size"; done
    for size in "C=10" "C=20 S=1000" "C=40" "B=300 S=37 C=10" "B=3 S=100 C=20 --stride x=66000,672,21,1" "B=3 S=100 C=10 --offset x=1"; do
        echo "examples/group_norm_nhwc_silu.fuse $size"
        echo "tests/bench/tiles/group_norm_nhwc_bwd.fuse $size"
    done
    for size in "" "B=300 S=50" "B=1 S=65536" "C=40" "B=7 --stride x=540000,130,1" "B=3 S=1000 C=77"; do
        echo "tests/bench/graphs/instance_norm_nhwc.fuse $size"
    done
    for file in rms_channels ln_channels_384 swiglu_fp8 silu_quant silu_quant_row rmsnorm_gated moe_gate; do
        echo "tests/bench/graphs/$file.fuse"
    done
    for size in "B=3 S=49" "B=2 C=7 S=1000" "C=768 S=784" "C=96 S=1001 --offset x=1"; do
        echo "tests/bench/graphs/rms_channels.fuse $size"
        echo "examples/layernorm_channels.fuse $size"
        echo "examples/layernorm_channels_bwd.fuse $size"
    done
    for size in "" "C=1000 S=99" "C=768 S=784"; do echo "tests/cases/large_mean_beside.fuse $size"; done
    for size in "B=128 C=100 H=14 W=14" "C=100 --stride x=4000,40,6,1" "H=28 W=28 --offset x=1"; do echo "tests/cases/dense_pixels.fuse $size"; done
    for size in "N=64 G=8 C=16 H=14 W=14" "N=64 G=8 C=16 H=7 W=7" "N=30 --stride x=130,50,15,7,1" "N=40 --stride dx=90,42,14,7,1"; do
        echo "tests/cases/dense_pixels_bwd.fuse $size"
    done
    # columns that make whole vectors together, and CTAs of a cluster that take turns along a row
    for size in "S=49 C=64" "S=3025 C=16 B=9" "S=9 C=8 B=1000" "S=49 C=64 --offset x=1"; do
        for name in batchnorm batchnorm_bwd; do
            echo "examples/$name.fuse $size --schedule row:axes=last"
            echo "examples/$name.fuse $size --schedule row:axes=wider"
        done
    done
    for size in "S=50176 C=3 B=4" "S=48 C=5"; do echo "examples/batchnorm.fuse $size --schedule row:axes=last"; done
    for size in "S=49 C=64" "S=3025 C=16 B=9" "S=9 C=8 B=1000"; do
        for ctas in 2 8 16; do
            turns=row:exact=1,threads=512,cluster=$ctas,reads=2,per_sm=2,axes=wider
            for name in batchnorm batchnorm_bwd; do echo "examples/$name.fuse $size --schedule pointwise:exact=1,threads=256,axes=wider+$turns"; done
        done
    done
    for size in "" "S=729 B=9" "B=9 C=3 --offset y=1" "B=7 --stride x=30000,50,1"; do echo "tests/bench/graphs/affine_channels.fuse $size"; done
    for size in "O=77" "O=3 I=7" "O=9 I=100 --stride g=1000,9,1"; do echo "tests/bench/graphs/weight_decay.fuse $size"; done
    # lines of images that are no whole vectors, and some that are
    for size in "" "S=3" "S=8" "B=40 S=131" "B=64 S=3001" "B=500 S=49" "S=50 --offset x=1"; do echo "tests/cases/odd_images.fuse $size"; done
    for size in "" "S=3" "B=64 S=3025" "B=2 S=131 C=300" "B=9 S=64 --offset x=1" "S=512"; do echo "tests/cases/odd_pixels.fuse $size"; done
    for file in examples/layernorm_channels examples/layernorm_channels_bwd tests/bench/tiles/softmax_classes tests/bench/graphs/seg_lse \
        tests/bench/graphs/col_softmax tests/bench/graphs/layer_scale_mean; do
        [ "${file##*/}" != col_softmax ] || { echo "$file.fuse C=255"; continue; }
        for size in "B=3 S=3025" "B=64 S=49"; do echo "$file.fuse $size"; done
    done
    for file in examples/batchnorm examples/batchnorm_bwd tests/bench/graphs/bn_relu_nchw; do
        for size in "B=3 S=3025" "B=300 S=49" "B=20 S=196" "B=2 S=7"; do echo "$file.fuse $size"; done
    done
    for size in "B=3 S=4095" "B=40 S=49"; do echo "examples/group_norm_bwd.fuse $size"; done
    for size in "" "S=3025" "B=1 S=9" "B=700 S=961"; do echo "tests/bench/graphs/avg_max_chan.fuse $size"; done
    for size in "B=1 Q=1023 K=1023" "B=1 H=3 Q=77 K=197"; do echo "tests/bench/tiles/window_softmax.fuse $size"; done
    for file in softmax_causal softmax_masked_bwd; do echo "examples/$file.fuse B=1 H=3 Q=511 K=511"; done
    # sums over rows that are asked for at a pace: alone, in clusters, and those with a lag
    for file in layernorm_bwd rmsnorm_bwd rmsnorm_bwd_add thunder_layernorm_bwd; do
        for columns in 6144 9216 11008 14336 20480 57344 98304 114688; do    # more than twice what an H100's L2 holds
            echo "examples/$file.fuse M=$((18500000 / columns)) N=$columns"
        done
    done
    # single elements by a copy warp, most of them at a pace: more than twice what an H100's L2 holds
    for columns in 897 1201 1401 1987 3001 6001 7001 8191 10001 13501 14337 16383 20479 24577 32767 33001 50257 65535 131071 262143; do
        echo "examples/layernorm.fuse M=$((30000000 / columns)) N=$columns"
    done
    for columns in 1023 1987 3001 6001 8191 9001 12287 20001 25001 32767 40001 65535 131071; do
        echo "examples/layernorm_residual.fuse M=$((18500000 / columns)) N=$columns"
    done
    for columns in 9001 14001 20481 32767 50257 131071; do
        echo "examples/rmsnorm.fuse M=$((30000000 / columns)) N=$columns"
        echo "examples/rmsnorm_residual.fuse M=$((18500000 / columns)) N=$columns"
    done
    for columns in 9001 12287 16383 20479 32767 50257 131071; do
        echo "examples/layernorm_bwd.fuse M=$((18500000 / columns)) N=$columns"
    done
    for columns in 4095 8191 12287 16383 20479 32767 50257 131071; do
        echo "examples/rmsnorm_bwd.fuse M=$((18500000 / columns)) N=$columns"
    done
    for columns in 2561 4095 6143 8191 9215 12287 20479 24577 33001 36863 65535 131071; do    # by blocks up to 36863
        echo "examples/softmax_bwd.fuse M=171 N=$columns"
        echo "$(of_type gpu softmax_bwd f16) M=171 N=$columns"
    done
    for columns in 4095 8191 10240 12287 16384; do
        for file in softmax_masked softmax_masked_bwd softmax_scaled_bwd; do
            echo "examples/$file.fuse B=2 H=3 Q=37 K=$columns"
        done
    done
    for file in rmsnorm softmax rmsnorm_residual; do    # four or eight CTAs a row, two vectors a thread
        for columns in 14336 16384; do echo "examples/$file.fuse M=2049 N=$columns"; done
    done
    for columns in 98304 106496 122880 131072; do    # f32 beside column vectors in shared memory
        echo "tests/long/kept_columns.fuse M=37 N=$columns"
    done
    for columns in 1000 4096 16384 20480; do
        echo "tests/cases/wide_weights.fuse M=331 N=$columns"
    done
    for columns in 64 512 896 1024 1408 2048 3584 4096 12288 14336 20480 49152 131072 196608; do
        echo "$(wide_of gpu layernorm_bwd bf16) M=331 N=$columns"
        echo "$(wide_of gpu rmsnorm_bwd f16) M=331 N=$columns"
    done
    for columns in 16640 18432 22528 24576 40960 73728 131072 262144; do echo "$(wide_of gpu layernorm bf16) M=171 N=$columns"; done
    for columns in 3072 5000 5120 6656 12800; do    # both weights a tile ahead, or not
        for type in bf16 f16; do echo "$(wide_of gpu layernorm $type) M=71 N=$columns"; done
    done
    for columns in 512 5120 5632 6144 7168 8192; do
        for file in rmsnorm rmsnorm_residual rmsnorm_quantized; do echo "$(wide_of gpu $file f16) M=331 N=$columns"; done
    done
    # rows of several axes, evenly apart or not
    for columns in 64 768 1040 4096 12288 24576 98304; do
        for shape in "B=37 T=9" "B=1 T=71" "B=71 T=1"; do echo "tests/cases/rows_of_two_axes.fuse $shape N=$columns"; done
        echo "tests/cases/rows_of_two_axes.fuse B=37 T=9 N=$columns --stride x=$((columns * 10)),$columns,1"
        echo "tests/cases/scalars_of_two_axes.fuse B=37 T=9 N=$columns"
    done
    for columns in 1001 4096 16384 20480; do
        echo "tests/cases/bias_gradient.fuse M=2049 N=$columns"
    done
    for columns in 997 1024 4096 5120 9216 12288 16384 24576; do
        echo "tests/cases/biased_sum.fuse M=331 N=$columns"
    done
    # lengths at which schedules differ where memory moves more
    for columns in 135168 151936 163840 180224 204800 221184; do echo "examples/layernorm.fuse M=71 N=$columns"; done
    for columns in 1280 1536 2048 2816 3072 3584; do
        echo "examples/rmsnorm_bwd.fuse M=2049 N=$columns"
        echo "$(of_type gpu rmsnorm_bwd f16) M=331 N=$columns"
        echo "$(of_type gpu layernorm_bwd f32) M=331 N=$columns"
    done
    for columns in 188416 196608 204800; do echo "examples/layernorm_bwd.fuse M=71 N=$columns"; done
    for shape in 2048:threads=128,rows=4,stages=2 12288:threads=384,cluster=1 40960:threads=256,cluster=4 \
        65536:threads=512,cluster=4 131072:threads=512,cluster=8; do
        for file in layernorm_bwd rmsnorm_bwd; do
            echo "examples/$file.fuse M=331 N=${shape%%:*} --schedule grid-stride:${shape#*:}"
        done
    done
    for shape in 59392:threads=256,cluster=8,per_sm=4 65536:threads=128,cluster=8,per_sm=3 131072:threads=256,cluster=8,per_sm=2 \
        147456:threads=192,cluster=16,per_sm=3 262144:threads=256,cluster=16,per_sm=2; do
        echo "examples/layernorm.fuse M=331 N=${shape%%:*} --schedule row:${shape#*:},stages=1,reuse=1"
        echo "$(of_type gpu layernorm f16) M=71 N=${shape%%:*} --schedule row:${shape#*:},stages=1,reuse=1 --offset x=1"
    done
    for shape in 98304:threads=384,cluster=8 196608:threads=384,cluster=16; do
        echo "examples/layernorm_residual.fuse M=71 N=${shape%%:*} --schedule row:${shape#*:},per_sm=1,reuse=1"
    done
    for stages in 1 2 3 5; do echo "examples/layernorm_bwd.fuse M=2049 N=1024 --schedule grid-stride:stages=$stages,reuse=1"; done
    # rows that hand their stage on; column vectors that the first CTAs ask L2 for; rows by pairs of CTAs
    for columns in 64 96 256 512 640 1024 1152 1536 2048 2304 3072 3584; do
        for rows in 5 4101; do echo "examples/layernorm_bwd.fuse M=$rows N=$columns"; done
        echo "examples/rmsnorm_bwd.fuse M=331 N=$columns"
        echo "$(of_type gpu layernorm_bwd f16) M=331 N=$columns"
        for name in layernorm_bwd rmsnorm_bwd; do echo "$(of_type gpu $name f32) M=331 N=$columns"; done
    done
    for columns in 2816 4100 5120 9216 11264; do
        for name in layernorm layernorm_residual rmsnorm_quantized; do
            for rows in 2 600; do echo "examples/$name.fuse M=$rows N=$columns"; done
            echo "$(of_type gpu $name f16) M=71 N=$columns --offset x=1"
        done
        echo "examples/layernorm.fuse M=71 N=$columns --offset gamma=3"
    done
    for columns in 45056 50000; do echo "$(of_type gpu layernorm f32) M=71 N=$columns"; done
    for name in layernorm layernorm_residual; do echo "examples/$name.fuse M=331 N=6144"; done
    for columns in 7168 8192; do echo "examples/rmsnorm.fuse M=331 N=$columns"; done
    for shape in 1024:threads=32 20480:threads=640,cluster=1,stages=2 57344:threads=896,cluster=2,stages=2 \
        98304:threads=512,cluster=4,stages=2; do
        echo "examples/layernorm.fuse M=331 N=${shape%%:*} --schedule row:${shape#*:}"
    done
    for columns in 1990 3004 8190 12288 13312; do
        echo "examples/layernorm.fuse M=2049 N=$columns"
    done
    for file in layernorm layernorm_bwd rmsnorm rmsnorm_bwd; do
        for columns in 1024 1987 4096 24576 65536; do
            echo "examples/$file.fuse M=71 N=$columns --offset x=1"
        done
    done
    for strides in "" "--stride x=9000,40,1" "--stride q=8704,34,1 --offset x=1"; do
        for rows in 3 2049; do echo "examples/rmsnorm_mxfp8.fuse M=$rows $strides"; done
        echo "examples/rmsnorm_mxfp8.fuse M=331 G=200 $strides"
    done
}

list_types() {
    for name in layernorm layernorm_bwd rmsnorm rmsnorm_bwd softmax softmax_bwd layernorm_residual rmsnorm_residual rmsnorm_quantized; do
        for dtype in f16 f32; do
            for columns in 1023 2048 12288 32768; do echo "$(of_type gpu $name $dtype) M=71 N=$columns"; done
        done
    done
    for columns in 13312 26624 36864 53248 65536 81920 102400 118784 126976 151936 188416 204800 245760; do
        echo "examples/layernorm.fuse M=71 N=$columns"
        echo "$(of_type gpu layernorm f16) M=71 N=$columns"
    done
    for columns in 20480 22528 40960 51200 61440; do echo "$(of_type gpu layernorm f32) M=71 N=$columns"; done
    for columns in 36864 45056 57344 73728; do echo "examples/layernorm_residual.fuse M=71 N=$columns"; done
    for columns in 147456 196608 204800; do echo "$(of_type gpu layernorm_residual f32) M=71 N=$columns"; done
    for columns in 20480 196608 229376; do echo "$(of_type gpu rmsnorm_residual f32) M=71 N=$columns"; done
    for columns in 45056 147456 167936 180224 229376 245760; do
        echo "examples/layernorm_bwd.fuse M=71 N=$columns"
        echo "$(of_type gpu layernorm_bwd f16) M=71 N=$columns"
    done
    for columns in 135168 180224; do echo "$(of_type gpu layernorm_bwd f32) M=71 N=$columns"; done
    for columns in 155648 196608 229376; do echo "$(of_type gpu rmsnorm_bwd f32) M=71 N=$columns"; done
    for columns in 4095 5001 8190 8191 12287 14001 16383 20479 24001; do    # f32 that is no whole vectors, by clusters
        for name in layernorm rmsnorm softmax softmax_bwd layernorm_residual rmsnorm_residual rmsnorm_quantized cross_entropy; do
            echo "$(of_type gpu $name f32) M=71 N=$columns"
        done
    done
    for columns in 9216 9220 12288 16640 20480 22532; do echo "$(of_type gpu softmax_bwd f32) M=331 N=$columns"; done
    for columns in 13312 16384 20480 114688; do echo "$(of_type gpu rmsnorm_quantized f16) M=331 N=$columns"; done
    for columns in 57344 73728 90112 98304 131072 139264 151936 180224 229376; do
        echo "examples/rmsnorm_quantized.fuse M=71 N=$columns"
        echo "$(of_type gpu rmsnorm_quantized f16) M=71 N=$columns"
    done
    # slices of single elements that few threads hold; what the model chooses
    for columns in 16385 19457 33001 39999 66001 140001; do
        echo "examples/layernorm_bwd.fuse M=331 N=$columns"
        echo "$(of_type gpu layernorm_bwd f16) M=331 N=$columns"
    done
    echo "examples/layernorm_bwd.fuse M=331 N=19457 --schedule warp-specialized:threads=576,cluster=2"
    for columns in 16385 19457 33001 38001 75001 150001; do
        echo "examples/rmsnorm_bwd.fuse M=331 N=$columns"
        echo "$(of_type gpu rmsnorm_bwd f16) M=331 N=$columns"
    done
    for columns in 897 1101 1215 8193 10239; do echo "examples/rmsnorm_bwd.fuse M=2049 N=$columns"; done
    for columns in 901 1215; do echo "examples/layernorm_bwd.fuse M=2049 N=$columns"; done
    # groups and clusters that hold the column vectors which a ring has no room for
    for columns in 140001 180002 262143 300004 400002; do
        for name in rmsnorm layernorm_residual rmsnorm_residual rmsnorm_quantized rmsnorm_bwd rmsnorm_bwd_add; do
            echo "examples/$name.fuse M=37 N=$columns"
            echo "$(of_type gpu $name f16) M=37 N=$columns"
        done
    done
    for columns in 163001 190001 600001 720001 900001 1200001; do
        for name in rmsnorm layernorm layernorm_residual rmsnorm_quantized rmsnorm_bwd_add; do
            echo "examples/$name.fuse M=13 N=$columns"
            echo "$(of_type gpu $name f16) M=13 N=$columns"
        done
    done
    # vectors of 4 and 8 bytes
    for columns in 4098 4612 6658 8194 12290 16386 20484 28674 36866 40962 66004 98306 130002 163838; do
        for name in layernorm_bwd rmsnorm_bwd rmsnorm_bwd_add layernorm layernorm_residual rmsnorm_quantized; do
            echo "examples/$name.fuse M=331 N=$columns"
            echo "$(of_type gpu $name f16) M=331 N=$columns"
        done
    done
    for columns in 172034 200002 262142; do echo "examples/layernorm.fuse M=71 N=$columns"; done
    for columns in 270336 300000 360001 393216; do echo "examples/rmsnorm_bwd.fuse M=71 N=$columns"; done
    for columns in 8821 9214; do echo "$(of_type gpu layernorm_bwd f32) M=331 N=$columns"; done
    for columns in 196608 294912; do echo "examples/rmsnorm_bwd_add.fuse M=37 N=$columns"; done
    for columns in 150001 200001; do echo "$(of_type gpu rmsnorm_bwd f32) M=37 N=$columns"; done
    for columns in 140004 425984; do echo "$(of_type gpu rmsnorm_residual f32) M=37 N=$columns"; done
    for columns in 45001 50257; do echo "examples/softmax_bwd.fuse M=331 N=$columns"; done
    for columns in 9001 14001 24575; do
        echo "examples/rmsnorm_quantized.fuse M=331 N=$columns"
        echo "$(of_type gpu rmsnorm_quantized f16) M=331 N=$columns"
    done
    for columns in 704 768 832; do echo "examples/layernorm_bwd.fuse M=2049 N=$columns"; done
    for columns in 640 1000 4100 7168 8192; do echo "tests/cases/held_short.fuse M=331 N=$columns"; done
    for columns in 72 384 768 1152 2048; do echo "tests/cases/moments_chain.fuse M=2049 N=$columns"; done
    for columns in 12288 49152; do echo "tests/cases/channel_scales.fuse M=331 C=$columns"; done
    for columns in 45056 73728 98304; do echo "$(of_type gpu rmsnorm_quantized f32) M=71 N=$columns"; done
}

# Cases and sanitizer runs are shared out to processes: compiling takes most of the time.
limit=900
jobs=$(nproc)
[ "$jobs" -gt 16 ] && jobs=16
mkdir -p build/gpu
rm -f build/gpu/*
{ list_cases; list_types; } | split -n r/"$jobs" - build/gpu/cases.
for list in build/gpu/cases.*; do
    timeout -s KILL "$limit" build/gpu_cases "$device" <"$list" >"$list.out" 2>"$list.err" || echo $? >"$list.status" &
done
wait
for list in $(grep -lx 137 build/gpu/*.status 2>/dev/null); do
    echo "FAILED: killed after $limit s: $(tail -n 1 "${list%.status}.err")"
done
if grep -qx 3 build/gpu/*.status 2>/dev/null; then
    echo "make check-gpu: skipped, there is no GPU"
    exit 0
fi
grep -hv 'cases passed$' build/gpu/*.out
tail -qn 1 build/gpu/*.out | awk '{ passed += $1; all += $3 } END { print passed " of " all " cases passed" }'
if ls build/gpu/*.status >/dev/null 2>&1; then
    grep -hvxFf <(cat build/gpu/cases.??) build/gpu/*.err >&2    # but for the names of cases
    exit 1
fi
build/gpu_order "$device" || exit 1
[ "$device" = cuda ] || exit 0

sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda*/bin/compute-sanitizer 2>/dev/null |
    head -n 1)
if [ -z "$sanitizer" ]; then
    echo "compute-sanitizer: skipped, it is not installed"
else
    sanitize() {   # TOOL FILE ROWS COLUMNS OPTION...
        local log tool=$1 file=$2 rows=$3 columns=$4
        shift 4
        log=build/gpu/$tool.$(basename "$file").$columns.log
        "$sanitizer" --tool "$tool" --error-exitcode 9 --log-file "$log" \
            build/fusec run "$file" $(sizes "$file" "$rows" "$columns") "$@" --device cuda >/dev/null && return
        echo "FAILED: $tool $file of $columns columns $*"
        cat "$log"
        exit 1
    }
    export sanitizer
    export -f sanitize sizes quad
    for tool in memcheck racecheck; do
        printf "$tool %s 71 229\n" examples/*.fuse | grep -v "^racecheck.*rmsnorm_bwd_add"    # below
        printf "$tool examples/%s.fuse 71 1031\n" softmax softmax_bwd rmsnorm rmsnorm_residual    # by blocks
        printf "$tool examples/softmax_bwd.fuse 71 %s\n" 8191 12287    # and by clusters
        echo "$tool examples/layernorm.fuse 40 139264 --schedule row:threads=544,cluster=8,stages=2"
        echo "$tool examples/layernorm.fuse 66 65536 --schedule row:threads=256,cluster=8,reuse=1"
        echo "$tool examples/rmsnorm_bwd.fuse 2000 1536"
        echo "$tool examples/layernorm_bwd.fuse 34 131072 --schedule grid-stride:threads=512,cluster=8"
        echo "$tool examples/layernorm.fuse 7 16648 --schedule row:cluster=32"    # read again by groups
        echo "$tool examples/batchnorm.fuse 8 98 --schedule pointwise:exact=1,threads=256,axes=wider+row:exact=1,threads=512,cluster=2,reads=2,per_sm=2,axes=wider"
        # a ring filled by blocks; as many rows for each team, since racecheck takes those that have passed
        # unequal numbers of their own barriers for unordered by the next barrier of all
        for columns in 1018 1031 7001; do
            echo "$tool examples/layernorm_bwd.fuse 80 $columns --schedule grid-stride:ctas=1"
        done
        # and a stage for each row: it does not see that a copy warp waits for a stage to be read
        echo "$tool examples/rmsnorm_bwd_add.fuse 8 229 --schedule warp-specialized:ctas=1"
    done |
        xargs -P "$jobs" -L 1 bash -c 'sanitize "$@"' sanitize || exit 1
    echo "compute-sanitizer: memcheck and racecheck found nothing"
fi
echo 'make check-gpu: all passed'
