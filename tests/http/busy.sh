#!/bin/sh
# A full queue: what does not fit is answered with 429 and Retry-After at once, /healthz stays quick, and
# what was accepted is answered rightly, as is what comes later.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

start --backend cpu --cpu-jobs 1 --queue-depth 1
side=$(slow_side 0.7)
prepare_slow "$side"
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
    case $slow_status in
    200)
        done_count=$((done_count + 1))
        check_slow "$caller"
        ;;
    429)
        busy_count=$((busy_count + 1))
        same "caller $caller: code" busy "$(code_of "$scratch/slow.$caller")"
        like "caller $caller: Retry-After" '[1-9]*' "$(header Retry-After "$scratch/slow.$caller.head")"
        ;;
    *) fail "caller $caller: expected 200 or 429, got '$slow_status'" ;;
    esac
done
echo "$done_count done, $busy_count refused"
checks=$((checks + 1))
[ "$done_count" -ge 1 ] || fail "expected at least one to be accepted"
# One runs and one waits; the rest can only be more where an early one was done before the last came.
checks=$((checks + 1))
[ "$busy_count" -ge 1 ] || fail "expected some of $callers jobs to be refused"

for _ in 1 2 3; do
    same "afterwards" '[[6]]' "$(curl -s --max-time 30 -H 'Content-Type: application/json' \
        -d '{"a":[[2]],"b":[[3]]}' "$url/v1/matmul" | jq -c .c)"
done
stop
# By what others took, the wait is known: it is told, and a long one is refused though the queue has room.
start --backend cpu --cpu-jobs 1 --queue-wait-ms 500
prepare_slow "$(slow_side 2.5)"
post_slow runs
await_sent runs
post_slow refused
finish_slow refused
same "a long wait: status" 429 "$slow_status"
like "a long wait: detail" '*will take*limit is 0.5 s*' "$(jq -r .detail "$scratch/slow.refused")"
like "a long wait: Retry-After" '[2-9]' "$(header Retry-After "$scratch/slow.refused.head")"
finish_slow runs
same "the one before: status" 200 "$slow_status"
stop
finish
