#!/bin/bash
# make demo: one layer-norm backward from the text to verified results.
set -eu
cd "$(dirname "$0")/.."
file=examples/layernorm_bwd.fuse
say() { printf '\n\033[1m$ %s\033[0m\n' "$*"; }
[ -t 1 ] || say() { printf '\n$ %s\n' "$*"; }

say cat $file
cat $file
say "fusec check $file     (says nothing where there is no error)"
build/fusec check $file
say fusec explain $file
build/fusec explain $file
say "fusec $file     (the first kernel; the helpers it calls come before it)"
build/fusec $file -o build/layernorm_bwd.cu
sed -n '/^\/\/ layernorm_bwd/,/^}/{p;/^}/q}' build/layernorm_bwd.cu
echo "($(wc -l <build/layernorm_bwd.cu) lines in all: build/layernorm_bwd.cu)"
say fusec run $file M=512 N=1024 --verify
build/fusec run $file M=512 N=1024 --verify
say "fusec run $file M=64 N=1024 --device sim --verify     (the CUDA for these sizes, on the CPU)"
build/fusec run $file M=64 N=1024 --device sim --verify
