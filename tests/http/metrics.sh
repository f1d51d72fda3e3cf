#!/bin/sh
# Tests GET /metrics: sends requests and compares the counters.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

: "${FAULTY:?the path of the faulty matmuld}"

page=$scratch/page
before=$scratch/before
other='route="other"'
matmul='route="/v1/matmul"'
transpose='route="/v1/transpose"'

scrape() {
    curl -s --max-time 30 -o "$page" -D "$scratch/page.head" "$url/metrics" || fail "no /metrics"
}

# value SERIES [PAGE]: prints a value. SERIES may end in * for the sum of all series with this beginning.
value() {
    awk -v series="matmuld_${1%\*}" -v is_sum="${1##*[!*]}" '
        is_sum != "" && index($0, series) == 1 { sum += $NF }
        substr($0, 1, length(series) + 1) == series " " { print $NF }
        END { if (is_sum != "") printf "%.0f\n", sum }' "${2:-$page}"
}

# counts SERIES NUMBER: checks a value on the last page that was fetched.
counts() {
    same "$1" "$2" "$(value "$1")"
}

# shows SERIES NUMBER: fetches the page and succeeds if the value is NUMBER.
shows() {
    scrape
    [ "$(value "$1")" = "$2" ]
}

# comes_to SERIES NUMBER: waits for the value, twice, because values on a page are from different moments.
comes_to() {
    await 60 shows "$1" "$2" || :
    await 60 shows "$1" "$2" || :
    counts "$1" "$2"
}

# Waits until no request runs, because a request is counted shortly after its reply.
settle() {
    comes_to requests_in_flight 0
}

# begin: saves the page, so `added` can compare.
begin() {
    settle
    cp "$page" "$before"
}

