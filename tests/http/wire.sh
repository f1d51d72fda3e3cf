#!/bin/sh
# Tests requests that curl cannot send: in many packets, with a large head, or from clients that leave early.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

# replies WHAT STATUSES PIECE: sends $scratch/requests in packets of PIECE bytes, and checks the statuses.
replies() {
    talk requests "$3" || fail "$1: talk did not end well"
    same "$1: statuses" "$2" "$(statuses)"
}

product='{"a": [[2]], "b": [[3]]}'

# The drain is short, because the server may not notice at once that a client has left.
start --drain-timeout-ms 3000
# Heads and bodies may be split into packets anywhere.
printf 'POST /v1/matmul HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s' ${#product} "$product" >"$scratch/requests"
for piece in 1 7 64; do
    replies "in pieces of $piece bytes" 200 $piece
    like "in pieces of $piece bytes: the product" '*[[6]]*' "$(tr -d ' \n' <"$scratch/replies")"
done

# Chunks may be split into packets anywhere. Replies keep the order of the requests.
{
    printf 'POST /v1/matmul HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n'
    printf '0c\r\n{"a":[[2]], \r\nb\r\n"b":[[3]] }\r\n0\r\n\r\n'
    printf 'POST /v1/matmul HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s' ${#product} "$product"
    printf 'GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\nGET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n'
} >"$scratch/requests"
# libmicrohttpd 0.9 closes the connection if the last byte of a chunked body comes alone.
for piece in 2 7 64; do
    replies "chunks and pipelined requests in pieces of $piece bytes" '200 200 404 200' $piece
done

# A head that grows beyond its buffer is moved to a larger one, and all headers must stay valid.
{
    printf 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n'
    seq 300 | sed "s/.*/X-&:  \t$(printf %0110d 0)\r/"
    printf 'X-Empty:\nConnection: close\r\n\r\n'
} >"$scratch/requests"
for piece in 700 65536; do
    replies "a head of 300 headers in pieces of $piece bytes" 200 $piece
done

# A client that sends all of a large rejected body first still gets the error.
while IFS='|' read -r line header bytes wanted words; do
    {
        printf '%s\r\nHost: localhost\r\nContent-Length: 3000000\r\n%s\r\n\r\n' "$line" "$header"
        head -c "$bytes" /dev/zero
    } >"$scratch/requests"
    replies "$line, $header, $bytes bytes" "$wanted" 262144
    like "$line, $header, $bytes bytes" "*$words*" "$(cat "$scratch/replies")"
done <<'END'
POST /v1/nothing HTTP/1.1|X-A: b|3000000|404|"code": "not_found"
POST /v1/nothing HTTP/1.1|X-A: b|1500000|404|"code": "not_found"
POST /v1/nothing HTTP/1.1|X-A: b|0|404|"code": "not_found"
POST /v1/nothing HTTP/1.1|Expect: patience|3000000|404|"code": "not_found"
POST /v1/nothing HTTP/1.0|Expect: 100-continue|3000000|404|"code": "not_found"
POST /v1/matmul HTTP/1.1|Content-Encoding: gzip|0|415|Accept-Encoding: identity
HEAD /v1/nothing HTTP/1.1|X-A: b|0|404|
END
same "HEAD with a large body: the reason is not sent" 0 "$(grep -c not_found "$scratch/replies")"
# A client that never stops sending is disconnected, but gets its reply.
printf 'POST /v1/nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000000\r\n\r\n' >"$scratch/requests"
senders=
for sender in $(seq 16); do
    "$TALK" 127.0.0.1 "${url##*:}" 65536 FOREVER <"$scratch/requests" >"$scratch/replies.$sender" 2>/dev/null &
    senders="$senders $!"
done
for sender in $senders; do
    wait "$sender" || :
done
same "endless senders: replies" 16 "$(grep -l '^HTTP/1.1 404 ' "$scratch"/replies.* | wc -l | tr -d ' ')"
same "after large bodies: status" 200 "$(status_of "$url/healthz")"

# A client that leaves within a request, or before the reply, does not disturb other clients.
for part in 'POST /v1/matmul HTTP/1.1\r\nHo' 'POST /v1/matmul HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n{"a": [[2' \
    'POST /v1/matmul?m=1&k=1&n=1 HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n123' \
    'POST /v1/matmul HTTP/1.1\r\nHost: localhost\r\nContent-Length: 23\r\n\r\n{"a": [[2]],"b":[[3]]} '; do
    # shellcheck disable=SC2059
    printf "$part" >"$scratch/requests"
    for _ in 1 2 3 4 5; do
        talk requests 65536 LEAVE || fail "talk did not end well"
    done
    same "after leaving" 200 "$(status_of -d "$product" "$url/v1/matmul")"
done
stop
finish
