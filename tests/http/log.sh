#!/bin/sh
# Tests the request log, and that a stderr that nobody reads does not block the service.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

# line ID: waits for the log line of this request and prints it.
line() {
    await 30 has_logged "request_id[\":=]*$1[\", ]" || fail "no line for the request $1"
    grep "request_id[\":=]*$1[\", ]" "$scratch/log" || :
}

# say WHAT ID CONDITION: jq's condition must hold for the JSON line of this request.
say() {
    same "$1" true "$(line "$2" | jq -c "$3" 2>&1)"
}

# logs CONDITION TARGET ARG…: sends a request with a new id, and checks its log line.
id=0
logs() {
    id=$((id + 1)) condition=$1
    shift
    curl -s --max-time 30 -o "$scratch/got" -H "X-Request-Id: id.$id" "$@" || fail "no reply to $*"
    say "$*" "id.$id" "$condition"
}

product='{"a":[[1,2],[3,4],[5,6]],"b":[[1],[1]],"variant":"tiled_8","backend":"cpu"}'

start --log-format json --log-level debug
logs '[.method, .route, .code, .m, .k, .n, .backend, .variant, .device] ==
        ["POST", "/v1/matmul", 200, 3, 2, 1, "cpu", "tiled_8", 0] and (has("problem") or has("cancelled") | not) and
    (.time | test("^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}[.][0-9]{3}Z$")) and
    .duration_ms >= .receive_ms + .queue_ms + .kernel_ms + .encode_ms + .send_ms' "$url/v1/matmul" -d "$product"
say "its bytes" id.1 "[.in_bytes, .out_bytes] == [${#product}, $(wc -c <"$scratch/got" | tr -d ' ')]"
# The times in the log equal the times in the reply, to the microsecond.
say "its spans" id.1 ". as \$log | $(jq -c .timing "$scratch/got") | del(.total_ms) |
    to_entries | length >= 7 and all((.value - \$log[.key] | fabs) < 0.00051)"

{
    printf -- '--B\r\nContent-Disposition: form-data; name="a"\r\n\r\n'
    npy_head '<f4' False '(1,1)'
    printf '1234\r\n--B--'
} >"$scratch/form"
logs "[.code, .in_bytes] == [200, $(wc -c <"$scratch/form" | tr -d ' ')]" "$url/v1/transpose" \
    -H 'Content-Type: multipart/form-data; boundary=B' --data-binary "@$scratch/form"
logs '[.route, .code, .m, .n, .backend, .variant] == ["/v1/transpose", 200, 2, 3, "cpu", "naive"] and (has("k") | not)' \
    "$url/v1/transpose" -d '{"a":[[1,2,3],[4,5,6]],"variant":"naive","backend":"cpu"}'
# For a stack of products the log has the shape of one product and the number of products.
while IFS='|' read -r shape operands; do
    logs "[.code, .m, .k, .n, .products] == [200, $shape]" "$url/v1/matmul" -d "{$operands}"
