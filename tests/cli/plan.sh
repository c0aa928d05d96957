#!/bin/bash
# Plans as files: `fusec plan save` without a GPU, `show`, and `run` on the stub driver of tests/faults, whose kernels
# write zeros. NVRTC is the stand-in there, or else the one here.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

norm=$root/examples/rmsnorm.fuse
stub=$root/build/faults/libnvrtc_stub.so driver=$root/build/faults
[ -e "$stub" ] && export FUSEC_NVRTC=$stub

# the words of the command line
expect 0 'usage: fusec plan save|show|run' plan --help
expect 2 'needs a verb' plan
expect 2 'hint: one of save, show, run' plan sav "$norm" -o x.plan
expect 2 'needs a FILE' plan save
expect 2 'needs a FILE' plan show
expect 2 'takes one FILE' plan show a.plan b.plan
expect 2 'name it by -o FILE' plan save "$norm"
expect 2 'name it by -o FILE' plan save "$norm" -o -
expect 2 'plan save. has no option --json' plan save "$norm" -o x.plan --json
expect 2 'plan show. has no option --arch' plan show x.plan --arch sm_80
expect 2 'plan run. has no option -o' plan run x.plan -o y
expect 2 'plan show. takes no axis sizes' plan show x.plan N=4
expect 2 'no option --verify' plan run x.plan --verify
expect 2 'cannot read nothing.plan: No such file' plan show nothing.plan
expect 1 'is not a plan file' plan show one.fuse
expect 2 'cannot read nothing.fuse' plan save nothing.fuse -o x.plan
FUSEC_NVRTC=/dev/null expect 3 'no usable NVRTC' plan save "$norm" --arch sm_90a -o x.plan
[ -e x.plan ] && fail 'a plan that could not be made leaves a file'

if ! "$fusec" plan save "$norm" --arch sm_90a -o probe.plan 2>probed; then
    grep -q 'no usable NVRTC' probed || { cat probed; exit 1; }
    echo '-- command line: saved plans, skipped: there is no NVRTC'
    finish
fi

# saved
cat >two.fuse <<'END'
graph zero[M, N = 16](x : f32[M, N], k : f32 = 2, e : f32) -> (y : f32[M, N], s : f32[N]) {
    y = (x - x) * k * e
    s = sum[M](x - x)
}
graph wide[M = 4, N](x : bf16[M, N]) -> (y : bf16[M, N]) { y = softmax[N](x) }
END
sed -i '1i import "std"' two.fuse
expect 0 '' plan save two.fuse --graph zero --arch sm_90a -o zero.plan
{ [ -s stdout ] || [ -s stderr ]; } && fail 'plan save says something'
expect 0 '' plan save two.fuse --graph wide N=4096 --arch sm_80 -o wide.plan
expect 0 '' plan save two.fuse --graph zero --outputs s --arch sm_90a --no-tuning --schedule column -o s.plan
expect 2 'holds 2 graphs' plan save two.fuse -o x.plan
expect 2 "axis 'N' has no size" plan save two.fuse --graph wide --arch sm_90a -o x.plan
expect 2 "axis .*Q" plan save two.fuse --graph wide N=8 Q=2 --arch sm_90a -o x.plan
expect 2 'no output' plan save "$norm" --outputs z --arch sm_90a -o x.plan
expect 2 'no family' plan save "$norm" --schedule nothing --arch sm_90a -o x.plan
expect 2 "unknown architecture 'sm_12'" plan save "$norm" --arch sm_12 -o x.plan
expect 3 'cannot write no/x.plan' plan save "$norm" --arch sm_90a -o no/x.plan
expect 3 'Is a directory' plan save "$norm" --arch sm_90a -o .
expect 3 'operations' plan save "$norm" --arch sm_90a --limit nodes=1 -o x.plan
[ -e x.plan ] && fail 'a refused plan leaves a file'
cp zero.plan old.plan
expect 0 '' plan save two.fuse --graph zero --arch sm_90a -o zero.plan    # in its place, the same
cmp zero.plan old.plan || fail 'a plan saved twice differs'
if ! [ -e /dev/nvidiactl ]; then
    expect 0 '' plan save "$norm" -o here.plan
    grep -q 'no usable GPU, so the plan is for sm_90a' stderr || fail 'a plan for no GPU is not told'
fi

