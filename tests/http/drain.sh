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

# Seconds since the epoch, with a fraction.
now() {
    date +%s.%N
}

seconds_since() {
    awk -v from="$1" -v to="$(now)" 'BEGIN { print to - from }'
}

for signal in TERM INT; do
    start --backend cpu --cpu-jobs 1
    if [ "$signal" = TERM ]; then
        prepare_slow "$(slow_side 1)"
    fi
    load
    kill -s $signal "$server"
    await 5 is_unready || fail "SIG$signal: /readyz did not turn 503 while jobs ran"
    curl -s --max-time 10 -o "$scratch/got" -D "$scratch/head" "$url/readyz" || :
    same "SIG$signal: /readyz: code" stopping "$(code_of "$scratch/got")"
    keep GET /readyz "$scratch/head" "$scratch/got"
    like "SIG$signal: /readyz: Retry-After" '[1-9]*' "$(header Retry-After "$scratch/head")"
    same "SIG$signal: /healthz" 200 "$(status_of "$url/healthz")"
    got=$(curl -s --max-time 10 -o "$scratch/got" -D "$scratch/head" -w '%{http_code}' \
        -H 'Content-Type: application/json' -d '{"a":[[2]],"b":[[3]]}' "$url/v1/matmul") || :
    same "SIG$signal: a new job: status" 503 "$got"
    keep POST /v1/matmul "$scratch/head" "$scratch/got"
    same "SIG$signal: a new job: code" stopping "$(code_of "$scratch/got")"
    like "SIG$signal: a new job: Retry-After" '[1-9]*' "$(header Retry-After "$scratch/head")"
    same "SIG$signal: a bad query is judged before" 400 "$(status_of -d '{}' "$url/v1/matmul?colour=red")"
    for job in runs waits; do
        finish_slow $job
        same "SIG$signal: the job that $job: status" 200 "$slow_status"
        check_slow $job
    done
    from=$(now)
    ended "SIG$signal"
    at_most "SIG$signal: seconds from the last reply to the end" 10 "$(seconds_since "$from")"
    same "SIG$signal: connecting afterwards" 000 "$(status_of "$url/healthz")"
done

start --backend cpu
from=$(now)
stop
at_most "an idle server: seconds to its end" 5 "$(seconds_since "$from")"

# A signal that comes while the devices are being opened is not lost, and ends nothing by force.
for _ in 1 2 3 4 5 6 7 8; do
    launch --port 0
    stop
done

# Who is refused during the drain, and does not even send all of it, is not waited for.
start --backend cpu --drain-timeout-ms 20000
prepare_slow "$(slow_side 1)"
post_slow runs
await_sent runs
kill -TERM "$server"
await 5 is_unready || fail "a stalled caller: /readyz did not turn 503 while a job ran"
(
    {
        printf '{'
        sleep 30
    } | curl -s --max-time 30 -X POST -T - -H 'Expect:' -H 'Content-Type: application/json' "$url/v1/matmul"
) >/dev/null 2>&1 &
finish_slow runs
same "a stalled caller: the job that runs: status" 200 "$slow_status"
from=$(now)
ended "a stalled caller"
at_most "a stalled caller: seconds from the last reply to the end" 10 "$(seconds_since "$from")"

# Who is refused during the drain and sends the rest a moment after the last accepted one was answered is still told why.
start --backend cpu
post_slow runs
await_sent runs
kill -TERM "$server"
await 5 is_unready || fail "a late sender: /readyz did not turn 503 while a job ran"
{
    printf '{'
    await 60 is_done runs
    sleep 0.3
    printf '}'
} | curl -s --max-time 60 -X POST -T - -H 'Expect:' -H 'Content-Type: application/json' -o "$scratch/got" \
    -w '%{http_code}' "$url/v1/matmul" >"$scratch/late" || :
same "a late sender: status" 503 "$(cat "$scratch/late")"
same "a late sender: code" stopping "$(code_of "$scratch/got")"
finish_slow runs
same "a late sender: the job that runs: status" 200 "$slow_status"
ended "a late sender"

# A drain that is cut short: each job would take seconds.
start --backend cpu --cpu-jobs 1 --drain-timeout-ms 300
prepare_slow "$(slow_side 4)"
load
from=$(now)
kill -TERM "$server"
for job in waits runs; do
    finish_slow $job
    same "a short drain: the job that $job: status" 503 "$slow_status"
    same "a short drain: the job that $job: code" stopping "$(code_of "$scratch/slow.$job")"
done
# The limit, and as much as a busy machine may add; the jobs' own time is beyond that.
at_most "a short drain: seconds to the replies" 2.5 "$(seconds_since "$from")"
ended "a short drain"

# After a second signal nothing is waited for; with what status that ends is not said.
start --backend cpu --cpu-jobs 1
load
kill -TERM "$server"
await 5 is_unready || fail "two signals: /readyz did not turn 503 while jobs ran"
from=$(now)
kill -TERM "$server"
status=0
wait "$server" || status=$?
server=
at_most "two signals: seconds to the end" 2 "$(seconds_since "$from")"
for job in runs waits; do
    finish_slow $job
    same "two signals: the job that $job has no reply" 000 "$slow_status"
done
finish