done <<'END'
2, 1, 3, 2|"a":[[1],[2]],"b":[[[1,2,3]],[[4,5,6]]]
2, 1, 3, 2|"a":[[[1],[2]],[[3],[4]]],"b":[[1,2,3]]
2, 1, 1, 2|"a":[[[1,2]],[[3,4]]],"b":[[[1]],[[1]]],"transpose_b":true,"transpose_a":true
1, 2, 1, null|"a":[1,2],"b":[3,4]
3, 0, 1, null|"a":[[],[],[]],"b":[[[]]],"transpose_b":true
END
logs '[.code, .m, .n, .products] == [200, 1, 3, 2]' "$url/v1/transpose" -d '{"a":[[[1,2,3]],[[4,5,6]]]}'
curl -s -o /dev/null -X PUT "$url/v1/matrices/m" -d '{"a":[[1]]}'
logs '[.a, .b] == ["inline", "stored"]' "$url/v1/matmul" -d '{"a":[[1]],"b":{"from":"m"}}'
logs '[.a, .b] == ["generated", "inline"]' "$url/v1/matmul" -d '{"a":{"from":"uniform(1)"},"b":[[1]],"m":1}'
logs '[.m, .n, .a] == [1, 2, "generated"] and (has("b") | not)' -X POST "$url/v1/transpose?m=1&n=2&a_from=identity()"
logs '[.code, .problem, .route] == [422, "bad_shape", "/v1/matmul"] and (has("m") | not)' "$url/v1/matmul" -d '{"a":[[1,2]],"b":[[3]]}'
logs '[.level, .method, .code, .out_bytes] == ["debug", "HEAD", 200, 0]' -I "$url/healthz"
logs '.level == "info"' "$url/v1/devices"
logs '[.method, .code, .route] == ["P\\x22T", 405, "/healthz"]' -X 'P"T' "$url/healthz"
logs '[.path, .route, .code] == ["/a\\x22\\x5c\\x7f\\xff\\xc3\\xa9", "other", 400]' "$url/a%22%5c%7f%ff%c3%a9?x=%22"

# Time in which the server drops a large body after an error does not count as time of the request.
for turn in 1 2 3 4 5; do
    printf 'POST /v1/nothing HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: cut.%d\r\nContent-Length: 1000000000000\r\n\r\n' $turn >"$scratch/requests"
    talk requests 65536 FOREVER || :
    [ "$(line "cut.$turn" | jq '.duration_ms >= 900')" = true ] || break
done
say "a refusal that is cut off" "cut.$turn" '[.code, .problem, .path, .in_bytes > 0] == [404, "not_found", "/v1/nothing", true] and .duration_ms < 900'
say "its bytes" "cut.$turn" ".out_bytes == $(sed '1,/^.$/d' "$scratch/raw" | wc -c)"

curl -s --max-time 30 -o "$scratch/got" -D "$scratch/head" -H 'X-Request-Id: id"with quotes' "$url/healthz"
say "a made id" "$(header X-Request-Id "$scratch/head")" '.route == "/healthz"'
same "log lines with an invalid request id" "" "$(grep -e 'with quotes' "$scratch/log" || :)"

# The log has the id of the trace, and the reply repeats the header, also the reply that libmicrohttpd does not write.
trace=0af7651916cd43dd8448eb211c80319c
trace_parent=00-$trace-b7ad6b7169203331-01
for route in healthz v1/nothing; do
    logs ".trace_id == \"$trace\"" -D "$scratch/head" "$url/$route" -H "Traceparent: $trace_parent"
    same "$route: traceparent" "$trace_parent" "$(header traceparent "$scratch/head")"
done
printf 'POST /v1/matmul HTTP/1.1\r\nHost: localhost\r\ntraceparent: %s\r\nContent-Length: 99999999999999\r\n\r\n' \
    "cc${trace_parent#00}-more" >"$scratch/requests"
talk requests 65536
last_reply
same "a refusal of a large body: traceparent" "413 cc${trace_parent#00}" "$status $(header traceparent "$scratch/head")"
for value in "$trace" "$trace_parent-more" "$trace_parent, $trace_parent"; do
    logs 'has("trace_id") | not' -D "$scratch/head" "$url/healthz" -H "traceparent: $value"
    same "an invalid traceparent" "" "$(header traceparent "$scratch/head")"
done
logs 'has("trace_id") | not' "$url/healthz" -H "traceparent: $trace_parent" -H "traceparent: $trace_parent"

# Lines of simultaneous requests are not mixed.
before=$(grep -c '"request"' "$scratch/log")
clients=
for client in 1 2 3 4 5 6 7 8; do
    curl -s --max-time 300 -o /dev/null -d "$product" "$url/v1/matmul?timeout_ms=[$((client * 100000))-$((client * 100000 + 249))]" &
    clients="$clients $!"
