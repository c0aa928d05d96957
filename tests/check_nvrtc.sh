#!/bin/bash
# NVRTC compiles every example, the largest finish kernel there is, and names that C++ or CUDA uses for
# something else, for every architecture it knows, and no kernel may spill.
set -u
cd "$(dirname "$0")/.."
export FUSEC_CACHE_DIR=${FUSEC_CACHE_DIR:-build/cache}
out=build/nvrtc_check
mkdir -p $out
probe='graph probe[N = 4](x : f32[N]) -> (y : f32[N]) { y = x }'
# a row whose CTAs have more tiles each than other kernels ever have
wide='graph wide[N = 600000000](x : f32[N]) -> (y : f32[N]) { y = x * 2 }'
bad=0 done=0

check_one() {   # FILE ARCH
    local name
    name=$(basename "$1" .fuse)
    build/fusec emit "$1" --emit=cubin --arch "$2" -o "$out/$name.$2.cubin" || return 1
    build/fusec explain "$1" --json --arch "$2" >"$out/$name.$2.json" || return 1
    if grep -q '"registers": null' "$out/$name.$2.json"; then
        echo "$1 $2: a kernel's resources are unknown"
        return 1
    fi
    if grep -q '"spill_bytes": [1-9]' "$out/$name.$2.json"; then
        echo "$1 $2: a kernel spills"
        grep '"spill_bytes": [1-9]' "$out/$name.$2.json"
        return 1
    fi
}

for arch in sm_80 sm_90a sm_100a; do
    if ! why=$(echo "$probe" | build/fusec emit - --emit=cubin --arch $arch -o /dev/null 2>&1); then
        case $why in
        *NVRTC*) echo "-- nvrtc: $arch skipped: $(echo "$why" | head -n 1)"; continue ;;
        *) echo "$why"; exit 1 ;;
        esac
    fi
    echo "$wide" | build/fusec emit - --emit=cubin --arch $arch -o $out/wide.cubin || bad=$((bad + 1))
    done=$((done + 1))
    for file in examples/*.fuse tests/cases/{many_sums,graph_named_norm,names_of_underscores}.fuse; do
        check_one "$file" $arch || bad=$((bad + 1))
        done=$((done + 1))
    done
done
echo "-- nvrtc: $((done - bad)) of $done compilations without spills"
[ $bad = 0 ]