# shown
expect 0 '^zero for sm_90a, saved by fusec [0-9]' plan show zero.plan
also '^axes: M of any size, N = 16$'
also '^  x  *f32\[M, N\]$'
also '^  k  *f32 = 2$'
also '^  e  *f32$'
also '^kernels for M = 1$'
also '^  zero .* CTAs of [0-9]* threads'
also '^workspace: [0-9]* bytes for M = 1$'
also '^code: cubin of [0-9]* bytes'
expect 0 '^wide for sm_80' plan show wide.plan
expect 0 '^  y  *f32\[M, N\], not computed$' plan show s.plan
expect 0 '"graph": "zero"' plan show zero.plan --json
python3 - <<'END' || fail 'plan show --json'
import json
plan = json.load(open("stdout"))
assert plan["arch"] == "sm_90a" and plan["code"]["format"] == "cubin" and plan["code"]["bytes"] > 0
assert plan["axes"] == [{"name": "M", "size": 1, "fixed": False}, {"name": "N", "size": 16, "fixed": True}]
assert plan["inputs"] == [{"name": "x", "dtype": "f32", "axes": ["M", "N"], "read": True}]
assert [(s["name"], s["default"]) for s in plan["scalars"]] == [("k", 2), ("e", None)]
assert [(o["name"], o["computed"]) for o in plan["outputs"]] == [("y", True), ("s", True)]
assert plan["kernels"][0]["threads"] > 0 and len(plan["kernels"][0]["grid"]) == 3 and plan["workspace_bytes"] >= 0
END
if [ -e "$stub" ]; then    # which does not know it
    expect 0 '' plan save "$norm" --arch sm_120a -o later.plan
    expect 0 '^code: ptx of ' plan show later.plan
fi

# what docs/howto/vendoring.md shows, but for numbers that another NVRTC may have
"$fusec" plan save "$root/examples/layernorm_bwd.fuse" N=4096 --arch sm_90a -o page.plan &&
    "$fusec" plan show page.plan | sed 's/ threads, .*/ threads/; /^code/d' >page.now
awk '/^    fusec plan show / { on = 1; next } on && /^    / { print substr($0, 5) } on && !/^    / && NF { exit }' \
    "$root/docs/howto/vendoring.md" | sed 's/ threads, .*/ threads/; /^code/d' >page
tests=$((tests + 1))
{ [ -s page ] && cmp -s page page.now; } || { diff page page.now; fail 'docs/howto/vendoring.md shows another plan'; }
head -c 400 zero.plan >short.plan
expect 1 'is not a plan file, or is damaged' plan show short.plan
{ head -c 600 zero.plan; printf x; tail -c +602 zero.plan; } >changed.plan
cmp -s zero.plan changed.plan || expect 1 'is not a plan file, or is damaged' plan show changed.plan
expect 2 'cannot read .: Is a directory' plan show .

# run
if [ -e /dev/nvidiactl ]; then
    echo '-- command line: running saved plans on the stub driver, skipped: there is a GPU'
    finish
fi
expect 3 'hint: `fusec plan show` needs no GPU' plan run zero.plan
[ -e "$driver/libcuda.so.1" ] || { echo '-- command line: running saved plans, skipped: there is no stub driver'; finish; }
export LD_LIBRARY_PATH=$driver
FUSEC_NVRTC=/dev/null expect 0 '^y .* \[3, 16\]  *0  *0 ' plan run zero.plan M=3 --set e=1
also '^s .* \[16\] '
expect 0 '^y .* \[1, 16\] ' plan run zero.plan N=16    # a size that is compiled in may be said
grep -q 'scalar e has no default' stderr || fail 'a scalar at random is not told'
expect 0 '^s ' plan run s.plan M=5 --set e=1 --seed 3
grep -q '^y' stdout && fail 'an output that the plan does not compute is told'
expect 2 'N = 16 is compiled into zero.plan' plan run zero.plan N=17
expect 2 "no axis 'Q'" plan run zero.plan Q=17
expect 2 'no scalar q' plan run zero.plan --set q=1
expect 3 'the plan is for sm_80, Stub GPU is sm_90a' plan run wide.plan
expect 1 'damaged' plan run short.plan
expect 2 'cannot read nothing.plan' plan run nothing.plan
tensors in.safetensors '{"x":{"dtype":"F32","shape":[2,16],"data_offsets":[0,128]},"e":{"dtype":"F32","shape":[],"data_offsets":[128,132]}}' 132
expect 0 '^y .* \[2, 16\] ' plan run zero.plan --in in.safetensors
expect 0 '' plan run zero.plan --in in.safetensors --out out.safetensors
grep -q '"y"' out.safetensors && grep -q '"s"' out.safetensors || fail 'plan run --out writes no y or s'
expect 3 'cannot write' plan run zero.plan --in in.safetensors --out no/out.safetensors
expect 2 'would replace what --in reads' plan run zero.plan --in in.safetensors --out in.safetensors
tensors narrow.safetensors '{"x":{"dtype":"F32","shape":[2,8],"data_offsets":[0,64]}}' 64
expect 1 'N = 16 is compiled into zero.plan' plan run zero.plan --in narrow.safetensors --set e=1
tensors half.safetensors '{"x":{"dtype":"F16","shape":[2,16],"data_offsets":[0,64]}}' 64
expect 1 'x is F16, the graph wants F32' plan run zero.plan --in half.safetensors --set e=1
grep -q '^hint: convert it$' stderr || fail 'the hint names a declaration of a plan'
tensors bare.safetensors '{"x":{"dtype":"F32","shape":[2,16],"data_offsets":[0,128]}}' 128
expect 1 'scalar e has no value' plan run zero.plan --in bare.safetensors

finish
