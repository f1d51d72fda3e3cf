#!/bin/sh
# Callers who leave, and deadlines by the clock: what waits for nobody is taken out of the queue within
# a quarter of a second, a deadline is answered when it passes, and an upload that broke off holds
# neither memory nor the drain.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

: "${TALK:?the path of the program talk}"

milliseconds() {
    date +%s%3N
}

small() {
    status_of -H 'Content-Type: application/json' -d @"$scratch/queued" "$url/v1/matmul?backend=cpu"
}

has_room() {
    [ "$(status_of --max-time 0.1 -H 'Content-Type: application/json' -d @"$scratch/queued" \
        "$url/v1/matmul?backend=cpu&timeout_ms=50")" != 429 ]
}

# One job runs, one fills the queue; then the caller of the second leaves.
start --backend cpu --cpu-jobs 1 --queue-depth 1
prepare_queued
address=${url#http://}
prepare_slow "$(slow_side 3)"
post_slow runs
await_sent runs
curl -s -o /dev/null --max-time 60 -H 'Content-Type: application/json' -d @"$scratch/queued" \
    "$url/v1/matmul?backend=cpu" &
caller=$!
sleep 0.5 # asking sooner could itself take the place
same "the queue is full: status" 429 "$(small)"
kill -KILL "$caller"
from=$(milliseconds)
await 5 has_room || fail "the job of a caller who left stays in the queue"
# The promise is 250 ms; asking costs some more.
at_most "milliseconds from leaving to room in the queue" 500 $(($(milliseconds) - from))

sleep 0.5 # until the jobs of those who asked have left as well

# A deadline behind a job that takes far longer.
from=$(milliseconds)
got=$(curl -s -o "$scratch/got" -w '%{http_code}' --max-time 60 -H 'Content-Type: application/json' \
    -d @"$scratch/queued" "$url/v1/matmul?backend=cpu&timeout_ms=200")
same "a deadline in the queue: status" 504 "$got"
same "a deadline in the queue: code" timeout "$(code_of "$scratch/got")"
at_most "a deadline in the queue: milliseconds" 800 $(($(milliseconds) - from))
finish_slow runs
same "the job that ran: status" 200 "$slow_status"
check_slow runs

# Half of a connection: who closes the sending side while the product is awaited has left, and gets no reply.
prepare_slow "$(slow_side 1)"
post_slow blocks
await_sent blocks
from=$(milliseconds)
{
    printf 'POST /v1/matmul?backend=cpu HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n' \
        "$(wc -c <"$scratch/queued")"
    cat "$scratch/queued"
} |
    "$TALK" "${address%:*}" "${address##*:}" 65536 HALF >"$scratch/half"
same "half a connection: bytes that came back" 0 "$(wc -c <"$scratch/half" | tr -d ' ')"
at_most "half a connection: milliseconds" 1500 $(($(milliseconds) - from))
finish_slow blocks
same "the job before it: status" 200 "$slow_status"

# The deadline of a job that runs: answered by the clock, and the next is served after it.
from=$(milliseconds)
post_slow late timeout_ms=300
finish_slow late
same "a deadline of a running job: status" 504 "$slow_status"
at_most "a deadline of a running job: milliseconds" 1500 $(($(milliseconds) - from))
same "the next: status" 200 "$(status_of --max-time 60 -H 'Content-Type: application/json' -d @"$scratch/queued" \
    "$url/v1/matmul?backend=cpu")"
stop

# Uploads that break off, their end coming together with data.
start --backend cpu --memory-budget 64MiB
address=${url#http://}
for _ in $(seq 60); do
    printf 'POST /v1/matmul?m=1&k=1000000&n=1 HTTP/1.1\r\nHost: x\r\nContent-Type: application/octet-stream\r\nContent-Length: 8000000\r\n\r\nabc' |
        "$TALK" "${address%:*}" "${address##*:}" 65536 LEAVE >/dev/null 2>&1 || :
done
sleep 0.5
"$FLOAT32" fill 10000000 1 >"$scratch/body"
same "the budget after uploads that broke off" 200 "$(status_of --max-time 60 -H 'Content-Type: application/octet-stream' \
    --data-binary "@$scratch/body" "$url/v1/matmul?m=1&k=5000000&n=1")"
from=$(milliseconds)
stop
at_most "milliseconds of the drain after them" 2000 $(($(milliseconds) - from))
finish
