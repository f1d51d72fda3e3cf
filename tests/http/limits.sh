#!/bin/sh
# Tests each limit with a request at the limit and a request beyond it. An error closes the connection if
# the client waits for 100-continue or the body exceeds 1 MiB.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

mib=1048576

# post STATUS OUTCOME QUERY HEADER…: posts a body. OUTCOME is an error's code, the value of all elements, or
# -.
post() {
    wanted=$1 outcome=$2 query=$3
    shift 3
    post_file body "$query" "$@"
    what="$(wc -c <"$scratch/body" | tr -d ' ') bytes, $query, $*"
    case $outcome in
    -) expect "$what" "$wanted" ;;
    [0-9]*)
        expect "$what" "$wanted"
        same "$what: the product" "$outcome" "$("$FLOAT32" decode <"$scratch/got" | uniq)"
        ;;
    *) expect "$what" "$wanted" code "$outcome" ;;
    esac
}

ones() {
    "$FLOAT32" fill "$1" 1 >"$scratch/body"
}

# with_next QUERY HEADER…: sends two requests. Prints their statuses and the number of connections.
with_next() {
    query=$1
    shift
    printf 'header = "%s"\n' 'Content-Type: application/octet-stream' Expect: "$@" >"$scratch/headers"
    curl -s --max-time 60 -o "$scratch/got" -D "$scratch/head" -w '%{http_code} ' -K "$scratch/headers" --data-binary "@$scratch/body" \
        "$url/v1/matmul?$query" --next -s -o "$scratch/next" -w '%{http_code} %{num_connects}' "$url/healthz" || :
}

expects='Expect: 100-continue' chunked='Transfer-Encoding: chunked' json='Content-Type: application/json'

start --max-body 64KiB
ones 16384
post 200 8192 'm=1&k=8192&n=1'
post 200 8192 'm=1&k=8192&n=1' "$chunked"
post 200 8192 'm=1&k=8192&n=1' "$expects"
like "a good request with Expect: 100 before" "*100*" "$(head -n 1 "$scratch/head")"
post 413 too_large 'm=1&k=4097&n=1&dtype=float64'
post 413 too_large 'm=1&k=8193&n=1'
expect "$what" 413 detail 'these dimensions make a body of 65544 bytes, but the limit is 65536 (the smaller of --max-body and'
for row in 'bad_request 400|m=1&k=x&n=1|' 'unsupported_media_type 415||Content-Type: text/html'; do
    outcome=${row%%|*} row=${row#*|}
    post "${outcome#* }" "${outcome% *}" "${row%|*}" "$expects" "${row#*|}"
    same "$what: bytes sent" 0 "$uploaded"
done

printf x >>"$scratch/body"
post 413 too_large 'm=1&k=8192&n=1'
expect "one byte over the limit" 413 .limit 65536
post 413 too_large 'm=1&k=8192&n=1' "$chunked"
post 413 too_large '' "$json"
post 413 too_large 'colour=red' 'Content-Type: text/html'
post 413 too_large 'm=1&k=8193&n=1'
post 413 too_large 'm=1&k=8192&n=1' "$expects"
expect "over the limit with Expect" 413 Connection: '[Cc]lose'
same "over the limit with Expect: bytes sent, heads" "0 1" "$uploaded $(grep -c '^HTTP' "$scratch/head")"
same "a small body refused: the connection is kept" "413 200 0" "$(with_next 'm=1&k=8192&n=1')"
like "a chunked body refused: the next is served" "413 200 *" "$(with_next 'm=1&k=8192&n=1' "$chunked")"

# The server makes a form shorter when it aligns the elements, but the limit applies to all bytes that were
# sent.
form='Content-Type: multipart/form-data; boundary=B'
{
    for part in 'a (1,8000)' 'b (8000,1)'; do
        printf -- '--B\r\nContent-Disposition: form-data; name="%s"\r\n\r\n' "${part% *}"
        npy_head '<f4' False "${part#* }"
        "$FLOAT32" fill 8000 1
        printf '\r\n'
    done
    printf -- '--B--\r\n'
} >"$scratch/body"
bytes=$(wc -c <"$scratch/body")
head -c $((65536 - bytes)) /dev/zero >>"$scratch/body"
for framing in 'X-A: b' "$chunked"; do
    post 200 8000 '' "$form" 'Accept: application/octet-stream' "$framing"
done
printf x >>"$scratch/body"
for framing in 'X-A: b' "$chunked"; do
    post 413 too_large '' "$form" "$framing"
done

ones $((8 * mib))
for header in "$expects" "$chunked"; do
    post 413 too_large 'm=1&k=4194304&n=1' "$expects" "$header"
    same "$what: bytes sent" 0 "$uploaded"
done

# A chunked body announces no length. After an error the server reads and drops at most 1 MiB.
head -c 3000000 /dev/zero >"$scratch/body"
while IFS='|' read -r wanted code target type; do
    ask "$target" -H Expect: -H "$chunked" -H "$type" --data-binary "@$scratch/body"
    expect "3 MB in chunks to $target" "$wanted" code "$code" Connection: close
done <<END
415|unsupported_media_type|/v1/matmul|Content-Type: text/html
413|too_large|/v1/matmul|$json
404|not_found|/v1/matmull|Content-Type: application/octet-stream
405|method_not_allowed|/healthz|Content-Type: application/octet-stream
END
ask /healthz -X GET -H Expect: --data-binary "@$scratch/body"
expect "a GET of 3 MB" 413
same "after refused bodies: /healthz" 200 "$(status_of "$url/healthz")"
stop

# An error closes the connection if the body exceeds 1 MiB. A body of exactly 1 MiB leaves it open.
start --max-body 4MiB
ones $((mib / 4))
post 400 bad_request 'm=x&k=1&n=1'
expect "1 MiB refused" 400 Connection: ''
ones $((mib / 4 + 1))
post 400 bad_request 'm=x&k=1&n=1'
expect "over 1 MiB refused" 400 Connection: '[Cc]lose'
stop

# A product that would take too long at the measured rate of its variant is rejected.
start --backend cpu --max-kernel-ms 1
ones 80000
post 413 too_large 'm=200&k=200&n=200&variant=naive' "$expects"
same "a long product: bytes sent" 0 "$uploaded"
expect "a long product" 413 .limit 1 .field variant detail 'naive would take about * s*limit is 1 ms (--max-kernel-ms), enough for squares of an edge up to *'
jq -n -c '[range(200) | [range(200) | 1]] | {a: ., b: ., variant: "naive"}' >"$scratch/body"
post 413 too_large '' "$json"
ones 128
post 200 8 'm=8&k=8&n=8&variant=naive'
stop
finish
