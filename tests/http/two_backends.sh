#!/bin/sh
# A benchmark of two backends of which the second cannot do its part any more, by the time that the first has
# done its own: the figures that there are come with the reason why there are no others.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

MATMULD=${FAULTY:?the path of the faulty matmuld}

# post_benchmark VARIANT…: starts a benchmark of square matrices, and waits until it has begun.
post_benchmark() {
    rows=$(printf '"%s",' "$@")
    rm -f "$scratch/benchmark.status"
    curl -s --max-time 120 -o "$scratch/got" -D "$scratch/head" -w '%{http_code}' \
        -d "{\"m\":$side,\"k\":$side,\"n\":$side,\"repeats\":1000,\"variants\":[${rows%,}]}" \
        "$url/v1/benchmark" >"$scratch/benchmark.status" &
    benchmark=$!
    await 10 is_benchmarking || fail "no benchmark is under way"
}

# finish_benchmark WHAT STATUS: waits for its reply.
finish_benchmark() {
    wait "$benchmark" || :
    same "$1: status" "$2" "$(cat "$scratch/benchmark.status")"
    keep POST /v1/benchmark "$scratch/head" "$scratch/got"
}

# post_product VARIANT FIRST: a product of one element by one on the faulty device, not waited for; sets caller.
post_product() {
    curl -s --max-time 60 -o /dev/null -H 'Content-Type: application/json' -d "{\"a\":[[$2]],\"b\":[[1]],\"variant\":\"$1\"}" \
        "$url/v1/matmul?backend=cuda" &
    caller=$!
}

# waits NUMBER: so many jobs wait in the queue.
waits() {
    curl -s "$url/metrics" | grep -qx "matmuld_queue_jobs $1"
}

# The first product is with the server, and waits no more.
is_taken() {
    curl -s "$url/metrics" >"$scratch/page"
    grep -qx 'matmuld_requests_in_flight 2' "$scratch/page" && waits 0
}

told() {
    jq -r "$1" "$scratch/got"
}

rows_are() {
    same "$1: rows" "$2" "$(told '[.rows[] | "\(.backend) \(.error.code // "none")"] | join(",")')"
    same "$1: figures" "$3" "$(told '[.rows[] | .kernel_ms != null and .repeats > 0 and .gflops != null] | map(tostring) | join(",")')"
}

# Runs of about 10 ms, of which a row has two seconds.
start --cpu-jobs 1 --queue-depth 1
side=$(slow_side 0.01)

# The device sleeps, and one job may wait for it.
post_benchmark cpu:naive cuda:naive cpu:naive cuda:auto
post_product takes_time 30000
await 10 is_taken || fail "the device was not taken"
sleep 0.2
first=$caller
post_product naive 1
await 3 waits 1 || fail "no product waits"
finish_benchmark "no room" 200
rows_are "no room" 'cpu none,cuda busy,cpu none,cuda busy' 'true,false,true,false'
like "no room: detail" '*1 jobs wait already*' "$(told '.rows[1].error.detail')"
same "no room: device" '' "$(told '.rows[1].device')"
kill "$first" "$caller"
stop
conform "$scratch/exchanges"
rm "$scratch/exchanges"/*
kept=0

# The device is lost meanwhile, and with it the process. The first row of the benchmark would take two
# seconds, and has half of one.
start
post_benchmark cpu:naive cuda:naive
post_product loses_device 1
wait "$caller" || :
finish_benchmark "no device" 503
same "no device: code" not_ready "$(code_of "$scratch/got")"
gives_up "no device"
conform "$scratch/exchanges"
rm "$scratch/exchanges"/*
kept=0

# Nothing was measured: the refusal is the answer.
export MATMULD_FAULTY_FILL_MS=3000
start --cpu-jobs 1 --queue-depth 1
side=8
post_benchmark cuda:naive cpu:naive
post_product naive 1
await 2 waits 1 || fail "no product waits"
finish_benchmark "nothing measured" 429
same "nothing measured: code" busy "$(code_of "$scratch/got")"
like "nothing measured: Retry-After" '[1-9]*' "$(header Retry-After "$scratch/head")"
wait "$caller" || :
post_benchmark cuda:naive cpu:naive
finish_benchmark "with room again" 200
rows_are "with room again" 'cuda internal,cpu none' 'false,true'
stop
finish
