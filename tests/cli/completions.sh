#!/bin/bash
# Completions of bash and zsh, the width of the help, and what the manual page names.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

expect 2 'needs a shell' completions
expect 2 'one of bash, zsh' completions fish
expect 2 "'zsh' is a second one" completions bash zsh
expect 0 'complete -F _fusec fusec' completions bash
cp stdout fusec.bash
expect 0 '^#compdef fusec' completions zsh
cp stdout _fusec

mkdir -p kernels 'two words'
touch norm.fuse back.fuse 'a b.fuse' norm.plan in.safetensors notes.txt

# ---- bash ----

# shellcheck disable=SC1091
. ./fusec.bash

# completes WORDS... : REPLIES...: what Tab offers behind `fusec WORDS...`; a last word of `` is begun anew.
completes() {
    COMP_WORDS=(fusec)
    while [ "$1" != : ]; do COMP_WORDS+=("$1"); shift; done
    shift
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) tests=$((tests + 1))
    _fusec fusec "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
    local offered wanted
    offered=$(printf '%s\n' "${COMPREPLY[@]}" | sort)
    wanted=$(printf '%s\n' "$@" | sort)
    [ "$offered" = "$wanted" ] || fail "bash, ${COMP_WORDS[*]}: offers" $offered
}

completes gr : grad gradcheck
completes exp : explain
completes no : norm.fuse
completes a : 'a b.fuse'
completes help bu : build
completes plan '' : save show run
completes plan s : save show
completes cache '' : list clear path
completes cache list '' : ''
completes completions '' : bash zsh
completes check '' : kernels 'two words' norm.fuse back.fuse one.fuse 'a b.fuse'
completes plan save b : back.fuse
completes plan show n : norm.plan
completes plan run n : norm.plan
completes plan show -- : $("$fusec" plan --help | grep -o -- '--\(json\|help\|version\|color\)\b')
completes plan run norm.plan --s : --seed --set
completes plan save norm.fuse --s : --schedule
completes norm.fuse --pre : --prelude
completes run norm.fuse --dev : --device
completes run norm.fuse --device '' : cuda cpu sim
completes tune norm.fuse --device '' : cuda
completes norm.fuse --emit cu : cuda cubin
completes norm.fuse --emit = : cuda tokens ast graph analysis plan schedule ptx cubin dot
completes norm.fuse --emit = p : plan ptx
completes norm.fuse --arch sm_9 : sm_90 sm_90a
completes build norm.fuse --arch sm_80,h : sm_80,h100 sm_80,h200
completes build norm.fuse -o k : kernels
completes run norm.fuse --in i : in.safetensors
completes grad norm.fuse --save '' : auto none
completes run norm.fuse --schedule w : warp-specialized
completes run norm.fuse --seed '' : ''

# ---- zsh ----

# zsh_offers TEXT WORD...: a terminal of zsh shows each word after Tab behind TEXT, in this order.
zsh_offers() {
    tests=$((tests + 1))
    timeout 20 zsh -f -c '
        zmodload zsh/zpty
        zpty shell zsh -f -i
        zpty -w shell "PS1= fpath=($PWD \$fpath); autoload -Uz compinit; compinit -u -d $PWD/dump; stty columns 200 rows 60; print rea''dy"
        zpty -m -r shell out "*ready*"
        zpty -n -w shell "$1"$'"'\\t\\t'"'
        pattern="*${(j:*:)${@[2,-1]}}*"
        zpty -m -r shell out "$pattern"' zsh "$@" 2>stderr || fail "zsh, $1: not offered: ${*:2}"
}

if command -v zsh >/dev/null; then
    zsh_offers 'fusec ' 'build  ' '-- write kernels' 'gradcheck' '-- compare gradients' 'norm.fuse'
    zsh_offers 'fusec plan ' run save show
    zsh_offers 'fusec plan show nor' norm.plan
    zsh_offers 'fusec run norm.fuse --device ' cpu cuda sim
    zsh_offers 'fusec run norm.fuse --dev' --device=
    zsh_offers 'fusec norm.fuse --emit=' analysis cubin tokens
    zsh_offers 'fusec build norm.fuse --arch sm_80,h' h100 h200
else
    echo 'completions of zsh: skipped, it is not installed'
fi

# ---- help and manual page ----

# Every line of help fits, and the manual page names every command and option.
page=$root/docs/fusec.1
sed 's/\\-/-/g; s/\\f[A-Z]//g' "$page" >page
for command in '' $_fusec_commands; do
    # shellcheck disable=SC2086
    expect 0 'usage: fusec' $command --help
    tests=$((tests + 1))
    [ "$(wc -L <stdout)" -le 80 ] || fail "fusec $command --help has more than 80 columns"
    sed -n 's/^  \(--*[a-z-]*\).*/\1/p' stdout >>options
done
for word in $_fusec_commands $(sort -u options); do
    tests=$((tests + 1))
    grep -q -e "^\.[BIRS]* \(.*[ \"]\)\?$word\($\|[ =\",.]\)" page || fail "the manual page does not name $word"
done

# No complaint of groff, and of mandoc where it is.
if command -v groff >/dev/null; then
    tests=$((tests + 1))
    groff -man -ww -z "$page" 2>stderr
    [ -s stderr ] && fail 'groff complains about the manual page'
fi
if command -v mandoc >/dev/null; then
    tests=$((tests + 1))
    mandoc -Tlint "$page" >stderr || fail 'mandoc complains about the manual page'
fi

finish
