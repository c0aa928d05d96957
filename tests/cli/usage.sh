#!/bin/bash
# Help, commands and options, and what is wrong about them: names, sizes, scalars. All of that is
# exit status 2, and a hint.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

echo 'graph g[M, N](x : f32[M, N]) -> (y : f32[M]) { y = sum[N](x) }' >sizeless.fuse

# help, commands, options
expect 0 'fusec [0-9]' --version
expect 0 'usage:' --help
expect 0 'fusec [0-9]' version
expect 0 'usage:' help
expect 0 'usage: fusec run' help run
for command in emit check explain run bench tune fmt grad gradcheck build plan cache completions; do
    expect 0 "usage: fusec $command" $command --help
done
expect 0 '--device NAME  *cuda, the default' tune --help
grep -q 'cpu' stdout && fail 'tune --help: a device that tune refuses'
expect 2 'usage'
expect 2 'FILE' emit
expect 2 'unknown option' one.fuse --arhc sm_80
expect 2 'did you mean' one.fuse --grahp one
expect 2 'hint: did you mean --arch' one.fuse --ARCH=sm_80
expect 2 'hint: `fusec emit --help` lists its options' one.fuse -q
expect 2 'hint: it is a command: fusec explain FILE' --explain one.fuse
expect 2 'hint: write --emit=ptx' one.fuse --ptx
expect 2 'hint: a scalar is set by --set eps=1e-3' run one.fuse --eps=1e-3
expect 2 'hint: write --device sim' run one.fuse --sim --verify
expect 2 'unknown command' exlpain one.fuse
expect 2 'hint: did you mean M' run one.fuse m=4
expect 2 'architecture' one.fuse --arch sm_12
expect 2 '--memory needs --arch' explain one.fuse --memory 4800
for rate in 0 -5 4.8 fast; do expect 2 "cannot take '$rate'" one.fuse --arch sm_90a --memory=$rate; done
expect 2 'no option --candidates' emit one.fuse --candidates
expect 2 'cannot read' nothing.fuse
expect 2 'no size' sizeless.fuse
expect 2 'no size' run sizeless.fuse
expect 2 'no axis' one.fuse Q=3
expect 2 'no axis' run one.fuse Q=3
expect 2 'negative' one.fuse M=-1
expect 2 'without spaces' run one.fuse M = 64
expect 2 "'foo' is not a number for scalar eps" run one.fuse --set eps=foo
expect 2 'no family' run one.fuse --schedule nothing --device cpu
expect 2 'no family stands before the keys: write row:threads=64,rows=2, or another of pointwise, row, ' one.fuse --schedule threads=64,rows=2
[ -z "$(tail -c 1 stderr)" ] || fail 'a message ends without the end of its line'
expect 2 'cannot have 123456789012345678901234567890 elements' one.fuse M=123456789012345678901234567890
expect 2 'size' one.fuse M=2x
expect 2 'axis N is given twice' one.fuse N=4 N=5
grep -q 'for another size run fusec again' stderr || fail 'several sizes of an axis: it is not told that a run has one'
expect 2 "'4,5' is not a size for axis N" one.fuse N=4,5
grep -q 'for another size run fusec again' stderr || fail 'a list of sizes: it is not told that a run has one'
expect 2 'axis N is given twice' run one.fuse N=4 M=2 N=4
expect 2 'no graph' one.fuse --graph tow
expect 2 'no output' one.fuse --outputs y,t
expect 2 'no output' run one.fuse --outputs t

# scalars
echo 'graph g(k : i32, b : bool) -> (y : i32[]) { y = where(b, k, 0) }' >scalars.fuse
echo 'graph g(n : u8) -> (y : u8[]) { y = n }' >bytes.fuse
echo 'graph g(n : i64) -> (y : i64[]) { y = n }' >long.fuse
echo 'graph g(n : i64 = -9007199254740993) -> (y : i64[]) { y = n }' >inexact.fuse
printf 'graph h[N = 4](x : f32[N], h : f16) -> (y : f32[N]) { y = x * h }\n' >narrow.fuse
expect 0 '^y ' run narrow.fuse --device cpu --set h=1e9
grep -q 'scalar h: f16 cannot hold 1e+09: it becomes inf' stderr || fail 'a scalar that becomes infinite is not told'
expect 2 'scalar eps is given twice' run one.fuse --set eps=1 --set eps=2
expect 2 "'1e400' is too large for scalar eps" run one.fuse --set eps=1e400
expect 2 'no scalar' run one.fuse --set esp=1
expect 2 'not a value for k' run scalars.fuse --set k=1.5
expect 2 'not a value for k' run scalars.fuse --set k=inf
expect 2 'not a value for b' run scalars.fuse --set b=2
expect 2 'not a value for n' run bytes.fuse --set n=300
expect 0 '^y ' run long.fuse --set n=9007199254740992 --device cpu
expect 2 'beyond 2^53' run long.fuse --set n=9007199254740993 --device cpu
expect 1 'beyond 2^53' check inexact.fuse
expect 0 '^y .* 7 ' run scalars.fuse --set k=7 --set b=true --device cpu

# what a command or a device has no use for
expect 2 'hint: it is a tensor: give it by --in FILE.safetensors' run "$root"/examples/rmsnorm.fuse M=3 N=8 --device cpu --set x=1
expect 2 '^fusec: error: --device cpu has no --arch' run "$root"/examples/rmsnorm.fuse M=3 N=8 --device cpu --arch sm_80
expect 2 '^fusec: error: --sms needs --device sim' run "$root"/examples/rmsnorm.fuse M=3 N=8 --device cpu --sms 3
expect 2 'no size' tune sizeless.fuse
expect 2 'no axis' tune one.fuse Q=3
expect 2 'no output' tune one.fuse --outputs t
expect 2 'no --device cpu' tune one.fuse --device cpu
expect 2 'no --device tpu' tune one.fuse --device tpu
expect 2 'no option --schedule' tune one.fuse --schedule row
expect 2 'no option --no-tuning' tune one.fuse --no-tuning
expect 2 'sms' run one.fuse --device sim --sms 0

# strides
expect 2 'axes' run one.fuse --stride x=1
expect 2 'last axis' run one.fuse M=5 N=6 --stride x=12,2
expect 2 'no input' run one.fuse --offset z=1

finish
