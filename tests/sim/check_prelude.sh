#!/bin/sh
# Every section of the prelude that the host cannot compile (inline PTX) needs a twin in twins.h, under the
# same line `//@ names`; every other section is compiled as it is. Fails with the names that lack one.
set -eu
cd "$(dirname "$0")/../.."

awk '
FNR == 1 { file++ }
file == 1 && /^\/\/@ / { twin[$0] = 1; next }
file == 2 && /^\/\/@ / { section = $0; known[section] = 1; next }
file == 2 && !/^ *\/\// && /(^|[^a-z_])asm( volatile)? *\(/ { if (!(section in twin)) lacking[section] = 1 }
END {
    for (s in lacking) { print "tests/sim/twins.h has no twin of the prelude section: " s; bad = 1 }
    for (s in twin) if (!(s in known)) { print "the prelude has no section for the twin: " s; bad = 1 }
    exit bad
}' tests/sim/twins.h build/gen/prelude.cuh

# Each name of a twin section must be defined in it.
awk '
/^\/\/@ / { for (i = 2; i <= NF; i++) names[++n] = $i; next }
{ text = text "\n" $0 }
END {
    for (i = 1; i <= n; i++)
        if (text !~ ("[^A-Za-z_0-9]" names[i] "[^A-Za-z_0-9]")) {
            print "tests/sim/twins.h: a twin names " names[i] " but lacks it"
            bad = 1
        }
    exit bad
}' tests/sim/twins.h
