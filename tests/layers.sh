#!/bin/bash
# The include graph is the data flow: a file of src/ includes headers of its own folder and of the folders before it,
# never of a later one. A header is named by its path below src/, so that each include shows where it leads. Only src/cli
# includes runtime/, and runtime/ includes nothing of the command line.
#
# The schedule stage compares no length of a row with a number: lengths are rows of a target's table alone.
#
# docs/hacking.md names each file of the schedule and of the printer.
set -eu
cd "$(dirname "$0")/.."

awk '
BEGIN {
    # Files of src/ itself are stages of their own: what a GPU is comes early, the pipeline late.
    n = split("base targets target graph frontend analyze reference schedule codegen explain compile cli", order, " ")
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

# docs/hacking.md has tables of the files of the two largest stages.
for file in src/schedule/*.c src/codegen/*.c; do
    grep -q "\`${file##*/}\`" docs/hacking.md || { echo "layers: docs/hacking.md does not name $file"; exit 1; }
done

# lengths FILE...: the comparisons of a length with a number above 64, a constant or an expression of them, and such numbers
# that are divided by a length. A length is what counts columns, their bytes or vectors, and a variable that was made of one.
lengths() {
    awk '
    # The value of an expression of numbers and constants; -1: it is none.
    function value(text,    parts, n, i, product) {
        gsub(/[ ()]|(int64_t|double|int)\)/, "", text)
        if (n = split(text, parts, "@") - 1) return n == 1 && value(parts[1]) >= 0 && value(parts[2]) >= 0 ? value(parts[1]) * 2 ^ value(parts[2]) : -1
        if (text ~ /[*+\/]/) {
            n = split(text, parts, /[*+\/]/)
            product = 1
            for (i = 1; i <= n; i++) { if (value(parts[i]) < 0) return -1; product *= value(parts[i]) }
            return product
        }
        if (text ~ /^[0-9.]+(e[0-9]+)?[uUlLf]*$/) return text + 0
        return text in constant ? constant[text] : -1
    }
    function readable(text) { gsub(/@/, "<<", text); return text }
    function is_length(text) { return text ~ counts || (local != "" && text ~ ("(^|[^a-z_0-9>.])(" local ")([^a-z_0-9(]|$)")) }
    # Whether of what is left and right of a comparison one is a length and the other a number.
    function meets(left, right) { return (is_length(left) && value(right) > 64) || (is_length(right) && value(left) > 64) }
    # Up to the parenthesis that closes what is not opened here.
    function inside(text,    i, c, depth) {
        for (i = 1; i <= length(text); i++) {
            c = substr(text, i, 1)
            depth += (c == "(") - (c == ")")
            if (depth < 0) return substr(text, 1, i - 1)
        }
        return text
    }
    function compare(text,    rest, left, right, at) {
        rest = text
        while (match(rest, /[^<>=!-](<=|>=|==|!=|<|>)[^<>=]/)) {
            at = RSTART + 1
            left = substr(rest, 1, RSTART)
            right = substr(rest, RSTART + RLENGTH - 1)
            sub(/.*(&&|\|\||\?|[^<>=!]=[^=]|;|return |\{|if \(|while \(|for \()/, "", left)
            sub(/(&&|\|\||\?|:|;|<|>|==|!=).*/, "", right)
            if (meets(left, inside(right))) {
                print FILENAME ":" FNR ": a length of a row is compared with a number: " readable(text)
                bad = 1
            }
            rest = substr(rest, at + 1)
        }
    }
    function divide(text,    rest, left, right) {
        rest = text
        while (match(rest, /[A-Za-z0-9_]+\)* *\/ *[a-z]/)) {
            left = substr(rest, RSTART, RLENGTH)
            sub(/[) ]*\/.*/, "", left)
            rest = right = substr(rest, RSTART + RLENGTH - 1)
            sub(/[-+*\/<>=?:;].*/, "", right)
            if (value(left) > 64 && is_length(inside(right))) {
                print FILENAME ":" FNR ": a number is divided by a length of a row: " readable(text)
                bad = 1
            }
        }
    }
    BEGIN { counts = "column_count\\(|count_vectors\\(|fastest_count\\(|part_bytes\\(|axes_size\\([^;]*columns|[.](slice|vectors)([^a-z_(]|$)|p[.]columns|(staged|late)_bytes\\(|bytes_of_few\\(" }
    FNR == 1 { comment = 0 }
    {
        line = $0
        gsub(/"([^"\\]|\\.)*"/, "text", line)
        gsub(/\/\*[^*]*\*\//, "", line)
        if (line ~ /\*\//) { comment = 0; sub(/.*\*\//, "", line) }
        if (comment) next
        if (line ~ /\/\*/) { comment = 1; sub(/\/\*.*/, "", line) }
        sub(/\/\/.*/, "", line)
        sub(/^[ \t]+/, "", line)
        gsub(/->/, ".", line)
        gsub(/<</, "@", line)    # no comparison
    }
    # constants: of enums, which may be of several lines, and of variables
    line ~ /(^|[^a-z])enum [a-zA-Z]* *\{/ { in_enum = 1 }
    in_enum || line ~ /const (int|int64_t|double|float) / {
        rest = line
        while (match(rest, /[A-Z][A-Z_0-9]* *= *[^,;}]+/)) {
            word = substr(rest, RSTART, RLENGTH)
            rest = substr(rest, RSTART + RLENGTH)
            name = number = word
            sub(/ *=.*/, "", name)
            sub(/[^=]*= */, "", number)
            if (value(number) >= 0) constant[name] = value(number)
        }
        if (line ~ /\}/) in_enum = 0
        if (line ~ /^(static )?(const|enum)/ || in_enum) next
    }
    /^\}/ { local = "" }
    # a statement, though it is of several lines
    {
        statement = statement (statement == "" ? "" : " ") line
        if (line !~ /[;{}]$/ && line != "") next
        text = statement
        statement = ""
    }
    match(text, /[a-z_]+ = [^=]/) && is_length(substr(text, RSTART + RLENGTH - 1)) {
        name = substr(text, RSTART, RLENGTH)
        made = substr(text, RSTART + RLENGTH - 1)
        sub(/ = .*/, "", name)
        # what a function makes of a length is none
        if (made !~ /[<>]|==/ && (made ~ counts || made !~ /[a-z]\(/)) local = local (local == "" ? "" : "|") name
    }
    text ~ /[<>]|==|!=/ { compare(text) }
    text ~ /\// { divide(text) }
    END { exit bad }' "$@"
}

# What a kernel cannot count, and what the model was not fitted on: neither chooses a schedule.
allowed='column_count(s, k) > 1 << 30|column_count(s, k) > MOST_COLUMNS'
found=$(lengths src/schedule/internal.h $(find src/schedule -name '*.c' | sort) | grep -vF "$(tr '|' '\n' <<<"$allowed")") || true
[ -z "$found" ] || { echo "$found"; exit 1; }

# It finds what is planted.
planted=$(mktemp)
trap 'rm -f "$planted"' EXIT
while read -r code; do
    printf 'enum { LONG = 5 << 10, FEW = 3 };\nstatic const int64_t WIDE = 4096;\nstatic bool f(const Scheduler *s, const Kernel *k)\n{\n%b\n}\n' "$code" >"$planted"
    ! lengths src/schedule/internal.h "$planted" >/dev/null || { echo "layers: not found: $code"; exit 1; }
done <<'END'
return column_count(s, k) > 4096;
return k->inner_count && column_count(s, k) >= LONG && k->rows;
if (WIDE <= column_count(s, k)) return true;
int64_t columns = axes_size(&s->a->sizes, k->columns);\nreturn columns < 2 * LONG;
int64_t columns = column_count(s, k) / k->cluster;\nbool odd = columns % 2;\nreturn odd &&\n columns > (1 << 14);
return k->slice == 8192 || k->rows;
for (int i = 0; p->vectors > WARP * LONG; i++) return true;
return part_bytes(p, 2) <= 48 << 10 ? true : false;
int64_t bytes = narrow ? bytes_of_few(s, k) : 0;\nint64_t ctas = (wide ? FEW : LONG) / bytes;
END
printf 'enum { WARP = 32 };\nbool f(void)\n{\n    return column_count(s, k) > WARP && k->threads_per_row > 512;\n}\n' >"$planted"
lengths src/schedule/internal.h "$planted" || { echo 'layers: found what is no length'; exit 1; }
echo "-- layers: no length is compared in src/schedule"
