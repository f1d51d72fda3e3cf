#!/bin/sh
# GET /metrics: known traffic is sent, and its counts are read back; the page is well formed.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

: "${TALK:?the path of the program talk}"

page=$scratch/page
other='route="other"'
matmul='route="/v1/matmul"'
transpose='route="/v1/transpose"'

scrape() {
    curl -s --max-time 30 -o "$page" -D "$scratch/page.head" "$url/metrics" || fail "no /metrics"
}

# value SERIES: its value on the page; nothing where it is not there.
value() {
    awk -v series="matmuld_$1" 'substr($0, 1, length(series) + 1) == series " " { print $NF }' "$page"
}

# counts SERIES NUMBER: the page says so.
counts() {
    same "$1" "$2" "$(value "$1")"
}

has_value() {
    scrape
    [ "$(value "$1")" = "$2" ]
}

# comes_to SERIES NUMBER: the page says so within a minute. What came before that is on a page that is begun
# then, but not for certain on the one that said so, which was not made in one moment.
comes_to() {
    await 60 has_value "$1" "$2" || :
    scrape
    counts "$1" "$2"
}

# A request is counted a moment after its caller has the reply. To be called before what was counted is
# looked at, where no request is under way.
settle() {
    comes_to requests_in_flight 0
}

# judge_page WHAT: by our own rules, and by promtool where it is installed.
judge_page() {
    checks=$((checks + 1))
    awk -f "$(dirname "$0")/exposition.awk" "$page" || fail "$1: the page is malformed"
    if command -v promtool >/dev/null; then
        checks=$((checks + 1))
        promtool check metrics <"$page" || fail "$1: promtool has something to say"
    fi
}

# sums_to NUMBER FAMILY PATTERN: the sum of the family's samples that match.
sums_to() {
    same "the sum of $2 where $3" "$1" "$(awk -v family="matmuld_$2" -v pattern="$3" \
        'index($0, family) == 1 && $0 ~ pattern { sum += $NF } END { printf "%d", sum }' "$page")"
}

# expect STATUS ARG…: a request that is answered so.
expect() {
    expected=$1
    shift
    same "$*: status" "$expected" "$(status_of "$@")"
}

raw='Content-Type: application/octet-stream'

start --backend cpu --max-body 4096
settle
same "the media type" "text/plain; version=0.0.4; charset=utf-8" "$(header Content-Type "$scratch/page.head")"
keep GET /metrics "$scratch/page.head" "$page"
judge_page "without products"
command -v promtool >/dev/null || echo "promtool is not here: our own rules alone judge the page"
for series in "http_requests_total{$matmul,code=\"504\"}" 'cancelled_total{stage="queue"}' 'flops_total{variant="naive",backend="cpu",op="matmul"}' \
    'rejected_total{reason="busy"}' 'kernel_duration_seconds_count{variant="tiled_8",backend="cpu",op="matmul"}' 'transfer_bytes_total{direction="upload"}' \
    'device_errors_total{kind="device_failed"}' "request_duration_seconds_bucket{$other,le=\"+Inf\"}" queue_jobs queue_bytes \
    'self_tests_total{result="failed"}' requests_in_flight 'staging_bytes{state="used"}'; do
    counts "$series" 0
