#!/bin/bash
# The line that tells what a command is doing: after a second, on a terminal, wiped in the end.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

printf '#!/bin/sh\nsleep 1.3\nexit 1\n' >slow
chmod +x slow

# terminal PATTERN COMMAND: what a terminal gets, which has the pattern; `none` has no line at all.
terminal() {
    tests=$((tests + 1))
    CXX=${slow-$work/slow} python3 -c 'import pty, sys; pty.spawn(["sh", "-c", sys.argv[1]])' "$2" </dev/null 2>stderr |
        tr '\r' '\n' >stdout
    if [ "$1" = none ]; then
        grep -q 'compiling\|simulating' stdout && fail "a line: $2"
    elif ! grep -q -e "$1" stdout; then
        fail "no '$1': $2"
    elif ! grep -q "$(printf '^\033\\[K\\(output\\|fusec: \\|$\\)')" stdout; then
        fail "the line is not wiped: $2"
    fi
}

terminal 'compiling for the simulator, [12] s' "$fusec run one.fuse --device sim"
terminal none "$fusec run one.fuse --device sim --json"
terminal none "$fusec run one.fuse --device sim | cat"
terminal none "$fusec run one.fuse --device sim 2>stderr.out"
terminal none "$fusec run one.fuse --device cpu"
if first_build; then
    slow='' terminal 'simulating \[##* *\] *[0-9]*%' "$fusec run $root/examples/layernorm_bwd.fuse M=6000 N=4096 --outputs dx --device sim"
fi

finish
