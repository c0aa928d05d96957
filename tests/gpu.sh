#!/bin/bash
# make check-gpu: every example at its default sizes and at a grid of sizes, verified against the
# reference; memcheck and racecheck on a small size. Prints `skipped` when there is no GPU.
set -u
cd "$(dirname "$0")/.."
device=${1:-cuda}
export FUSEC_TUNING_FILE=/dev/null

# rows -> B H Q for graphs with four axes
quad() {
    case $1 in
    1) echo "B=1 H=1 Q=1" ;;
    71) echo "B=1 H=1 Q=71" ;;
    216) echo "B=2 H=3 Q=36" ;;
    *) echo "B=1 H=3 Q=683" ;;
    esac
}

sizes() {   # FILE ROWS COLUMNS
    if grep -q '^graph .*\[M = .*, N = ' "$1"; then
        echo "M=$2 N=$3"
    else
        echo "$(quad "$2") K=$3"
    fi
}

list_cases() {
    for file in examples/*.fuse; do
        echo "$file"
        for rows in 1 71 216 2049; do
            for columns in 7 96 229 1023 1987 4096 12288; do
                echo "$file $(sizes "$file" $rows $columns)"
            done
        done
    done
}

list_cases | build/gpu_cases "$device"
status=$?
if [ $status = 3 ]; then
    echo "make check-gpu: skipped, there is no GPU"
    exit 0
fi
[ $status = 0 ] || exit 1
[ "$device" = cuda ] || exit 0

sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda*/bin/compute-sanitizer 2>/dev/null |
    head -n 1)
if [ -z "$sanitizer" ]; then
    echo "compute-sanitizer: skipped, it is not installed"
else
    for file in examples/*.fuse; do
        for tool in memcheck racecheck; do
            "$sanitizer" --tool $tool --error-exitcode 9 --log-file build/sanitizer.log \
                build/fusec run "$file" $(sizes "$file" 71 229) --device cuda >/dev/null ||
                { echo "FAILED: $tool $file"; cat build/sanitizer.log; exit 1; }
        done
    done
    echo "compute-sanitizer: memcheck and racecheck found nothing"
fi
echo 'make check-gpu: all passed'
