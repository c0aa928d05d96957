#!/bin/bash
# make chosen: the rules' choice beside the best schedule that `fusec tune` finds, for every norm and softmax
# example over a table of sizes, on the GPU. Prints Markdown: the default's time, the best one's, and how many times
# as long the default takes. Some five seconds a cell; nothing is kept. EXAMPLES="…", SIZES="MxN …" and DTYPE as in
# table.sh.
set -u
cd "$(dirname "$0")/../.."
fusec=${FUSEC:-build/fusec}
FUSEC_TUNING_FILE=$(mktemp)
export FUSEC_TUNING_FILE
trap 'rm -f "$FUSEC_TUNING_FILE"' EXIT
dtype=${DTYPE:-bf16}
examples=${EXAMPLES:-layernorm_bwd rmsnorm_bwd layernorm rmsnorm softmax softmax_bwd}
sizes=${SIZES:-16384x1024 16384x2048 16384x4096 16384x8192 16384x12288 16384x16384 8192x24576
    8192x32768 4096x65536 2048x131072 1024x262144}

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
        json=$(sed "s/bf16/$dtype/g" "examples/$example.fuse" |
            "$fusec" tune - "M=${size%x*}" "N=${size#*x}" --json)
        case $? in
        0) ;;
        3) echo "make chosen: skipped, there is no GPU" >&2; exit 0 ;;
        *) exit 1 ;;
        esac
        line=$(compare "$example $size" <<<"$json") || { echo "no times: $example $size" >&2; exit 1; }
        echo "$line"
        cells=$((cells + 1))
        near=$((near + $(awk -F'|' '{ print ($5 <= 1.03) }' <<<"$line")))
    done
done
echo
echo "within 3 %: $near of $cells cells"
