#!/bin/bash
# NVRTC compiles every example, the largest finish kernel there is, and names that C++ or CUDA uses for
# something else, and no kernel may spill.
#     tests/check_nvrtc.sh        each program for one of three architectures in turn, or for the one that it is about; one in four of
#                                 those that are listed with sizes
#     tests/check_nvrtc.sh all    each for all three
set -u
cd "$(dirname "$0")/.."
whole=${1:-}
export FUSEC_CACHE_DIR=${FUSEC_CACHE_DIR:-$PWD/build/cache}
out=build/nvrtc_check
command -v readelf >/dev/null || { echo "check_nvrtc: no readelf (binutils)"; exit 1; }
mkdir -p $out
probe='graph probe[N = 4](x : f32[N]) -> (y : f32[N]) { y = x }'
# a row whose CTAs have more tiles each than other kernels ever have
wide='graph wide[N = 600000000](x : f32[N]) -> (y : f32[N]) { y = x * 2 }'
good=0 all=0

# Whether a copy to shared memory is encoded in the way that GPUs refuse: see shared_address in the prelude. The operation is
# in the last digits of an instruction's first half, the kind of memory access in those of its second.
is_refused_by_gpus() { od -An -v -tx8 -w16 "$1" | grep -qE 'dae +[0-9a-f]{12}1c40$'; }

