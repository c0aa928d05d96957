#!/bin/bash
# make chosen: the rules' choice beside the best schedule that `fusec tune` finds, for every norm and softmax
# example over a table of sizes, on the GPU. Prints Markdown: the default's time, the best one's, and how many times
# as long the default takes. Some five seconds a cell; nothing is kept. cells.sh tells what narrows it.
set -u
cd "$(dirname "$0")/../.."
FUSEC_TUNING_FILE=$(mktemp)
export FUSEC_TUNING_FILE
trap 'rm -f "$FUSEC_TUNING_FILE"' EXIT
. tests/bench/cells.sh

# Only finalists and the default are timed in many rounds, so only they are compared.
compare() {
    awk -v cell="$1" '
    function field(name) {
        if (!match($0, "\"" name "\": [^,}]*")) return ""
        return substr($0, RSTART + length(name) + 4, RLENGTH - length(name) - 4)
    }
    /"schedule":.*"us":/ {
        us = field("us") + 0; rounds = field("rounds") + 0
        if (field("default") == "true") chosen = us
        if (rounds > most) { most = rounds; best = 0 }
        if (rounds == most && (!best || us < best)) { best = us; schedule = field("schedule") }
    }
    END {
        if (!chosen || !best) exit 1
        gsub(/"/, "", schedule)
        printf "| %s | %.1f | %.1f | %.3f | %s |\n", cell, chosen, best, chosen / best, schedule
    }'
}

echo "| $dtype | chosen µs | best µs | chosen / best | best |"
echo '|---|---:|---:|---:|---|'
cells=0 near=0
for example in $examples; do
    for size in $sizes; do
        measure tune "$example" "$size"
        line=$(compare "$example $size" <<<"$json") || { echo "no times: $example $size" >&2; exit 1; }
        echo "$line"
        cells=$((cells + 1))
        near=$((near + $(awk -F'|' '{ print ($5 <= 1.03) }' <<<"$line")))
    done
done
echo
echo "within 3 %: $near of $cells cells"
