#!/bin/bash
# Goldens: tests/golden/NAME.fuse with what each stage made of it beside it: .graph .plan .cu, and .err
# for diagnostics; and NAME.grad, the backward passes of other programs. `golden.sh bless` writes them anew. A first line `# args: ...` adds arguments. A .cu has its helpers by
# #include, but where those ask for --prelude inline.
set -u
cd "$(dirname "$0")/golden"
fusec=../../build/fusec
export FUSEC_NVRTC=/dev/null NO_COLOR=1
new=../../build/golden
mkdir -p $new
rm -f $new/*

for file in *.fuse; do
    name=${file%.fuse}
    args=$(sed -n '1s/^# args: *//p' "$file")
    for stage in graph plan cuda; do
        suffix=$stage
        [ $stage = cuda ] && suffix=cu
        # shellcheck disable=SC2086
        $fusec emit "$file" --emit=$stage --arch sm_90a --prelude include $args >$new/$name.$suffix 2>$new/$name.err
        status=$?
        [ $status = 0 ] || { echo "exit status $status" >>$new/$name.err; rm $new/$name.$suffix; }
    done
    [ -s $new/$name.err ] || rm -f $new/$name.err
done

# The backward passes of the examples, and of the programs in tests/grad.
for file in ../../examples/*.fuse ../grad/*.fuse; do
    args=$(sed -n '1s/^# args: *//p' "$file")
    # shellcheck disable=SC2086
    $fusec grad "$file" $args >"$new/$(basename "$file" .fuse).grad"
done

if [ "${1:-}" = bless ]; then
    rm -f ./*.graph ./*.plan ./*.cu ./*.err ./*.grad
    cp $new/* .
    echo "$(ls $new | wc -l) goldens written"
    exit 0
fi
bad=0
for file in $(ls $new ./*.graph ./*.plan ./*.cu ./*.err ./*.grad 2>/dev/null | sed 's/.*\///' | grep '\.' |
    sort -u); do
    if ! diff -u --label "golden $file" --label "now" "$([ -f $file ] && echo $file ||
        echo /dev/null)" "$([ -f $new/$file ] && echo $new/$file || echo /dev/null)"; then
        bad=$((bad + 1))
    fi
done
if [ $bad != 0 ]; then
    echo "-- goldens: $bad differ; \`make bless\` takes the new ones"
    exit 1
fi
echo "-- goldens: $(ls $new | wc -l) match"
