# shellcheck shell=bash
# What every part sources first: it works in a folder of its own, build/cli/PART, with a cache and a
# tuning file of its own, and tests build/fusec, or the program named in FUSEC. `finish` ends it.
# FUSEC_IN_TURN: another build, under sanitizers, which runs about every third command in place of the first.
set -u
part=$(basename "$0" .sh)
root=$(cd "$(dirname "$0")/../.." && pwd)
fusec=${FUSEC:-$root/build/fusec}
work=$root/build/cli${FUSEC:+.other}/$part    # both may run at a time
export FUSEC_CACHE_DIR=$work/cache FUSEC_TUNING_FILE=$work/tuning NO_COLOR=1
rm -rf "$work"
mkdir -p "$work"
cd "$work" || exit 1
bad=0 tests=0
builds=("$fusec" "$fusec" "${FUSEC_IN_TURN:-$fusec}")

# Which build runs what comes.
take_turn() {
    fusec=${builds[tests % 3]}
}

# Whether this is build/fusec. Another build of the same program, under sanitizers, prints the same:
# what only repeats a path with other numbers is left to the first.
first_build() {
    [ -z "${FUSEC-}" ]
}

fail() {
    echo "FAILED: $*"
    sed 's/^/    | /' stderr | head -n 5
    bad=$((bad + 1))
}

# expect STATUS PATTERN ARGUMENTS...: the exit status, and a pattern that stderr (for 0: stdout) has.
# A bad input ends in its own exit status with something on stderr, never in a signal, and leaves no
# output behind. Variables before it: stdin=FILE; nvrtc=1 where explain is to speak of registers and
# spills, for which NVRTC compiles the text.
expect() {
    local status=$1 pattern=$2 got stream=stderr library=${FUSEC_NVRTC-}
    shift 2
    tests=$((tests + 1))
    take_turn
    [ "${1-}" = explain ] && [ -z "${nvrtc-}" ] && library=/dev/null
    FUSEC_NVRTC=$library timeout 60 "$fusec" "$@" >stdout 2>stderr <"${stdin:-/dev/null}"
    got=$?
    [ "$status" = 0 ] && stream=stdout
    if [ $got != "$status" ]; then
        fail "exit $got, not $status: fusec $*"
    elif [ -n "$pattern" ] && ! grep -q -e "$pattern" $stream; then
        fail "no '$pattern' on $stream: fusec $*"
    elif [ "$status" = 1 ] && ! [ -s stderr ]; then
        fail "silent: fusec $*"
    elif [ "$status" != 0 ] && [ "$status" != 4 ] && [ -s stdout ]; then
        fail "output in spite of an error: fusec $*"
    fi
}

# also PATTERN: the last command printed this, too.
also() {
    tests=$((tests + 1))
    grep -q -e "$1" stdout || fail "no '$1' on stdout of the last one"
}

# tensors FILE HEADER BYTES: a file of tensors that are zero.
tensors() {
    local length=${#2}
    {
        # shellcheck disable=SC2059  # the format has the bytes
        printf "\\x$(printf %02x $((length & 255)))\\x$(printf %02x $((length >> 8 & 255)))"
        printf '\0\0\0\0\0\0%s' "$2"
        head -c "$3" /dev/zero
    } >"$1"
}

finish() {
    echo "-- command line, $part: $((tests - bad)) of $tests passed"
    [ $bad = 0 ]
    exit
}

cat >one.fuse <<'END'
graph one[M = 4, N = 8](x : f32[M, N], w : f32[N], eps : f32) -> (y : f32[M, N], s : f32[M]) {
    s = rsqrt(mean[N](x * x) + eps)
    y = x * s * w
}
END
