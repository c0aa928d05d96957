#!/bin/bash
# Which schedule is chosen at the ends of where it was measured: a table.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# another build of the same program chooses the same, and has one in four to walk the code by
lines=0
while read -r name dtype columns schedule; do
    case $name in '' | '#') continue ;; esac
    lines=$((lines + 1))
    first_build || [ $((lines % 4)) = 0 ] || continue
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

finish
