#!/bin/sh
# The limits of the process, on both sides of each edge, and what becomes of the connection: a refusal by
# the head comes at once and closes where the caller waits for 100-continue or the body is over 1 MiB; a
# smaller body is read and dropped, and the connection stays.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

raw='Content-Type: application/octet-stream'
mib=1048576

# post WHAT STATUS CODE QUERY ARG…: posts $scratch/body (raw, and without Expect, unless a header among
# the arguments says otherwise), and checks the reply.
post() {
    what=$1
    expected_status=$2
    expected_code=$3
    query=$4
    shift 4
    case "$*" in *Content-Type:*) ;; *) set -- "$@" -H "$raw" ;; esac
    case "$*" in *Expect:*) ;; *) set -- "$@" -H Expect: ;; esac
    : >"$scratch/got"
    got=$(curl -s --max-time 60 --expect100-timeout 60 -o "$scratch/got" -D "$scratch/head" -w '%{http_code} %{size_upload}' "$@" \
        --data-binary "@$scratch/body" "$url/v1/matmul?$query") || :
    same "$what: status" "$expected_status" "${got% *}"
    case "$*" in *--request-target*) ;; *) keep POST "/v1/matmul?$query" "$scratch/head" "$scratch/got" ;; esac
    uploaded=${got#* }
    [ "$expected_code" = none ] || same "$what: code" "$expected_code" "$(code_of "$scratch/got")"
}

# The body of a 1×k by k×1 product; 8·k bytes.
body_of_k() {
    "$FLOAT32" fill $((2 * $1)) 1 >"$scratch/body"
}

is_one_number() {
    same "$what: the product" "$1" "$("$FLOAT32" decode <"$scratch/got")"
}

start --max-body 64KiB
body_of_k 8192
post "a body of the limit" 200 none 'm=1&k=8192&n=1'
is_one_number 8192
post "a body of the limit, chunked" 200 none 'm=1&k=8192&n=1' -H 'Transfer-Encoding: chunked'
is_one_number 8192
printf x >>"$scratch/body"
post "one byte over the limit" 413 too_large 'm=1&k=8192&n=1'
same "one byte over the limit: limit" 65536 "$(jq .limit "$scratch/got")"
post "one byte over the limit, chunked" 413 too_large 'm=1&k=8192&n=1' -H 'Transfer-Encoding: chunked'
post "one byte over the limit, JSON" 413 too_large '' -H 'Content-Type: application/json'
# A form is closed up while it arrives, which does not make room for more.
form_type='Content-Type: multipart/form-data; boundary=B'
{
    for part in 'a 1 8000' 'b 8000 1'; do
        # shellcheck disable=SC2086
        set -- $part
        printf -- '--B\r\nContent-Disposition: form-data; name="%s"\r\n\r\n\223NUMPY\001%b\100%b%-63s\n' "$1" '\0000' '\0000' \
            "{'descr':'<f4','fortran_order':False,'shape':($2,$3)}"
        "$FLOAT32" fill 8000 1
        printf '\r\n'
    done
    printf -- '--B--\r\n'
} >"$scratch/body"
length=$(wc -c <"$scratch/body")
head -c $((65536 - length)) /dev/zero >>"$scratch/body"
for chunked in '' 'Transfer-Encoding: chunked'; do
    post "a form of the limit" 200 none '' -H "$form_type" -H "$chunked" -H 'Accept: application/octet-stream'
    is_one_number 8000
done
printf x >>"$scratch/body"
post "a form one byte over the limit" 413 too_large '' -H "$form_type"
post "a form one byte over the limit, chunked" 413 too_large '' -H "$form_type" -H 'Transfer-Encoding: chunked'
body_of_k 8192
printf x >>"$scratch/body"
post "one byte over the limit, before its type" 413 too_large 'colour=red' -H 'Content-Type: text/plain'
post "one byte over the limit, after its path" 404 not_found '' --request-target /v1/nothing
post "a product whose body would be over the limit" 413 too_large 'm=1&k=8193&n=1'

