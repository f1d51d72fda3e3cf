#!/bin/sh
# The memory budget: what can never fit is too large, what only has to wait is busy, and nothing is
# computed that could not be answered.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

# post QUERY FILE TYPE [CURL ARGUMENT...]: sets got to the status.
post() {
    query=$1 file=$2 type=$3
    shift 3
    got=$(curl -s --max-time 60 -o "$scratch/got" -w '%{http_code}' -H 'Expect:' -H "Content-Type: $type" "$@" \
        --data-binary "@$file" "$url/v1/matmul?$query") || :
}

raw=application/octet-stream
json=application/json

start --backend cpu --memory-budget 1MiB
"$FLOAT32" fill 150000 1 >"$scratch/row"
post 'm=1&k=75000&n=1' "$scratch/row" $raw
same "600 kB raw" 200 "$got"

# A chunked body is held twice while it grows, which this one could not be even alone.
post 'm=1&k=75000&n=1' "$scratch/row" $raw -H 'Transfer-Encoding: chunked'
same "600 kB in chunks: status" 413 "$got"
same "600 kB in chunks: code" too_large "$(code_of "$scratch/got")"
same "600 kB in chunks: limit" 1048576 "$(jq .limit "$scratch/got")"

# As text the result takes more than the budget, which is known before anything is computed.
"$FLOAT32" fill 460 1 >"$scratch/outer"
post 'm=230&k=1&n=230' "$scratch/outer" $raw
same "an outer product in raw" 200 "$got"
post 'm=260&k=1&n=260' "$scratch/outer" $raw
same "a wrong length" 400 "$got"
"$FLOAT32" fill 520 1 >"$scratch/outer"
post 'm=260&k=1&n=260' "$scratch/outer" $raw -H 'Accept: application/json'
same "an outer product as JSON: status" 413 "$got"
same "an outer product as JSON: code" too_large "$(code_of "$scratch/got")"

# A JSON body is counted with its matrices. Only one that takes a tree, as for an escape in a name, counts with that.
long_row() {
    printf '{"%s": [], "a": [[0' "$1"
    awk 'BEGIN { for (i = 0; i < 49000; i++) printf ",0" }'
    printf ']]}'
}
long_row b >"$scratch/matrix"
long_row '\u0062' >"$scratch/tree"
post '' "$scratch/matrix" $json
same "a body with its matrix, within the budget: code" bad_shape "$(code_of "$scratch/got")"
post '' "$scratch/tree" $json
same "a body whose tree is larger than the budget: status" 413 "$got"

# Of two that fit one by one, the second has to come again.
stop
start --backend cpu
prepare_slow "$(slow_side 1)"
stop
start --backend cpu --memory-budget "$((slow_side * slow_side * 16))"
post_slow first
await_sent first
got=$(curl -s --max-time 60 -o "$scratch/got" -D "$scratch/head" -w '%{http_code}' -H 'Expect:' \
    -H "Content-Type: $raw" --data-binary "@$scratch/slow" "$url/v1/matmul?m=$slow_side&k=$slow_side&n=$slow_side") || :
same "the budget is taken: status" 429 "$got"
keep POST /v1/matmul "$scratch/head" "$scratch/got"
same "the budget is taken: code" busy "$(code_of "$scratch/got")"
like "the budget is taken: Retry-After" '[1-9]*' "$(header Retry-After "$scratch/head")"
finish_slow first
same "the one that came first: status" 200 "$slow_status"
check_slow first
post_slow second
finish_slow second
same "once there is room: status" 200 "$slow_status"
stop
finish