done
# shellcheck disable=SC2086
wait $clients
stop
same "lines for 2000 requests" 2000 $(($(grep -c '"request"' "$scratch/log") - before))
same "products" 2001 "$(jq -c 'select(.in_bytes == 75 and .code == 200 and .m == 3)' "$scratch/log" | wc -l | tr -d ' ')"
same "every line is an object" "$(wc -l <"$scratch/log" | tr -d ' ')" "$(jq -c 'select(type == "object")' "$scratch/log" | wc -l | tr -d ' ')"
same "request ids that appear twice" "" "$(jq -r 'select(.message == "request").request_id' "$scratch/log" | sort | uniq -d)"
same "the last line" stopped "$(tail -n 1 "$scratch/log" | jq -r .message)"

# A trusted proxy names the client, in one header or in several. Other peers cannot.
start --log-format json --trusted-proxies 127.0.0.1,10.0.0.0/8
logs '.client == "127.0.0.1" and (has("key") | not)' "$url/v1/devices"
logs '.client == "192.0.2.1"' "$url/v1/devices" -H 'X-Forwarded-For: 198.51.100.7' -H 'x-forwarded-for: 192.0.2.1, 10.0.0.1'
logs '.client == "2001:db8::1"' "$url/nothing" -H 'X-Forwarded-For: 2001:DB8:0::1'
logs '.client == "127.0.0.1"' "$url/v1/devices" -H 'X-Forwarded-For: 192.0.2.1"'
# Of a long header the end counts, to which proxies add. Here the end has only trusted addresses, and then half of one.
logs '.client == "127.0.0.1"' "$url/v1/devices" -H 'X-Forwarded-For: 192.0.2.1' \
    -H "X-Forwarded-For: $(printf '10.0.0.1, %.0s' $(seq 500))10.0.0.1"
logs '.client == "192.0.2.9"' "$url/v1/devices" -H "X-Forwarded-For: $(printf 'hidden, %.0s' $(seq 700))192.0.2.9"
logs '.client == "127.0.0.2"' --interface 127.0.0.2 "$url/v1/devices" -H 'X-Forwarded-For: 192.0.2.1'
stop

start --log-format text
curl -s -o "$scratch/got" -H 'X-Request-Id: product.2' -d "$product" "$url/v1/matmul?verify=1"
like "a product as text" "[0-9]*Z info  request request_id=product.2 client=127.0.0.1 method=\"POST\" route=/v1/matmul code=200 in_bytes=${#product} \
out_bytes=$(wc -c <"$scratch/got" | tr -d ' ') m=3 k=2 n=1 a=inline b=inline backend=cpu variant=tiled_8 device=0 verify=passed receive_ms=[0-9]*.[0-9][0-9][0-9] \
decode_ms=* queue_ms=* upload_ms=0.000 kernel_ms=* download_ms=* encode_ms=* send_ms=* duration_ms=*.[0-9][0-9][0-9]" "$(line product.2)"
# Health checks and scrapes that succeed have the level debug, which the default leaves out.
for path in healthz readyz metrics v2/health/live v2/health/ready; do
    curl -s -o /dev/null -H "X-Request-Id: probe" "$url/$path"
done
curl -s -o /dev/null -H "X-Request-Id: failed.probe" -H 'Host: evil.example' "$url/metrics"
stop
same "lines of health checks: succeeded, failed" '0 1' "$(grep -c '=probe ' "$scratch/log") $(grep -c 'failed.probe.*code=403' "$scratch/log")"
same "every line begins with its time" "$(wc -l <"$scratch/log" | tr -d ' ')" \
    "$(grep -cE '^[0-9-]{10}T[0-9:]{8}[.][0-9]{3}Z (info |error) ' "$scratch/log")"
like "the last line" '* info  stopped' "$(tail -n 1 "$scratch/log")"