done
counts "build_info{version=\"$("$MATMULD" --version | cut -d ' ' -f 2)\",backends=\"$(sed -n 's/.*backends="\([^"]*\)".*/\1/p' "$page")\"}" 1
for name in cpu_seconds_total resident_memory_bytes virtual_memory_bytes open_fds max_fds start_time_seconds; do
    same "process_$name, above 0" yes "$(awk -v name="process_$name" '$1 == name && $2 > 0 { print "yes" }' "$page")"
done
same "the start" yes "$(awk -v now="$(date +%s)" '$1 == "process_start_time_seconds" && $2 <= now + 1 && $2 > now - 600 { print "yes" }' "$page")"
same "the CPU's memory, as /v1/devices has it" "$(curl -s "$url/v1/devices" | jq '.devices[0].memory_bytes')" \
    "$(awk '/^matmuld_device_memory_bytes{device="cpu:0",/ { sum += $2 } END { printf "%.0f", sum }' "$page")"

# Products of 3×5 by 5×7, and every kind of refusal.
"$FLOAT32" fill 50 1 >"$scratch/body"
"$FLOAT32" fill 2000 1 >"$scratch/large"
for _ in 1 2 3 4 5; do
    expect 200 -H "$raw" --data-binary "@$scratch/body" "$url/v1/matmul?m=3&k=5&n=7&variant=tiled_8"
done
expect 200 -H 'Content-Type: application/json' -d '{"a":[[1,2]],"b":[[3],[4]],"variant":"naive"}' "$url/v1/matmul"
expect 200 -H 'Content-Type: application/json' -d '{"a":[],"b":[],"variant":"naive"}' "$url/v1/matmul" # no kernel
expect 404 "$url/v1/nothing"
expect 405 "$url/v1/matmul"
expect 405 -X DELETE "$url/healthz"
for _ in 1 2 3; do
    expect 400 -d '{}' "$url/v1/matmul?colour=red"
done
expect 413 -H "$raw" --data-binary "@$scratch/large" "$url/v1/matmul?m=1&k=1000&n=1"
expect 415 -H 'Content-Type: text/html' -d x "$url/v1/matmul"
expect 406 -H 'Accept: image/png' -H 'Content-Type: application/json' -d '{}' "$url/v1/matmul"
expect 411 -X POST "$url/v1/matmul"
expect 422 -H 'Content-Type: application/json' -d '{"a":[[1,2]],"b":[[3]]}' "$url/v1/matmul"
expect 200 -I "$url/healthz"
expect 204 -X OPTIONS "$url/readyz"


# Transpositions: of 2×3 float32 twice, of 2×2 int64, of nothing, and two refusals.
"$FLOAT32" fill 6 1 >"$scratch/six"
for _ in 1 2; do
    expect 200 -H "$raw" --data-binary "@$scratch/six" "$url/v1/transpose?m=2&n=3&variant=naive"
done
expect 200 -d '{"a":[[1,2],[3,4]],"dtype":"int64","variant":"shared"}' "$url/v1/transpose"
expect 200 -d '{"a":[],"variant":"shared"}' "$url/v1/transpose" # no kernel
expect 400 -d '{"a":[[1]],"b":[[1]]}' "$url/v1/transpose"
expect 422 -d '{"a":[[1]],"dtype":"float16"}' "$url/v1/transpose"

settle
counts 'http_requests_total{route="/readyz",code="204"}' 1
counts "http_requests_total{$matmul,code=\"200\"}" 7
counts "http_requests_total{$matmul,code=\"400\"}" 3
for code in 405 406 411 413 415 422; do
    counts "http_requests_total{$matmul,code=\"$code\"}" 1
done
counts 'http_requests_total{route="/healthz",code="405"}' 1
counts 'http_requests_total{route="/healthz",code="200"}' 1
counts "http_requests_total{$other,code=\"404\"}" 1
counts "http_requests_total{$transpose,code=\"200\"}" 4
counts "http_requests_total{$transpose,code=\"422\"}" 1
counts "http_requests_total{$transpose,code=\"400\"}" 1
for row in 'bad_request 4' 'unsupported 1' 'not_found 1' 'method_not_allowed 2' 'too_large 1' 'unsupported_media_type 1' 'not_acceptable 1' \
    'length_required 1' 'bad_shape 1' 'busy 0'; do
    counts "rejected_total{reason=\"${row% *}\"}" "${row#* }"
done
sums_to 13 rejected_total .
sums_to 0 cancelled_total .
counts "request_duration_seconds_count{$matmul}" 16
counts "request_duration_seconds_count{$transpose}" 6
counts "request_duration_seconds_count{$other}" 1
for stage in receive decode queue upload kernel download encode send; do
    counts "stage_duration_seconds_count{stage=\"$stage\"}" 11
done
counts 'stage_duration_seconds_sum{stage="upload"}' 0.000000000
counts 'kernel_duration_seconds_count{variant="tiled_8",backend="cpu",op="matmul"}' 5
counts 'kernel_duration_seconds_count{variant="naive",backend="cpu",op="matmul"}' 1
counts 'kernel_duration_seconds_count{variant="naive",backend="cpu",op="transpose"}' 2
counts 'kernel_duration_seconds_count{variant="shared",backend="cpu",op="transpose"}' 1
sums_to 9 kernel_duration_seconds_count .
sums_to $((5 * 2 * 3 * 5 * 7 + 4)) flops_total .
sums_to 0 flops_total transpose
counts 'flops_total{variant="tiled_8",backend="cpu",op="matmul"}' $((5 * 2 * 3 * 5 * 7))
counts 'flops_total{variant="naive",backend="cpu",op="matmul"}' 4
sums_to 0 transfer_bytes_total .
judge_page "after products"

# What the stages and the whole took fits together: all of receive to send is within the requests' time.
same "the stages within the whole" yes "$(awk -v products="$(value "request_duration_seconds_sum{$matmul}")" \
    -v transpositions="$(value "request_duration_seconds_sum{$transpose}")" \
    '/^matmuld_stage_duration_seconds_sum/ { sum += $NF } END { if (sum > 0 && sum <= products + transpositions) print "yes" }' "$page")"

# A second look adds itself, and nothing else but what the moment gives.
constant() {
    grep -v -e '^process_' -e '^matmuld_device_memory_bytes' -e 'route="/metrics"' "$page"
}
is_beyond() {
    scrape
    [ "$(value 'http_requests_total{route="/metrics",code="200"}')" -gt "$1" ]
}
constant >"$scratch/before"
await 60 is_beyond "$(value 'http_requests_total{route="/metrics",code="200"}')" || fail "looks are not counted"
constant >"$scratch/after"
same "a second look changes nothing else" "" "$(diff "$scratch/before" "$scratch/after")"

# Callers cannot make series, neither by paths nor by methods.
series_before=$(grep -vc '^#' "$page")
for index in $(seq 50); do
    echo "url = \"$url/v1/$index$(date +%N)/%22%0a%ff\""
    echo 'output = "/dev/null"'
done >"$scratch/paths"
curl -s --max-time 60 -K "$scratch/paths" || :
for index in 1 2 3; do
    expect 405 -X "ODD$index" "$url/healthz"
    expect 404 -X "ODD$index" "$url/odd"
done
settle
counts "http_requests_total{$other,code=\"404\"}" 4
counts "http_requests_total{$other,code=\"400\"}" 50
same "the count of series" "$series_before" "$(grep -vc '^#' "$page")"
comes_to 'staging_bytes{state="used"}' 0
stop

# One product runs and one waits; what comes besides is refused. Then the one that waits is given up.
start --backend cpu --cpu-jobs 1 --queue-depth 1
prepare_slow "$(slow_side 3)"
"$FLOAT32" fill $((2 * 21 * 21)) 1 >"$scratch/queued" # not so small that it would be computed at once
settle
probes=$(value 'kernel_duration_seconds_count{variant="naive",backend="cpu",op="matmul"}')
probe_flops=$(value 'flops_total{variant="naive",backend="cpu",op="matmul"}')
post_slow runs
await_sent runs
comes_to requests_in_flight 1
counts queue_jobs 0
curl -s -o /dev/null --max-time 60 -H "$raw" --data-binary "@$scratch/queued" "$url/v1/matmul?m=21&k=21&n=21&variant=tiled_8" &
caller=$!
comes_to queue_jobs 1
counts queue_bytes $((3 * 21 * 21 * 4))
counts requests_in_flight 2
same "the budget is in use" yes "$(awk -v used="$(value 'staging_bytes{state="used"}')" 'BEGIN { if (used > 0) print "yes" }')"
expect 429 -H "$raw" --data-binary "@$scratch/queued" "$url/v1/matmul?m=21&k=21&n=21"
kill -KILL "$caller"
comes_to 'cancelled_total{stage="queue"}' 1
counts "http_requests_total{$matmul,code=\"499\"}" 1
counts "http_requests_total{$matmul,code=\"503\"}" 0
counts queue_jobs 0
counts queue_bytes 0
expect 504 -H "$raw" --data-binary "@$scratch/queued" "$url/v1/matmul?m=21&k=21&n=21&timeout_ms=100"
comes_to 'cancelled_total{stage="queue"}' 2
counts 'rejected_total{reason="busy"}' 1
counts 'rejected_total{reason="timeout"}' 1
counts 'rejected_total{reason="stopping"}' 0
finish_slow runs
same "the slow product: status" 200 "$slow_status"

# A deadline while the kernel runs: the kernel runs on, and is counted when it ends.
post_slow late timeout_ms=300
finish_slow late
same "a late product: status" 504 "$slow_status"
comes_to 'cancelled_total{stage="kernel"}' 1
comes_to 'kernel_duration_seconds_count{variant="naive",backend="cpu",op="matmul"}' $((probes + 2))
settle
same "the kernels' work" "$(awk -v before="$probe_flops" -v n="$slow_side" 'BEGIN { printf "%.0f", before + 4 * n * n * n }')" \
    "$(value 'flops_total{variant="naive",backend="cpu",op="matmul"}' | awk '{ printf "%.0f", $1 }')"
counts 'flops_total{variant="tiled_8",backend="cpu",op="matmul"}' 0
counts "http_requests_total{$matmul,code=\"504\"}" 2

# An upload that breaks off.
address=${url#http://}
printf 'POST /v1/matmul?m=1&k=1000&n=1 HTTP/1.1\r\nHost: x\r\nContent-Type: application/octet-stream\r\nContent-Length: 8000\r\n\r\nabc' |
    "$TALK" "${address%:*}" "${address##*:}" 65536 LEAVE >/dev/null 2>&1 || :
comes_to 'cancelled_total{stage="receive"}' 1
settle
counts "http_requests_total{$matmul,code=\"499\"}" 2
sums_to 4 cancelled_total .
comes_to 'staging_bytes{state="used"}' 0
judge_page "after those who left"

# A drain is watched to its end.
post_slow last
await_sent last
kill -TERM "$server"
is_refused() {
    [ "$(status_of "$url/readyz")" = 503 ]
}
await 10 is_refused || fail "SIGTERM began no drain"
comes_to requests_in_flight 1
counts 'rejected_total{reason="stopping"}' 1
counts 'http_requests_total{route="/readyz",code="503"}' 1
finish_slow last
same "the last product: status" 200 "$slow_status"
ended "after the drain"

# Callers who are slow, and are cut off: with a head, and with a body.
start --backend cpu --receive-timeout-ms 500
address=${url#http://}
settle
begun=$(value "request_duration_seconds_count{$other}")
printf 'GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: ' >"$scratch/slow-head"
printf 'POST /v1/matmul?m=1&k=1000&n=1 HTTP/1.1\r\nHost: x\r\nContent-Type: application/octet-stream\r\nContent-Length: 8000\r\n\r\nabc' \
    >"$scratch/slow-body"
for part in head body; do
    "$TALK" "${address%:*}" "${address##*:}" 65536 <"$scratch/slow-$part" >"$scratch/got" 2>&1 || :
    like "a slow $part" 'HTTP/1.1 408 *' "$(cat "$scratch/got")"
done
comes_to 'rejected_total{reason="request_timeout"}' 2
settle
counts "http_requests_total{$other,code=\"408\"}" 1
counts "request_duration_seconds_count{$other}" $((begun + 1))
counts "http_requests_total{$matmul,code=\"408\"}" 1
counts "http_requests_total{$matmul,code=\"499\"}" 0
counts 'cancelled_total{stage="receive"}' 1
sums_to 1 cancelled_total .
stop

# Devices that fail, of a server that has a document of its own.
conform "$scratch/exchanges"
kept=0
MATMULD=${FAULTY:?the path of the faulty matmuld}
export MATMULD_FAULTY_DEVICES=2 # without another the process would end with the first that is lost
start --backend cuda
for row in 'fails 500' 'needs_memory 507' 'needs_memory 507' 'loses_device 500'; do
    expect "${row#* }" -d "{\"a\":[[2]],\"b\":[[3]],\"variant\":\"${row% *}\"}" "$url/v1/matmul"
done
settle
counts 'rejected_total{reason="device_failed"}' 1
counts 'device_errors_total{kind="device_failed"}' 1
counts 'device_errors_total{kind="no_device_memory"}' 2
counts 'device_errors_total{kind="internal"}' 1
sums_to 0 kernel_duration_seconds_count .
sums_to 0 flops_total .
judge_page "after failures"
stop

# The same in benchmarks: each row that fails counts, and a device that is lost fails all that it had to do.
start --backend cuda
expect 200 -d '{"m":1,"k":2,"n":3,"variants":["naive","fails","needs_memory","tiled/64","needs_memory"]}' "$url/v1/benchmark"
expect 507 -d '{"op":"shared_access","patterns":"broadcast"}' "$url/v1/benchmark"
settle
counts 'device_errors_total{kind="device_failed"}' 0
counts 'device_errors_total{kind="no_device_memory"}' 3
counts 'device_errors_total{kind="internal"}' 1
expect 200 -d '{"m":1,"k":2,"n":3,"variants":["naive","loses_device","naive"]}' "$url/v1/benchmark"
settle
counts 'device_errors_total{kind="device_failed"}' 3
counts 'device_errors_total{kind="no_device_memory"}' 3
stop
finish