# The next request of the same curl shows what became of the connection.
: >"$scratch/two"
curl -s --max-time 60 -o "$scratch/got" -w '%{http_code} ' -H "$raw" -H 'Expect:' --data-binary "@$scratch/body" \
    "$url/v1/matmul?m=1&k=8192&n=1" --next -s -o "$scratch/next" -w '%{http_code} %{num_connects}' \
    "$url/healthz" >"$scratch/two" || :
same "a small body refused: the connection is kept" "413 200 0" "$(cat "$scratch/two")"
curl -s --max-time 60 -o "$scratch/got" -w '%{http_code} ' -H "$raw" -H 'Transfer-Encoding: chunked' -H 'Expect:' \
    --data-binary "@$scratch/body" "$url/v1/matmul?m=1&k=8192&n=1" --next -s -o "$scratch/next" \
    -w '%{http_code}' "$url/healthz" >"$scratch/two" || :
same "a chunked body refused: the next is served" "413 200" "$(cat "$scratch/two")"

post "over the limit with Expect" 413 too_large 'm=1&k=8192&n=1' -H 'Expect: 100-continue'
same "over the limit with Expect: bytes sent" 0 "$uploaded"
like "over the limit with Expect: Connection" '[Cc]lose' "$(header Connection "$scratch/head")"
same "over the limit with Expect: no 100 before" "" "$(grep ' 100 ' "$scratch/head" || :)"
body_of_k 8192
post "a bad query with Expect" 400 bad_request "m=1&k=x&n=1" -H "Expect: 100-continue"
same "a bad query with Expect: bytes sent" 0 "$uploaded"
post "an unknown type with Expect" 415 unsupported_media_type "" -H "Expect: 100-continue" -H "Content-Type: text/plain"
same "an unknown type with Expect: bytes sent" 0 "$uploaded"
post "a form without a boundary with Expect" 400 bad_request "" -H "Expect: 100-continue" -H "Content-Type: multipart/form-data"
same "a form without a boundary with Expect: bytes sent" 0 "$uploaded"
like "a form without a boundary with Expect: detail" "*boundary*" "$(jq -r .detail "$scratch/got")"
post "a good request with Expect" 200 none "m=1&k=8192&n=1" -H "Expect: 100-continue"
like "a good request with Expect: 100 before" "*100*" "$(head -n 1 "$scratch/head")"
is_one_number 8192

"$FLOAT32" fill $((8 * mib)) 1 >"$scratch/body"
post "32 MiB with Expect" 413 too_large 'm=1&k=1&n=1' -H 'Expect: 100-continue'
same "32 MiB with Expect: bytes sent" 0 "$uploaded"
# Who does not wait may lose the reply, but never upload it all.
uploaded=0
curl -s --max-time 60 -o "$scratch/got" -w '%{http_code} %{size_upload}' -H "$raw" -H 'Expect:' --limit-rate 16M \
    --data-binary "@$scratch/body" "$url/v1/matmul?m=1&k=1&n=1" >"$scratch/two" || :
at_most "32 MiB without Expect: bytes sent" $((24 * mib)) "$(cut -d ' ' -f 2 "$scratch/two")"
same "32 MiB without Expect: the next request" 200 "$(status_of "$url/healthz")"
post "32 MiB chunked with Expect" 413 too_large 'm=1&k=4194304&n=1' -H 'Expect: 100-continue' \
    -H 'Transfer-Encoding: chunked'
stop

# A refusal of over 1 MiB for another reason than its size closes too; of 1 MiB it does not.
start --max-body 4MiB
for bytes in $mib $((mib + 4)); do
    "$FLOAT32" fill $((bytes / 4)) 1 >"$scratch/body"
    : >"$scratch/got"
    curl -s --max-time 60 -o "$scratch/got" -D "$scratch/head" -H "$raw" -H 'Expect:' \
        --data-binary "@$scratch/body" "$url/v1/matmul?m=x&k=1&n=1" || :
    case $bytes in
    "$mib") same "1 MiB refused: Connection" "" "$(header Connection "$scratch/head")" ;;
    *) like "over 1 MiB refused: Connection" '[Cc]lose' "$(header Connection "$scratch/head")" ;;
    esac
    same "$bytes bytes refused: code" bad_request "$(code_of "$scratch/got")"