# warning leaves out requests, too. The warning on this address is that there are no keys.
for row in 'warning 1' 'error 0'; do
    "$MATMULD" --host 0.0.0.0 --port "${url##*:}" --log-format json --log-level "${row% *}" 2>"$scratch/log" &
    server=$!
    await 60 is_ready || fail "not ready with --log-level ${row% *}"
    curl -s -o /dev/null "$url/v1/nothing"
    stop
    same "lines with --log-level ${row% *}" "${row#* }" "$(wc -l <"$scratch/log" | tr -d ' ')"
done

# If stderr is a full pipe, the service continues, counts the lost lines, and still ends quickly.
mkfifo "$scratch/pipe"
exec 9<>"$scratch/pipe"
"$MATMULD" --port 0 --log-format json --log-level debug 2>"$scratch/pipe" 9<&- &
server=$!
: >"$scratch/log"
until grep -q '"ready"' "$scratch/log"; do
    read -r text <&9
    printf '%s\n' "$text" >>"$scratch/log"
done
find_url
# Prints the memory of the program's variables, which contain the log buffers.
variables_kib() {
    awk '/^[0-9a-f]+-/ { is_next = is_program && NF == 5; is_program = $6 ~ /matmuld$/ } is_next && /^Rss:/ { print $2 }' \
        "/proc/$server/smaps" | tail -n 1
}
has_given_back() {
    curl -s -o /dev/null "$url/healthz"
    [ "$(variables_kib)" -le $((variables + 768)) ]
}
# Long paths give long log lines, which fill the 64 KiB of the pipe and the 8 MiB of buffers.
long=$(printf '%%ff%.0s' $(seq 120))
fill_log() {
    before=$(metric log_dropped_total)
    for _ in $(seq 20); do
        timeout 120 curl -s --max-time 60 -o /dev/null "$url/$long?[1-2000]" || break
        [ "$(metric log_dropped_total)" -eq "$before" ] || break
    done
    at_most "lines dropped, at least" "$(metric log_dropped_total)" $((before + 1))
}
same "lines dropped at first" 0 "$(metric log_dropped_total)"
variables=$(variables_kib)
fill_log
same "a full log: a product" '[[3],[7],[11]]' "$(curl -s --max-time 30 -d "$product" "$url/v1/matmul" | jq -c .c)"
at_most "the buffers in KiB, at least" "$(variables_kib)" $((variables + 3072))
cat <&9 >"$scratch/read" &
reader=$!
await 30 has_given_back || fail "after the log is read its buffers use $(variables_kib) KiB, but $variables KiB before"
kill "$reader"
wait "$reader" || :
fill_log
kill -TERM "$server"
await 60 has_ended || {
    fail "the server does not end while its log is full"
    kill -KILL "$server"
}
ended "a full log"
exec 9<&-

# If stderr has no reader any more, each line is lost and counted once, and the service continues.
has_lost() {
    [ "$(metric log_dropped_total)" -gt 0 ]
}
for turn in 1 2 3 4 5; do
    exec 9<>"$scratch/pipe"
    "$MATMULD" --port "${url##*:}" --log-format json 2>"$scratch/pipe" 9<&- &
    server=$!
    await 60 is_ready || fail "not ready before the log's reader goes"
    exec 9<&-
    curl -s -o /dev/null -d "$product" "$url/v1/matmul"
    await 30 has_lost || fail "no line was dropped"
    before=$(metric log_dropped_total)
    [ $turn -gt 1 ] || sleep 1
    at_most "lines lost in an idle second" 10 $(($(metric log_dropped_total) - before))
    from=$(now_ms)
    stop
    took_ms=$(($(now_ms) - from))
    [ $took_ms -gt 900 ] || break
done
at_most "a log without a reader: milliseconds to the end" 900 "$took_ms"

"$MATMULD" --port "${url##*:}" --log-format json 2>&- &
server=$!
await 60 is_ready || fail "not ready without a stderr"
same "without a stderr: a product" '[[3],[7],[11]]' "$(curl -s --max-time 30 -d "$product" "$url/v1/matmul" | jq -c .c)"
stop
finish
