#!/bin/bash
# grad and gradcheck: every example and its gradients, what is chosen, saved and refused.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# Of every example: a canonical program without a warning, whose gradients are those of differences;
# and the gradients of what saves nothing.
for file in "$root"/examples/*.fuse "$root"/tests/grad/*.fuse; do
    first_build || case $file in */layernorm*.fuse | */softmax*.fuse) ;; *) continue ;; esac
    name=$(basename "$file" .fuse)
    expect 0 '' grad "$file" -o "$name.bwd.fuse"
    expect 0 '' check "$name.bwd.fuse"
    [ -s stderr ] && grep -q warning stderr && fail "a warning in the gradient of $name"
    expect 0 '' fmt --check "$name.bwd.fuse"
    expect 0 ' ok ' gradcheck "$file"
    expect 0 ' ok ' gradcheck "$file" "$name.bwd.fuse" --seed 5
    expect 0 '' grad "$file" --save none -o "$name.plain.fuse"
    expect 0 ' ok ' gradcheck "$name.plain.fuse"
done

# The backward passes that were written by hand, and that they cost what grad's do: as many kernels
# and phases, the same traffic.
facts() {
    FUSEC_NVRTC=/dev/null "$fusec" explain "$@" --arch sm_90a --json 2>/dev/null |
        python3 -c 'import json, sys
d = json.load(sys.stdin)
print(len(d["kernels"]), sorted((r["kind"], r["phase"]) for r in d["reductions"]), d["traffic"]["read"])'
}
for name in layernorm rmsnorm softmax softmax_scaled softmax_causal softmax_masked softmax_aligned_causal group_norm; do
    expect 0 ' ok ' gradcheck "$root/examples/$name.fuse" "$root/examples/${name}_bwd.fuse"
    first_build || continue
    tests=$((tests + 1))
    [ "$(facts "$name.bwd.fuse")" = "$(facts "$root/examples/${name}_bwd.fuse")" ] ||
        fail "the gradient of $name costs something else than ${name}_bwd"
done

cat >ln.fuse <<'END'
graph ln[M = 8, N = 16](x : bf16[M, N], gamma : bf16[N], k : i32[N], eps : f32 = 1e-5) -> (
    y : bf16[M, N], mean : f32[M], rstd : f32[M], code : i32[N]) {
    mean = mean[N](x)
    rstd = rsqrt(var[N](x) + eps)
    y    = (x - mean) * rstd * gamma
    code = k + 1
}
END
expect 0 'graph ln_bwd\[' grad ln.fuse
also 'mean  *: f32\[M\]'
also 'dgamma : bf16\[N\]'
expect 0 '^# Not differentiated: mean, rstd (statistics). --of y,mean,rstd differentiates them' grad ln.fuse
expect 0 '^# Not differentiated: mean.$' grad ln.fuse --of y,rstd
expect 0 '' grad ln.fuse --of y,mean,rstd
grep -q 'Not differentiated' stdout && fail 'all outputs are differentiated'
expect 0 'Saved by the forward pass: rstd' grad ln.fuse --save rstd
expect 0 '' grad ln.fuse --save none
grep -q 'mean *:' stdout && fail 'something is saved by --save none'
expect 0 'eps *: f32 = 1e-5' grad ln.fuse --save none --wrt x
expect 0 'deps : f32\[\]' grad ln.fuse --wrt eps
expect 0 'drstd *: f32\[M\]' grad ln.fuse --of rstd,y --wrt x
stdin=ln.fuse expect 0 'graph ln_bwd' grad -
expect 0 ' ok ' gradcheck ln.fuse M=5 N=7 --of y,mean --wrt x,eps --save rstd
also 'M=5 N=7'
expect 0 ' ok ' gradcheck ln.fuse --set eps=0.5

# A gradient that is wrong, and where.
expect 0 '' grad ln.fuse -o bwd.fuse
sed 's/ - xhat \* c1/ + xhat * c1/' bwd.fuse >wrong.fuse
expect 4 '' gradcheck ln.fuse wrong.fuse
also 'dx *WRONG *dx\[[0-9], [0-9]\] is .*, should be '
sed 's/dgamma *= sum/dgamma = mean/' bwd.fuse >wrong.fuse
expect 4 '' gradcheck ln.fuse wrong.fuse
also 'dgamma *WRONG'
also 'dx *ok'

