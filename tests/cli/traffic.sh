#!/bin/bash
# What explain says of graphs that read little of what they name: picked elements, ids of rows,
# narrow rows, infinite maxima.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

cat >picks.fuse <<'END'
graph picks[M = 64, N = 4096](x : bf16[M, N], i : i64[M], t : f32 = 0.5) -> (
    plain : f32[M], scaled : f32[M], divided : f32[M], negated : f32[M], turned : f32[M], within : f32[M], left : f32[M], highest : f32[M]) {
    plain   = sum[N](where(index(N) == i, x, 0.0))
    scaled  = sum[N](where(index(N) == i, x * t, 0.0))
    divided = sum[N](where(index(N) == i, x / 2.0, 0.0))
    negated = -sum[N](where(i == index(N), bf16(-x), 0.0) * 3.0)
    turned  = sum[N](where(index(N) != i, 0.0, x))
    within  = mean[N](where(i >= 7 && index(N) == i - 7, x, 0.0))
    left    = sum[N](3.0 * where(index(N) != i, 0.0, -x))
    highest = max[N](where(index(N) == i, x, -inf))
}
END
for output in plain scaled divided negated turned within left highest; do
    expect 0 '^traffic: at least 640 bytes read' explain picks.fuse --outputs $output
done
expect 0 '^within .* ok$' run picks.fuse M=9 N=40 --device sim --verify

# what a row reduces to, for several ids of each
ids=$root/tests/cases/ids_of_rows.fuse
expect 0 '^traffic: at least 272.4 kB read' explain "$ids" M=64 K=16 N=2048 --outputs logp
also 'computes m, l'
also '^kernels: 2'
also 'l: several rows share the result'
expect 0 'computes mean\[C\](g) + eps$' explain "$root/tests/bench/tiles/grn.fuse" --arch sm_90a
# what several rows share is computed where it is reduced, not again for each of their elements
expect 0 '^ *float .*rstd_value' emit "$root/examples/group_norm_nhwc_silu.fuse" --arch sm_90a --prelude include
[ "$(grep -c 'rsqrtf' stdout)" = 2 ] || fail 'group_norm_nhwc_silu computes rsqrt in more than one kernel'
cat >scaled_ids.fuse <<'END'
graph scaled_ids[M = 64, K = 16, N = 2048](x : bf16[M, N], t : bf16[M, K], n : i64[M, K], w : bf16[K, N]) -> (
    y : bf16[M, K], c : f32[M, K], z : bf16[M, K, N]) {
    rstd = rsqrt(mean[N](x * x))
    y = t * rstd
    c = sum[N](where(index(N) < n, x, 0.0))
    z = x * w * rstd
}
END
expect 0 '^traffic: at least 264.2 kB read' explain scaled_ids.fuse --outputs y
expect 0 '^traffic: at most 4.2 MB read' explain scaled_ids.fuse --outputs c    # a row for each of its 16 sums
also 'read again for each of the rows'
expect 0 '^kernels: 1' explain scaled_ids.fuse --outputs z    # where each element is needed anyway
for outputs in y c z y,c,z; do
    expect 0 ' ok$' run scaled_ids.fuse M=3 K=2 N=40 --device sim --verify --outputs $outputs
done

# rows whose largest element is infinite
cat >infinite.fuse <<'END'
import "std"
graph infinite[M = 3, N = 4](kind : i64[M]) -> (y : f32[M], p : f32[M, N], l : f32[M, N]) {
    x = where(kind == 0, -inf, where(kind == 1 && index(N) == 2, inf, f32(index(N))))
    y = logsumexp[N](x)
    p = softmax[N](x)
    l = log_softmax[N](x)
}
END
expect 0 'together with largest' explain infinite.fuse --outputs y
also 'reductions: 2, in 2 phases'
for output in t u v w p; do
    expect 0 'together with m$' explain "$root/tests/cases/online_at.fuse" --outputs $output
done
sed 's/kind == 0/kind != 3/; s/\[M = 3/[M = 1/' infinite.fuse >low.fuse
sed 's/kind == 0/kind == 3/; s/kind == 1/kind != 3/; s/\[M = 3/[M = 1/' infinite.fuse >high.fuse
for device in cpu sim; do
    expect 0 '^y .* -inf ' run low.fuse --device $device
    also '4 of 4 elements are NaN'
    expect 0 '^y .* inf  .* inf ' run high.fuse --device $device
    also '4 of 4 elements are NaN'
done

# bytes that persist are those of a tensor as it is stored
cat >narrow_rows.fuse <<'END'
graph narrow_rows[M = 8, N = 64](x : bf16[M, N], b : bool[M], h : bf16[M], d : f64[M]) -> (y : bf16[M, N]) {
    y = where(b, x - mean[N](where(b, x * h * f32(d), 0.0)), x * h * f32(d))
}
END
expect 0 ' b  *1 byte a row' explain narrow_rows.fuse
also ' h  *2 bytes a row'
also ' d  *8 bytes a row'
expect 0 '"name": "b", "bytes_per_row": 1}' explain narrow_rows.fuse --json

finish
