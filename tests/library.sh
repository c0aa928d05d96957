#!/bin/bash
# The library as others meet it: its names and versions, how it is hardened, what `make install` leaves,
# and that neither it nor the program opens a library that lies in the working directory.
set -u
cd "$(dirname "$0")/.."
root=$PWD work=$PWD/build/library checks=0 bad=0
rm -rf "$work"
mkdir -p "$work"
fail() { echo "library: $*"; bad=$((bad + 1)); }
check() {    # WHAT COMMAND...
    checks=$((checks + 1))
    "${@:2}" || fail "$1"
}
absent() { ! grep -q "$@"; }
fails() { ! "$@"; }
unset LD_LIBRARY_PATH FUSEC_NVRTC CUDA_HOME CUDA_PATH VIRTUAL_ENV CONDA_PREFIX
export FUSEC_CACHE_DIR=$work/cache FUSEC_TUNING_FILE=/dev/null

# ---- names, versions, hardening ----
version=$(sed -n 's/^#define FUSEC_VERSION "\(.*\)"/\1/p' runtime/fusec.h)
so=$work/so program=$work/program
{ readelf -dW build/libfusec.so; readelf -lW build/libfusec.so; readelf --dyn-syms -W build/libfusec.so; } >$so
{ readelf -hW build/fusec; readelf -dW build/fusec; readelf -lW build/fusec; readelf --dyn-syms -W build/fusec; } >$program
awk '$4 == "FUNC" && $7 != "UND" { print $8 }' $so >$work/exports
check 'the SONAME has no version' grep -q 'SONAME.*\[libfusec\.so\.0\]' $so
check 'build/libfusec.so is not this version' [ "$(readlink -f build/libfusec.so)" = "$root/build/libfusec.so.$version" ]
check 'something else than fusec_* is exported' absent -v '^fusec_' $work/exports
check 'an export is without its version' absent -v '@@FUSEC_0\.3$' $work/exports
check 'nothing is exported' [ -s $work/exports ]
check 'a privileged program would obey the environment of its user' absent ' getenv@' $so
for file in $so $program; do
    check "$file: no -z now" grep -q BIND_NOW $file
    check "$file: no -z relro" grep -q GNU_RELRO $file
    check "$file: an executable stack" grep -q 'GNU_STACK.* RW ' $file
    check "$file: no stack protector" grep -q __stack_chk_fail $file
    check "$file: no _FORTIFY_SOURCE" grep -q '__[a-z]*printf_chk' $file
done
check 'build/fusec is no PIE' grep -q 'Type: *DYN' $program

# ---- installed ----
make -s install DESTDIR="$work/root" PREFIX=/usr >$work/install.out 2>&1 || fail "make install: $(cat $work/install.out)"
export PKG_CONFIG_PATH=$work/root/usr/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$work/root
check 'pkg-config has another version' [ "$(pkg-config --modversion fusec)" = "$version" ]
cat >$work/there.c <<'END'
#include <fusec.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
int main(int count, char **arguments)
{
    fusec_error error;
    if (count > 1 && chdir(arguments[1]) != 0) return 2;
    fusec_nvrtc_version(NULL, NULL, NULL, 0, &error);
    fusec_device *device;
    if (fusec_device_open(0, &device, &error) == FUSEC_OK) fusec_device_destroy(device);
    puts(fusec_version());
    return strcmp(fusec_version(), FUSEC_VERSION) != 0;
}
END
check 'fusec.cuh is not installed' cmp build/fusec.cuh $work/root/usr/include/fusec.cuh
check 'no completions for bash' bash -c '. "$1" && [ "$(complete -p fusec)" = "complete -F _fusec fusec" ]' bash $work/root/usr/share/bash-completion/completions/fusec
check 'no completions for zsh' grep -q '^#compdef fusec' $work/root/usr/share/zsh/site-functions/_fusec
check 'nothing links with what pkg-config says' gcc $work/there.c $(pkg-config --cflags --libs fusec) -o $work/there
check 'a program asks for another name' grep -q 'libfusec\.so\.0' <(readelf -dW $work/there)
check 'an installed library is not found' env LD_LIBRARY_PATH=$work/root/usr/lib $work/there >/dev/null
check 'the static library does not link' gcc $work/there.c $(pkg-config --cflags fusec) $work/root/usr/lib/libfusec.a -lm -o $work/static

# ---- found by CMake ----
cmake_finds() {    # VERSION: whether find_package takes the package for it
    mkdir -p $work/cmake
    cat >$work/cmake/CMakeLists.txt <<END
cmake_minimum_required(VERSION 3.12)
project(there C)
find_package(fusec $1 REQUIRED)
add_executable(shared there.c)
target_link_libraries(shared PRIVATE fusec::fusec)
add_executable(static there.c)
target_link_libraries(static PRIVATE fusec::fusec_static)
END
    cp $work/there.c $work/cmake
    rm -rf $work/cmake/build
    cmake -S $work/cmake -B $work/cmake/build -DCMAKE_PREFIX_PATH=$tree >$work/cmake.out 2>&1
}
if command -v cmake >/dev/null; then
    tree=$work/moved/fusec    # the package may lie elsewhere than where it was installed
    mkdir -p $work/moved
    cp -r $work/root/usr $tree
    for wanted in '' 0.3 "$version" "$version EXACT" 0.2...0.9; do check "find_package(fusec $wanted) fails" cmake_finds "$wanted"; done
    for wanted in 0.2 0.4 1 0.3.99 "0.3.99 EXACT" 0.4...0.9 0.1...0.2; do check "find_package(fusec $wanted) takes $version" fails cmake_finds "$wanted"; done
    check 'find_package(fusec) fails' cmake_finds "$version"
    check 'CMake builds nothing with it' cmake --build $work/cmake/build >$work/cmake.out 2>&1
    check 'the program of CMake does not find the shared library' $work/cmake/build/shared >/dev/null
    check 'it asks for another name' grep -q 'libfusec\.so\.0' <(readelf -dW $work/cmake/build/shared)
    check 'the static program of CMake does not run' $work/cmake/build/static >/dev/null
    check 'the static program asks for the shared library' absent libfusec <(readelf -dW $work/cmake/build/static)
