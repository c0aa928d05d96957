#!/bin/bash
# The include graph is the data flow: a file of src/ includes headers of its own folder and of the folders before it,
# never of a later one. A header is named by its path below src/, so that each include shows where it leads. Only src/cli
# includes runtime/, and runtime/ includes nothing of the command line.
set -eu
cd "$(dirname "$0")/.."

awk '
BEGIN {
    # Files of src/ itself are stages of their own: what a GPU is comes early, the pipeline late.
    n = split("base targets target graph frontend analyze reference schedule codegen candidates explain compile cli", order, " ")
    for (i = 1; i <= n; i++) level[order[i]] = i
}
# "src/base/text.c" is of stage "base", "src/target.c" of "target".
function stage(path,    parts, count) {
    sub(/^src\//, "", path)
    count = split(path, parts, "/")
    sub(/\.[ch]$/, "", parts[1])
    return parts[1]
}
function complain(text) {
    print FILENAME ":" FNR ": " text
    bad = 1
}
function exists(path) { return system("test -f " path) == 0 }
/^#include "/ {
    header = $2
    gsub(/"/, "", header)
    if (header ~ /\.inc$/ || header == "fuse.h") next    # generated
    files++
    inside = exists("src/" header)
    if (FILENAME ~ /^runtime\//) {
        if (header ~ /^cli\//) complain("runtime/ includes " header " of the command line")
        next
    }
    mine = stage(FILENAME)
    if (!(mine in level)) complain("this file is in no stage; tests/layers.sh lists them")
    else if (!inside && mine != "cli") complain(header " is not in src/; headers are named by their path below it")
    else if (inside && !(stage(header) in level)) complain(header " is in no stage; tests/layers.sh lists them")
    else if (inside && level[stage(header)] > level[mine]) complain(header " belongs to a later stage")
}
END {
    if (!bad) print "-- layers: " files " includes follow the flow"
    exit bad
}' $(find src runtime -name '*.[ch]' | sort)
