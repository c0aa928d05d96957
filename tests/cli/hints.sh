#!/bin/bash
# Warnings, and errors of a program with the hint that each has.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

printf 'graph g[M = 4, Q = 3](x : f32[M]) -> (y : f32[M]) { y = x }\n' >idle.fuse
expect 0 '' check idle.fuse
grep -q "idle.fuse:1:16: warning: axis 'Q' is never used" stderr || fail 'an axis that nothing uses is not told'
printf 'graph g[M = 9](x : f32[M]) -> (y : f32[M]) { y = where(0 < x < 1, x, 0) }\n' >chain.fuse
expect 0 '' check chain.fuse
grep -q "chain.fuse:1:56: warning: '<' compares a condition, which counts as 0 or 1" stderr || fail 'a chain of comparisons is not told'
while read -r hint; do
    read -r text
    echo "$text" >wrong.fuse
    expect 1 "^  hint: $hint" check wrong.fuse
done <<'END'
write import "std"
import std
write axes in brackets; a scalar has no brackets
graph nothing[](x : f32[]) -> (y : f32[]) { y = x }
write outputs in parentheses
graph g[N = 4](x : f32[N]) -> y : f32[N] { y = x }
a reduction is called, as in sum
graph g[N = 4](x : f32[N]) -> (y : f32[N]) { y = x * size[N] }
write where(condition, a, b)
graph g[N = 4](x : f32[N]) -> (y : f32[N]) { y = x if x > 0 else 0 }
'N' is an axis: it goes in brackets
graph g[N = 4](x : f32[N]) -> (y : f32[]) { y = max(x, N) }
name the axis: mean\[N\](x)
graph g[M = 3, N = 4](x : f32[M, N]) -> (y : f32[M]) { y = mean[-1](x) }
it can be reduced over its own axes, as in mean\[N\]
graph g[M = 3, N = 4, H = 2](x : f32[M, N], w : f32[H]) -> (y : f32[M], z : f32[H]) { y = mean[H](x) z = w }
pick an element by its index: sum.N.(where(index(N) == 0, x, 0))
graph g[M = 3, N = 4](x : f32[M, N]) -> (y : f32[M]) { y = x[:, 0] }
a comma is missing
graph g[M = 4 N = 8](x : f32[M, N]) -> (y : f32[M, N]) { y = x }
a comma is missing
graph g[N = 4](x : f32[N] gamma : f32[N]) -> (y : f32[N]) { y = x }
a parameter is written NAME : DTYPE
graph g[N = 4](x : f32[N], gamma) -> (y : f32[N]) { y = x }
a graph names its outputs
graph g[N = 4](x : f32[N]) { return x }
an axis has a size
graph g[M = , N = 8](x : f32[M, N]) -> (y : f32[M, N]) { y = x }
numbers have no suffix
graph g[N = 4](x : f32[N]) -> (y : f32[N]) { y = x + 1e-5f }
the '(' at wrong.fuse:1:.* is not closed
graph g[N = 4](x : f32[N]) -> (y : f32[N]) { y = x * (x + 1 }
the '\[' at wrong.fuse:1:.* is not closed
graph g[N = 4](x : f32[N) -> (y : f32[N]) { y = x }
the '(' at wrong.fuse:1:.* is not closed
graph g[N = 4](x : f32[N] -> (y : f32[N]) { y = x }
END
printf 'graph g[N = 4](x : f32[N]) -> (y : f32[N]) {\n    m = exp(x\n    y = m\n}\n' >wrong.fuse
expect 1 "^  hint: the '(' at wrong.fuse:2:12 is not closed" check wrong.fuse
: >wrong.fuse
expect 1 'wrong.fuse: error: the file has no graph, function or import' check wrong.fuse
# characters and names that other languages would have
for hint in 'x ? x : 0=where(c, a, b)' 'x @ x=sum\[N\](a \* b)'; do
    echo "graph g[N = 4](x : f32[N]) -> (y : f32[N]) { y = ${hint%%=*} }" >other.fuse
    expect 1 "hint: write ${hint#*=}" check other.fuse
done
# shellcheck disable=SC1003  # one backslash
for call in 'max\[N\](x, 0)=max(a, b)' 'softmax\[N\](x, 1)=softmax\[K\](x)'; do
    printf 'import "std"\ngraph g[N = 4](x : f32[N]) -> (y : f32[N]) { y = %s }' "${call%%=*}" | tr -d '\\' >other.fuse
    expect 1 "hint: .*${call#*=}" check other.fuse
done
echo 'import "stdlib" graph g[N = 4](x : f32[N]) -> (y : f32[N]) { y = x }' >other.fuse
expect 1 'hint: the standard library is: import "std"' check other.fuse
# the program's own definition is the second, wherever the first came from
printf 'import "std"\nfn relu(x) = x\ngraph g[N = 4](x : f32[N]) -> (y : f32[N]) { y = relu(x) }' >twice.fuse
expect 1 'twice.fuse:2:4: error: function .relu. is defined twice' check twice.fuse
printf 'graph g[N = 8](x : bf16[N]) -> (y : f32[N]) {\n    y = x.to(f32)\n}\n' >cast.fuse
expect 1 'write f32.x., not x.to.f32.' check cast.fuse

finish
