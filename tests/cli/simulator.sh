#!/bin/bash
# run --device sim: every kind of plan is right, what is wrong is told, and what cannot be judged is
# not called right.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# the schedule of these sums: others have other bits
plan=column:exact=1,threads=2,rows=64,live=16,part=256+column:exact=1,threads=8,rows=64,stages=5,per_sm=2,row=ring,live=2,open=1
# a group's sums are the same bits among few groups and among many
for groups in 1 2 50; do
    first_build || [ $groups = 2 ] || continue
    expect 0 ' 735608d3265ad50a$' run "$root"/tests/cases/first_of_groups.fuse B=$groups --device sim --schedule "$plan"
done
rides=grid-stride:exact=1,threads=2,rows=16,stages=8,ctas=20,per_sm=32,reuse=1,live=32,part=64+column:exact=1,threads=2,rows=64,stages=8,per_sm=8,reuse=1,live=8
for groups in 1 2 30 40; do
    first_build || [ $groups = 2 ] || continue
    expect 0 ' 5ea457f1b1db0e79$' run "$root"/tests/cases/first_of_rides.fuse B=$groups --device sim --schedule "$rides"
done
# what cannot be compared is not called right
echo 'graph g[N = 4](x : f32[N]) -> (y : f32[N]) { y = 1 / (sin(x) * sin(x) + cos(x) * cos(x) - 1) }' >anything.fuse
expect 0 '  unchecked$' run anything.fuse --device sim --verify
expect 0 '4 of 4 elements are unchecked' run anything.fuse --device cpu --verify
echo 'graph g[N = 4](x : f32[N]) -> (y : f32[N]) { y = log(where(index(N) == 1, exp(x) - exp(x + 1e-9), exp(x))) }' >some.fuse
expect 0 '  partly unchecked$' run some.fuse --device sim --verify
also '1 of 4 elements are unchecked'
# a kernel that is broken behind the printer's back: of a graph with steps, too, each element is judged by itself
cat >stepped.fuse <<'END'
graph stepped[M = 32, N = 256](x : f32[M, N], s : f32[N]) -> (y : f32[M, N]) { y = round(x * s) * 0.25 }
END
cat >breaks <<'END'
#!/bin/sh
for word; do case $word in */unit.cpp) sed -i "s|\(y_out.i. = \)\(.*\);|\1$BROKEN;|" "${word%unit.cpp}kernel.cu" ;; esac done
exec g++ "$@"
END
chmod +x breaks
BROKEN='\2' CXX=$PWD/breaks expect 0 '  ok$' run stepped.fuse --device sim --verify
for BROKEN in '0.0f / 0' '1.0f / 0' '(\2) * 1.009f' 'col + i == N - 1 ? 12345 : (\2)' 'col + i == 7 ? 0.0f / 0 : (\2)'; do
    BROKEN=$BROKEN CXX=$PWD/breaks expect 4 '' run stepped.fuse --device sim --verify
    also '  WRONG$'
done
# and of a backward pass, whose elements are compared with the largest of their row
"$fusec" grad "$root/examples/rmsnorm_quantized.fuse" --of q,scale -o largest.fuse
cat >breaks <<'END'
#!/bin/sh
for word; do case $word in */unit.cpp) sed -i "s|\(bool is_max = \)\(.*\);|\1$BROKEN;|" "${word%unit.cpp}kernel.cu" ;; esac done
exec g++ "$@"
END
BROKEN='\2' CXX=$PWD/breaks expect 0 '^dx .* ok$' run largest.fuse M=9 N=256 --device sim --verify
also '^dgamma .* ok$'
for BROKEN in false true 'thread_in_row == 0' 't1 >= c1 * 0.7f' 't1 == c1 * 1.01f'; do
    BROKEN=$BROKEN CXX=$PWD/breaks expect 4 '' run largest.fuse M=9 N=256 --device sim --verify
    also '^dx .* WRONG$'
done
expect 0 '^few .* ok$' run "$root/tests/cases/named_few.fuse" --device sim --verify
# 1 + 2^-8 + 2^-40 is a tie for bf16 only if f32 has rounded it before
echo 'graph narrow[N = 8](x : f64[N], s : f64 = 1.00390625000091) -> (y : bf16[N]) { y = x * 0 + s }' >narrow.fuse
expect 0 '1.00781 ' run narrow.fuse --device cpu
expect 0 '1.00781 ' run narrow.fuse --device sim
CXX=/absent expect 3 'CXX names, cannot be run: /absent' run one.fuse --set eps=1 --device sim
TMPDIR=/absent expect 3 'cannot make a directory in /absent .*TMPDIR' run one.fuse --set eps=1 --device sim
FUSEC_SIM_KEEP=/absent/x expect 3 'SIM_KEEP names, /absent/x: No such file' run one.fuse --set eps=1 --device sim
if command -v g++ >/dev/null || command -v clang++ >/dev/null; then
    expect 0 'ok' run "$root/examples/layernorm_bwd.fuse" M=13 N=96 --device sim --verify
    expect 0 'ok' run one.fuse M=5 N=7 --device sim --sms 2 --seed 5 --stride x=9,1 --verify
    expect 2 'last axis' run one.fuse M=5 N=6 --stride x=12,2 --device sim
    {
        echo "graph g[M = 4](x : f32[M]) -> ($(printf 'y%d : f32[M], ' {1..70}) z : f32[M]) { z = x"
        printf '    y%d = x\n' {1..70}
        echo '}'
    } >outputs.fuse
    expect 0 'ok' run outputs.fuse --device sim --verify
fi
# NaN in memory behind a mask has no effect: lengths are -1, and all of x is NaN
echo 'graph g[M = 4, N = 64](x : f32[M, N], length : i32[M]) -> (y : f32[M, N], s : f32[M]) {
    kept = where(index(N) < length, x, 0.5)
    s = sum[N](kept)
    y = kept - s }' >behind.fuse
tensors nans '{"x":{"dtype":"F32","shape":[4,64],"data_offsets":[0,1024]},"length":{"dtype":"I32","shape":[4],"data_offsets":[1024,1040]}}' 0
head -c 1040 /dev/zero | tr '\0' '\377' >>nans
for schedule in row:stages=1 row:reads=2 row:stages=2; do
    expect 0 '^s .*\[4\]  *32  *32  *32 ' run behind.fuse --in nans --device sim --verify --schedule $schedule
done
# the same bits as the reference, signs of zeros among them, which --verify does not see
for device in sim cpu; do
    expect 0 '1d61ebe54804e487' run "$root"/tests/cases/divided_zeros.fuse --device $device
done

finish
