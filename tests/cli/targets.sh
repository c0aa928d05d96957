#!/bin/bash
# What the schedules of every GPU look like, and files of further GPUs.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

echo 'graph one[M = 4, N = 8](x : f32[M, N], w : f32[N], eps : f32) -> (y : f32[M, N], s : f32[M]) { s = rsqrt(mean[N](x * x) + eps)  y = x * s * w }' >one.fuse
# schedules for every GPU: shared memory and clusters as it has them, and where the model's constants are from
for arch in sm_80 sm_86 sm_89 sm_90 sm_100 sm_103 sm_120; do
    expect 0 "^// .* for $arch" "$root"/examples/layernorm_bwd.fuse --arch $arch
done
for arch in sm_90a sm_100a sm_103a sm_120a; do expect 0 "for $arch with" explain "$root"/examples/layernorm_bwd.fuse --arch $arch; done
expect 0 "constants of rtx4090 are not measured" explain "$root"/examples/layernorm_bwd.fuse --arch sm_89
also 'model: about 850 GB/s with many rows, where memory moves 940'
expect 0 'for sm_89 with 128 SMs' explain "$root"/examples/layernorm_bwd.fuse N=32768 --arch sm_89
grep -q cluster stdout && fail 'explain: clusters on sm_89'
expect 0 'clusters of 4 CTAs' explain "$root"/examples/layernorm_bwd.fuse N=32768 --arch sm_103a
expect 2 'cluster: sm_89 has none' explain "$root"/examples/layernorm_bwd.fuse --arch l40s --schedule grid-stride:cluster=2
expect 0 'for sm_90a (h200) with 132 SMs' explain "$root"/examples/layernorm_bwd.fuse --arch h200
expect 0 'for sm_90a (h200) with 132 SMs' explain "$root"/examples/layernorm_bwd.fuse --arch sm_90a --memory 4800
expect 0 'the nearest, h100, is used' explain "$root"/examples/layernorm_bwd.fuse --arch sm_90a --memory 2000
expect 0 '"gpu": "h200"' explain "$root"/examples/layernorm_bwd.fuse --arch h200 --json
also '"constants": {"all": 25, "measured": 0}'
expect 0 '"measured": 25' explain "$root"/examples/layernorm_bwd.fuse --arch h100 --json
grep -q 'target:' stdout && fail 'explain: a remark on the GPU that was measured'
# files of further GPUs
mkdir -p gpus
printf '%s\n' '/* a lab */' 'DATA_SHEET(gpu, "lab_gpu")' 'DATA_SHEET(arch, "sm_80")' 'MEASURED(sms, 64)' 'MEASURED(memory_rate, 12)' >gpus/lab.def
export FUSEC_TARGETS=$PWD/gpus
expect 0 'for sm_80 (lab_gpu) with 64 SMs' explain "$root"/examples/layernorm_bwd.fuse --arch lab_gpu
also "1 of the model's 25 constants of lab_gpu are measured"
expect 0 'for sm_80 with 108 SMs' explain "$root"/examples/layernorm_bwd.fuse --arch sm_80
echo 'MEASURED(speed, 12)' >gpus/wrong.def
expect 0 'for sm_80 (lab_gpu)' explain "$root"/examples/layernorm_bwd.fuse --arch lab_gpu
grep -q "wrong.def describes no GPU: line 1: unknown key 'speed'" stderr || fail 'FUSEC_TARGETS: nothing is said of a wrong file'
FUSEC_TARGETS=gpus expect 0 '__global__' one.fuse --arch sm_80
grep -q 'FUSEC_TARGETS is no absolute path' stderr || fail 'FUSEC_TARGETS: a relative path'
FUSEC_TARGETS=/nowhere expect 0 '__global__' one.fuse --arch sm_80
grep -q 'FUSEC_TARGETS: /nowhere cannot be read' stderr || fail 'FUSEC_TARGETS: no directory'
unset FUSEC_TARGETS
expect 2 'a GPU: a100' one.fuse --arch lab_gpu

# a GPU's own file
expect 2 'measures the GPU, not a graph' tune --fit one.fuse
expect 2 'no option --fit' bench one.fuse --fit
expect 3 '' tune --fit -o /nowhere/gpu.def

finish
