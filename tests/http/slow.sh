#!/bin/sh
# Tests slow clients. If a head, a body or the reading of a reply is too slow, the connection is closed.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

: "${DAWDLE:?the path of the program dawdle}"

# slowly FILE PIECE PAUSE_MS WHAT STATUSES [LEAST]: sends the file slowly in the background. The replies must
# have these statuses. The connection must last at least LEAST milliseconds.
sent=0
slowly() {
    sent=$((sent + 1))
    printf '%s|%s|%s\n' "$4" "$5" "${6:-0}" >"$scratch/row.$sent"
    cp "$scratch/$1" "$scratch/input.$sent"
    (
        from=$(now_ms)
        "$TALK" 127.0.0.1 "${url##*:}" "$2" "$3" <"$scratch/input.$sent" >"$scratch/raw.$sent" 2>/dev/null || :
        echo $(($(now_ms) - from)) >"$scratch/elapsed.$sent"
    ) &
    workers="$workers $!"
}

check_sent() {
    for number in $(seq $sent); do
        IFS='|' read -r what expected least <"$scratch/row.$number"
        tr -d '\r' <"$scratch/raw.$number" | sed 's/}HTTP/}\nHTTP/' >"$scratch/replies"
        same "$what: statuses" "$expected" "$(statuses)"
        at_most "$what: at least this many milliseconds" "$(cat "$scratch/elapsed.$number")" "$least"
        last_reply
        case $status in
        408) code=request_timeout ;;
        504) code=timeout ;;
        *) continue ;;
        esac
        expect "$what" "$status" code "$code" Connection: close Date: '*GMT' .request_id "$(header X-Request-Id "$scratch/head")"
        same "$what: Content-Length" "$(($(wc -c <"$scratch/got") - 1))" "$(header Content-Length "$scratch/head")"
        case $what in
        *half*) expect "$what: its id" 408 X-Request-Id: slow ;;
        esac
        case $what in
        *body*) keep POST /v1/matmul ;;
        esac
    done
    sent=0
}

# upload BYTES [QUERY]: prints the head of a request with a raw body of BYTES bytes.
upload() {
    printf 'POST /v1/matmul?m=1&k=%d&n=1%s HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: slow\r\nConnection: close\r\n' $(($1 / 8)) "${2:-}"
    printf 'Content-Type: application/octet-stream\r\nContent-Length: %d\r\n\r\n' "$1"
}

json='POST /v1/matmul HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n'
printf 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n' >"$scratch/get"
printf 'GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Long: %01000d' 0 >"$scratch/trickle"

# All clients run at the same time. Clients that are fast enough may take longer than the time limit.
workers=
start --backend cpu --receive-timeout-ms 4000 --receive-rate 1000 --send-timeout-ms 4000 --send-rate 40000 --memory-budget 512MiB

slowly trickle 1 50 "a head that trickles" 408 4000
printf 'GET /heal' >"$scratch/input"
slowly input 100 1 "a head that stops" 408 4000
cat "$scratch/get" "$scratch/trickle" >"$scratch/input"
slowly input "$(wc -c <"$scratch/get")" 700 "a second head that trickles" "200 408"
{
    printf 'GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Same: size-as-i\r\n\r\n'
    printf 'GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n'
} >"$scratch/input"
slowly input $(($(wc -c <"$scratch/input") / 2)) 5000 "a connection idle for five seconds" "200 200" 5000

# Bodies arrive with 50, 500 and 4000 bytes a second. The minimum rate is 1000.
{
    upload 32000
    head -c 32000 /dev/zero
} >"$scratch/upload"
slowly upload 1 20 "a body that trickles" 408 4000
slowly upload 50 100 "a body at half the required rate" 408 4000
slowly upload 200 50 "a body at four times the required rate" 200 8000
printf '%bExpect: 100-continue\r\nContent-Length: 20\r\n\r\n' "$json" >"$scratch/input"
slowly input 1000 1 "no body after 100 Continue" "100 408" 4000
printf '%bTransfer-Encoding: chunked\r\n\r\n5\r\n{"a":\r\n' "$json" >"$scratch/input"
slowly input 1000 1 "a chunked body that stops" 408 4000
upload 8000 '&timeout_ms=300' >"$scratch/input"
slowly input 1000 1 "a body that is incomplete at the deadline of its request" 504 300

# The deadline is in the body, so the server must read the body before it knows the deadline.
printf '%bConnection: close\r\nContent-Length: 46\r\n\r\n{"a":[[2]],"b":[[3]],"timeout_ms":50000     }\n' "$json" >"$scratch/input"
slowly input 30 150 "a body in chunks" 200

# Replies of 16 MiB mostly wait in the server, and replies of 64 and 16 KiB fit into the sockets. Each of four
# clients reads BYTES bytes every 50 ms. The minimum is 2000 bytes.
while read -r name rows bytes seconds _; do
    "$DAWDLE" --port "${url##*:}" --readers 4 --shape "${rows}x1x$rows" --bytes "$bytes" --every-ms 50 --seconds "$seconds" >"$scratch/taken.$name" &
    workers="$workers $!"
done <<'END'
slow 2048 1000 60
fair 2048 8000 9
slow_small 128 250 60
fair_small 128 8000 9
tiny 64 50 60
END
# shellcheck disable=SC2086
wait $workers
check_sent
for row in 'slow 4' 'fair 0' 'slow_small 4' 'fair_small 0' 'tiny 4'; do
    same "clients that read a reply, ${row% *}" "readers=4 ended=${row#* }" "$(sed -n 's/^\(readers.*\) first.*/\1/p' "$scratch/taken.${row% *}")"
done
await 30 has_free_budget || fail "disconnected clients still use memory"
same "clients that read a reply: closed connections" 12 "$(metric 'connections_closed_total{reason="slow_reader"}')"
# Slow readers are also counted if the system's sockets hold the whole reply.
at_most "clients that read a reply: minimum of counted ones" "$(metric 'cancelled_total{stage="send"}')" 12
stop

# --timeout-ms also ends requests whose bodies arrive fast enough.
workers=
start --backend cpu --receive-timeout-ms 1000 --receive-rate 1000 --timeout-ms 2000 --memory-budget 64MiB
slowly upload 200 50 "a body that is incomplete after --timeout-ms" 408 2000
upload 600000 >"$scratch/input"
for number in $(seq 100); do
    "$TALK" 127.0.0.1 "${url##*:}" 1000 1 <"$scratch/input" >"$scratch/many.$number" 2>&1 &
    workers="$workers $!"
done
# shellcheck disable=SC2086
wait $workers
check_sent
same "of 100 rejected uploads, those whose clients got the 408" 100 "$(grep -l '^HTTP/1.1 408' "$scratch"/many.* | wc -l)"
await 30 has_free_budget || fail "rejected uploads still use memory"
stop
finish
