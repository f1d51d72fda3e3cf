#!/bin/sh
# The request log: one line a request in both formats, whatever the caller sends and however many there
# are, with what the reply told; and a stderr that nobody reads, which stops nobody.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

: "${TALK:?the path of the program talk}"

# line ID: the line of the request with this id, once it is there.
has_line() {
    grep -q "request_id[\":=]*$1[\", ]" "$scratch/log"
}

line() {
    await 10 has_line "$1" || fail "no line for the request $1"
    grep "request_id[\":=]*$1[\", ]" "$scratch/log" || :
}

# ask ID ARG…: a request of this id.
ask() {
    id=$1
    shift
    curl -s --max-time 30 -o "$scratch/got" -D "$scratch/got.head" -H "X-Request-Id: $id" "$@" || fail "no reply to $id"
}

product='{"a":[[1,2],[3,4],[5,6]],"b":[[1],[1]],"variant":"tiled_8","backend":"cpu"}'

# says WHAT CONDITION: jq's condition holds for the line of JSON.
says() {
    same "$1" true "$(printf '%s' "$json" | jq -c "$2" 2>&1)"
}

start --log-format json
ask product.1 -H 'Content-Type: application/json' -d "$product" "$url/v1/matmul"
json=$(line product.1)
says "a product" '.level == "info" and .message == "request" and .method == "POST" and .route == "/v1/matmul" and .code == 200'
says "its shape and what ran" '[.m, .k, .n, .backend, .variant, .device] == [3, 2, 1, "cpu", "tiled_8", 0]'
says "its bytes" "[.in_bytes, .out_bytes] == [${#product}, $(wc -c <"$scratch/got" | tr -d ' ')]"
says "no problem, no path" 'has("problem") or has("path") or has("cancelled") | not'
says "its time" '.time | test("^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}[.][0-9]{3}Z$")'
# The spans are those of the reply, to the microsecond.
for span in receive decode queue upload kernel download encode; do
    same "its span $span" yes "$(awk -v told="$(jq ".timing.${span}_ms" "$scratch/got")" \
        -v logged="$(printf '%s' "$json" | jq ".${span}_ms")" \
        'BEGIN { difference = told - logged; if (logged != "null" && difference < 0.00051 && difference > -0.00051) print "yes" }')"
done
says "the whole is more than its spans" '.duration_ms >= .receive_ms + .queue_ms + .kernel_ms + .encode_ms + .send_ms'

# A form is closed up while it arrives, but all of it was received.
printf -- '--B\r\nContent-Disposition: form-data; name="a"\r\n\r\n\223NUMPY\001%b\100%b%-63s\n1234\r\n--B--' '\0000' '\0000' \
    "{'descr':'<f4','fortran_order':False,'shape':(1,1)}" >"$scratch/form"
ask form.1 -H 'Content-Type: multipart/form-data; boundary=B' --data-binary "@$scratch/form" "$url/v1/transpose"
json=$(line form.1)
says "a form: its bytes" "[.code, .in_bytes] == [200, $(wc -c <"$scratch/form" | tr -d ' ')]"

ask transpose.1 -H 'Content-Type: application/json' -d '{"a":[[1,2,3],[4,5,6]],"variant":"naive","backend":"cpu"}' \
    "$url/v1/transpose"
json=$(line transpose.1)
says "a transposition, told by its route and by A's shape" \
    '[.route, .code, .m, .n, .backend, .variant] == ["/v1/transpose", 200, 2, 3, "cpu", "naive"] and (has("k") | not)'

