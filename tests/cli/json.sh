#!/bin/bash
# What is printed with --json, and colour.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# json STATUS EXPRESSION ARGUMENTS...: the exit status, and what is true of the value j that stdout holds.
json() {
    local status=$1 expression=$2 got
    shift 2
    tests=$((tests + 1))
    take_turn
    "$fusec" "$@" >stdout 2>stderr
    got=$?
    if [ $got != "$status" ]; then
        fail "exit $got, not $status: fusec $*"
    elif ! python3 -c 'import json, sys; j = json.load(open("stdout")); sys.exit(not eval(sys.argv[1]))' "$expression" 2>>stderr; then
        fail "not $expression: fusec $*"
    fi
}

printf 'graph g[N = 4](x : f32[N]) -> (y : f32[N]) {\n    y = x * w\n}\n' >wrong.fuse
error='j["files"][0]["diagnostics"][0]'
json 0 'j == {"files": [{"file": "one.fuse", "ok": True, "graphs": ["one"], "diagnostics": []}]}' check one.fuse --json
json 1 "$error == dict(severity='error', file='wrong.fuse', line=2, column=13, message=\"unknown name 'w'\", hint=None)" check wrong.fuse --json
[ -s stderr ] && fail 'check --json says something on stderr, too'
json 1 '[f["ok"] for f in j["files"]] == [True, False]' check one.fuse wrong.fuse --json
json 2 "'cannot read' in $error['message'] and $error['file'] is None" check nothing.fuse --json
json 2 "'no graph' in $error['message']" check one.fuse --graph two --json
json 2 "$error['hint'] == 'did you mean one?'" check one.fuse --graph onee --json

json 0 'j["ok"] is True and j["device"] == "cpu" and j["sizes"] == {"M": 4, "N": 8}' run one.fuse --device cpu --verify --json
json 0 '[o["verified"]["verdict"] for o in j["outputs"]] == ["ok", "ok"]' run one.fuse --device cpu --verify --json
json 0 'j["ok"] is None and j["outputs"][1]["shape"] == [4] and j["outputs"][1]["verified"] is None' run one.fuse --device cpu --json
json 0 'len(j["outputs"]) == 1' run one.fuse --device cpu --outputs s --json
echo 'graph g[N = 4](x : f32[N]) -> (y : f32[], z : f32[N]) { y = sum[N](x / (x - x))  z = log(x - x) }' >none.fuse
json 0 'j["outputs"][1]["min"] == "-inf" and j["outputs"][0]["mean"] is None' run none.fuse --device cpu --json
json 0 'j["ok"] is True' run none.fuse --device cpu --verify --json

json 0 "j == {'path': '$work/cache'}" cache path --json
json 0 'j == {"entries": []}' cache list --json
json 0 'j == {"removed": 0}' cache clear --json

# ---- the schema ----

# as_schema NAME ARGUMENTS...: what is printed is as the schema says of NAME.
as_schema() {
    local name=$1
    shift
    tests=$((tests + 1))
    take_turn
    "$fusec" "$@" >stdout 2>/dev/null
    "$root"/tests/schema.py "$name" <stdout 2>stderr || fail "not as the schema of $name: fusec $*"
}

mkdir explained
tests=$((tests + 2))
for file in "$root"/examples/*.fuse; do
    tests=$((tests + 1))
    take_turn
    FUSEC_NVRTC=/dev/null "$fusec" explain "$file" --json >"explained/$(basename "$file").json" 2>stderr || fail "explain $file"
done
"$root"/tests/schema.py explain explained/*.json 2>stderr || fail 'explain is not as the schema'
"$fusec" check "$root"/examples/*.fuse --json | "$root"/tests/schema.py check 2>stderr || fail 'check is not as the schema'
as_schema check check one.fuse wrong.fuse nothing.fuse --json
FUSEC_NVRTC=/dev/null as_schema explain explain one.fuse --json --candidates
FUSEC_NVRTC=/dev/null as_schema explain explain one.fuse --json --schedule row --arch sm_80
as_schema run run one.fuse --device cpu --json
as_schema run run one.fuse --device cpu --json --verify
as_schema run run none.fuse --device cpu --json --verify
as_schema run run "$root"/examples/layernorm_bwd.fuse M=5 N=40 --device cpu --json --verify
as_schema cache_path cache path --json
"$root"/tests/schema.py check <<<'{"files": [{"file": 1, "ok": true, "graphs": []}]}' 2>stderr && fail 'the schema takes anything'

# The rest by the stub driver and NVRTC of tests/faults, which run nothing: bench and tune of no rows.
stub=$root/build/faults
if [ -e "$stub/libcuda.so.1" ] && [ -e "$stub/libnvrtc_stub.so" ]; then
    export FUSEC_NVRTC=$stub/libnvrtc_stub.so
    for of in one.fuse "$root"/examples/layernorm_bwd.fuse "$root"/examples/rmsnorm.fuse; do
        rm -rf kernels
        "$fusec" plan save "$of" N=64 --arch sm_90a -o one.plan 2>stderr || fail "plan save $of"
        as_schema plan_show plan show one.plan --json
        "$fusec" build "$of" N=64 --arch sm_90a,sm_80 -o kernels >stdout 2>stderr || fail "build $of"
        tests=$((tests + 1))
        "$root"/tests/schema.py build 2>stderr <<<"$(cat kernels/*.json)" || fail "build $of: not as the schema"
    done
    LD_LIBRARY_PATH=$stub as_schema bench bench one.fuse M=0 --json
    first_build && LD_LIBRARY_PATH=$stub as_schema tune tune one.fuse M=0 --json
else
    echo '-- command line: JSON of bench, tune, plan and build, skipped: there is no stub driver'
fi
as_schema cache_list cache list --json
as_schema cache_clear cache clear --json

# ---- colour ----

red=$(printf '\033\\[1;31merror:')
expect 1 "$red" check wrong.fuse --color=always
expect 2 "$red" check --color always --no-such-option
expect 2 'unknown color' check wrong.fuse --color=allways
# terminal COMMAND: its output on a terminal.
terminal() {
    tests=$((tests + 1))
    python3 -c 'import pty, sys; pty.spawn(["sh", "-c", sys.argv[1]])' "$1" >stdout 2>stderr </dev/null
}
terminal "env -u NO_COLOR $fusec check wrong.fuse"
also "$red"
terminal "env NO_COLOR= $fusec check wrong.fuse"
also "$red"
terminal "env NO_COLOR=1 $fusec check wrong.fuse --color=always"
also "$red"
for command in "env NO_COLOR=1 $fusec check wrong.fuse" "env -u NO_COLOR $fusec check wrong.fuse --color=never" \
    "env -u NO_COLOR $fusec check wrong.fuse 2>&1 | cat"; do
    terminal "$command"
    also 'error:'
    grep -q "$red" stdout && fail "colour: $command"
done

finish
