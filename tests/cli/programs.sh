#!/bin/bash
# Programs that are no programs: cut, binary, huge, nested too deep, imports that are not there.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

printf 'graph g[M](x : f32[M]) -> (y : f32[M]) { y = ' >cut.fuse
head -c 4096 /dev/urandom >binary.fuse
printf 'graph g[M = 2](x : f32[M]) -> (y : f32[M]) { y = x\0+ 1 }' >nul.fuse
head -c 3000000 /dev/zero | tr '\0' 'x' >megabyte.fuse
{
    printf 'graph g[M = 2](x : f32[M]) -> (y : f32[M]) { y = '
    head -c 200000 /dev/zero | tr '\0' '('
    printf 'x'
    head -c 200000 /dev/zero | tr '\0' ')'
    printf ' }'
} >deep.fuse
echo 'import "nowhere.fuse"' >import.fuse
echo 'import "cycle.fuse"' >cycle.fuse
: >empty.fuse
for file in cut binary nul megabyte deep import cycle; do
    expect 1 'error' check $file.fuse
    expect 1 'error' emit $file.fuse M=4
    expect 1 'error' run $file.fuse M=4
done
expect 1 'empty.fuse: error: the file has no graph, function or import' check empty.fuse
expect 1 'graph' run empty.fuse
stdin=binary.fuse expect 1 'error' fmt -

finish
