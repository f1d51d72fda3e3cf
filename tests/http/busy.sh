#!/bin/sh
# If the queue is full, requests get 429 with Retry-After at once. Accepted requests are answered correctly.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

start_held --backend cpu --cpu-jobs 1 --queue-depth 1
prepare_held cpu
hold_job runs
queue_job waits
for caller in 1 2 3; do
    post_slow "$caller"
    finish_slow "$caller" "caller $caller" 429 code busy Retry-After: '[1-9]*'
done
for path in /healthz /readyz /v1/variants; do
    same "$path beside a full queue: status" 200 "$(status_of "$url$path")"
done
release
finish_slow runs "the job that ran" 200
finish_slow waits "the job that waited" 200
for _ in 1 2 3; do
    ask /v1/matmul -d '{"a":[[2]],"b":[[3]]}'
    expect afterwards 200 .c '[[6]]'
done
stop

# --jobs-per-key limits each address, because there are no keys. Another address does not wait for these jobs.
start_held --backend cpu --cpu-jobs 1 --jobs-per-key 1
prepare_held cpu
prepare_queued
hold_job runs
queue_job waits
post_slow refused
finish_slow refused "a second job that would wait" 429 code busy detail '1 jobs of this key or address*--jobs-per-key*'
await 60 has_metric 'busy_total{cause="jobs_per_key"}' 1 || fail "a second job that would wait is not counted"
ask /v1/matmul --interface 127.0.0.2 --data-binary "@$scratch/queued"
expect "another address, between two parts of the job that runs" 200
release
finish_slow runs "the job that ran" 200
finish_slow waits "the job that waited" 200
stop

# A request that would wait too long, by the rate of earlier products, is rejected.
start_held --backend cpu --cpu-jobs 1 --queue-wait-ms 1
prepare_held cpu 1000 1000 100
hold_job runs
post_slow refused
finish_slow refused "a long wait" 429 detail 'will take*limit is 0.001 s'
same "a long wait: Retry-After is about as long" yes \
    "$(jq -r --argjson after "$(header Retry-After "$scratch/head")" '(.detail | capture("will take (?<s>[0-9.]+) s").s |
        tonumber) as $told | if ($after - $told | fabs) <= 1 then "yes" else "\($after) s, and \(.detail)" end' "$scratch/got")"
same "a long wait: the metric is over the limit" yes "$(metric queue_wait_seconds | awk '$1 > 0.001 { print "yes" }')"
await 60 has_metric 'busy_total{cause="queue_wait"}' 1 || fail "a long wait is not counted"
release
finish_slow runs "the product before" 200
stop
finish
