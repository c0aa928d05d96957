#!/bin/bash
# What depends on the machine: a GPU or none, NVRTC or none, the tuning file.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

if [ -e /dev/nvidiactl ]; then
    echo '-- command line: what is said without a GPU, skipped: there is one'
else
    expect 3 'hint: without a GPU' bench "$root"/examples/rmsnorm.fuse M=4
fi
nvrtc=1 expect 0 'registers' explain one.fuse
if ! "$fusec" run one.fuse --device cuda >/dev/null 2>&1; then
    expect 3 '[a-z]' run one.fuse --device cuda
    expect 3 '[a-z]' bench one.fuse
    expect 3 '[a-z]' tune one.fuse
    expect 3 '[a-z]' tune one.fuse --json --device cuda
else
    expect 0 'default' tune one.fuse M=64 N=256
    expect 0 '"candidates"' tune one.fuse M=64 N=256 --json
fi
ls tuning.tmp* >/dev/null 2>&1 && fail 'a temporary file was left beside the tuning file'
# without a device, or for a named architecture, the tuning file is not even looked at
echo 'no tuning file' >tuning
expect 0 '__global__' one.fuse --arch sm_90a
[ -s stderr ] && fail 'emit --arch looks into the tuning file'
expect 0 'kernels' explain one.fuse --arch sm_90a
grep -q tuning stderr && fail 'explain --arch looks into the tuning file'
expect 0 '__global__' one.fuse --no-tuning
expect 0 'ok' run one.fuse --device cpu --verify
rm -f tuning
FUSEC_NVRTC=/dev/null expect 3 'NVRTC' emit one.fuse --emit=cubin
# whoever takes a cubin that spills is told of it
spilling=("$root"/examples/layernorm.fuse N=8192 --arch sm_90a --schedule "row:exact=1,threads=128,per_sm=16")
if ! "$fusec" emit "${spilling[@]}" --emit=cubin -o spilling.cubin 2>told; then
    echo '-- command line: what spills is not told, skipped: NVRTC makes no cubin'
elif ! grep -q 'spills' told; then
    fail "with this NVRTC ${spilling[*]} does not spill: the check wants another program"
fi

finish
