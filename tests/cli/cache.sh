#!/bin/bash
# The disk cache: its place, its list, and where it cannot be written.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

expect 0 "$work/cache" cache path
expect 0 '' cache list
expect 0 'removed' cache clear
cp "$root"/examples/rmsnorm_bwd.fuse sums.fuse    # whose second kernel is named after the first
nvrtc=1 expect 0 'kernels: 2' explain sums.fuse --arch sm_90a
grep -q ' registers a thread' stdout && expect 0 ' rmsnorm_bwd$' cache list
touch nowhere
nvrtc=1 FUSEC_CACHE_DIR=$work/nowhere/cache expect 0 'kernels: ' explain one.fuse
if ! grep -q ' registers a thread' stdout; then
    echo '-- command line: a cache that cannot be written, skipped: NVRTC makes no cubin'
elif [ "$(grep -c 'cannot be written' stderr)" != 1 ]; then
    fail 'a cache that cannot be written is not told, or told twice'
fi

finish
