#!/bin/bash
# run: files of tensors that go in and come out, seeds, strides, and --verify.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

expect 0 '^mean .* <0.1% ' run "$root"/examples/layernorm.fuse M=3 N=300 --device cpu --verify
expect 0 'no kernel ran' run "$root"/examples/softmax.fuse M=4 N=8 --device cpu --verify

# tensors
x='"x":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}'
w='"w":{"dtype":"F32","shape":[3],"data_offsets":[24,36]}'
e='"eps":{"dtype":"F32","shape":[],"data_offsets":[36,40]}'
tensors good "{$x,$w,$e}" 40
tensors no_eps "{$x,$w}" 36
tensors missing "{$x}" 24
tensors extra "{$x,$w,\"epz\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[36,40]}}" 40
tensors other "{$x,$w,\"bias\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[36,40]}}" 40
tensors dtype "{\"x\":{\"dtype\":\"F16\",\"shape\":[2,6],\"data_offsets\":[0,24]},$w}" 36
tensors rank "{\"x\":{\"dtype\":\"F32\",\"shape\":[6],\"data_offsets\":[0,24]},$w}" 36
tensors shape "{\"x\":{\"dtype\":\"F32\",\"shape\":[3,2],\"data_offsets\":[0,24]},$w}" 36
tensors truncated "{$x,$w}" 30
tensors overlap "{$x,\"w\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[12,24]}}" 24
tensors huge "{$x,\"w\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904],\"data_offsets\":[24,36]}}" 36
printf 'no tensors' >text
: >nothing
expect 0 '^y .*\[2, 3\]' run one.fuse --in good --device cpu --verify
expect 0 '^y ' run one.fuse --in no_eps --set eps=1e-5 --device cpu
expect 2 'would replace' run one.fuse --in no_eps --set eps=1e-5 --out ./no_eps --device cpu
expect 0 '^y ' run one.fuse --in no_eps --set eps=1e-5 --device cpu
expect 1 'eps' run one.fuse --in no_eps --device cpu
expect 1 'the input w : .*\[N\] is missing' run one.fuse --in missing --device cpu
expect 1 'epz' run one.fuse --in extra --device cpu
expect 1 'hint: did you mean eps' run one.fuse --in extra --device cpu
expect 1 'hint: there are x, w, eps' run one.fuse --in other --device cpu
expect 2 'twice' run one.fuse --in good --in other --device cpu
expect 1 'F16' run one.fuse --in dtype --device cpu --set eps=1
expect 1 'has the shape \[6\], the graph wants \[M, N\]' run one.fuse --in rank --device cpu --set eps=1
expect 1 'N = ' run one.fuse --in shape --device cpu --set eps=1
expect 1 'M = 2' run one.fuse M=5 --in good --device cpu
for file in truncated overlap huge text nothing absent .; do
    expect 1 '[a-z]' run one.fuse --in $file --device cpu --set eps=1 --out leftover
done
[ -e leftover ] && fail 'an output file from a failed run'

# outputs
expect 0 '' run one.fuse --in good --device cpu --out result
expect 1 'x : .* is missing\|no input' run one.fuse --in result --device cpu
expect 3 'cannot write' run one.fuse --device cpu --out absent/result
expect 3 'cannot write' run one.fuse M=100000 N=100000 --device cpu --out absent/result    # before there is anything to write
mkdir directory
expect 3 'cannot write directory: Is a directory' run one.fuse M=100000 N=100000 --device cpu --out directory
for command in bench tune; do
    expect 3 'cannot write absent/result' $command one.fuse -o absent/result
done
echo kept >existing
expect 3 'memory' run one.fuse M=100000000 N=100000 --device cpu --out existing
[ "$(cat existing)" = kept ] || fail 'a failed run has changed the file of its outputs'
for place in cpu sim; do
    expect 2 'make elements of the output overlap' run one.fuse --stride y=4,1 --device $place --set eps=1
done
echo 'graph g[M = 4, N = 8](x : f32[M, N]) -> (y : f32[M, N]) { y = x * rsqrt(x) }' >nan.fuse
expect 0 'of 32 elements are NaN' run nan.fuse --device cpu --verify
printf 'graph g[N = 8](x : f32[N]) -> (y : f32[N]) {\n    y = log(-1 - abs(x))\n}\n' >nowhere.fuse
expect 0 ' unchecked$' run nowhere.fuse --device cpu --verify
# an element that must be NaN tells nothing of one that may be any value
printf 'graph g[N = 64](x : f32[N]) -> (y : f32[N]) {\n    y = log(x * 0.1 - x / 10.0)\n}\n' >near.fuse
expect 0 ' unchecked$' run near.fuse --device cpu --verify
also '64 of 64 elements are unchecked'
expect 3 'cannot write' one.fuse -o absent/out.cu
expect 0 '' one.fuse -o out.cu
grep -q __global__ out.cu || fail '-o wrote no kernel'
ls -- *.cu.* result.* existing.* >/dev/null 2>&1 && fail 'a temporary file was left'
if [ -w /dev/full ]; then
    tests=$((tests + 1))
    "$fusec" one.fuse >/dev/full 2>stderr
    [ $? = 3 ] || fail 'a full stdout is not exit 3'
fi
tests=$((tests + 2))
"$fusec" run one.fuse --seed 3 --device cpu >first 2>/dev/null
"$fusec" run one.fuse --seed 3 --device cpu >second 2>/dev/null
"$fusec" run one.fuse --seed 4 --device cpu >third 2>/dev/null
cmp -s first second || fail 'the same seed gives another result'
cmp -s first third && fail 'another seed gives the same result'
expect 0 'ok' run one.fuse M=5 N=6 --stride x=11,1 --offset x=3 --verify --device cpu
expect 0 'ok' run one.fuse M=5 N=6 --stride x=0,1 --verify --device cpu
expect 0 'ok' run one.fuse M=5 N=6 --stride y=9,1 --offset y=5 --verify --device cpu

finish
