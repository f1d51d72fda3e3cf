#!/bin/sh
# A job whose deadline passes, in the queue or while it runs, is answered with 504, whoever set the
# deadline; the next is served.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

queued_ms() {
    jq --arg id "$1" 'select(.request_id == $id).queue_ms' "$scratch/log"
}

# Behind a product that is not interrupted, and has no end by itself. What comes late to the queue, since the machine was held
# up, waits there for less than its deadline.
start_held --log-format json
prepare_held cuda
prepare_queued
hold_job first
for id in 1 2 3 4 5 6 7 8; do
    ask '/v1/matmul?backend=cuda&timeout_ms=100' -H "X-Request-Id: $id" -d @"$scratch/queued"
    expect "behind a slow job, timeout_ms in the query" 504 code timeout
    await 60 has_logged "\"request_id\":\"$id\"" || fail "no line for the request"
    [ "$(queued_ms "$id" | cut -d . -f 1)" -lt 50 ] || break
done
at_most "at least so many milliseconds in the queue" "$(queued_ms "$id")" 50
prepare_queued '"timeout_ms":100,'
ask '/v1/matmul?backend=cuda' -d @"$scratch/queued"
expect "behind a slow job, timeout_ms in the body" 504 code timeout
release
finish_slow first "the slow job" 200

# While it runs.
hold_late
release

# A client may wait for less than the process allows, and not for more.
prepare_queued
for ms in 60000 99999999999999999999; do
    ask "/v1/matmul?backend=cuda&timeout_ms=$ms" -d @"$scratch/queued"
    expect "in time, of $ms ms" 200
done
stop

is_served() {
    [ "$(status_of -d @"$scratch/queued" "$url/v1/matmul")" = 200 ]
}
start_held --timeout-ms 200
: >"$scratch/hold"
post_slow late timeout_ms=300000
finish_slow late "slower than --timeout-ms" 504 code timeout
release
await 60 is_served || fail "none is served afterwards"
stop
finish
