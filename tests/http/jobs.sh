# Functions of server.sh with which a test decides how long a product or a benchmark runs
# shellcheck shell=sh disable=SC2034,SC2154

# start_held ARG…: starts a server in which the product of prepare_held runs until `release`.
start_held() {
    sound=$MATMULD MATMULD=${FAULTY:?the path of the faulty matmuld}
    export MATMULD_FAULTY_HOLD="$scratch/hold"
    start --timeout-ms 600000 --drain-timeout-ms 600000 --max-kernel-ms 4000000000 --queue-wait-ms 4000000000 \
        --watchdog-ms 0 "$@"
    MATMULD=$sound
    unset MATMULD_FAULTY_HOLD
}

# prepare_held BACKEND [M K N]: writes the body of a product that runs until `release`. The first element
# tells the backend to wait. On cuda nothing can cancel the product.
prepare_held() {
    slow_query="m=${2:-1}&k=${3:-20000}&n=${4:-1}&backend=$1&variant=naive"
    {
        "$FLOAT32" fill 1 7777
        "$FLOAT32" fill $((${3:-20000} * (${2:-1} + ${4:-1}) - 1)) 0
    } >"$scratch/slow"
    "$FLOAT32" fill $((${2:-1} * ${4:-1})) 0 >"$scratch/slow.expected"
}

# prepare_queued [MEMBER]: writes $scratch/queued, the smallest JSON product that is queued.
prepare_queued() {
    printf '{%s%s' "${1:-}" "$(jq -nr '[range(21) | [range(21) | 1]] | {a: ., b: .} | tojson[1:]')" >"$scratch/queued"
}

# post_slow NAME [QUERY]: posts the product of prepare_held in the background.
post_slow() {
    rm -f "$scratch/slow.$1" "$scratch/slow.$1".*
    (
        curl -s --max-time 300 -o "$scratch/slow.$1" -D "$scratch/slow.$1.head" -w '%{http_code}' \
            -H 'Content-Type: application/octet-stream' -H 'Expect:' --data-binary "@$scratch/slow" \
            "$url/v1/matmul?$slow_query${2:+&$2}" >"$scratch/slow.$1.status" || :
        : >"$scratch/slow.$1.done"
    ) &
}

# hold_job NAME [QUERY]: posts the product of prepare_held, and returns when a device has begun it.
hold_job() {
    : >"$scratch/hold"
    post_slow "$@"
    await 60 test -s "$scratch/hold" || fail "the slow job $1 was not begun"
}

release() {
    rm "$scratch/hold"
}

# queue_job NAME [QUERY]: posts the product of prepare_held, and returns when it waits in the queue.
queue_job() {
    post_slow "$@"
    await 60 has_metric queue_jobs 1 || fail "the slow job $1 does not wait"
}

is_done() {
    [ -f "$scratch/slow.$1.done" ]
}

# finish_slow NAME [WHAT STATUS [KEY VALUE]…]: waits for the reply to that product and checks it.
finish_slow() {
    slow=$1
    shift
    await 120 is_done "$slow" || fail "the slow job $slow had no reply"
    status=$(cat "$scratch/slow.$slow.status")
    : >"$scratch/got"
    : >"$scratch/head"
    if [ "$status" != 000 ]; then
        cp "$scratch/slow.$slow" "$scratch/got"
        cp "$scratch/slow.$slow.head" "$scratch/head"
        keep POST /v1/matmul
    fi
    [ $# -eq 0 ] || expect "$@"
    checks=$((checks + 1))
    [ "$status" != 200 ] || cmp -s "$scratch/got" "$scratch/slow.expected" || fail "the slow job $slow: the product is wrong"
}

# hold_late: sends a product that begins, gets 504 at its time limit, and still runs until `release`.
hold_late() {
    for ms in 100 1000 10000; do
        : >"$scratch/hold"
        post_slow late timeout_ms=$ms
        finish_slow late "a deadline of a running job" 504 code timeout
        [ ! -s "$scratch/hold" ] || return 0
    done
    fail "a deadline of a running job: it did not begin"
}

# post_benchmark SIDE VARIANT…: starts a long benchmark of square matrices, and returns when it runs.
post_benchmark() {
    edge=$1
    shift
    names=$(printf '"%s",' "$@")
    post_json_benchmark "{\"m\":$edge,\"k\":$edge,\"n\":$edge,\"repeats\":1000,\"variants\":[${names%,}]}"
}

# post_json_benchmark BODY: starts this benchmark, and returns when it runs.
post_json_benchmark() {
    curl -s -o "$scratch/benchmark.got" -D "$scratch/benchmark.head" -w '%{http_code}' -d "$1" \
        "$url/v1/benchmark" >"$scratch/benchmark.status" &
    benchmark=$!
    await 60 is_benchmarking || fail "no benchmark is under way"
}

# Sends an invalid benchmark, which gets 429 instead of 400 while another benchmark runs.
is_benchmarking() {
    [ "$(status_of -d '{}' "$url/v1/benchmark")" = 429 ]
}

# finish_benchmark: waits for the reply to the benchmark, which becomes the last reply.
finish_benchmark() {
    wait "$benchmark" || :
    cp "$scratch/benchmark.got" "$scratch/got"
    cp "$scratch/benchmark.head" "$scratch/head"
    status=$(cat "$scratch/benchmark.status")
    keep POST /v1/benchmark
}
