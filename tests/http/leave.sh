#!/bin/sh
# Clients that leave, and deadlines by the clock: a job that nobody waits for is taken out of the queue,
# a deadline is answered when it passes, and an upload that broke off holds neither memory nor the drain.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

: "${TALK:?the path of the program talk}"

# One job runs, has no end by itself, and is not interrupted; one fills the queue; then the client of the second leaves.
start_held --queue-depth 1
prepare_queued
prepare_held cuda
hold_job runs
curl -s -o /dev/null -d @"$scratch/queued" "$url/v1/matmul?backend=cuda" &
caller=$!
await 60 has_metric queue_jobs 1 || fail "the second job does not wait"
same "the queue is full: status" 429 "$(status_of -d @"$scratch/queued" "$url/v1/matmul?backend=cuda")"
kill -KILL "$caller"
await 60 has_metric queue_jobs 0 || fail "the job of a client that left stays in the queue"

# Deadlines: behind that job, and its own.
ask '/v1/matmul?backend=cuda&timeout_ms=200' -d @"$scratch/queued"
expect "a deadline in the queue" 504 code timeout

# Half of a connection: a client that closes the sending side while the product is awaited has left, and gets no reply.
{
    printf 'POST /v1/matmul?backend=cuda HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n' \
        "$(wc -c <"$scratch/queued")"
    cat "$scratch/queued"
} >"$scratch/requests"
talk requests 65536 HALF
same "half a connection: bytes that came back" 0 "$(wc -c <"$scratch/raw" | tr -d ' ')"
release
finish_slow runs "the job before them" 200
same "the next: status" 200 "$(status_of -d @"$scratch/queued" "$url/v1/matmul?backend=cuda")"
stop

# A product of the CPU gives its core back once its client has left, or its deadline has passed: it ends between two of
# its pieces, which would have no end by themselves. Short ones do not wait for its end in the first place.
start_held --backend cpu --cpu-jobs 1
prepare_held cpu
hold_job long
same "a short product beside a long one: status" 200 "$(status_of -d @"$scratch/queued" "$url/v1/matmul?backend=cpu")"
release
finish_slow long "the long one" 200
hold_late
await 60 has_free_budget || fail "deadline: a long product holds its memory"
: >"$scratch/hold"
curl -s -o /dev/null -H 'Content-Type: application/octet-stream' -H Expect: --data-binary "@$scratch/slow" "$url/v1/matmul?$slow_query" &
caller=$!
await 60 test -s "$scratch/hold" || fail "the long product was not begun"
kill -KILL "$caller"
await 60 has_free_budget || fail "leaving: a long product holds its memory"
release
stop

# Uploads that break off, their end coming together with data.
start --backend cpu --memory-budget 64MiB --drain-timeout-ms 600000
printf 'POST /v1/matmul?m=1&k=1000000&n=1 HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\nContent-Length: 8000000\r\n\r\nabc' \
    >"$scratch/requests"
for _ in $(seq 60); do
    talk requests 65536 LEAVE || :
done
await 60 has_free_budget || fail "uploads that broke off hold memory"
stop
finish
