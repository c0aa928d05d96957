#!/bin/bash
# Files are not trusted: imports, devices, FIFOs, modes and owners, a cache that others may write
# to.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

mkfifo fifo
truncate -s 6G sparse.fuse
echo 'secret=1' >secrets
echo '{"graph": "secret"}' >>secrets
for import in fifo sparse.fuse /dev/zero secrets "$fusec" "$work"; do
    echo "import \"$import\" graph g[N = 4](x : f32[N]) -> (y : f32[N]) { y = x }" >import.fuse
    expect 1 'import.fuse:1:8: error: ' check import.fuse
    ! grep -q 'secret=' stderr || fail "the import of $import is shown"
done
expect 2 'it is a device' check /dev/zero
expect 2 'nobody writes to this FIFO' check fifo
expect 1 'too large for a program: it has more than 16777216 bytes' check sparse.fuse
head -c 20000000 /dev/zero >large
stdin=large expect 1 'too large for a program' check -
rm sparse.fuse large
echo 'fn twice(x) = 2 * x' >twice.import
echo 'import "twice.import" graph g[N = 4](x : f32[N]) -> (y : f32[N]) { y = twice(x) }' >import.fuse
expect 0 'y' run import.fuse --device cpu
expect 0 '__global__' <(cat one.fuse)
stdin=import.fuse expect 0 '__global__' -
expect 0 '' run import.fuse --device cpu --out kept.safetensors
chmod 640 kept.safetensors
expect 0 '' run import.fuse --device cpu --out kept.safetensors
[ "$(stat -c %a kept.safetensors)" = 640 ] || fail 'run --out changes the mode of a file'
head -c 90 kept.safetensors >cut.safetensors
expect 1 'cut.safetensors: ' run import.fuse --device cpu --in cut.safetensors
expect 1 'it is a device' run import.fuse --device cpu --in /dev/zero
# a file that is formatted keeps what it has, through a link, too
echo 'graph  g[M=2](x:f32[M])->(y:f32[M]){y=x+1}' >ugly.fuse
ln -s ugly.fuse linked.fuse
kept=$(id -u):$(id -g):4755
if [ "$(id -u)" = 0 ]; then
    chown 65534:1234 ugly.fuse
    kept=65534:1234:4755
else
    echo '-- command line: the owner of a formatted file, skipped: not root'
fi
chmod 4755 ugly.fuse
expect 0 '' fmt -w linked.fuse
[ -L linked.fuse ] || fail 'fmt -w replaces a link'
found=$(stat -c %u:%g:%a ugly.fuse)
[ "$found" = "$kept" ] || fail "fmt -w leaves $found, not $kept"
expect 0 '' fmt --check ugly.fuse
rm ugly.fuse linked.fuse fifo
# a cache that others may write to is told once, and not used
mkdir -p open/cache
chmod 777 open/cache
nvrtc=1 FUSEC_CACHE_DIR=$work/open/cache expect 0 'kernels: ' explain one.fuse
if grep -q ' registers a thread' stdout; then
    [ "$(grep -c 'open/cache is not used: other users may write to it' stderr)" = 1 ] || fail 'a cache that is not trusted is not told, or told twice'
fi
[ -z "$(ls open/cache)" ] || fail 'a cache that is not trusted was written to'
FUSEC_SIM_KEEP=open/cache expect 3 'SIM_KEEP names, open/cache: other users may write to it' run one.fuse --set eps=1 --device sim
FUSEC_CACHE_DIR=open/cache expect 3 'set FUSEC_CACHE_DIR' cache path

finish
