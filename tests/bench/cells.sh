# The cells that table.sh and chosen.sh measure: EXAMPLES="…" and SIZES="MxN …" narrow them, DTYPE=f32 or f16 takes rows
# of that type. FUSEC names the program.
fusec=${FUSEC:-build/fusec}
dtype=${DTYPE:-bf16}
examples=${EXAMPLES:-layernorm_bwd rmsnorm_bwd layernorm rmsnorm softmax softmax_bwd}
sizes=${SIZES:-16384x1024 16384x2048 16384x4096 16384x8192 16384x12288 16384x16384 8192x24576
    8192x32768 4096x65536 2048x131072 1024x262144}

# Sets `json` to what `fusec COMMAND` says of a cell. Where there is no GPU the first cell ends the script, which says so; what
# the machine cannot do later on is a failure.
cells_measured=0
measure() {   # COMMAND EXAMPLE SIZE
    json=$(sed "s/bf16/$dtype/g" "examples/$2.fuse" | "$fusec" "$1" - "M=${3%x*}" "N=${3#*x}" --json)
    case $? in
    0) cells_measured=$((cells_measured + 1)) ;;
    3) [ $cells_measured = 0 ] || exit 1
       echo "$(basename "$0"): skipped, there is no GPU" >&2
       exit 0 ;;
    *) exit 1 ;;
    esac
}
