#!/bin/bash
# make bench: every norm and softmax example over a table of sizes, on the GPU. Prints Markdown: GB/s
# (each input once + each output once), and in brackets the share of an elementwise add's bandwidth
# in the same process. cells.sh tells what narrows it.
set -u
cd "$(dirname "$0")/../.."
export FUSEC_TUNING_FILE=/dev/null   # what the rules choose
. tests/bench/cells.sh

field() { sed -n "s/.*\"$1\": \"\{0,1\}\([^,\"}]*\).*/\1/p" <<<"$2" | head -n 1; }

head='| example |' rule='|---|'
for size in $sizes; do head+=" $size |" rule+='---|'; done
echo "$head"
echo "$rule"
for example in $examples; do
    row="| $example |"
    for size in $sizes; do
        measure bench "$example" "$size"
        row+=$(awk -v g="$(field gbps "$json")" -v a="$(field add_gbps "$json")" \
            -v s="$(field schedule "$json")" \
            'BEGIN { printf " %.0f (%.2f) %s |", g, g / a, substr(s, 1, 1) == "w" ? "w" : "" }')
    done
    echo "$row"
done
echo "device: $(field device "$json"), $dtype, copy $(field copy_gbps "$json") GB/s; w: warp-specialized"
