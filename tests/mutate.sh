#!/bin/bash
# make mutate: kernels with one thing broken at a time; nearly all must be noticed, and those that are
# not must be explained in tests/mutants.txt, which must explain nothing else. The table is left in
# build/mutants/table.
set -u
cd "$(dirname "$0")/.."
mkdir -p build/mutants
export TMPDIR=$PWD/build/mutants

# A complete schedule (exact=1) where a case needs numbers that the model may come to choose otherwise.
list_cases() {
    cat <<'END'
examples/layernorm_bwd.fuse M=23 N=1024 --sms 1
examples/layernorm_bwd.fuse M=5 N=1024 --sms 1
examples/layernorm_bwd.fuse M=73 N=520 --sms 1
tests/cases/scalars_alone.fuse M=90 --sms 1
tests/cases/scalars_alone.fuse M=4 --sms 1 --schedule warp-specialized:threads=96,groups=2
examples/layernorm_bwd.fuse M=37 N=1023 --sms 1
examples/layernorm_bwd.fuse M=37 N=1023 --sms 1 --offset x=3
examples/layernorm_bwd.fuse M=37 N=1018 --sms 1 --offset dy=3
examples/layernorm_bwd.fuse M=37 N=521 --sms 1 --schedule grid-stride:threads=32,rows=4
examples/layernorm_bwd.fuse M=9 N=2309 --sms 1 --schedule grid-stride:threads=416
examples/layernorm_bwd.fuse M=9 N=385 --sms 1 --schedule grid-stride:cluster=4,threads=160
examples/layernorm_bwd.fuse M=9 N=520 --sms 1 --offset x=3 --schedule grid-stride:lines=1
examples/layernorm_bwd.fuse M=65 N=72 --sms 1 --schedule grid-stride:threads=4,rows=32
examples/layernorm_bwd.fuse M=250 N=72 --sms 1 --schedule grid-stride:threads=4,rows=32
examples/layernorm_bwd.fuse M=250 N=79 --sms 1
examples/layernorm_bwd.fuse M=65 N=79 --sms 1
examples/layernorm_bwd.fuse M=9 N=72 --sms 1 --offset x=3 --offset dy=1 --offset dx=1
examples/layernorm_bwd.fuse M=14 N=529 --sms 1
examples/layernorm_bwd.fuse M=40 N=2176 --sms 1 --schedule grid-stride:ctas=40
examples/layernorm_bwd.fuse M=40 N=1028 --sms 1 --schedule warp-specialized:cluster=2
examples/layernorm_bwd.fuse M=3 N=1025 --sms 1 --schedule warp-specialized:cluster=2
examples/layernorm_bwd.fuse M=2 N=1025 --schedule warp-specialized:cluster=2
examples/layernorm_bwd.fuse M=40 N=1025 --sms 1 --schedule warp-specialized:cluster=2
examples/layernorm_bwd.fuse M=9 N=385 --sms 1 --schedule warp-specialized:cluster=4,threads=160
examples/layernorm_bwd.fuse M=12 N=1544 --sms 1 --schedule warp-specialized:cluster=2,threads=64
examples/softmax_bwd.fuse M=60 N=1000 --sms 1 --schedule warp-specialized
examples/softmax_bwd.fuse M=30 N=1000 --sms 1 --stride y=1001,1 --schedule warp-specialized:ctas=1
examples/softmax_bwd.fuse M=9 N=1023 --sms 1 --schedule warp-specialized
examples/layernorm_bwd.fuse M=40 N=1032 --sms 1 --schedule warp-specialized:threads=64,groups=2
examples/layernorm_bwd.fuse M=3 N=1032 --sms 1 --schedule warp-specialized:threads=64,groups=2
examples/softmax_bwd.fuse M=60 N=1000 --sms 1 --schedule warp-specialized:threads=64,groups=3,lag=1
examples/layernorm_bwd.fuse M=40 N=1032 --sms 1 --schedule warp-specialized:threads=128,groups=2,registers=1
examples/layernorm_bwd.fuse M=41 N=1032 --sms 2 --schedule warp-specialized:threads=64,rows=2,groups=2
examples/layernorm.fuse M=40 N=1032 --sms 1 --schedule warp-specialized:threads=64,groups=2,columns=shared
examples/softmax.fuse M=65 N=24 --offset x=3
examples/softmax.fuse M=64 N=23
examples/softmax_causal_bwd.fuse B=2 H=2 Q=5 K=229
tests/cases/window.fuse Q=40 K=56 --set window=8 --set scale=4 --offset x=1
tests/cases/window.fuse Q=40 K=51 --set window=8 --set scale=4
tests/cases/wide_moments.fuse M=2 N=2600
examples/layernorm.fuse M=2 N=3584
tests/golden/column.fuse M=480 N=77 --sms 1
tests/golden/column.fuse M=481 N=77 --sms 1
tests/golden/column.fuse M=257 N=64 --sms 1 --schedule column:exact=1,threads=8,rows=32,stages=8,ctas=1,per_sm=4,row=ring,live=4
tests/golden/several_axes.fuse B=2 --offset x=1
tests/golden/column.fuse M=256 N=64 --sms 1 --schedule column:exact=1,threads=8,rows=32,stages=8,per_sm=4,row=ring,live=4
tests/cases/bytes_in_pairs.fuse M=5 --offset x=1 --offset y=1 --offset w=1
tests/cases/bytes_beside_sums.fuse M=257
examples/softmax.fuse M=3 N=1027 --offset x=3
examples/softmax.fuse M=4 N=1031 --schedule row:threads=64,rows=3
examples/softmax_bwd.fuse M=2 N=1023 --offset dx=1
examples/rmsnorm_residual.fuse M=2 N=1023
examples/softmax.fuse M=2 N=1541 --offset x=5 --schedule row:cluster=2,threads=64
examples/softmax.fuse M=3 N=1123 --sms 1 --schedule row:cluster=8,threads=64,ctas=1
examples/softmax.fuse M=3 N=385 --offset x=5 --schedule row:cluster=4,threads=160,blocks=1
examples/softmax_bwd.fuse M=2 N=1541 --offset y=5 --schedule row:cluster=2,threads=64
examples/softmax_bwd.fuse M=2 N=9001 --sms 1 --schedule row:threads=32
examples/softmax_bwd.fuse M=2 N=9007 --sms 1 --schedule row:threads=32
examples/softmax_bwd.fuse M=2 N=9000 --sms 1 --offset dx=1 --schedule row:threads=32
examples/layernorm_bwd.fuse M=9 N=2305 --sms 1 --schedule grid-stride:threads=288
examples/layernorm_bwd.fuse M=14 N=2304 --sms 1 --schedule warp-specialized:threads=288
examples/layernorm_bwd.fuse M=14 N=2309 --sms 1 --schedule warp-specialized:cluster=2,threads=288
examples/softmax.fuse M=170 N=1028 --sms 1 --schedule warp-specialized:cluster=2
tests/cases/places.fuse M=120 N=64
tests/cases/places.fuse M=1500 N=1088 --schedule row:cluster=2
tests/cases/places.fuse M=3 N=1152 --schedule row:cluster=2
tests/cases/places.fuse M=1030 N=2048 --schedule row:cluster=2
examples/softmax_causal.fuse B=1 H=1 Q=700 K=2048
examples/layernorm.fuse M=289 N=24 --sms 1 --schedule row:ctas=1
examples/layernorm.fuse M=3 N=1024
examples/layernorm.fuse M=3 N=1030
examples/layernorm.fuse M=3 N=2048 --schedule row:cluster=2,threads=64,even_moments=1
examples/layernorm.fuse M=3 N=1987
examples/layernorm.fuse M=3 N=1987 --schedule row
examples/layernorm.fuse M=3 N=520 --schedule row:threads=128
examples/layernorm.fuse M=2 N=520 --schedule row:threads=96
examples/softmax.fuse M=2 N=520 --schedule row:threads=96
examples/layernorm.fuse M=2 N=528 --offset x=3 --offset y=1
examples/layernorm.fuse M=40 N=1032 --sms 1 --schedule warp-specialized:cluster=2
examples/layernorm.fuse M=2 N=1000 --offset x=1 --schedule row:reads=2
examples/layernorm.fuse M=3 N=1001 --schedule row:reads=2
examples/layernorm.fuse M=3 N=512 --schedule row:reads=2
examples/softmax_bwd.fuse M=2 N=1000 --offset y=1 --schedule row:reads=2
examples/layernorm.fuse M=5 N=1208 --schedule row:bulk=1,ctas=2
examples/softmax_bwd.fuse M=5 N=2056 --offset y=3 --schedule row:bulk=1,cluster=2,ctas=2,threads=64
examples/softmax_bwd.fuse M=3 N=1001 --schedule row:reads=2
examples/rmsnorm.fuse M=5 N=1056 --sms 1 --schedule row:cluster=2,threads=64
examples/softmax.fuse M=60 N=1040 --sms 1 --schedule row:cluster=2,stages=3,threads=64
examples/layernorm.fuse M=60 N=1040 --sms 1 --schedule row:cluster=2,stages=1,threads=64
examples/rmsnorm.fuse M=60 N=1056 --sms 1 --schedule row:cluster=2,stages=1,threads=64
examples/softmax_bwd.fuse M=64 N=1040 --sms 1 --stride y=1041,1 --schedule row:cluster=2,stages=1
examples/layernorm.fuse M=60 N=1040 --sms 1 --schedule row:cluster=2,reuse=1,threads=64
examples/layernorm_bwd.fuse M=40 N=1024 --sms 1 --schedule grid-stride:stages=2,reuse=1
tests/cases/wide_group.fuse M=5 N=3361 --sms 1 --schedule warp-specialized:cluster=16
tests/cases/three_phases.fuse M=60 N=1040 --sms 1 --schedule row:cluster=2,stages=1
examples/rmsnorm_quantized.fuse M=3 N=3000
examples/layernorm.fuse M=2 N=1512 --offset gamma=1 --schedule row:threads=64
tests/cases/moments_beside.fuse M=3 --schedule row:threads=96
examples/layernorm_channels.fuse B=2 C=37 S=21
examples/layernorm_channels.fuse B=1 C=20 S=9 --schedule row:threads=32,rows=4,lanes=8,vec=2
examples/layernorm_channels.fuse B=1 C=37 S=24 --schedule row:threads=8,rows=4,lanes=8,vec=4
tests/cases/beside_twice.fuse B=1 --schedule row:threads=32,rows=4,lanes=8,vec=2
tests/cases/moments_beside.fuse M=3 N=1024 --schedule row:threads=64
tests/golden/column.fuse M=1111 N=77 --sms 40
tests/cases/moments_beside.fuse M=3 N=1032 --schedule warp-specialized:cluster=2
tests/golden/column_moments.fuse M=57 --sms 1 --schedule column:ctas=1,rows=16
tests/golden/column_moments.fuse M=5 --sms 1 --schedule column:ctas=1,rows=16
tests/cases/large_mean_columns.fuse M=101 --sms 1 --outputs v_by --schedule column:ctas=1,rows=8
tests/cases/moments_extremes_columns.fuse M=37 --sms 1 --outputs mu,v --schedule column:exact=1,threads=16,rows=8,stages=8,ctas=2,per_sm=8,axes=last,row=ring,live=8
tests/cases/moments_by_group.fuse B=17 T=500 C=8 --schedule column:exact=1,threads=2,rows=16,stages=8,ctas=17,per_sm=32,reuse=1,axes=last,live=32,part=32
tests/cases/moments_by_group.fuse B=2 T=500 C=8 --schedule column:exact=1,threads=2,rows=16,stages=8,ctas=17,per_sm=32,reuse=1,axes=last,live=32,part=32
tests/golden/group_sums.fuse B=2 T=129 C=96
tests/golden/group_sums.fuse B=3 T=193 C=129
tests/golden/group_sums.fuse B=9 T=197 C=96 --sms 1
tests/golden/group_sums.fuse B=1 T=130 C=2056 --schedule column:exact=1,threads=160,rows=3,stages=5,per_sm=1,row=ring,live=1,part=64,open=1
tests/golden/group_sums.fuse B=2 T=1100 C=24 --schedule column:exact=1,threads=4,rows=8,stages=8,ctas=18,per_sm=16,row=ring,live=16,part=64
tests/golden/group_sums.fuse B=9 T=1100 C=136 --sms 1 --schedule column:exact=1,threads=4,rows=8,stages=1,ctas=18,per_sm=16,live=16,part=64
tests/cases/moments_by_group.fuse B=9 T=1100 C=136 --sms 1 --outputs v --schedule column:exact=1,threads=4,rows=8,stages=1,ctas=18,per_sm=16,axes=last,live=16,part=64
tests/cases/odd_images.fuse
tests/cases/odd_images.fuse B=40 S=131 --sms 1 --schedule row:threads=64,axes=last
tests/cases/odd_pixels.fuse --schedule grid-stride:threads=4,rows=32,lanes=2
tests/cases/odd_pixels.fuse B=1 S=64
examples/adaln_bwd.fuse B=18 T=1100 C=17 --schedule grid-stride:exact=1,threads=8,rows=8,ctas=18,live=32,part=64,open=1
examples/adaln_bwd.fuse B=17 T=1100 C=17 --schedule grid-stride:exact=1,threads=8,rows=8,ctas=17,live=32,part=64,open=1
examples/adaln_bwd.fuse B=2 T=131 C=1152 --sms 1
examples/adaln_bwd.fuse B=2 T=132 C=1152 --sms 1
examples/adaln_bwd.fuse B=3 T=200 C=1152
examples/adaln_bwd.fuse B=3 T=700 C=40
examples/adaln_bwd.fuse B=3 T=7 C=40
examples/adaln_bwd.fuse B=3 T=17 C=40
examples/adaln_bwd.fuse B=3 T=33 C=17
examples/adaln_bwd.fuse B=13 T=48 C=40 --sms 1
tests/cases/scalars_of_groups.fuse
tests/cases/scalars_of_groups.fuse B=40 T=3 --sms 1
tests/golden/group_sums.fuse B=4 T=130 C=2056 --schedule column:ctas=2,rows=1
tests/cases/held_by_group.fuse B=2 C=8192 T=70 --sms 2
tests/cases/held_by_group.fuse B=2 C=8192 T=1 --sms 2
tests/cases/many_of_groups.fuse B=3 T=67 C=640 --sms 2
tests/cases/many_of_groups.fuse B=3 T=5 C=640 --sms 2
tests/cases/many_of_groups.fuse B=8 T=67 C=640 --sms 2
tests/cases/pooled_by_mask.fuse C=264 T=300 B=7 --sms 4 --schedule row:exact=1,threads=512,reads=2,axes=last+column:exact=1,axes=last,threads=32,rows=4,tiles=1,stages=3,per_sm=2,live=2,part=64
tests/cases/pooled_by_mask.fuse C=264 T=3 B=3 --sms 1 --schedule row:exact=1,threads=512,reads=2,axes=last+column:exact=1,axes=last,threads=32,rows=4,tiles=1,stages=3,per_sm=2,live=2,part=64
tests/cases/pooled_by_mask.fuse C=1032 T=70 B=9 --sms 1 --schedule row:exact=1,threads=512,reads=2,axes=last+column:exact=1,axes=last,threads=16,rows=8,tiles=2,live=2,part=64
tests/golden/group_sums.fuse B=18 T=1100 C=24 --schedule column:exact=1,threads=4,rows=8,stages=8,ctas=18,per_sm=16,row=ring,live=16,part=64
examples/softmax_bwd.fuse M=20 N=16648 --sms 32 --schedule warp-specialized:cluster=32,threads=64
examples/softmax_bwd.fuse M=20 N=16648 --sms 32 --schedule warp-specialized:cluster=32,threads=64,lag=2
tests/cases/three_phases.fuse M=9 N=16640 --sms 32 --schedule warp-specialized:cluster=32,threads=64,ctas=32
tests/cases/wide_group.fuse M=12 N=32777 --sms 64 --schedule warp-specialized:cluster=64,threads=64
tests/long/three_reads.fuse M=9 N=16640 --sms 32 --schedule row:cluster=32,threads=64,ctas=32
tests/long/flat.fuse N=16648 --sms 32 --schedule row:cluster=32,threads=64
examples/batchnorm.fuse B=9 C=8 S=48 --sms 2 --schedule pointwise:exact=1,threads=32,axes=last+row:exact=1,threads=64,cluster=4,reads=2,axes=last
examples/batchnorm_bwd.fuse B=9 C=8 S=49 --sms 2 --schedule pointwise:exact=1,threads=32,axes=wider+row:exact=1,threads=64,cluster=4,reads=2,axes=wider
examples/batchnorm_bwd.fuse B=9 C=8 S=49 --sms 2 --stride x=800,100,1 --stride dx=800,100,1 --schedule pointwise:exact=1,threads=32,axes=wider+row:exact=1,threads=64,cluster=4,reads=2,axes=wider
tests/cases/wide_taps.fuse --sms 2
tests/cases/groups_behind.fuse --sms 2
tests/cases/groups_behind.fuse --sms 2 --stride x=2000,6,1
tests/cases/groups_behind.fuse Q=40 --sms 1 --stride w=2000,6,1
tests/cases/groups_behind.fuse K=600 M=1100 --sms 2 --schedule row:reads=2
tests/cases/groups_behind.fuse K=1100 M=3 --sms 2 --schedule row:reads=2
END
}

