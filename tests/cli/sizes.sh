#!/bin/bash
# Sizes of axes: none, one, odd, missing, and those whose product is no tensor's.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

printf 'graph e[A = 2, B = 2, C = 2](x : f32[A, B, C]) -> (y : f32[A, B, C]) { y = x }\n' >empty.fuse
expect 0 '4611686018427387904, 4' run empty.fuse A=0 B=4611686018427387904 C=4 --device cpu
printf '\114\0\0\0\0\0\0\0{"x":{"dtype":"F32","shape":[4611686018427387904,4,0],"data_offsets":[0,0]}}' >empty.safetensors
expect 0 '4611686018427387904, 4, 0' run empty.fuse --in empty.safetensors --device cpu
expect 3 'the strides reach beyond the address space' run empty.fuse --device sim --offset x=9223372036854775807
sed 's/M = 4, N = 8/M, N/' one.fuse >open.fuse
expect 0 'constexpr int N = 64' open.fuse N=64 --arch sm_90a
mv stdout open.cu
expect 0 '' open.fuse N=64 M=777 --arch sm_90a
cmp -s stdout open.cu || fail 'the text depends on the number of rows'
expect 2 "axis 'N' has no size" open.fuse M=64
expect 2 "axis 'M' has no size" explain open.fuse N=64
expect 2 "axis 'N' has no size: give N=SIZE" run open.fuse --device cpu    # the second that lacks one
expect 1 'overflow' one.fuse M=9223372036854775807
for sizes in 'M=0' 'M=1' 'N=0' 'N=1' 'M=0 N=0' 'M=3 N=7' 'M=1 N=1'; do
    # shellcheck disable=SC2086  # one or two arguments
    expect 0 'ok' run one.fuse $sizes --verify --device cpu
done
expect 3 'memory' run one.fuse M=100000000 N=100000 --device cpu

# sizes whose product is no tensor's
cat >apart.fuse <<'END'
graph apart[A = 65536, B = 65536, C = 65536, D = 65536](a : f32[A], b : f32[B], c : f32[C], d : f32[D]) -> (norm : f32[]) {
    norm = sqrt(sum[A](a * a) + sum[B](b * b) + sum[C](c * c) + sum[D](d * d))
}
END
expect 0 'global__' apart.fuse --arch sm_90a
expect 0 '^norm ' run apart.fuse --device cpu
expect 0 ' ok$' run apart.fuse --device sim --verify A=64 B=33 C=5 D=40
clip=$root/tests/cases/clip_by_norm.fuse
expect 0 'walks rows A, columns B;' explain "$clip" A=4096 B=14336 C=4096 D=4096 E=32000
expect 0 'traffic: at least 38.4 MB read and 38.4 MB' explain "$root/tests/cases/norms_of_three.fuse" A=100000 B=100000 C=100000 N=64
also 'walks rows B, columns N;'
also 'walks rows C, columns N;'
cat >exabytes.fuse <<'END'
graph exabytes[A = 4611686018427387904, B = 2, C = 0](x : u8[A, B], y : u8[A, B], w : u8[A, B, C]) -> (z : u8[B], e : u8[A, B, C]) {
    z = u8(max[A](f32(x + y)))
    e = w
}
END
expect 1 "the sizes of 'x' overflow" explain exabytes.fuse
expect 0 'read 9223372036854775807, write 1 bytes' emit exabytes.fuse B=1 --emit=analysis
expect 0 'write 0 bytes' emit exabytes.fuse B=1 --emit=analysis --outputs e
cat >nothing.fuse <<'END'
graph nothing[B = 9000000000000000000, C = 9000000000000000000, A = 0](x : f32[B, C, A], w : f32[C, A]) -> (
    y : f32[B, C, A], s : f32[A], t : f32[C, A]) {
    y = x * 2.0
    s = sum[B, C](x)
    t = w * 2.0
}
END
expect 0 ' 0 run at these sizes' explain nothing.fuse
expect 0 ' ok$' run nothing.fuse --device sim --verify

finish
