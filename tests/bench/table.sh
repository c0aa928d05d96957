#!/bin/bash
# make bench: every norm and softmax example over a table of sizes, on the GPU. Prints Markdown: GB/s
# (each input once + each output once), and in brackets the share of an elementwise add's bandwidth
# in the same process. EXAMPLES="…" and SIZES="MxN …" narrow it; DTYPE=f32 or f16 takes rows of that type.
set -u
cd "$(dirname "$0")/../.."
fusec=${FUSEC:-build/fusec}
export FUSEC_TUNING_FILE=/dev/null   # what the rules choose
dtype=${DTYPE:-bf16}
examples=${EXAMPLES:-layernorm_bwd rmsnorm_bwd layernorm rmsnorm softmax softmax_bwd}
sizes=${SIZES:-16384x1024 16384x2048 16384x4096 16384x8192 16384x12288 16384x16384 8192x24576
    8192x32768 4096x65536 2048x131072 1024x262144}

field() { sed -n "s/.*\"$1\": \"\{0,1\}\([^,\"}]*\).*/\1/p" <<<"$2" | head -n 1; }

head='| example |' rule='|---|'
for size in $sizes; do head+=" $size |" rule+='---|'; done
echo "$head"
echo "$rule"
for example in $examples; do
    row="| $example |"
    for size in $sizes; do
        json=$(sed "s/bf16/$dtype/g" "examples/$example.fuse" |
            "$fusec" bench - "M=${size%x*}" "N=${size#*x}" --json)
        case $? in
        0) ;;
        3) echo "make bench: skipped, there is no GPU" >&2; exit 0 ;;
        *) exit 1 ;;
        esac
        row+=$(awk -v g="$(field gbps "$json")" -v a="$(field add_gbps "$json")" \
            -v s="$(field schedule "$json")" \
            'BEGIN { printf " %.0f (%.2f) %s |", g, g / a, substr(s, 1, 1) == "w" ? "w" : "" }')
    done
    echo "$row"
done
echo "device: $(field device "$json"), $dtype, copy $(field copy_gbps "$json") GB/s; w: warp-specialized"
