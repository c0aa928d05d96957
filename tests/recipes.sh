#!/bin/bash
# Follows docs/hacking.md: in a copy of the tree it inserts and deletes what the fences of "Adding an operation" and
# "Adding a reduction" say, compiles what that changes, and runs the program there on the CPU and on the simulator. So the recipes
# are complete, and say where.
#
#     ```insert FILE after TEXT     the fence's lines go behind the first line of FILE that has TEXT, or before it
#     ```delete FILE                the fence's lines are in FILE, and go
#     ```program                    what --verify must find right
set -eu
cd "$(dirname "$0")/.."
export FUSEC_NVRTC=/dev/null FUSEC_TUNING_FILE=/dev/null NO_COLOR=1
copy=build/recipes
rm -rf $copy
mkdir -p $copy/build/obj/tests $copy/tests $copy/steps

# With their times, so that `make` compiles no more than it must; objects without those of other programs.
cp -rp Makefile grammar runtime src $copy
cp -rp tests/sim tests/prop $copy/tests
cp -rp build/gen $copy/build
for folder in src runtime build tests/sim tests/prop; do
    [ ! -d build/obj/$folder ] || cp -rp build/obj/$folder $copy/build/obj/$(dirname $folder)
done

# NUMBER: the lines of a fence; NUMBER.head: what is to be done with them.
awk -v steps=$copy/steps '
/^## / { wanted = /^## Adding (an operation|a reduction)$/ }
!fence && wanted && /^```(insert|delete|program)/ {
    fence = sprintf("%s/%03d", steps, ++n)
    print substr($0, 4) > (fence ".head")
    printf "" > fence
    next
}
fence && /^```$/ { close(fence); fence = ""; next }
fence { print > fence }' docs/hacking.md

edit() {    # STEP VERB FILE SIDE TEXT
    awk -v fence="$1" -v verb="$2" -v side="${4-}" -v text="${5-}" '
    BEGIN { while ((getline line < fence) > 0) lines[++n] = line }
    verb == "delete" && $0 == lines[1] && !done { done = 1; next }
    verb == "insert" && index($0, text) && !done {
        done = 1
        if (side == "after") print
        for (i = 1; i <= n; i++) print lines[i]
        if (side == "before") print
        next
    }
    { print }
    END { exit !done }' "$copy/$3" >$copy/edited || { echo "docs/hacking.md: $2 $3 ${4-} ${5-}: no such line"; exit 1; }
    mv $copy/edited "$copy/$3"
}

edits=0
for head in $copy/steps/*.head; do
    read -r verb file side text <$head
    case $verb in
    program) cp ${head%.head} $copy/program.fuse; continue ;;
    esac
    edit ${head%.head} $verb $file $side "$text"
    edits=$((edits + 1))
done

env -u MAKEFLAGS make -C $copy OPT=-O0 HARDENING= EXTRA=-Werror build/fusec build/prop >$copy/log 2>&1 || { tail -n 20 $copy/log; exit 1; }
for device in "cpu M=37 N=300" "sim M=37 N=300" "sim M=5 N=4096"; do
    $copy/build/fusec run $copy/program.fuse --device $device --verify >$copy/log 2>&1 || { cat $copy/log; exit 1; }
done
$copy/build/prop --first 1 --count 20 --jobs 1 >$copy/log 2>&1 || { tail -n 20 $copy/log; exit 1; }
echo "-- recipes: $edits edits of docs/hacking.md make an operation and a reduction"
