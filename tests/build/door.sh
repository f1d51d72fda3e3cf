#!/bin/sh
# What dev promises before it builds anything: wrong usage is exit status 2 and says why, the presets that
# it names are those of CMakePresets.json, and each verb of the help exists. Run in the top folder.
set -eu

failed=0

fail() {
    echo "$*"
    failed=$((failed + 1))
}

# refused WORDS ARG…: dev ends with 2 and its message contains the words.
refused() {
    words=$1
    shift
    code=0
    message=$(./dev "$@" 2>&1) || code=$?
    [ "$code" -eq 2 ] || fail "./dev $*: exit status $code, expected 2"
    case $message in *"$words"*) ;; *) fail "./dev $*: expected '$words', got: $message" ;; esac
}

refused "a verb is missing"
refused "no verb 'rum'" rum
refused "no verb '.*'" '.*'
refused "--preset takes one of" test --preset debug
refused "--preset takes one of" build --preset 'dev release'
refused "--preset takes one of" run --preset
refused "does not take '--port'" run --port 0
refused "does not take '-R'" test -R unit
refused "does not take '--'" build -- all
refused "got 'jsom'" fuzz jsom
refused "got 'jsom'" fuzz 5 jsom
refused "got '5s json'" fuzz 5s json
refused "seconds from 1 on; got '0'" fuzz 0
refused "got 'all'" fuzz 5 all
refused "nothing beside all or --total; got 'json'" fuzz all json
refused "nothing beside all or --total; got 'json'" fuzz --total 60 json
refused "--total takes a number of seconds from 1 to 1000000, got ''" fuzz --total
refused "got '0'" fuzz --total 0
refused "got '1m'" fuzz --total 1m
refused "got '1000001'" fuzz --total 1000001
refused "got '99999999999999999999'" fuzz --total 99999999999999999999
refused "does not take 'json'" coverage json
refused "does not take 'gpu/queue.c'" lint gpu/queue.c
refused "does not take '--preset dev'" lint --preset dev
refused "does not take '--quick gpu'" lint --quick gpu
refused "bench takes one of: wire" bench
refused "got 'kernel'" bench kernel
refused "got '.*'" bench '.*'
refused "--preset takes one of" bench --preset debug kernels
refused "does not take '--preset'" bench kernels --preset dev
refused "does not take '64'" bench wire 64
refused "--rows takes names with commas, of: small latency large ways memory start json; got 'large;'" bench wire --rows 'large;'
refused "--rounds takes a number from 1 to 1000, got '0'" bench wire --rounds 0
refused "--tool takes wrk or steady, got 'ab'" bench wire --tool ab
refused "--backend takes cuda or cpu, got ''" bench gpu --backend
refused "--peer takes torch or numpy, got 'jax'" bench gpu --peer jax
refused "--processes takes numbers with commas from 1 to 256, got 'x'" bench gpu --processes 1,x
refused "got '65'" bench gpu --rows 64,65
refused "--connections takes a number from 1 to 1000, got ''" bench remote --connections
refused "the three dimensions M K N, got 64 64" bench kernels 64 64
refused "the three dimensions M K N, got 1 2 3 4" bench kernels 1 2 3 4
refused "from 1 to 16777216, got '0'" bench kernels 64 0 64
refused "from 1 to 16777216, got '16777217'" bench kernels 64 64 16777217
refused "got '18446744073709551617'" bench kernels 18446744073709551617 1 1
refused "got '1e3'" bench kernels 1e3 64 64
refused "does not take '-1'" bench kernels -1 64 64
refused "either M K N or --all" bench kernels 64 64 64 --all
refused "--repeats takes a number from 1 to 1000000, got ''" bench kernels --repeats
refused "--seconds takes a number from 1 to 1000000, got '0'" bench kernels --seconds 0
refused "--backend takes a name, got 'cpu cuda'" bench kernels --backend 'cpu cuda'
refused "--transpose takes float32, float64, int32 or int64, got '7'" bench kernels --transpose 7 7
refused "the two dimensions M N of A with --transpose, got 7" bench kernels --transpose int32 7
refused "either --transpose or operands" bench kernels --transpose int32 --transpose-b
refused "either --transpose or --all" bench kernels --transpose int32 --all
refused "--into takes a folder" bench kernels --into
refused "--repeats takes a number from 1 to 1000, got '0'" bench crossovers --repeats 0
refused "does not take '64'" bench crossovers 64
refused "--into takes a folder" bench crossovers --into
refused "--depths takes numbers with commas, got ''" bench accuracy --depths
refused "--depths takes numbers with commas, got '64,,128'" bench accuracy --depths 64,,128
refused "from 1 to 16777216, got '1e3'" bench accuracy --depths 64,1e3
refused "at most 16 numbers, got 17" bench accuracy --depths 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17
refused "--edge takes a number from 1 to 1024, got '1025'" bench accuracy --edge 1025
refused "--family takes a name, got 'U(-1,1)'" bench accuracy --family 'U(-1,1)'
refused "--variant takes a name, got ''" bench accuracy --variant
refused "does not take '64'" bench accuracy 64
refused "either --dry or --depths and --edge" bench accuracy --dry --edge 8
refused "--into takes a folder" bench accuracy --into
refused "from 1 to 8192, got '8193'" bench json 8193
refused "from 1 to 8192, got '1x'" bench json 1x
refused "takes one edge" bench json 64 64
refused "--rounds takes a number from 1 to 100, got ''" bench json --rounds
refused "does not take '--all'" bench json --all

named=$(./dev --help | sed -n 's/^Presets: \([a-z -]*\) (.*/\1/p' | tr ' ' '\n' | sort)
present=$(jq -r '.configurePresets[] | select(.hidden | not) | .name' CMakePresets.json | sort)
[ "$named" = "$present" ] || fail "presets in dev: $named; in CMakePresets.json: $present"

sh tests/load/bench/wire.sh --check --quick --rows small,json --tool steady --into x || fail "bench wire refuses what it takes"
sh tests/load/bench/gpu.sh --check --dry --rows 1,json64 --processes 1,2 --no-peers || fail "bench gpu refuses what it takes"
sh tests/load/bench/remote.sh --check --rows slow,rate --connections 2 || fail "bench remote refuses what it takes"
sh tests/kernels/bench.sh --check 16777216 1 16777216 --slow --repeats 1 || fail "bench kernels refuses what it takes"
sh tests/kernels/accuracy.sh --check --variant naive --variant blas --family unit --depths 1,16777216 --edge 1024 --into x ||
    fail "bench accuracy refuses what it takes"
sh tests/json/bench.sh --check 8192 --rounds 100 || fail "bench json refuses what it takes"

# shares SECONDS TOTAL JOBS TARGET…: what each fuzz target gets of the whole time.
shares() {
    wanted=$1
    shift
    share=$(sh tests/fuzz/run.sh --share "$@") || fail "run.sh --share $*: exit status $?"
    [ "$share" = "$wanted" ] || fail "run.sh --share $*: $share, expected $wanted"
}

shares 59 60 1 json
shares 19 60 1 json npy raw
shares 29 60 2 json npy raw
shares 59 60 4 json npy raw
shares 1 2 1 json npy raw

verbs=$(./dev --help | sed -n 's|^  ./dev \([a-z]*\) .*|\1|p')
[ -n "$verbs" ] || fail "the help names no verb"
for verb in $verbs; do
    grep -qx "verb_$verb() {" dev || fail "the help names $verb, but dev has no verb_$verb"
done

echo "$failed failures"
[ "$failed" -eq 0 ]
