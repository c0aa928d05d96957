#!/bin/bash
# The include graph is the data flow: a file of src/ includes headers of its own layer and of those
# before it, never of a later one; only src/cli includes runtime/, and runtime/ includes no CLI.
# Layers: text -> tokens and ast -> graph -> analysis -> plan -> cuda -> compile.
set -eu
cd "$(dirname "$0")/.."

awk '
BEGIN {
    n = split("budget arena map environment thread text source dtype target prelude reserved:" \
              "ast syntax parse import format scan fuse print_ast:" \
              "graph print_graph lower simplify fold rewrite verify:" \
              "reference judge random analyze analysis:" \
              "launch schedul plan print_plan:" \
              "cuda explain dot candidates:" \
              "compile", layers, ":")
    for (i = 1; i <= n; i++) {
        m = split(layers[i], stems, " ")
        for (k = 1; k <= m; k++) level[stems[k]] = i
    }
}
# The layer of a file: that of the longest stem its name begins with; 0 for none.
function layer(path,    name, stem, longest, found) {
    name = path
    sub(/^.*\//, "", name)
    for (stem in level)
        if (index(name, stem) == 1 && length(stem) > longest) {
            longest = length(stem)
            found = level[stem]
        }
    return found + 0
}
function complain(text) {
    print FILENAME ":" FNR ": " text
    bad = 1
}
/^#include "/ {
    header = $2
    gsub(/"/, "", header)
    if (header ~ /\.(inc|def)$/) next
    files++
    if (FILENAME ~ /^runtime\//) {
        if (system("test -f src/cli/" header) == 0 && system("test -f runtime/" header) != 0 &&
            system("test -f src/" header) != 0)
            complain("runtime/ includes " header " of the command line")
        next
    }
    if (system("test -f src/" header) != 0 && system("test -f build/gen/" header) != 0) {
        complain(header " is not in src/")
        next
    }
    mine = layer(FILENAME)
    theirs = layer(header)
    if (!mine) complain("this file is in no layer; tests/layers.sh lists them")
    else if (!theirs) complain(header " is in no layer; tests/layers.sh lists them")
    else if (theirs > mine) complain(header " belongs to a later stage")
}
END {
    if (!bad) print "-- layers: " files " includes follow the flow"
    exit bad
}' src/*.c src/*.h runtime/*.c runtime/*.h
