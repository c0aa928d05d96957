#!/bin/bash
# make demo: one layer-norm backward from the text to verified results.
set -eu
cd "$(dirname "$0")/.."
export PATH="$PWD/build:$PATH"
file=examples/layernorm_bwd.fuse
cuda=build/layernorm_bwd.cu
bold=$(tput bold 2>/dev/null) plain=$(tput sgr0 2>/dev/null) || bold= plain=
[ -t 1 ] && [ -z "${NO_COLOR:-}" ] || bold= plain=
# shows COMMAND..., and runs it
show() { printf '\n%s$ %s%s\n' "$bold" "$*" "$plain"; "$@"; }
tell() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }

# From the kernel's formulas to how it is launched, and its loop over rows.
kernel() {
    awk '/^\/\/ layernorm_bwd \(/ { on = 1 } on && /^\/\/$/ { print "..."; on = 0 }
        /^    for \(long long row/ { on = 1 } on { print } on && /^    }$/ { exit }' "$1"
}

tell "With build/ in the path (export PATH=\$PWD/build:\$PATH):"
show cat $file
show fusec check $file
echo "(no output: no errors)"
show fusec explain $file
show fusec $file -o $cuda
tell "The kernel's formulas and its loop over rows, of $(wc -l <$cuda) lines in $cuda:"
kernel $cuda
tell "The CUDA for 64 rows of 1024 columns, thread by thread on the simulator, against an f64 reference:"
show fusec run $file M=64 N=1024 --device sim --verify
if [ -e /dev/nvidiactl ]; then
    tell "The same on the GPU:"
    show fusec run $file --verify
else
    tell "No GPU here. On one, leave out --device:  fusec run $file --verify"
fi
