#!/bin/sh
# Tests that queue places and memory become free if a client leaves, a deadline passes or an upload ends.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

queued_ms() {
    jq --arg id "$1" 'select(.request_id == $id).queue_ms' "$scratch/log"
}

# Deadlines pass while another job runs. Time before the request arrives does not count.
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
at_most "milliseconds in the queue, at least" "$(queued_ms "$id")" 50
prepare_queued '"timeout_ms":100,'
ask '/v1/matmul?backend=cuda' -d @"$scratch/queued"
expect "behind a slow job, timeout_ms in the body" 504 code timeout

# A client that closes its sending side while its job waits counts as gone and gets no reply.
prepare_queued
{
    printf 'POST /v1/matmul?backend=cuda HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n' \
        "$(wc -c <"$scratch/queued")"
    cat "$scratch/queued"
} >"$scratch/requests"
talk requests 65536 HALF
same "a half-closed connection: bytes received" 0 "$(wc -c <"$scratch/raw" | tr -d ' ')"
release
finish_slow first "the first job" 200

# The client's deadline counts if it is shorter than the server's. Otherwise the server's deadline counts.
for ms in 60000 99999999999999999999; do
    ask "/v1/matmul?backend=cuda&timeout_ms=$ms" -d @"$scratch/queued"
    expect "in time, of $ms ms" 200
done
stop
start_held --timeout-ms 200
: >"$scratch/hold"
post_slow late timeout_ms=300000
finish_slow late "slower than --timeout-ms" 504 code timeout
release
stop

# A CPU product stops between two of its parts when its client leaves or its deadline passes.
start_held --backend cpu --cpu-jobs 1
prepare_held cpu
hold_job long
same "a short product beside a long one: status" 200 "$(status_of -d @"$scratch/queued" "$url/v1/matmul?backend=cpu")"
release
finish_slow long "the long product" 200
hold_late
await 60 has_free_budget || fail "deadline: a long product still uses its memory"
: >"$scratch/hold"
curl -s -o /dev/null -H 'Content-Type: application/octet-stream' -H Expect: --data-binary "@$scratch/slow" "$url/v1/matmul?$slow_query" &
caller=$!
await 60 test -s "$scratch/hold" || fail "the long product was not begun"
kill -KILL "$caller"
await 60 has_free_budget || fail "the client left: a long product still uses its memory"
release
stop

# Uploads break off before their body is complete.
start --backend cpu --memory-budget 64MiB --drain-timeout-ms 600000
printf 'POST /v1/matmul?m=1&k=1000000&n=1 HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\nContent-Length: 8000000\r\n\r\nabc' \
    >"$scratch/requests"
for _ in $(seq 60); do
    talk requests 65536 LEAVE || :
done
await 60 has_free_budget || fail "uploads that broke off still use memory"
stop
finish