ask shapes.1 -H 'Content-Type: application/json' -d '{"a":[[1,2]],"b":[[3]]}' "$url/v1/matmul"
json=$(line shapes.1)
says "a refusal" '[.code, .problem, .route] == [422, "bad_shape", "/v1/matmul"] and (has("m") | not)'
# A refusal that is told before a large body came, which is dropped for a second: the time of that is not its own.
: >"$scratch/large"
printf 'POST /v1/nothing HTTP/1.1\r\nHost: x\r\nX-Request-Id: cut.1\r\nContent-Length: 1000000000000\r\n\r\n' |
    "$TALK" "$(printf '%s' "${url#http://}" | cut -d : -f 1)" "${url##*:}" 65536 FOREVER >"$scratch/large" 2>/dev/null || :
json=$(line cut.1)
says "a refusal that is cut off" '[.code, .problem, .path, .in_bytes > 0] == [404, "not_found", "/v1/nothing", true]'
says "its bytes" ".out_bytes == $(sed '1,/^.$/d' "$scratch/large" | wc -c)"
says "its time" '.duration_ms < 900'
ask head.1 -I "$url/healthz"
json=$(line head.1)
says "HEAD" '[.method, .code, .out_bytes] == ["HEAD", 200, 0]'
ask method.1 -X 'P"T' "$url/healthz"
json=$(line method.1)
says "a hostile method" '[.method, .code, .route] == ["P\\x22T", 405, "/healthz"]'
ask path.1 "$url/a%22%5c%7f%ff%c3%a9?x=%22"
json=$(line path.1)
says "a hostile path" '[.path, .route, .code] == ["/a\\x22\\x5c\\x7f\\xff\\xc3\\xa9", "other", 400]'
ask path.2 "$url/%22,%22code%22:200,%22x%22:%22%ff"
json=$(line path.2)
says "a path that would be JSON" '[.path, .code] == ["/\\x22,\\x22code\\x22:200,\\x22x\\x22:\\x22\\xff", 404]'
ask path.3 "$url/a%0a%7b%22forged%22:1%7d"
json=$(line path.3)
says "a path of two lines" '[.path, .code] == ["/a\\x0a{\\x22forged\\x22:1}", 400]'
ask 'id"with quotes' "$url/healthz"
same "an id that is none: it is not in the log" "" "$(grep -e 'with quotes' "$scratch/log" || :)"
made=$(header X-Request-Id "$scratch/got.head")
json=$(line "$made")
says "a made id" '.route == "/healthz"'

# Many at once: a line each, whole.
before=$(grep -c '"request"' "$scratch/log")
for client in 1 2 3 4 5 6 7 8; do
    curl -s --max-time 300 -o /dev/null -d "$product" "$url/v1/matmul?timeout_ms=[$((client * 100000))-$((client * 100000 + 249))]" &
    eval "client_$client=\$!"
done
for client in 1 2 3 4 5 6 7 8; do
    eval "wait \$client_$client" || fail "client $client"
done
kill -TERM "$server"
ended "a log in JSON"
same "lines for 2000 requests" 2000 $(($(grep -c '"request"' "$scratch/log") - before))
same "of these, products" 2000 "$(jq -c 'select(.in_bytes == 75 and .code == 200 and .m == 3 and .request_id != "product.1")' "$scratch/log" | wc -l | tr -d ' ')"
same "every line is an object" "$(wc -l <"$scratch/log" | tr -d ' ')" "$(jq -c 'select(type == "object")' "$scratch/log" | wc -l | tr -d ' ')"
same "no id twice" "" "$(jq -r 'select(.message == "request").request_id' "$scratch/log" | sort | uniq -d)"
same "the last line" stopped "$(tail -n 1 "$scratch/log" | jq -r .message)"

start --log-format text
ask product.2 -H 'Content-Type: application/json' -d "$product" "$url/v1/matmul"
like "a product as text" '[0-9]*Z info  request request_id=product.2 method="POST" route=/v1/matmul code=200 in_bytes=75 out_bytes=[1-9]* m=3 k=2 n=1 backend=cpu variant=tiled_8 device=0 receive_ms=[0-9]*.[0-9][0-9][0-9] decode_ms=* queue_ms=* upload_ms=0.000 kernel_ms=* download_ms=0.000 encode_ms=* send_ms=* duration_ms=*' \
    "$(line product.2)"
ask path.4 "$url/a%20b%22%0ac%ff"
like "a hostile path as text" '* route=other path="/a b\\x22\\x0ac\\xff" code=400 problem=bad_request *' "$(line path.4)"
stop
same "every line begins with its time" "$(wc -l <"$scratch/log" | tr -d ' ')" \
    "$(grep -cE '^[0-9-]{10}T[0-9:]{8}[.][0-9]{3}Z (info |error) ' "$scratch/log")"
like "the last line" '* info  stopped' "$(tail -n 1 "$scratch/log")"

# A stderr that is a full pipe: the service goes on, counts what it could not log, and ends in time.
mkfifo "$scratch/pipe"
exec 9<>"$scratch/pipe"
"$MATMULD" --port 0 --log-format json 2>"$scratch/pipe" 9<&- &
server=$!
: >"$scratch/log"
until grep -q '"ready"' "$scratch/log"; do
    read -r text <&9
    printf '%s\n' "$text" >>"$scratch/log"
done
find_url
dropped() {
    curl -s --max-time 10 "$url/metrics" | sed -n 's/^matmuld_log_dropped_total //p'
}
# Of the process's variables, which have the buffers: what follows the program's own file in memory.
variables_kib() {
    awk '/^[0-9a-f]+-/ { is_next = is_program && NF == 5; is_program = $6 ~ /matmuld$/ } is_next && /^Rss:/ { print $2 }' \
        "/proc/$server/smaps" | tail -n 1
}
has_given_back() {
    curl -s -o /dev/null "$url/healthz"
    [ "$(variables_kib)" -le $((variables + 768)) ]
}
same "lines dropped at first" 0 "$(dropped)"
variables=$(variables_kib)
# Long paths, so that lines are long: 64 KiB of a pipe and 8 MiB of buffers are to be filled.
long=$(printf '%%ff%.0s' $(seq 120))
for _ in 1 2 3 4 5; do
    timeout 60 curl -s --max-time 10 -o /dev/null "$url/$long?[1-4000]" || break
done
checks=$((checks + 1))
[ "$(dropped)" -gt 0 ] || fail "no line was dropped, or the service stands still"
same "a full log: a product" '[[3],[7],[11]]' "$(curl -s --max-time 30 -d "$product" "$url/v1/matmul" | jq -c .c)"
full=$(variables_kib)
checks=$((checks + 2))
[ "$full" -ge $((variables + 3072)) ] || fail "the buffers are full, of $variables KiB before: $full KiB"
cat <&9 >"$scratch/read" &
reader=$!
await 10 has_given_back || fail "once the log is read its buffers have $(variables_kib) KiB, $variables before and $full when full"
kill "$reader"
wait "$reader" || :
before=$(dropped)
for _ in 1 2 3 4 5; do
    timeout 60 curl -s --max-time 10 -o /dev/null "$url/$long?[1-4000]" || break
done
checks=$((checks + 1))
[ "$(dropped)" -gt "$before" ] || fail "the log is not full again"
kill -TERM "$server"
await 10 has_ended || {
    fail "with a full log it does not end"
    kill -KILL "$server"
}
ended "a full log"
exec 9<&-

# A stderr whose reader has gone: each line is lost once, nobody complains of it for ever, and the end is at once.
exec 9<>"$scratch/pipe"
"$MATMULD" --port "${url##*:}" --log-format json 2>"$scratch/pipe" 9<&- &
server=$!
await 30 is_ready || fail "not ready before the log's reader goes"
exec 9<&-
ask lost.1 -H 'Content-Type: application/json' -d "$product" "$url/v1/matmul"
sleep 0.5
before=$(dropped)
sleep 1
at_most "lines lost in an idle second" 2 $(($(dropped) - before))
from=$(date +%s%3N)
kill -TERM "$server"
ended "a log without a reader"
at_most "a log without a reader: milliseconds to the end" 900 $(($(date +%s%3N) - from))

# A stderr that is closed.
"$MATMULD" --port "${url##*:}" --log-format json 2>&- &
server=$!
await 30 is_ready || fail "not ready without a stderr"
same "without a stderr: a product" '[[3],[7],[11]]' "$(curl -s --max-time 30 -d "$product" "$url/v1/matmul" | jq -c .c)"
stop
finish