# NAME_bwd in the file of NAME is what is checked, unless an option says what grad is to derive.
cat ln.fuse bwd.fuse >both.fuse
expect 0 ' ok ' gradcheck both.fuse
also '^ln_bwd of both.fuse, in f64, M=3 N=4'
sed 's/ - xhat \* c1/ + xhat * c1/' bwd.fuse | cat ln.fuse - >both.fuse
expect 4 '' gradcheck both.fuse --graph ln
also 'dx *WRONG'
stdin=both.fuse expect 4 '' gradcheck -
also '^ln_bwd of <stdin>'
expect 0 '^ln_bwd that .fusec grad. derives, in f64' gradcheck both.fuse --of y
expect 0 '^ln_bwd of bwd.fuse' gradcheck both.fuse bwd.fuse

# Given inputs.
printf 'graph relu[N = 3](x : f32[N]) -> (y : f32[N]) { y = max(x, 0) }\n' >relu.fuse
tensors zeros.safetensors '{"x":{"dtype":"F32","shape":[3],"data_offsets":[0,12]}}' 12
expect 0 'kink' gradcheck relu.fuse --in zeros.safetensors
printf 'graph relu_bwd[N = 3](dy : f32[N], x : f32[N]) -> (dx : f32[N]) { dx = where(x >= 0, dy, 0.0) }\n' >relu_bwd.fuse
expect 0 ' ok ' gradcheck relu.fuse relu_bwd.fuse
expect 0 'kink' gradcheck relu.fuse relu_bwd.fuse --in zeros.safetensors
expect 1 'no-such' gradcheck relu.fuse --in no-such.safetensors

# What has no gradient, what is not there.
expect 2 "no output 'z'" grad ln.fuse --of z
expect 2 "no input 'z'" grad ln.fuse --wrt z
expect 2 "no output 'z' to save" grad ln.fuse --save z
expect 1 "output 'code' is i32" grad ln.fuse --of code
expect 1 "input 'k' is i32" grad ln.fuse --wrt k
printf 'graph g[N = 4](i : i32[N]) -> (y : f32[N]) { y = i * 0.5 }\n' >integers.fuse
expect 1 'no input that has a gradient' grad integers.fuse
printf 'graph g[N = 4](x : f32[N]) -> (c : bool[N]) { c = x > 0 }\n' >bools.fuse
expect 1 'no output that has a gradient' grad bools.fuse
printf 'graph g[N = 4](x : f32[N]) -> (dx : f32[N], y : f32[N]) { dx = exp(x)  y = dx * x }\n' >clash.fuse
expect 2 "'dx' cannot be saved" grad clash.fuse --save dx
expect 0 ' ok ' gradcheck clash.fuse
printf 'graph a(x : f32[]) -> (y : f32[]) { y = x }\ngraph b(x : f32[]) -> (y : f32[]) { y = x * x }\n' >two.fuse
expect 2 'name one of them' grad two.fuse
expect 0 'graph b_bwd' grad two.fuse --graph b
expect 0 ' ok ' gradcheck two.fuse --graph b
expect 1 'has the axes \[M, N\]' gradcheck relu.fuse bwd.fuse
expect 1 'is not the gradient of an input' gradcheck relu_bwd.fuse relu.fuse
grep -q 'the file of the forward pass comes first' stderr || fail 'two files the wrong way round: it is not told'
sed 's/dy/dz/g' relu_bwd.fuse >stray.fuse
expect 1 'or the gradient of one' gradcheck relu.fuse stray.fuse
sed 's/dx/dz/g' relu_bwd.fuse >stray.fuse
expect 1 'is not the gradient of an input' gradcheck relu.fuse stray.fuse
echo 'graph f[M = 2, N = 4](x : f32[M, N], mask : bool[N]) -> (y : f32[M, N]) { y = x * mask }' >masked.fuse
for dtype in i64 i32 u8; do    # of another width: they would be read as they lie in memory
    echo "graph f_bwd[M = 2, N = 4](mask : $dtype[N], dy : f32[M, N]) -> (dx : f32[M, N]) { dx = dy * mask }" >stray.fuse
    expect 1 "'mask' is $dtype in 'f_bwd', and bool in 'f'" gradcheck masked.fuse stray.fuse M=1 N=3000000
done
expect 2 'takes no axis sizes' grad ln.fuse M=4
expect 2 'a third FILE' gradcheck ln.fuse bwd.fuse bwd.fuse
expect 2 'no axis' gradcheck ln.fuse Q=4
expect 1 'unknown name' gradcheck ln.fuse <(echo 'graph ln_bwd[N = 4](dy : f32[N]) -> (dx : f32[N]) { dx = z }')
expect 3 '' grad ln.fuse -o /no-such-folder/out.fuse

finish
