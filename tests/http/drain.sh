#!/bin/sh
# The end of a server: SIGTERM and SIGINT drain, so that what was accepted is answered, all else is told
# to go elsewhere, and the exit status is 0; a drain has its limit; a second signal ends at once.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

# Two slow jobs, where the CPU has one at a time: one runs, one waits.
load() {
    post_slow runs
    await_sent runs
    post_slow waits
    await_sent waits
}

is_unready() {
    [ "$(status_of "$url/readyz")" = 503 ]
}

# drain WHAT [SIGNAL]: sends the signal, and returns once the drain has begun.
drain() {
    kill -s "${2:-TERM}" "$server"
    await 5 is_unready || fail "$1: /readyz did not turn 503 while a job ran"
}

for signal in TERM INT; do
    start --backend cpu --cpu-jobs 1
    [ "$signal" = INT ] || prepare_slow "$(slow_side 1)"
    load
    drain "SIG$signal" $signal
    ask /readyz
    expect "SIG$signal: /readyz" 503 code stopping Retry-After: '[1-9]*'
    same "SIG$signal: /healthz" 200 "$(status_of "$url/healthz")"
    ask /v1/matmul -d '{"a":[[2]],"b":[[3]]}'
    expect "SIG$signal: a new job" 503 code stopping Retry-After: '[1-9]*'
    same "SIG$signal: a bad query is judged before" 400 "$(status_of -d '{}' "$url/v1/matmul?colour=red")"
    for job in runs waits; do
        finish_slow $job "SIG$signal: the job that $job" 200
    done
    from=$(now_ms)
    ended "SIG$signal"
    at_most "SIG$signal: milliseconds from the last reply to the end" 10000 $(($(now_ms) - from))
    same "SIG$signal: connecting afterwards" 000 "$(status_of "$url/healthz")"
done

start --backend cpu
from=$(now_ms)
stop
at_most "an idle server: milliseconds to its end" 5000 $(($(now_ms) - from))

# A signal that comes while the devices are being opened is not lost, and ends nothing by force.
for _ in 1 2 3 4 5 6 7 8; do
    launch --port 0
    stop
done

# A client that is refused during the drain, and does not even send all of its body, is not waited for.
start --backend cpu --drain-timeout-ms 20000
prepare_slow "$(slow_side 1)"
post_slow runs
await_sent runs
drain "a stalled client"
(
    {
        printf '{'
        sleep 30
    } | curl -s --max-time 30 -X POST -T - -H 'Expect:' -H 'Content-Type: application/json' "$url/v1/matmul"
) >/dev/null 2>&1 &
finish_slow runs "a stalled client: the job that runs" 200
from=$(now_ms)
ended "a stalled client"
at_most "a stalled client: milliseconds from the last reply to the end" 10000 $(($(now_ms) - from))

# One that sends the rest a moment after the last accepted job was answered is still told why.
start --backend cpu
post_slow runs
await_sent runs
drain "a late sender"
{
    printf '{'
    await 60 is_done runs
    sleep 0.3
    printf '}'
} | curl -s --max-time 60 -X POST -T - -H 'Expect:' -H 'Content-Type: application/json' -o "$scratch/late" \
    -w '%{http_code}' "$url/v1/matmul" >"$scratch/late.status" || :
same "a late sender: status and code" "503 stopping" "$(cat "$scratch/late.status") $(code_of "$scratch/late")"
finish_slow runs "a late sender: the job that runs" 200
ended "a late sender"

# A drain that is cut short: each job would take seconds.
start --backend cpu --cpu-jobs 1 --drain-timeout-ms 300
prepare_slow "$(slow_side 4)"
load
from=$(now_ms)
kill -TERM "$server"
for job in waits runs; do
    finish_slow $job "a short drain: the job that $job" 503 code stopping
done
# The limit, and as much as a busy machine may add; the jobs' own time is beyond that.
at_most "a short drain: milliseconds to the replies" 2500 $(($(now_ms) - from))
ended "a short drain"

# After a second signal nothing is waited for; with what status that ends is not said.
start --backend cpu --cpu-jobs 1
load
drain "two signals"
from=$(now_ms)
kill -TERM "$server"
wait "$server" || :
server=
at_most "two signals: milliseconds to the end" 2000 $(($(now_ms) - from))
for job in runs waits; do
    finish_slow $job "two signals: the job that $job has no reply" 000
done
finish
