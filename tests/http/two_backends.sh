#!/bin/sh
# Tests a benchmark in which the second of two backends fails. The reply has the results of the first.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

rows='[.rows[] | "\(.backend) \(.error.code // "none")"] | join(",")'
figures='[.rows[] | .kernel_ms != null and .repeats > 0 and .gflops != null] | map(tostring) | join(",")'

# benchmark SIDE VARIANT…: starts a benchmark, which waits until the file hold.fill is removed.
benchmark() {
    : >"$scratch/hold.fill"
    post_benchmark "$@"
}

# A product occupies the device, and the queue has space for one job.
prepare_held cuda
start_held --cpu-jobs 1 --queue-depth 1
benchmark 16 cpu:naive cuda:naive cpu:naive cuda:auto
hold_job runs
queue_job waits
rm "$scratch/hold.fill"
finish_benchmark
expect "a full queue" 200 "$rows" 'cpu none,cuda busy,cpu none,cuda busy' "$figures" 'true,false,true,false' .rows[1].device ''
like "a full queue: detail" '*1 jobs wait already*' "$(jq -r '.rows[1].error.detail' "$scratch/got")"
release
finish_slow runs "the product before" 200
finish_slow waits "the product that waits" 200
stop

# The device fails during the benchmark. Before the server ends, it waits half a second for the benchmark.
start_held
benchmark 16 cpu:naive cuda:naive
curl -s --max-time 60 -o /dev/null -d '{"a":[[1]],"b":[[1]],"variant":"loses_device"}' "$url/v1/matmul?backend=cuda" || :
finish_benchmark
expect "no device" 503 code not_ready
gives_up "no device"
rm "$scratch/hold.fill"

# If no variant could be measured, the reply is an error.
export MATMULD_FAULTY_FILL=fails
start_held --cpu-jobs 1 --queue-depth 1
benchmark 16 cuda:naive cpu:naive
post_slow waits
await 60 has_metric queue_jobs 1 || fail "no product waits"
rm "$scratch/hold.fill"
finish_benchmark
expect "no variant could be measured" 429 code busy Retry-After: '[1-9]*'
finish_slow waits "the product that waits" 200
benchmark 16 cuda:naive cpu:naive
rm "$scratch/hold.fill"
finish_benchmark
expect "after the queue is empty" 200 "$rows" 'cuda internal,cpu none' "$figures" 'false,true'
stop
finish