else
    echo '-- the library: find_package, skipped: there is no cmake'
fi

# ---- nothing from the working directory ----
# Libraries that tell when they are loaded, wherever a relative path could lead to.
cat >$work/trap.c <<'END'
#include <fcntl.h>
#include <stdlib.h>
__attribute__((constructor)) static void tell(void) { open(getenv("TOLD"), O_CREAT | O_WRONLY, 0600); }
END
here=$work/here
export TOLD=$work/told
mkdir -p $here/lib
gcc -shared -fPIC $work/trap.c -o $here/libcuda.so.1
for place in . lib lib64 nvrtc lib/nvrtc cuda/lib64 .local/lib/python3.11/site-packages/nvidia/cuda_nvrtc/lib \
    lib/python3.11/site-packages/nvidia/cu13/lib; do
    mkdir -p $here/$place
    for name in libnvrtc.so.13 libnvrtc.so.12 libnvrtc.so; do cp $here/libcuda.so.1 $here/$place/$name; done
done
cp -a build/libfusec.so* $here/lib
mkdir $here/bin
ln -s /bin/true $here/bin/python3
check 'the trap does not snap' env LD_LIBRARY_PATH=$here /bin/sh -c "LD_PRELOAD=$here/libcuda.so.1 /bin/true; [ -e $TOLD ]"
rm -f $TOLD
echo 'graph g[N = 64](x : f32[N]) -> (y : f32[N]) { y = x }' >$here/g.fuse
tempt() {    # NAME=VALUE...: with this environment, in that directory, the program and a user of the library
    (cd $here && env "$@" $root/build/fusec emit g.fuse --emit=cubin -o $work/cubin >/dev/null 2>&1
     env "$@" $root/build/fusec run g.fuse --device cuda >/dev/null 2>&1
     env "$@" $work/static >/dev/null 2>&1)
    check "with $* a library of the working directory is loaded" [ ! -e $TOLD ]
    rm -f $TOLD
}
tempt LD_LIBRARY_PATH=:/nowhere
tempt LD_LIBRARY_PATH=.
tempt LD_LIBRARY_PATH=/nowhere:lib
tempt CUDA_HOME=. CUDA_PATH=cuda
tempt VIRTUAL_ENV=. CONDA_PREFIX=.
tempt HOME=.
tempt HOME=
tempt PATH=:bin:./bin:$PATH
tempt FUSEC_NVRTC=./libnvrtc.so.13
tempt FUSEC_NVRTC=lib/libnvrtc.so.13
# a library that was found by a relative path, in a program that has gone elsewhere since
mkdir -p $work/start/lib
cp -a build/libfusec.so* $work/start/lib
(cd $work/start && LD_LIBRARY_PATH=lib $work/there $here >/dev/null)
check 'NVRTC is taken from beside the working directory' [ ! -e $TOLD ]
# ---- a text needs no NVRTC: it comes at once, however long that would compile it ----
{
    echo 'graph mhc[M = 4096, I = 4, J = 4](x : f32[M, I, J]) -> (y : f32[M, I, J]) {'
    echo '    p0 = exp(x - max[I, J](x))'
    for i in $(seq 12); do
        echo "    r$i = p$((i - 1)) / (sum[J](p$((i - 1))) + 1e-6)"
        echo "    p$i = r$i / (sum[I](r$i) + 1e-6)"
    done
    echo '    y = p12 }'
} >$work/mhc.fuse
for options in '' '--emit=plan' '--emit=ast'; do
    check "no text of a Sinkhorn: emit $options" env FUSEC_NVRTC=$here/libcuda.so.1 build/fusec $work/mhc.fuse --arch sm_90a $options -o $work/text
    check "NVRTC is loaded for a text: emit $options" [ ! -e $TOLD ]
    rm -f $TOLD
done
check 'the trap does not snap' fails env FUSEC_NVRTC=$here/libcuda.so.1 build/fusec $work/mhc.fuse --arch sm_90a --emit=cubin -o $work/cubin 2>/dev/null
check 'NVRTC is not loaded for a cubin' [ -e $TOLD ]
rm -f $TOLD

# caches and tuning files are not made there
(cd $here && FUSEC_CACHE_DIR=cache XDG_CACHE_HOME=cache HOME=. $root/build/fusec explain g.fuse >/dev/null 2>&1)
check 'a cache lies in the working directory' [ ! -e $here/cache ]
check 'fusec cache path is relative' absent . <(cd $here && FUSEC_CACHE_DIR=cache $root/build/fusec cache path 2>/dev/null)
check 'fusec cache path is relative' absent . <(cd $here && env -u FUSEC_CACHE_DIR XDG_CACHE_HOME=c HOME=. $root/build/fusec cache path 2>/dev/null)

echo "-- the library: $((checks - bad)) of $checks passed"
[ $bad = 0 ]
