#!/bin/sh
# A benchmark of two backends of which the second cannot do its part any more, by the time that the first has
# done its own: the figures that there are come with the reason why there are no others.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

MATMULD=${FAULTY:?the path of the faulty matmuld}

# post_product VARIANT FIRST: a product of one element by one on the faulty device, not waited for; sets caller.
post_product() {
    curl -s --max-time 60 -o /dev/null -d "{\"a\":[[$2]],\"b\":[[1]],\"variant\":\"$1\"}" "$url/v1/matmul?backend=cuda" &
    caller=$!
}

# The first product is with the server, and waits no more.
is_taken() {
    has_metric requests_in_flight 2 && has_metric queue_jobs 0
}

rows='[.rows[] | "\(.backend) \(.error.code // "none")"] | join(",")'
figures='[.rows[] | .kernel_ms != null and .repeats > 0 and .gflops != null] | map(tostring) | join(",")'

# Runs of about 10 ms, of which a row has two seconds.
start --cpu-jobs 1 --queue-depth 1
side=$(slow_side 0.01)

# The device sleeps, and one job may wait for it.
post_benchmark "$side" cpu:naive cuda:naive cpu:naive cuda:auto
post_product takes_time 30000
await 10 is_taken || fail "the device was not taken"
first=$caller
post_product naive 1
await 3 has_metric queue_jobs 1 || fail "no product waits"
finish_benchmark
expect "no room" 200 "$rows" 'cpu none,cuda busy,cpu none,cuda busy' "$figures" 'true,false,true,false' .rows[1].device ''
like "no room: detail" '*1 jobs wait already*' "$(jq -r '.rows[1].error.detail' "$scratch/got")"
kill "$first" "$caller"
stop

# The device is lost meanwhile, and with it the process. The first row of the benchmark would take two
# seconds, and has half of one.
start
post_benchmark "$side" cpu:naive cuda:naive
post_product loses_device 1
wait "$caller" || :
finish_benchmark
expect "no device" 503 code not_ready
gives_up "no device"

# Nothing was measured: the refusal is the answer.
export MATMULD_FAULTY_FILL_MS=3000
start --cpu-jobs 1 --queue-depth 1
post_benchmark 8 cuda:naive cpu:naive
post_product naive 1
await 2 has_metric queue_jobs 1 || fail "no product waits"
finish_benchmark
expect "nothing measured" 429 code busy Retry-After: '[1-9]*'
wait "$caller" || :
post_benchmark 8 cuda:naive cpu:naive
finish_benchmark
expect "with room again" 200 "$rows" 'cuda internal,cpu none' "$figures" 'false,true'
stop
finish