done
stop

# A chunked body tells no length: a refused one is passed over up to 1 MiB, and then its sender is told.
start --max-body 64KiB
head -c 3000000 /dev/zero >"$scratch/body"
refused_midway() {
    got=$(curl -sS --max-time 30 -o "$scratch/got" -D "$scratch/head" -w '%{http_code}' -H 'Expect:' \
        -H 'Transfer-Encoding: chunked' --data-binary "@$scratch/body" "$url$2" -H "$5" 2>"$scratch/complaint") || :
    same "$1: status" "$3" "$got"
    same "$1: code" "$4" "$(code_of "$scratch/got")"
    same "$1: Connection" close "$(header Connection "$scratch/head")"
    keep "${6:-POST}" "$2" "$scratch/head" "$scratch/got"
}
refused_midway "3 MB in chunks, of no such type" /v1/matmul 415 unsupported_media_type 'Content-Type: text/plain'
refused_midway "3 MB in chunks over --max-body" /v1/matmul 413 too_large 'Content-Type: application/json'
refused_midway "3 MB in chunks to no path" /v1/matmull 404 not_found "$raw"
refused_midway "3 MB in chunks by no method" /healthz 405 method_not_allowed "$raw"
got=$(curl -sS --max-time 30 -X GET -o "$scratch/got" -D "$scratch/head" -w '%{http_code}' -H 'Expect:' \
    --data-binary "@$scratch/body" "$url/healthz") || :
same "a GET of 3 MB: status" 413 "$got"
keep GET /healthz "$scratch/head" "$scratch/got"
same "after those: /healthz" 200 "$(status_of "$url/healthz")"
stop

start --max-dimension 16
"$FLOAT32" fill 512 1 >"$scratch/body"
post "dimensions of the limit" 200 none 'm=16&k=16&n=16'
same "dimensions of the limit: the product" 16 "$("$FLOAT32" decode <"$scratch/got" | uniq)"
for query in 'm=17&k=16&n=16' 'm=16&k=17&n=16' 'm=16&k=16&n=17' 'm=16&k=16&n=16&lda=17' 'm=16&k=16&n=16&ldb=17'; do
    post "$query" 413 too_large "$query"
    same "$query: limit" 16 "$(jq .limit "$scratch/got")"
done
jq -n -c '{a: [range(16) | [range(16) | 1]], b: [range(16) | [range(16) | 1]]}' >"$scratch/body"
post "JSON of the limit" 200 none '' -H 'Content-Type: application/json'
jq -n -c '{a: [[range(17)]], b: [range(17) | [1]]}' >"$scratch/body"
post "JSON over the limit" 413 too_large '' -H 'Content-Type: application/json'
jq -n -c '{a: [range(17) | [1]], b: [[1]]}' >"$scratch/body"
post "JSON of too many rows" 413 too_large '' -H 'Content-Type: application/json'
jq -n -c '{a: [[range(17)]], b: [[1, 2]]}' >"$scratch/body"
post "too large before bad_shape" 413 too_large '' -H 'Content-Type: application/json'
stop

# The operands fit, the result does not; the budget is also the most that a body may have.
start --memory-budget 1MiB
"$FLOAT32" fill 2048 1 >"$scratch/body"
post "a result within the budget" 200 none 'm=128&k=8&n=128'
same "a result within the budget: the product" 8 "$("$FLOAT32" decode <"$scratch/got" | uniq)"
post "a result over the budget" 413 too_large 'm=1024&k=1&n=1024'
post "a result over the budget, of no depth" 413 too_large 'm=1024&k=0&n=1024'
"$FLOAT32" fill $((mib / 4)) 1 >"$scratch/body"
printf x >>"$scratch/body"
post "a body over the budget" 413 too_large 'm=1&k=1&n=1' -H 'Expect: 100-continue'
printf '{"a": [[2]], "b": [[3]]}' >"$scratch/body"
for _ in 1 2 3 4 5 6 7 8; do
    post "afterwards" 200 none '' -H 'Content-Type: application/json'
done
stop
finish
