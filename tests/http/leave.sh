#!/bin/sh
# Clients that leave, and deadlines by the clock: a job that nobody waits for is taken out of the queue within
# a quarter of a second, a deadline is answered when it passes, and an upload that broke off holds
# neither memory nor the drain.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

: "${TALK:?the path of the program talk}" "${FAULTY:?the path of the faulty matmuld}"

has_room() {
    [ "$(status_of --max-time 0.1 -d @"$scratch/queued" "$url/v1/matmul?backend=cuda&timeout_ms=50")" != 429 ]
}

# One job runs, and is not interrupted; one fills the queue; then the client of the second leaves.
sound=$MATMULD MATMULD=$FAULTY
# shellcheck disable=SC2086
start --queue-depth 1 $held_options
prepare_queued
prepare_held 3000
post_slow runs
await_sent runs
curl -s -o /dev/null --max-time 60 -d @"$scratch/queued" "$url/v1/matmul?backend=cuda" &
caller=$!
await 2 has_metric queue_jobs 1 || fail "the second job does not wait"
same "the queue is full: status" 429 "$(status_of -d @"$scratch/queued" "$url/v1/matmul?backend=cuda")"
kill -KILL "$caller"
from=$(now_ms)
await 5 has_room || fail "the job of a client that left stays in the queue"
# The promise is 250 ms; asking costs some more.
at_most "milliseconds from leaving to room in the queue" 500 $(($(now_ms) - from))
await 5 has_metric queue_jobs 0 || fail "the jobs of those that asked stay in the queue"

# A deadline behind a job that takes far longer.
from=$(now_ms)
ask '/v1/matmul?backend=cuda&timeout_ms=200' -d @"$scratch/queued"
expect "a deadline in the queue" 504 code timeout
at_most "a deadline in the queue: milliseconds" 800 $(($(now_ms) - from))
finish_slow runs "the job that ran" 200

# Half of a connection: a client that closes the sending side while the product is awaited has left, and gets no reply.
prepare_held 1000
post_slow blocks
await_sent blocks
from=$(now_ms)
{
    printf 'POST /v1/matmul?backend=cuda HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n' \
        "$(wc -c <"$scratch/queued")"
    cat "$scratch/queued"
} >"$scratch/requests"
talk requests 65536 HALF
same "half a connection: bytes that came back" 0 "$(wc -c <"$scratch/raw" | tr -d ' ')"
at_most "half a connection: milliseconds" 1500 $(($(now_ms) - from))
finish_slow blocks "the job before it" 200

# The deadline of a job that runs: answered by the clock, and the next is served after it.
from=$(now_ms)
post_slow late timeout_ms=300
finish_slow late "a deadline of a running job" 504
at_most "a deadline of a running job: milliseconds" 1500 $(($(now_ms) - from))
same "the next: status" 200 "$(status_of --max-time 60 -d @"$scratch/queued" "$url/v1/matmul?backend=cuda")"
stop

# A long product of the CPU gives its core back once its client has left, or its deadline has passed: it ends between two of
# its pieces. Short ones do not wait for its end in the first place.
MATMULD=$sound
start --backend cpu --cpu-jobs 1
prepare_slow "$(slow_side 4)"
post_slow long
await_sent long
from=$(now_ms)
same "a short product beside a long one: status" 200 "$(status_of -d @"$scratch/queued" "$url/v1/matmul?backend=cpu")"
at_most "a short product beside a long one: milliseconds" 1000 $(($(now_ms) - from))
finish_slow long "the long one" 200
post_slow late timeout_ms=500
finish_slow late "a long one past its deadline" 504
for how in deadline leaving; do
    [ $how = deadline ] || curl -s -o /dev/null --max-time 0.5 -H 'Content-Type: application/octet-stream' -H Expect: \
        --data-binary "@$scratch/slow" "$url/v1/matmul?$slow_query" || :
    from=$(now_ms)
    await 5 has_free_budget || fail "$how: a long product holds its memory"
    at_most "$how: milliseconds to a free core" 1500 $(($(now_ms) - from))
done
stop

# Uploads that break off, their end coming together with data.
start --backend cpu --memory-budget 64MiB
printf 'POST /v1/matmul?m=1&k=1000000&n=1 HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\nContent-Length: 8000000\r\n\r\nabc' \
    >"$scratch/requests"
for _ in $(seq 60); do
    talk requests 65536 LEAVE || :
done
await 5 has_free_budget || fail "uploads that broke off hold memory"
from=$(now_ms)
stop
at_most "milliseconds of the drain after them" 2000 $(($(now_ms) - from))
finish
