#!/bin/bash
# fmt: what is canonical, what is kept, several files.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

stdin=one.fuse expect 0 'mean' fmt -
expect 0 'graph' fmt one.fuse
cp stdout formatted.fuse
expect 0 '' fmt --check formatted.fuse
echo 'graph  g[M=2](x:f32[M])->(y:f32[M]){y=x+1} # kept' >ugly.fuse
expect 1 'canonical' fmt --check ugly.fuse
expect 0 '' fmt -w ugly.fuse
expect 0 '' fmt --check ugly.fuse
grep -q '# kept' ugly.fuse || fail 'fmt lost a comment'
# a comment stays in the list that it ends
printf 'graph g[M = 4](\n    x : f32[M]\n    # of x (all)\n) -> (\n    y : f32[M]\n    # of y\n) {\n    y = x\n}\n' >listed.fuse
expect 0 '' fmt --check listed.fuse
expect 0 '' fmt --check "$root"/examples/*.fuse
cp ugly.fuse neat.fuse
echo 'graph  g[M=2](x:f32[M])->(y:f32[M]){y=x+1}' >ugly.fuse
expect 1 'ugly.fuse is not' fmt --check ugly.fuse neat.fuse
expect 2 'No such file' fmt -w no-such.fuse ugly.fuse
expect 0 '' fmt --check ugly.fuse neat.fuse
expect 2 'takes one FILE' fmt ugly.fuse neat.fuse
expect 2 'it excludes' fmt -w ugly.fuse -

finish
