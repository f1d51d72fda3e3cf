#!/bin/sh
# A full queue: what does not fit is answered with 429 and Retry-After at once, /healthz stays quick, and
# what was accepted is answered rightly, as is what comes later.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

start --backend cpu --cpu-jobs 1 --queue-depth 1
prepare_slow "$(slow_side 0.7)"
callers=6
for caller in $(seq $callers); do
    post_slow "$caller"
done

# Refusals come while the first job is still at it: all but those that run or wait.
is_refused() {
    grep -qs '^429' "$scratch"/slow.*.status
}
await 30 is_refused || fail "no 429 came while jobs ran"
health=$(curl -s --max-time 10 -o "$scratch/got" -w '%{http_code} %{time_total}' "$url/healthz") || :
same "/healthz beside a full queue: status" 200 "${health% *}"
at_most "/healthz beside a full queue: seconds" 2 "${health#* }"
same "/readyz beside a full queue: status" 200 "$(status_of "$url/readyz")"
same "/v1/variants beside a full queue: status" 200 "$(status_of "$url/v1/variants")"

done_count=0
busy_count=0
for caller in $(seq $callers); do
    finish_slow "$caller"
    case $status in
    200) done_count=$((done_count + 1)) ;;
    *)
        busy_count=$((busy_count + 1))
        expect "caller $caller" 429 code busy Retry-After: '[1-9]*'
        ;;
    esac
done
# One runs and one waits; the rest can only be more where an early one was done before the last came.
at_most "one done and one refused at least: $done_count and $busy_count" 0 $(((done_count < 1) + (busy_count < 1)))
for _ in 1 2 3; do
    ask /v1/matmul -d '{"a":[[2]],"b":[[3]]}'
    expect afterwards 200 .c '[[6]]'
done
stop

# By what others took, the wait is known: it is told, and a long one is refused though the queue has room.
start --backend cpu --cpu-jobs 1 --queue-wait-ms 500
prepare_slow "$(slow_side 2.5)"
post_slow runs
await_sent runs
post_slow refused
finish_slow refused "a long wait" 429 detail 'will take*limit is 0.5 s'
same "a long wait: Retry-After is about as long" yes \
    "$(jq -r --argjson after "$(header Retry-After "$scratch/head")" '(.detail | capture("will take (?<s>[0-9.]+) s").s |
        tonumber) as $told | if ($after - $told | fabs) <= 1 then "yes" else "\($after) s, and \(.detail)" end' "$scratch/got")"
finish_slow runs "the one before" 200
stop
finish