shards=$(nproc)
rm -f build/mutants/*.out
echo "$(list_cases | wc -l) cases:" >&2
trap 'kill "${pids[@]}"; exit 1' INT TERM
for ((shard = 0; shard < shards; shard++)); do
    list_cases | build/mutate "$shard" "$shards" >build/mutants/$shard.out &
    pids[shard]=$!
done
status=0
for pid in "${pids[@]}"; do wait "$pid" || status=1; done
# what one shard's cases notice need not be noticed by another's; all tell of a broken case
cat build/mutants/*.out | awk -F'|' '
{ key = $2 "|" $3 "|" $4; line[NR] = $0; of[NR] = key; if (/^killed/) noticed[key] = 1 }
END {
    for (i = 1; i <= NR; i++)
        if (line[i] ~ /^broken/ ? !told[of[i]]++ : line[i] !~ /^survived/ || !noticed[of[i]]) print line[i]
}' >build/mutants/table
awk -F'|' '
NR == FNR { table[NR] = $0; next }
{
    for (i in table)
        if (table[i] ~ "^explained *[|] " $1 " " && index(table[i], $2) && index(table[i] ".", $3 == "" ? "." : $3))
            next
    print "stale     | " $1 " | " $2 " | " $3
}' build/mutants/table tests/mutants.txt >build/mutants/stale
cat build/mutants/stale >>build/mutants/table
grep -v '^killed\|^explained' build/mutants/table
awk -F' *[|] *' '
/^(stale|idle|broken) / { bad++; next }
{ all[$2]++; if ($1 == "killed") killed[$2]++; else if ($1 == "explained") explained[$2]++; else bad++ }
END {
    printf "%-14s %8s %8s %10s\n", "broken", "mutants", "killed", "explained"
    for (r in all) {
        printf "%-14s %8d %8d %10d\n", r, all[r], killed[r], explained[r] | "sort"
        n += all[r]; k += killed[r]; e += explained[r]
    }
    close("sort")
    printf "%-14s %8d %8d %10d   %.1f %% of those that matter\n", "all", n, k, e, (n > e ? 100 * k / (n - e) : 100)
    exit bad > 0
}' build/mutants/table || status=1
exit $status