# added SERIES NUMBER…: checks how much each series grew since `begin`.
added() {
    while [ $# -gt 0 ]; do
        same "$1, added" "$2" "$(awk -v now="$(value "$1")" -v then="$(value "$1" "$before")" 'BEGIN { printf "%.0f", now - then }')"
        shift 2
    done
}

# check_page WHAT: checks the page with exposition.awk, and with promtool if it is installed.
check_page() {
    checks=$((checks + 1))
    awk -f "$(dirname "$0")/exposition.awk" "$page" || fail "$1: the page is malformed"
    ! command -v promtool >/dev/null || promtool check metrics <"$page" || fail "$1: promtool has something to say"
}

send() {
    wanted=$1
    shift
    same "$*: status" "$wanted" "$(target=$1 && shift && status_of "$@" "$url$target")"
}

raw='Content-Type: application/octet-stream'

start --backend cpu --max-body 4096 --queue-depth 77
settle
same "the media type" "text/plain; version=0.0.4; charset=utf-8" "$(header Content-Type "$scratch/page.head")"
cp "$page" "$scratch/got"
cp "$scratch/page.head" "$scratch/head"
keep GET /metrics
check_page "without products"
for series in "http_requests_total{$matmul,code=\"504\"}" 'cancelled_total{stage="decode"}' 'flops_total{variant="naive",backend="cpu",op="matmul"}' \
    'rejected_total{reason="busy"}' 'kernel_duration_seconds_count{variant="tiled_8",backend="cpu",op="matmul"}' 'transfer_bytes_total{direction="upload"}' \
    'device_errors_total{device="cpu:0",kind="device_failed"}' "request_duration_seconds_bucket{$other,le=\"1e-06\"}" \
    "request_duration_seconds_bucket{$other,le=\"+Inf\"}" queue_jobs queue_bytes \
    'self_tests_total{result="failed"}' 'staging_bytes{state="used"}' 'cancelled_total*' 'rejected_total*' 'busy_total*' \
    draining queue_wait_seconds 'device_failed{device="cpu:0"}'; do
    counts "$series" 0
done
counts ready 1
counts queue_wait_seconds_max 60
counts queue_jobs_max 77
same "without keys: series of keys" 0 "$(grep -c '^matmuld_key_' "$page")"
counts "build_info{version=\"$("$MATMULD" --version | cut -d ' ' -f 2)\",commit=\"$("$MATMULD" --version | cut -d ' ' -f 4)\",backends=\"$(sed -n 's/.*backends="\([^"]*\)".*/\1/p' "$page")\"}" 1
for name in cpu_seconds_total resident_memory_bytes virtual_memory_bytes open_fds max_fds start_time_seconds; do
    same "process_$name, above 0" yes "$(awk -v name="process_$name" '$1 == name && $2 > 0 { print "yes" }' "$page")"
done
at_most "the age of the process: seconds" 600 $(($(date +%s) - $(awk '$1 == "process_start_time_seconds" { printf "%d", $2 }' "$page")))
same "the CPU's memory in /metrics and /v1/devices" "$(curl -s "$url/v1/devices" | jq '.devices[0].memory_bytes')" \
    "$(awk '/^matmuld_device_memory_bytes{device="cpu:0",/ { sum += $2 } END { printf "%.0f", sum }' "$page")"

# Each row: number of requests, status, target, arguments of curl, series that each request increases by one
"$FLOAT32" fill 50 1 >"$scratch/body"
"$FLOAT32" fill 2000 1 >"$scratch/large"
"$FLOAT32" fill 6 1 >"$scratch/six"
while IFS='|' read -r times wanted reason target arguments; do
    begin
    for _ in $(seq "$times"); do
        # shellcheck disable=SC2086
        send "$wanted" "$target" $arguments
    done
    settle
    route=${target%%\?*}
    [ "$route" != /v1/nothing ] || route=other
    added "http_requests_total{route=\"$route\",code=\"$wanted\"}" "$times" "request_duration_seconds_count{route=\"$route\"}" "$times"
    [ -z "$reason" ] || added "rejected_total{reason=\"$reason\"}" "$times"
    added 'rejected_total*' "$([ -z "$reason" ] && echo 0 || echo "$times")" 'cancelled_total*' 0
done <<END
1|404|not_found|/v1/nothing|
1|405|method_not_allowed|/v1/matmul|
1|405|method_not_allowed|/healthz|-X DELETE
3|400|bad_request|/v1/matmul?colour=red|-d {}
1|413|too_large|/v1/matmul?m=1&k=1000&n=1|-H Content-Type:application/octet-stream --data-binary @$scratch/large
1|415|unsupported_media_type|/v1/matmul|-H Content-Type:text/html -d x
1|406|not_acceptable|/v1/matmul|-H Accept:image/png -d {}
1|411|length_required|/v1/matmul|-X POST
1|422|bad_shape|/v1/matmul|-d {"a":[[1,2]],"b":[[3]]}
1|200||/healthz|-I
1|204||/readyz|-X OPTIONS
1|400|bad_request|/v1/transpose|-d {"a":[[1]],"b":[[1]]}
1|422|unsupported|/v1/transpose|-d {"a":[[1]],"dtype":"float17"}
END

# Each row: requests, operation, variant, floating-point operations of each request, kernels that run, target,
# arguments. No kernel runs if k = 0 or C has no elements.
while IFS='|' read -r times op variant flops kernels target arguments; do
    begin
    for _ in $(seq "$times"); do
        # shellcheck disable=SC2086
        send 200 "$target" $arguments
    done
    settle
    added "http_requests_total{route=\"/v1/$op\",code=\"200\"}" "$times" \
        "kernel_duration_seconds_count{variant=\"$variant\",backend=\"cpu\",op=\"$op\"}" "$kernels" 'kernel_duration_seconds_count*' "$kernels" \
        'flops_total*' $((times * flops)) 'transfer_bytes_total*' 0 'rejected_total*' 0
    [ "$op" != matmul ] || added "flops_total{variant=\"$variant\",backend=\"cpu\",op=\"$op\"}" $((times * flops))
    for stage in receive decode queue upload kernel download encode send; do
        added "stage_duration_seconds_count{stage=\"$stage\"}" "$times"
    done
done <<END
5|matmul|tiled_8|210|5|/v1/matmul?m=3&k=5&n=7&variant=tiled_8|-H Content-Type:application/octet-stream --data-binary @$scratch/body
1|matmul|naive|4|1|/v1/matmul|-d {"a":[[1,2]],"b":[[3],[4]],"variant":"naive"}
1|matmul|naive|0|0|/v1/matmul|-d {"a":[],"b":[],"variant":"naive"}
2|transpose|naive|0|2|/v1/transpose?m=2&n=3&variant=naive|-H Content-Type:application/octet-stream --data-binary @$scratch/six
1|transpose|shared|0|1|/v1/transpose|-d {"a":[[1,2],[3,4]],"dtype":"int64","variant":"shared"}
1|transpose|shared|0|0|/v1/transpose|-d {"a":[],"variant":"shared"}
END
counts 'stage_duration_seconds_sum{stage="upload"}' 0.000000000
check_page "after products"

# All stages together take at most the time of the requests.
same "stages last no longer than requests" yes "$(awk -v products="$(value "request_duration_seconds_sum{$matmul}")" \
    -v transpositions="$(value "request_duration_seconds_sum{$transpose}")" \
    '/^matmuld_stage_duration_seconds_sum/ { sum += $NF } END { if (sum > 0 && sum <= products + transpositions) print "yes" }' "$page")"

# Clients cannot create series with unknown paths or methods.
series_before=$(grep -vc '^#' "$page")
begin
seq 50 | sed "s|.*|url = \"$url/v1/&$(date +%N)/%22%0a%ff\"\noutput = \"/dev/null\"|" >"$scratch/paths"
curl -s --max-time 60 -K "$scratch/paths" || :
for index in 1 2 3; do
    send 405 /healthz -X "ODD$index"
    send 404 /odd -X "ODD$index"
done
settle
added "http_requests_total{$other,code=\"404\"}" 3 "http_requests_total{$other,code=\"400\"}" 50
same "the count of series" "$series_before" "$(grep -vc '^#' "$page")"
comes_to 'staging_bytes{state="used"}' 0
stop

# One product runs, one waits, and the queue rejects others. Then the client of the waiting product leaves.
start_held --queue-depth 1
prepare_held cuda
"$FLOAT32" fill $((2 * 21 * 21)) 1 >"$scratch/queued" # the smallest product that is queued
queued='/v1/matmul?m=21&k=21&n=21&backend=cuda'
held='variant="naive",backend="cuda",op="matmul"'
begin
hold_job runs
comes_to requests_in_flight 1
comes_to 'connections{state="active"}' 2 # one of them is the connection of the metrics request
comes_to 'connections{state="idle"}' 0
counts queue_jobs 0
curl -s -o /dev/null -H "$raw" --data-binary "@$scratch/queued" "$url$queued&variant=fails" &
caller=$!
comes_to queue_jobs 1
counts queue_bytes $((3 * 21 * 21 * 4))
comes_to requests_in_flight 2
at_most "the budget in use, at least" "$(value 'staging_bytes{state="used"}')" 1
send 429 "$queued" -H "$raw" --data-binary "@$scratch/queued"
kill -KILL "$caller"
comes_to 'cancelled_total{stage="queue"}' 1
added "http_requests_total{$matmul,code=\"499\"}" 1 "http_requests_total{$matmul,code=\"503\"}" 0
counts queue_jobs 0
counts queue_bytes 0
send 504 "$queued&timeout_ms=1000" -H "$raw" --data-binary "@$scratch/queued"
comes_to 'cancelled_total{stage="queue"}' 2
comes_to requests_in_flight 1
added "http_requests_total{$matmul,code=\"504\"}" 1 'rejected_total{reason="busy"}' 1 'rejected_total{reason="timeout"}' 1 'rejected_total*' 2 \
    'busy_total{cause="queue_depth"}' 1 'busy_total*' 1
release
finish_slow runs "the slow product" 200

# After a deadline the kernel continues, and is counted when it ends.
comes_to "kernel_duration_seconds_count{$held}" 1
begin
hold_late
comes_to 'cancelled_total{stage="kernel"}' 1
release
comes_to "kernel_duration_seconds_count{$held}" 2
added "kernel_duration_seconds_count{$held}" 1 "flops_total{$held}" 40000 'flops_total*' 40000

begin
upload='POST /v1/matmul?m=1&k=1000&n=1 HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\nContent-Length: 8000\r\n\r\nabc'
printf '%b' "$upload" >"$scratch/slow-body"
talk slow-body 65536 LEAVE || :
comes_to 'cancelled_total{stage="receive"}' 1
settle
added "http_requests_total{$matmul,code=\"499\"}" 1 'cancelled_total*' 1
comes_to 'staging_bytes{state="used"}' 0
check_page "after those who left"

stop

# The server disconnects clients that send a head or a body too slowly.
start --backend cpu --receive-timeout-ms 500
begin
printf 'GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: ' >"$scratch/slow-head"
for part in head body; do
    talk "slow-$part" 65536 || :
    same "a slow $part" 408 "$(statuses)"
done
comes_to 'rejected_total{reason="request_timeout"}' 2
settle
added "http_requests_total{$other,code=\"408\"}" 1 "request_duration_seconds_count{$other}" 1 "http_requests_total{$matmul,code=\"408\"}" 1 \
    "http_requests_total{$matmul,code=\"499\"}" 0 'cancelled_total{stage="receive"}' 1 'cancelled_total*' 1
stop

# Errors are counted for each device: each failed row, and each job that a lost device had.
MATMULD=$FAULTY
export MATMULD_FAULTY_DEVICES=2 # without a second device the process would end
# fail_as DEVICE_FAILED NO_DEVICE_MEMORY INTERNAL: checks the number of errors of both devices together.
fail_as() {
    settle
    same "errors: device_failed, no_device_memory, internal" "$*" "$(for kind in device_failed no_device_memory internal; do
        grep "^matmuld_device_errors_total.*\"$kind\"" "$page" | awk '{ sum += $NF } END { print sum }'
    done | paste -sd ' ' -)"
}
start --backend cuda
for row in 'fails 500' 'needs_memory 507' 'needs_memory 507' 'loses_device 500'; do
    send "${row#* }" /v1/matmul -d "{\"a\":[[2]],\"b\":[[3]],\"variant\":\"${row% *}\"}"
done
fail_as 1 2 1
counts 'rejected_total{reason="device_failed"}' 1
counts 'device_failed*' 1
counts 'kernel_duration_seconds_count*' 0
counts 'flops_total*' 0
check_page "after failures"
stop
start --backend cuda
send 200 /v1/benchmark -d '{"m":1,"k":2,"n":3,"variants":["naive","fails","needs_memory","tiled/64","needs_memory"]}'
send 507 /v1/benchmark -d '{"op":"shared_access","patterns":"broadcast"}'
fail_as 0 3 1
send 200 /v1/benchmark -d '{"m":1,"k":2,"n":3,"variants":["naive","loses_device","naive"]}'
fail_as 3 3 1
stop
finish
