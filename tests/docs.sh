#!/bin/bash
# The documentation tells the truth: every ```fuse fence is a program without errors, every
# ```output fence is what the ```sh fence before it prints (a last line `...` stands for the rest), and every line
# of a ```cuda fence but `...` is one of what `<!-- cuda: COMMAND -->` before it prints.
# The ```c fences behind `<!-- compile -->` of a page are one file, which compiles, and runs on the CPU where it has a main.
# What is made from the sources (docs/generate) is up to date, and editors colour the examples right (tests/editors.py).
# Links lead somewhere (links.py), figures are those of the data files (bench/figures.py), and no word of words.txt is
# in prose or messages (words.py).
# examples/embed.c does what it says. The Python in docs/howto/pytorch.md and examples/ is run by `make check-torch`.
set -u
cd "$(dirname "$0")/.."
export FUSEC_NVRTC=/dev/null NO_COLOR=1 PATH="$PWD/build:$PATH"
work=build/docs
rm -rf $work
mkdir -p $work

# Cuts the fences out: NUMBER.fuse, NUMBER.sh, NUMBER.output, each with its place in NUMBER.place. A program behind
# `<!-- file: build/NAME.fuse -->` goes there as well, for the commands below it.
for file in README.md $(find docs -name "*.md" | sort); do
    awk -v work=$work -v base="$(tr / - <<<"${file%.md}")" -v file=$file '
    /^<!-- file: build\// { path = $3; next }
    !kind && /^```(fuse|sh|output)$/ {
        kind = substr($0, 4)
        if (path) printf "" > path
        copy = path
        path = ""
        out = sprintf("%s/%s.%04d.%s", work, base, ++n, kind)
        print file ":" FNR > (out ".place")
        printf "" > out
        next
    }
    kind && /^```$/ { kind = ""; close(out); if (copy) close(copy); next }
    kind { print > out; if (copy) print > copy }' $file
done

tests/links.py || exit 1
tests/bench/figures.py || exit 1
tests/words.py || exit 1
python3 docs/generate --check || exit 1
tests/editors.py || exit 1
bad=0 programs=0 outputs=0 cuda=0
for program in $work/*.fuse; do
    programs=$((programs + 1))
    fusec check "$program" || { echo "$(cat $program.place): does not compile"; bad=$((bad + 1)); }
done
for file in $(grep -rl --include='*.md' '^<!-- cuda: ' docs); do
    awk -v work=$work '/^<!-- cuda: /{ sub(/^<!-- cuda: /, ""); sub(/ -->$/, ""); command = $0 }
        /^```cuda$/ { fence = command != ""; next } /^```$/ { fence = 0 }
        fence && NF && !/^ *\.\.\.$/ { print FILENAME ":" FNR "\t" command "\t" $0 }' $file
done >$work/cuda.lines
while IFS=$'\t' read -r place command line; do
    printed=$work/$(cksum <<<"$command" | tr -d ' ').cu
    [ -e "$printed" ] || bash -c "$command" >"$printed" 2>/dev/null
    cuda=$((cuda + 1))
    sed 's/^ *//' "$printed" | grep -qxF -e "$(sed 's/^ *//' <<<"$line")" || { echo "$place: '$command' prints no line $line"; bad=$((bad + 1)); }
done <$work/cuda.lines
last=
for fence in $(ls $work | grep -E '\.(sh|output)$'); do
    case $fence in
    *.sh) last=$work/$fence; continue ;;
    esac
    outputs=$((outputs + 1))
    bash "$last" 2>&1 | grep -v '^fusec: without NVRTC' >$work/now    # which the docs' reader has
    expected=$work/$fence
    if [ "$(tail -n 1 $expected)" = ... ]; then
        lines=$(($(wc -l <$expected) - 1))
        head -n $lines $expected >$work/cut
        head -n $lines $work/now >$work/now.cut
        expected=$work/cut
        mv $work/now.cut $work/now
    fi
    diff -u --label "$(cat $work/$fence.place)" --label now $expected $work/now || bad=$((bad + 1))
done
# The program that docs/howto/embedding.md builds. FUSEC_NVRTC is no NVRTC, so it sees no GPU either.
export LD_LIBRARY_PATH=build CUDA_VISIBLE_DEVICES=
gcc -Wall -Wextra -Werror examples/embed.c -Iruntime -Lbuild -lfusec -lm -o $work/embed || bad=$((bad + 1))
$work/embed examples/layernorm_bwd.fuse >$work/embed.out 2>&1 || { cat $work/embed.out; bad=$((bad + 1)); }
for other in rmsnorm_bwd softmax; do
    $work/embed examples/$other.fuse 2>&1 | grep -q "graph $other: this program has tensors for" || {
        echo "examples/embed.c does not refuse $other"
        bad=$((bad + 1))
    }
done
pages=0
for file in $(grep -lxF '<!-- compile -->' docs/*.md docs/*/*.md); do
    pages=$((pages + 1))
    source=$work/$(tr / - <<<"${file%.md}").c
    awk -v file=$file '/^<!-- compile -->$/ { marked = 1; next } /^```c$/ && marked { on = 1; print "#line " FNR + 1 " \"" file "\""; next }
        /^```$/ { on = marked = 0 } on' $file >$source
    flags="-Wall -Wextra -Werror -Iruntime"
    if grep -q '^int main(' $source; then
        { gcc $flags $source -Lbuild -lfusec -lm -o ${source%.c} && ${source%.c}; } >$work/page.out 2>&1 ||
            { cat $work/page.out; echo "$file: its program fails"; bad=$((bad + 1)); }
    else
        gcc $flags -c $source -o ${source%.c}.o || bad=$((bad + 1))
    fi
done
echo "-- docs: $programs programs, $outputs outputs, $cuda lines of CUDA and C of $pages pages, $bad wrong"
[ $bad = 0 ]
