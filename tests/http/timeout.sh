#!/bin/sh
# A job whose deadline passes, in the queue or while it runs, is answered with 504, whoever set the
# deadline; the next is served.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

# small QUERY: a small product; sets got.
small() {
    got=$(curl -s --max-time 60 -o "$scratch/got" -w '%{http_code}' -H 'Content-Type: application/json' \
        -d @"$scratch/queued" "$url/v1/matmul?$1") || :
}

timed_out() {
    same "$1: status" 504 "$got"
    same "$1: code" timeout "$(code_of "$scratch/got")"
}

start --backend cpu --cpu-jobs 1
prepare_queued
side=$(slow_side 1.5)
prepare_slow "$side"
post_slow first
await_sent first
small timeout_ms=100
timed_out "behind a slow job, timeout_ms in the query"
finish_slow first
same "the slow job: status" 200 "$slow_status"
check_slow first

post_slow second
await_sent second
prepare_queued '"timeout_ms":100,'
got=$(curl -s --max-time 60 -o "$scratch/got" -w '%{http_code}' -H 'Content-Type: application/json' \
    -d @"$scratch/queued" "$url/v1/matmul") || :
timed_out "behind a slow job, timeout_ms in the body"
finish_slow second
same "the second slow job: status" 200 "$slow_status"

# Its result comes too late, and is dropped.
post_slow late timeout_ms=100
finish_slow late
same "a job slower than its timeout: status" 504 "$slow_status"
same "a job slower than its timeout: code" timeout "$(code_of "$scratch/slow.late")"

# A caller may wait for less than the process allows, and not for more.
prepare_queued
small timeout_ms=60000
same "in time: status" 200 "$got"
small timeout_ms=99999999999999999999
same "a timeout past 2^64: status" 200 "$got"
stop

start --backend cpu --cpu-jobs 1 --timeout-ms 200
post_slow late
finish_slow late
same "slower than --timeout-ms: status" 504 "$slow_status"
same "slower than --timeout-ms: code" timeout "$(code_of "$scratch/slow.late")"
post_slow longer timeout_ms=60000
finish_slow longer
same "slower than --timeout-ms, asking for longer: status" 504 "$slow_status"
# The kernel of the late job runs on, since it cannot be interrupted; once it ends, the next is in time.
in_time() {
    [ "$(status_of -d @"$scratch/queued" "$url/v1/matmul")" = 200 ]
}
await 60 in_time || fail "afterwards: no product was in time"
stop
finish
