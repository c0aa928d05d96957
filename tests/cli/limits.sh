#!/bin/bash
# Limits of a compilation: each is told with its value and where it is set.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# limits of a compilation: each is told with its value and where it is set
awk 'BEGIN { print "graph g[N = 8](x : f32[N]) -> (y : f32[N]) { v0 = x"
             for (i = 1; i < 500; i++) print "v" i " = v" (i - 1) " * x + " i
             print "y = v499 }" }' >long.fuse
expect 3 'long.fuse:[0-9]*:.*over 100 operations, its limit: option max_nodes, or --limit nodes=N' check long.fuse --limit nodes=100
expect 3 'over 100 operations' emit long.fuse --emit=graph --limit nodes=100
expect 3 'over 200000 bytes of memory, its limit: option max_bytes, or --limit bytes=B' emit long.fuse --limit bytes=200000
expect 3 'over 1e-09 seconds, its limit: option max_seconds, or --limit seconds=S' explain long.fuse --limit seconds=1e-9
expect 3 'over 100 operations' run long.fuse --device cpu --limit nodes=100
expect 0 'extern "C"' emit long.fuse --arch sm_90a --limit nodes=5000,seconds=60,bytes=100000000
for wrong in nodes=0 nodes=-1 nodes=x nodes nodes= steps=3 seconds=0 seconds=-1 seconds=nan seconds=x bytes=1.5 ,nodes=1 nodes=1,,bytes=2; do
    expect 2 '\-\-limit cannot take' check long.fuse --limit $wrong
done
expect 2 'has no option --limit' fmt long.fuse --limit nodes=1

finish
