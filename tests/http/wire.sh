#!/bin/sh
# What curl's own requests never look like: several requests in one write, one request in many, and a
# caller who leaves in the middle.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

: "${TALK:?the path of the program talk}"

# talk PIECE [LEAVE]: sends $scratch/requests, so many bytes a write, and leaves what comes back until the
# server closes in $scratch/replies.
talk() {
    address=${url#http://}
    "$TALK" "${address%:*}" "${address##*:}" "$@" <"$scratch/requests" >"$scratch/replies" || fail "talk: it did not end well"
}

statuses() {
    tr -d '\r' <"$scratch/replies" | sed -n 's/.*HTTP\/1\.1 \([0-9]*\) .*/\1/p' | tr '\n' ' '
}

ids() {
    tr -d '\r' <"$scratch/replies" | sed -n 's/^X-Request-Id: //p' | tr '\n' ' '
}

# request ID METHOD TARGET BODY [HEADER]
request() {
    printf '%s %s HTTP/1.1\r\nHost: test\r\nX-Request-Id: %s\r\n' "$2" "$3" "$1"
    [ -z "$4" ] || printf 'Content-Type: application/json\r\nContent-Length: %s\r\n' ${#4}
    [ -z "${5:-}" ] || printf '%s\r\n' "$5"
    printf '\r\n%s' "$4"
}

product='{"a": [[2]], "b": [[3]]}'

# That a caller left in the middle of a body may be noticed late; the drain is not to wait for that long.
start --drain-timeout-ms 3000
{
    request first POST /v1/matmul "$product"
    request second GET /healthz ''
    request third POST /v1/matmul '{"a": [[1, 2]], "b": [[3]]}'
    request fourth GET /v1/nothing ''
    request fifth POST /v1/matmul 'x'
    request sixth POST /v1/matmul "$product" 'Connection: close'
} >"$scratch/requests"
talk 65536
same "pipelined: the replies' order" "first second third fourth fifth sixth " "$(ids)"
same "pipelined: the replies' statuses" "200 200 422 404 400 200 " "$(statuses)"

# A target may be in the form that proxies are sent.
request absolute GET http://test/healthz '' 'Connection: close' >"$scratch/requests"
talk 65536
same "absolute form: status" "200 " "$(statuses)"

# The head and the body come in pieces that end anywhere.
request pieces POST /v1/matmul "$product" 'Connection: close' >"$scratch/requests"
for piece in 1 7 64; do
    talk $piece
    same "in pieces of $piece bytes: status" "200 " "$(statuses)"
    like "in pieces of $piece bytes: the product" '*[[6]]*' "$(tr -d ' \n' <"$scratch/replies")"
done

# A large body that is refused: who first sends all of it and then reads still gets the reason, and who has
# sent the head alone gets it at once.
refused_head() {
    printf '%s HTTP/1.1\r\nHost: test\r\nX-Request-Id: large\r\nContent-Length: 3000000\r\n\r\n' "$1"
}
for body in 3000000 1500000 0; do
    { refused_head 'POST /v1/nothing' && head -c $body /dev/zero; } >"$scratch/requests"
    talk 262144
    same "a large body refused, $body bytes sent: status" "404 " "$(statuses)"
    like "a large body refused, $body bytes sent: the reason" '*"code": "not_found"*' "$(cat "$scratch/replies")"
done
refused_head 'HEAD /v1/nothing' >"$scratch/requests"
talk 262144
same "HEAD with a large body: status" "404 " "$(statuses)"
same "HEAD with a large body: the reason is not sent" 0 "$(grep -c not_found "$scratch/replies")"
# Who would never stop sending is stopped, and has the reply all the same: each of some at once, since a window
# that is full when the server stops reading must not leave its sender waiting.
printf 'POST /v1/nothing HTTP/1.1\r\nHost: test\r\nContent-Length: 1000000000000\r\n\r\n' >"$scratch/requests"
began=$(date +%s)
senders=
for sender in $(seq 16); do
    "$TALK" "${address%:*}" "${address##*:}" 65536 FOREVER <"$scratch/requests" >"$scratch/replies.$sender" 2>/dev/null &
    senders="$senders $!"
done
for sender in $senders; do
    wait "$sender" || :
done
at_most "endless senders: seconds until all were stopped" 30 $(($(date +%s) - began))
same "endless senders: replies" 16 "$(grep -l '^HTTP/1.1 404 ' "$scratch"/replies.* | wc -l | tr -d ' ')"
# A word that no server need know, or that HTTP/1.0 does not have, is no reason to wait for one.
for word in 'HTTP/1.1 Expect: patience' 'HTTP/1.0 Expect: 100-continue'; do
    printf 'POST /v1/nothing %s\r\nHost: test\r\nContent-Length: 3000000\r\n%s\r\n\r\n' "${word%% *}" "${word#* }" \
        >"$scratch/requests"
    head -c 3000000 /dev/zero >>"$scratch/requests"
    talk 262144
    same "a large body with $word: status" "404 " "$(statuses)"
done
request large GET /healthz '' 'Connection: close' >"$scratch/requests"
talk 65536
same "after large bodies: status" "200 " "$(statuses)"

# Who leaves in the middle of a request, or before the reply, costs nothing but that.
for part in 'POST /v1/matmul HTTP/1.1\r\nHo' 'POST /v1/matmul HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n{"a": [[2' \
    'POST /v1/matmul?m=1&k=1&n=1 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n123' \
    'POST /v1/matmul HTTP/1.1\r\nHost: x\r\nContent-Length: 23\r\n\r\n{"a": [[2]],"b":[[3]]} '; do
    # shellcheck disable=SC2059
    printf "$part" >"$scratch/requests"
    for _ in 1 2 3 4 5; do
        talk 65536 LEAVE
    done
    same "after leaving" 200 "$(status_of -d "$product" "$url/v1/matmul")"
done
stop
finish
