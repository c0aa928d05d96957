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
also 'model: about [0-9]* GB/s with many rows, where memory moves [0-9]*'
expect 0 'for sm_89 with 128 SMs' explain "$root"/examples/layernorm_bwd.fuse N=32768 --arch sm_89
grep -q cluster stdout && fail 'explain: clusters on sm_89'
expect 0 'clusters of [0-9]* CTAs' explain "$root"/examples/layernorm_bwd.fuse N=32768 --arch sm_103a
expect 2 'cluster: sm_89 has no clusters' explain "$root"/examples/layernorm_bwd.fuse --arch l40s --schedule grid-stride:cluster=2
expect 0 'for sm_90a (h200) with 132 SMs' explain "$root"/examples/layernorm_bwd.fuse --arch h200
expect 0 'for sm_90a (h200) with 132 SMs' explain "$root"/examples/layernorm_bwd.fuse --arch sm_90a --memory 4800
expect 0 'the nearest, h100, is used' explain "$root"/examples/layernorm_bwd.fuse --arch sm_90a --memory 2000
expect 0 '"gpu": "h200"' explain "$root"/examples/layernorm_bwd.fuse --arch h200 --json
expect 0 '"gpu": "l40s"' explain "$root"/examples/layernorm_bwd.fuse --arch l40s --json
also '"constants": {"all": [0-9]*, "measured": 0}'
expect 0 '"all": \([0-9]*\), "measured": \1}' explain "$root"/examples/layernorm_bwd.fuse --arch h100 --json
grep -q 'target:' stdout && fail 'explain: a remark on the GPU that was measured'
# files of further GPUs
mkdir -p gpus
printf '%s\n' '/* a lab */' 'DATA_SHEET(gpu, "lab_gpu")' 'DATA_SHEET(arch, "sm_80")' 'MEASURED(sms, 64)' 'MEASURED(memory_rate, 12)' >gpus/lab.def
export FUSEC_TARGETS=$PWD/gpus
expect 0 'for sm_80 (lab_gpu) with 64 SMs' explain "$root"/examples/layernorm_bwd.fuse --arch lab_gpu
also "1 of the model's [0-9]* constants of lab_gpu are measured"
expect 0 'for sm_80 with 108 SMs' explain "$root"/examples/layernorm_bwd.fuse --arch sm_80
echo 'MEASURED(speed, 12)' >gpus/wrong.def
expect 0 'for sm_80 (lab_gpu)' explain "$root"/examples/layernorm_bwd.fuse --arch lab_gpu
grep -q "wrong.def describes no GPU: line 1: unknown key 'speed'" stderr || fail 'FUSEC_TARGETS: nothing is said of a wrong file'
rm gpus/wrong.def
# tables of measured schedules: a row decides, or the plan says why it cannot, and what is no row is told
norm=("$root"/examples/layernorm.fuse N=4096)
echo '2>2|2+2|mean*mean|0 bf16 8 4000..5000 row:threads=128,stages=3 4.0' >gpus/lab_gpu.tuned
expect 0 '^schedule: row:threads=128,stages=3.* (from the table of lab_gpu, measured by .fusec tune --table.)$' explain "${norm[@]}" --arch lab_gpu
expect 0 'from the table of lab_gpu' explain "${norm[@]}" --arch lab_gpu --json
for other in '--arch lab_gpu N=5008' '--arch lab_gpu N=4100' '--arch sm_80'; do    # other columns, another vector, another GPU
    # shellcheck disable=SC2086
    expect 0 'the cost model.s choice)$' explain "${norm[0]}" $other
done
expect 0 '^schedule: row.* (as --schedule asks)$' explain "${norm[@]}" --arch lab_gpu --schedule row
grep -q 'stages=3' stdout && fail 'a table decides in spite of --schedule'
echo '2>2|2+2|mean*mean|0 bf16 8 4096..4096 row:exact=1,threads=32,lag=1 4.0' >gpus/lab_gpu.tuned
expect 0 '^schedule: .* (the cost model.s choice)$' explain "${norm[@]}" --arch lab_gpu
also '^rejected: row:exact=1,threads=32,lag=1: a row of the table of lab_gpu: lag: only for rows in a ring'
while read -r why; do
    read -r row
    printf '\n%s\n' "$row" >gpus/lab_gpu.tuned
    expect 0 'the cost model.s choice)$' explain "${norm[@]}" --arch lab_gpu
    grep -q "lab_gpu.tuned, line 2 is not a row of a table: $why" stderr || fail "FUSEC_TARGETS: nothing is said of the row $row"
done <<'END'
it needs CLASS DTYPE VECTOR FROM..TO SCHEDULE GAIN
2>2|2+2|mean*mean|0 bf16 8 4000..5000 row:threads=128
the gain comes after the schedule, and 'much' is not a number
2>2|2+2|mean*mean|0 bf16 8 4000..5000 row:threads=128 much
'5000..4000' is not of the form FROM..TO
2>2|2+2|mean*mean|0 bf16 8 5000..4000 row:threads=128 4
row has no key 'treads'
2>2|2+2|mean*mean|0 bf16 8 4000..5000 row:treads=128 4
a row of a table gives the schedule of one kernel
2>2|2+2|mean*mean|0 bf16 8 4000..5000 row:exact=1,threads=128+row:exact=1,threads=64 4
END
mv gpus/lab_gpu.tuned gpus/other.tuned
expect 0 'the cost model.s choice)$' explain "${norm[@]}" --arch lab_gpu
grep -q 'other.tuned: there is no GPU other' stderr || fail 'FUSEC_TARGETS: a table of no GPU'
rm gpus/other.tuned
FUSEC_TARGETS=gpus expect 0 '__global__' one.fuse --arch sm_80
grep -q 'FUSEC_TARGETS is not an absolute path' stderr || fail 'FUSEC_TARGETS: a relative path'
FUSEC_TARGETS=/nowhere expect 0 '__global__' one.fuse --arch sm_80
grep -q 'FUSEC_TARGETS: /nowhere cannot be read' stderr || fail 'FUSEC_TARGETS: no directory'
unset FUSEC_TARGETS
expect 2 'a GPU: a100' one.fuse --arch lab_gpu

# a GPU's own file
expect 2 'measures the GPU, not a graph' tune --fit one.fuse
expect 2 'no option --fit' bench one.fuse --fit
expect 3 '' tune --fit -o /nowhere/gpu.def
# a GPU's own table
expect 2 'table needs a value' tune one.fuse --table
expect 2 'no option --table' bench one.fuse --table mine.tuned
expect 2 'fit and --table exclude' tune --fit --table mine.tuned
expect 2 'needs a FILE' tune --table mine.tuned
if [ -e /dev/nvidiactl ]; then
    expect 2 'no row of a table decides' tune "$root"/tests/golden/pointwise.fuse --table mine.tuned
else
    expect 3 'without a GPU' tune one.fuse --table mine.tuned
fi
[ -e mine.tuned ] && fail 'tune --table leaves a table in spite of an error'

# a file of a GPU that is known takes its place: of an architecture the first is still meant
mkdir -p again && cp "$root"/src/targets/sm90_h100.def again/h100.def
FUSEC_TARGETS=$PWD/again expect 0 '^schedule: ' explain "$root"/examples/rmsnorm.fuse --arch sm_90a
grep -q h200 stdout && fail 'a file for the h100 makes sm_90a an h200'

finish
