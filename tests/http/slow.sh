#!/bin/sh
# Slow clients: a head or a body that takes longer than it may is answered with 408, and closed; what comes at the least
# rate is not, nor is an idle connection. A client that takes less of a reply than the least rate is disconnected. Nothing of
# what was cut off remains.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

: "${TALK:?the path of the program talk}" "${DAWDLE:?the path of the program dawdle}"

# slowly FILE PIECE PAUSE_MS WHAT STATUSES [MOST LEAST]: sends it like that; the replies have these statuses, and the time until
# the end is within these milliseconds. A refusal is in the contract's form, and says that it is the last; one to a product
# is held against the OpenAPI document as well.
slowly() {
    from=$(now_ms)
    talk "$1" "$2" "$3" || :
    elapsed=$(($(now_ms) - from))
    same "$4: statuses" "$5" "$(statuses)"
    at_most "$4: milliseconds" "${6:-60000}" "$elapsed"
    at_most "$4: at least this many milliseconds" "$elapsed" "${7:-0}"
    last_reply
    case $status in
    408) code=request_timeout ;;
    504) code=timeout ;;
    *) return 0 ;;
    esac
    expect "$4" "$status" code $code Connection: close Date: '*GMT' .request_id "$(header X-Request-Id "$scratch/head")"
    same "$4: Content-Length" "$(($(wc -c <"$scratch/got") - 1))" "$(header Content-Length "$scratch/head")"
    case $4 in *body*) keep POST /v1/matmul ;; esac
}

# upload BYTES [QUERY]: the head of a raw body of so many bytes.
upload() {
    printf 'POST /v1/matmul?m=1&k=%d&n=1%s HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: slow\r\nConnection: close\r\n' $(($1 / 8)) "${2:-}"
    printf 'Content-Type: application/octet-stream\r\nContent-Length: %d\r\n\r\n' "$1"
}

json='POST /v1/matmul HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n'
start --backend cpu --receive-timeout-ms 1000 --receive-rate 1000 --memory-budget 64MiB

# Heads. They are looked at twice a second.
printf 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n' >"$scratch/get"
printf 'GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Long: %01000d' 0 >"$scratch/trickle"
slowly trickle 1 50 "a head that trickles" 408 4000 1000
printf 'GET /heal' >"$scratch/input"
slowly input 100 1 "a head that stops" 408 4000 1000
cat "$scratch/get" "$scratch/trickle" >"$scratch/input"
slowly input "$(wc -c <"$scratch/get")" 700 "a second head that trickles" "200 408"
{
    printf 'GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Same: size-as-i\r\n\r\n'
    printf 'GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n'
} >"$scratch/input"
slowly input $(($(wc -c <"$scratch/input") / 2)) 3000 "a connection idle for three seconds" "200 200"

# Bodies: 10, 500 and 2000 bytes a second, of which 1000 are enough.
{
    upload 8000
    head -c 8000 /dev/zero
} >"$scratch/upload"
slowly upload 1 20 "a body that trickles" 408 8000 1000
slowly upload 50 100 "a body at half the least rate" 408 4000 1500
expect "its id" 408 X-Request-Id: slow
slowly upload 200 100 "a body at twice the least rate" 200 10000 3500
printf '%bExpect: 100-continue\r\nContent-Length: 20\r\n\r\n' "$json" >"$scratch/input"
slowly input 1000 1 "no body after 100 Continue" "100 408"
printf '%bTransfer-Encoding: chunked\r\n\r\n5\r\n{"a":\r\n' "$json" >"$scratch/input"
slowly input 1000 1 "a chunked body that stops" 408 3000 1000
upload 8000 '&timeout_ms=300' >"$scratch/input"
slowly input 1000 1 "a body that is not there by its own deadline" 504 2000 300

# A deadline of its own that only the body tells, read while the sweep looks on.
printf '%bConnection: close\r\nContent-Length: 45\r\n\r\n{"a":[[2]],"b":[[3]],"timeout_ms":5000     }\n' "$json" >"$scratch/input"
slowly input 30 150 "a body that comes in pieces" 200

# A hundred that announce all the memory there is between them: more than one sweep cuts off.
upload 600000 >"$scratch/input"
talkers=
for number in $(seq 100); do
    "$TALK" 127.0.0.1 "${url##*:}" 1000 1 <"$scratch/input" >"$scratch/many.$number" 2>&1 &
    talkers="$talkers $!"
done
# shellcheck disable=SC2086
wait $talkers
same "of a hundred cut off, those who could read it" 100 "$(grep -l '^HTTP/1.1 408' "$scratch"/many.* | wc -l)"
await 5 has_free_budget || fail "uploads that were cut off hold memory"
stop

# Replies of 16 MiB, of which MHD has most while they are sent, and of 64 and 16 KiB, which the system's sockets hold; taken
# at 20 and 80 kB a second, of which 40 are enough, and at 1: four clients each, who take BYTES in 50 ms, for 5 s.
start --backend cpu --send-timeout-ms 1000 --send-rate 40000 --memory-budget 512MiB
takers=
while read -r name rows bytes _; do
    "$DAWDLE" --port "${url##*:}" --readers 4 --shape "${rows}x1x$rows" --bytes "$bytes" --every-ms 50 --seconds 5 >"$scratch/taken.$name" &
    takers="$takers $!"
done <<'END'
slow 2048 1000
fair 2048 4000
slow_small 128 1000
fair_small 128 4000
tiny 64 50
END
# shellcheck disable=SC2086
wait $takers
for row in 'slow 4' 'fair 0' 'slow_small 4' 'fair_small 0' 'tiny 4'; do
    same "clients who take a reply, ${row% *}" "readers=4 ended=${row#* }" "$(sed -n 's/^\(readers.*\) first.*/\1/p' "$scratch/taken.${row% *}")"
done
await 5 has_free_budget || fail "clients who take a reply: the budget is not given back"
same "clients who take a reply: closed" 12 "$(metric 'connections_closed_total{reason="slow_reader"}')"
# Also those whose replies, of 16 KiB, were with the system as a whole.
at_most "clients who take a reply: at least so many counted" "$(metric 'cancelled_total{stage="send"}')" 12
stop

# The process's limit of time holds for a body that comes fast enough.
start --backend cpu --timeout-ms 1000
slowly upload 200 100 "a body that is not there by --timeout-ms" 408 3000 1000
stop
finish
