#!/bin/sh
# A job whose deadline passes, in the queue or while it runs, is answered with 504, whoever set the
# deadline; the next is served.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

: "${FAULTY:?the path of the faulty matmuld}"

# waited ID LEAST: the log says that the request was in the queue for so many milliseconds at least.
waited() {
    await 10 has_logged "\"request_id\":\"$1\"" || fail "no line for the request $1"
    at_most "$1: at least so many milliseconds in the queue" \
        "$(jq --arg id "$1" 'select(.request_id == $id).queue_ms' "$scratch/log")" "$2"
}

# Behind a product that is not interrupted, or the short ones would go first.
sound=$MATMULD MATMULD=$FAULTY
# shellcheck disable=SC2086
start --log-format json $held_options
prepare_queued
prepare_held 1500
post_slow first
await_sent first
from=$(now_ms)
ask '/v1/matmul?backend=cuda&timeout_ms=100' -H 'X-Request-Id: in_queue' -d @"$scratch/queued"
at_most "behind a slow job: milliseconds" 800 $(($(now_ms) - from))
waited in_queue 90
expect "behind a slow job, timeout_ms in the query" 504 code timeout
finish_slow first "the slow job" 200

post_slow second
await_sent second
prepare_queued '"timeout_ms":100,'
ask '/v1/matmul?backend=cuda' -d @"$scratch/queued"
expect "behind a slow job, timeout_ms in the body" 504 code timeout
finish_slow second "the second slow job" 200

# One that waits and runs then, or still waits where this machine is slow.
post_slow third
await_sent third
post_slow fourth timeout_ms=2200
finish_slow fourth "waits, and is slower than its timeout" 504
waited "$(header X-Request-Id "$scratch/head")" 300
finish_slow third "the third slow job" 200
stop

MATMULD=$sound
start --backend cpu --cpu-jobs 1
prepare_slow "$(slow_side 1.5)"

# Its result comes too late, and is dropped.
post_slow late timeout_ms=100
finish_slow late "a job slower than its timeout" 504 code timeout

# A client may wait for less than the process allows, and not for more.
prepare_queued
for ms in 60000 99999999999999999999; do
    ask "/v1/matmul?timeout_ms=$ms" -d @"$scratch/queued"
    expect "in time, of $ms ms" 200
done
stop

start --backend cpu --cpu-jobs 1 --timeout-ms 200
for query in timeout_ms=300000 timeout_ms=60000; do
    post_slow late $query
    finish_slow late "slower than --timeout-ms, $query" 504 code timeout
done
same "afterwards: status" 200 "$(status_of -d @"$scratch/queued" "$url/v1/matmul")"
stop
finish
