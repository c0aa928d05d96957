#!/bin/bash
# Launchers of `fusec build`: their names, several architectures, what is refused, and that a folder has either all
# files of a launcher or none of them. NVRTC is the stand-in of tests/faults, or else the one here.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

norm=$root/examples/rmsnorm.fuse
stub=$root/build/faults/libnvrtc_stub.so
[ -e "$stub" ] && export FUSEC_NVRTC=$stub
if ! "$fusec" build "$norm" N=1024 -o probe 2>probed; then
    grep -q 'no usable NVRTC' probed || { cat probed; exit 1; }
    echo '-- command line: launchers, skipped: there is no NVRTC'
    finish
fi

holds() {    # FOLDER FILE...: these files and nothing else
    local folder=$1
    shift
    tests=$((tests + 1))
    [ "$(ls -A "$folder" 2>/dev/null | tr '\n' ' ')" = "$(printf '%s\n' "$@" | LC_ALL=C sort | tr '\n' ' ')" ] ||
        fail "$folder holds $(ls -A "$folder" | tr '\n' ' ')and not $*"
}
export LC_ALL=C
refused() {    # STATUS PATTERN ARGUMENT...: and the folder is not made
    expect "$1" "$2" build "${@:3}" -o none
    [ -e none ] && fail "a refused launcher leaves a folder: $*" && rm -rf none
}

# names: of the graph and its column sizes, or --name
expect 0 '' build "$norm" N=1024 --arch sm_90a -o plain
holds plain rmsnorm_N1024.{c,h,json,sm_90a.cu}
[ -s stdout ] && fail 'build speaks on stdout'
expect 0 '' build "$norm" --arch sm_80,sm_90a --name my_norm -o named
holds named my_norm.{c,h,json,sm_80.cu,sm_90a.cu}
for name in my_norm_init my_norm_workspace my_norm_launch my_norm_error; do
    grep -q "$name(" named/my_norm.h || fail "the header does not declare $name"
done
grep -q '"arch": "sm_80"' named/my_norm.json && grep -q '"arch": "sm_90a"' named/my_norm.json || fail 'NAME.json lacks an architecture'
expect 0 '' build one.fuse --outputs s --arch h200 -o gpu    # a GPU stands for its architecture
holds gpu one_N8.{c,h,json,sm_90a.cu}
expect 0 '' build "$norm" N=2048 --arch sm_90a -o plain    # beside what is there
holds plain rmsnorm_N{1024,2048}.{c,h,json,sm_90a.cu}
cp -r plain again
expect 0 '' build "$norm" N=1024 --arch sm_90a -o plain    # and in its place, the same
diff -r plain again || fail 'a launcher built twice differs'
expect 0 '' build one.fuse --arch sm_90a -o gpu/
cat one.fuse - <<'END' >two.fuse
graph two[N = 16](x : f32[N]) -> (y : f32[N]) { y = -x }
END
expect 0 '' build two.fuse --graph two --arch sm_90a -o two
holds two two_N16.{c,h,json,sm_90a.cu}
refused 2 'holds 2 graphs' two.fuse
refused 2 'hint: --graph one' two.fuse --arch sm_90a

# what is refused
for name in int 2x a-b 'a b' ''; do refused 2 "--name" "$norm" --name "$name"; done
refused 2 '--arch names two GPUs of architecture sm_80' "$norm" --arch sm_80,a100
refused 2 "unknown architecture 'sm_12'" "$norm" --arch sm_90a,sm_12
refused 2 "unknown architecture ''" "$norm" --arch sm_90a,
refused 2 'no axis' "$norm" Q=3
refused 2 'no family' "$norm" --schedule nothing
refused 2 'no output' "$norm" --outputs z
refused 2 'cannot read' nothing.fuse
refused 1 'error' <(echo 'graph')
refused 2 'no option --emit' "$norm" --emit=cuda
expect 2 'name a folder by -o DIR' build "$norm"
expect 2 'name a folder by -o DIR' build "$norm" -o -
FUSEC_NVRTC=/dev/null refused 3 'no usable NVRTC' "$norm"
[ -e "$stub" ] && refused 3 "does not know 'sm_120a'" "$norm" --arch sm_90a,sm_120a

# all files or none
touch file
expect 3 'cannot write file/rmsnorm_N1024' build "$norm" N=1024 --arch sm_90a -o file
expect 3 'cannot make the folder no/such/place' build "$norm" N=1024 --arch sm_90a -o no/such/place
[ -e no ] && fail 'folders above the folder are made'
mkdir -p half/rmsnorm_N1024.json
expect 3 'cannot write half/rmsnorm_N1024.json: Is a directory' build "$norm" N=1024 --arch sm_90a -o half
holds half rmsnorm_N1024.json
if [ -w /dev/full ]; then
    mkdir full
    ln -s /dev/full full/rmsnorm_N1024.c
    expect 3 'cannot write full/rmsnorm_N1024.c: No space left' build "$norm" N=1024 --arch sm_90a -o full
    holds full rmsnorm_N1024.c
fi
if [ "$(id -u)" = 0 ]; then
    echo '-- command line: a folder that is not to be written, skipped: root writes everywhere'
else
    mkdir -m 555 locked
    expect 3 'cannot write locked/rmsnorm_N1024' build "$norm" N=1024 --arch sm_90a -o locked
    holds locked
    expect 3 'cannot make the folder locked/inner: Permission denied' build "$norm" N=1024 --arch sm_90a -o locked/inner
fi

finish
