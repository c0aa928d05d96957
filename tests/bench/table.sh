#!/bin/bash
# make bench: every norm and softmax example over a table of sizes, on the GPU. Prints Markdown: GB/s
# (each input once + each output once), and in brackets the shares of a copy's and of an elementwise
# add's bandwidth in the same process; then what each cell ran. cells.sh tells what narrows it.
set -u
cd "$(dirname "$0")/../.."
export FUSEC_TUNING_FILE=/dev/null   # what the rules choose
. tests/bench/cells.sh

field() { sed -nE "s/.*\"$1\": (\"([^\"]*)\"|([^,}]*)).*/\2\3/p" <<<"$2" | head -n 1; }

head='| GB/s (of copy, of add) |' rule='|---|' plans=()
for size in $sizes; do head+=" $size |" rule+='---|'; done
echo "$head"
echo "$rule"
for example in $examples; do
    row="| $example |"
    for size in $sizes; do
        measure bench "$example" "$size"
        row+=$(awk -v g="$(field gbps "$json")" -v c="$(field copy_gbps "$json")" -v a="$(field add_gbps "$json")" \
            'BEGIN { printf " %.0f (%.2f, %.2f) |", g, g / c, g / a }')
        plans+=("| $example $size | $(field us "$json") | $(field compile_ms "$json") | $(field schedule "$json") |")
    done
    echo "$row"
done
echo "device: $(field device "$json"), $dtype, copy $(field copy_gbps "$json") GB/s"
echo
echo '| cell | µs | compile ms | schedule |'
echo '|---|---:|---:|---|'
printf '%s\n' "${plans[@]}"