# Whether a kernel reads memory or branches before it waits for the kernel before it, which the runtime would then not launch early: text
# that nobody's runtime looks at should be right, too. (See cubin_waits_first in runtime/cubin.c.)
reads_early() {
    readelf -SW "$1" 2>/dev/null | sed -n 's/^ *\[ *[0-9]*\] \.text\.[^ ]* *[A-Z]* *[0-9a-f]* \([0-9a-f]*\) \([0-9a-f]*\) .*/\1 \2/p' |
        while read -r offset size; do
            od -An -v -tx8 -w16 -j $((16#$offset)) -N $((16#$size)) "$1" | awk '
                { operation = substr($1, 14) }    # by the last nine bits
                operation ~ /[13579bdf](4[3479d]|8[01])$/ { early = 1 }
                operation ~ /[02468ace]2e$/ { print early ? "early" : "waits"; exit }'
        done | grep -q early
}

check_one() {   # ARCH FILE SIZE...
    local name arch=$1
    shift
    name=$arch.${*//[^A-Za-z0-9_.=]/_}    # two run at a time, some of one program
    name=${name// /_}
    # a default that spills is said, and another schedule taken: what explain tells of
    build/fusec emit "$@" --emit=cubin --arch "$arch" -o "$out/$name.cubin" 2>"$out/$name.err" || { cat "$out/$name.err"; return 1; }
    build/fusec explain "$@" --json --arch "$arch" >"$out/$name.json" || return 1
    if is_refused_by_gpus "$out/$name.cubin"; then
        echo "$* $arch: a copy is encoded wrongly"
        return 1
    fi
    if reads_early "$out/$name.cubin"; then
        echo "$* $arch: a kernel reads memory or branches before it waits"
        return 1
    fi
    if grep -q '"registers": null' "$out/$name.json"; then
        echo "$* $arch: a kernel's resources are unknown"
        return 1
    fi
    if grep -q '"spill_bytes": [1-9]' "$out/$name.json"; then
        echo "$* $arch: a kernel spills"
        grep '"spill_bytes": [1-9]' "$out/$name.json"
        return 1
    fi
}

list_programs() {
    printf '%s\n' examples/*.fuse tests/cases/{many_sums,graph_named_norm,names_of_underscores}.fuse
    # short rows: two and three vectors a lane
    printf 'examples/%s\n' "layernorm.fuse N="{96,128,160,640} "layernorm_bwd.fuse N=96" "rmsnorm_quantized.fuse N=1280"
    printf 'tests/cases/%s\n' "held_short.fuse N=72" "heavy_norm.fuse N=96" "online_names.fuse N=96" "biased_sum.fuse N=57"
    # columns of several axes whose vectors do not fill the last tile
    printf 'examples/%s B=1 G=3 C=5 S=20\n' group_norm.fuse group_norm_bwd.fuse
    # rows that groups of CTAs read anew in each phase
    printf 'tests/long/%s\n' "flat.fuse" "flat.fuse N=65543" "three_reads.fuse"
    printf 'examples/%s\n' "layernorm.fuse N=4194304" "softmax_bwd.fuse N=3000001" "group_norm.fuse B=1 G=3 C=16 S=262144"
}

# about an H100 or H200, or where ptxas 13.0 for these would encode a copy wrongly
list_of_hopper() {
    echo "examples/rmsnorm_bwd.fuse N=5120 --schedule row"
    printf 'examples/%s --memory 4800\n' "layernorm_bwd.fuse N=131072" "layernorm.fuse N=57344"
}

# groups of warps; registers that the copy warp hands over
list_of_copy_warps() {
    printf 'examples/layernorm_bwd.fuse %s\n' "N=4096 --schedule warp-specialized:threads=256,groups=2" \
        "N=4096 --schedule warp-specialized:threads=128,groups=3,registers=1" "N=8192 --schedule warp-specialized:threads=256,registers=1,per_sm=1"
}

# single elements, many a thread, with sums over rows; what no cluster shares, spills
list_of_clusters() { printf 'examples/%s\n' "layernorm_bwd.fuse N="{19457,33001}; }

# What is compiled for an architecture, the turn-th of three.
list_for() {    # ARCH TURN
    list_programs | awk -v turn="$2" -v whole="$whole" 'whole || (NR % 3 == turn && (NF == 1 || NR % 4 == turn))'
    [ "$1" != sm_90a ] && [ -z "$whole" ] || list_of_hopper
    [ "$1" = sm_80 ] || { [ "$1" != sm_90a ] && [ -z "$whole" ]; } || list_of_copy_warps
    [ "$1" != sm_90a ] || list_of_clusters
}

export out
export -f check_one is_refused_by_gpus reads_early

turn=0 listed=0
for arch in sm_80 sm_90a sm_100a; do
    turn=$(((turn + 1) % 3))
    if ! why=$(echo "$probe" | build/fusec emit - --emit=cubin --arch $arch -o /dev/null 2>&1); then
        case $why in
        *NVRTC*) echo "-- nvrtc: $arch skipped: $(echo "$why" | head -n 1)"; continue ;;
        *) echo "$why"; exit 1 ;;
        esac
    fi
    listed=$((listed + $(list_for $arch $turn | wc -l)))
    all=$((all + 1))
    echo "$wide" | build/fusec emit - --emit=cubin --arch $arch -o $out/wide.cubin && good=$((good + 1))
    # two at a time, which say a line of their own on stdout when all is well
    passed=$(list_for $arch $turn | xargs -P 2 -L 1 bash -c 'check_one "$@" >&2 && echo good' check_one $arch | wc -l)
    good=$((good + passed))
done
# a text that includes its helpers compiles to the same machine code as one that has them
if command -v nvcc >/dev/null; then
    for program in layernorm_bwd:sm_90a cross_entropy_mean:sm_80 ${whole:+layernorm_bwd:sm_80 rmsnorm_quantized:sm_90a}; do
        all=$((all + 1)) arch=${program#*:}
        for prelude in inline include; do
            mkdir -p $out/$prelude
            build/fusec examples/${program%:*}.fuse --arch $arch --prelude $prelude >$out/$prelude/text.cu
            (cd $out/$prelude && nvcc -arch=$arch -cubin -I../.. text.cu -o text.cubin)
        done
        cmp $out/inline/text.cubin $out/include/text.cubin && good=$((good + 1))
    done
else
    echo "-- nvrtc: texts that include fusec.cuh skipped, there is no nvcc"
fi
# where an SM is to be full of threads none has a register over
if [ -f $out/wide.cubin ]; then
    all=$((all + 1))
    build/fusec emit examples/softmax_causal.fuse K=2048 --arch sm_90a --emit=cubin -o $out/full.cubin 2>$out/full.err
    grep spills $out/full.err || good=$((good + 1))
fi
all=$((all + listed))
echo "-- nvrtc: $good of $all compilations without spills${whole:+, all that there are}"
[ $good = $all ]
