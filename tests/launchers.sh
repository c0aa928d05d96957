#!/bin/bash
# Launchers that `fusec build` writes: three widths of two graphs compile as C and as C++ without a warning, link into one
# program, with libcuda or by dlopen, and launch on a stub driver as the runtime does. Without NVRTC or cuda.h: skipped.
set -u
cd "$(dirname "$0")/.."
work=build/launchers
export FUSEC_CACHE_DIR=$PWD/$work/cache FUSEC_TUNING_FILE=/dev/null NO_COLOR=1
mkdir -p $work/kernels
include=
for folder in ${CUDA_HOME:-/usr/local/cuda}/include /usr/local/cuda*/include /usr/include; do
    [ -z "$include" ] && [ -e $folder/cuda.h ] && include=-I$folder
done
[ -n "$include" ] || { echo '-- launchers: skipped, there is no cuda.h'; exit 0; }
build() { build/fusec build "$@" -o $work/kernels; }
build tests/launchers/rows.fuse N=1000 --arch sm_90a 2>$work/stderr || {
    grep -q 'no usable NVRTC' $work/stderr && { echo '-- launchers: skipped, there is no NVRTC'; exit 0; }
    cat $work/stderr
    exit 1
}
set -e
build tests/launchers/rows.fuse N=1024 --arch sm_80,sm_90a
build tests/launchers/rows.fuse N=8192 --arch sm_90a,sm_90
build tests/launchers/rows.fuse N=1024 --arch sm_100a,sm_120a --name blackwell
build tests/cases/dense_columns.fuse --arch sm_90a --name images
build tests/launchers/pixels.fuse C=64 --arch sm_90a --name pixels
for size in 1000 1152 4096; do build examples/adaln_bwd.fuse C=$size --arch sm_90a; done

# Every other one is C++.
strict='-O1 -Wall -Wextra -Werror -Wpedantic' turn=0
link() {    # PROGRAM FLAGS LIBRARIES: the launchers with these flags, and what compares them
    local objects=()
    for source in $work/kernels/*.c; do
        object=${source%.c}$2.o
        compiler=("gcc" "-std=c11") && [ $((turn++ % 2)) = 1 ] && compiler=("g++" "-std=c++17" -x c++)
        "${compiler[@]}" $strict $2 $include -c $source -o $object
        objects+=($object)
    done
    g++ -rdynamic $work/compare.o "${objects[@]}" build/obj/src/base/dtype.o build/libfusec.a $3 -lm -ldl -lpthread -o $work/$1
}
gcc $strict -std=c11 -D_GNU_SOURCE -Isrc -Iruntime -I$work/kernels -c tests/launchers/compare.c -o $work/compare.o
link linked '' $work/libcuda.so.1
link opened -DFUSEC_DLOPEN ''

# The programs in docs/howto/vendoring.md compile, and the lines of the header that it shows are there.
build examples/layernorm_bwd.fuse N=4096 --arch sm_80,sm_90a
awk '/^```c$/ { on = 1; next } /^```$/ { on = 0 } on' docs/howto/vendoring.md >$work/vendoring.c
gcc $strict -std=c11 -Iruntime -I$work/kernels -c $work/vendoring.c -o $work/vendoring.o
gcc -std=gnu99 -O1 -Wall -Wextra -Werror $include -c $work/kernels/layernorm_bwd_N4096.c -o $work/gnu99.o
words() { sed 's/  */ /g; s/^ //' "$@"; }
awk '/^```text$/ { on = 1; next } /^```$/ { on = 0 } on' docs/howto/vendoring.md | words | while read -r line; do
    words $work/kernels/layernorm_bwd_N4096.h | grep -qxF -e "$line" || { echo "docs/howto/vendoring.md: no line $line"; exit 1; }
done

# No global name but the launchers' functions.
nm -g --defined-only $work/kernels/*.o | awk 'NF == 3 && $3 !~ /_(init|workspace|launch|error)$/ { print; bad = 1 } END { exit bad }' ||
    { echo 'launchers: other names are global'; exit 1; }
export LD_LIBRARY_PATH=$PWD/$work
$work/linked
$work/opened
# A grid is said to be what it is launched as.
build/fusec tests/launchers/pixels.fuse C=64 --arch sm_90a | grep -q '^// grid .*, min(B \* H, 65535))$' &&
    grep -q '"grid": \[[^]]*, "min(B \* H, 65535)", "1"\]' $work/kernels/pixels.json ||
    { echo 'launchers: the grid of pixels.fuse is not said to be limited'; exit 1; }
python3 -c 'import json, sys; [json.load(open(name)) for name in sys.argv[1:]]' $work/kernels/*.json
