#!/bin/sh
# The parameter vendor, with a made-up device whose `auto` chooses the row `vendors` where that is allowed: in
# every form of request, for `auto` alone, and what is refused. The CPU's `auto` does not ask for it.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

MATMULD=${FAULTY:?the path of the faulty matmuld}

# post TARGET ARG…: sets status, and leaves the reply in $scratch/got.
post() {
    target=$1
    shift
    status=$(curl -s --max-time 30 -o "$scratch/got" -D "$scratch/head" -w '%{http_code}' "$@" "$url$target") || :
    keep POST "$target" "$scratch/head" "$scratch/got"
}

# ran WHAT VARIANT TARGET ARG…: the product is answered, by that variant.
ran() {
    what=$1 variant=$2
    shift 2
    post "$@"
    same "$what: status" 200 "$status"
    same "$what: the variant" "$variant" "$(header Matmul-Variant "$scratch/head")"
}

json='Content-Type: application/json'
product='"a":[[2]],"b":[[3]]'
printf '2 3 ' | "$FLOAT32" encode >"$scratch/raw"

start
ran "without it" naive /v1/matmul -H "$json" -d "{$product}"
ran "never, as a member" naive /v1/matmul -H "$json" -d "{$product,\"vendor\":\"never\"}"
ran "allowed, as a member" vendors /v1/matmul -H "$json" -d "{$product,\"vendor\":\"allow\"}"
ran "never, in the query" naive '/v1/matmul?vendor=never' -H "$json" -d "{$product}"
ran "allowed, in the query" vendors '/v1/matmul?vendor=allow' -H "$json" -d "{$product}"
ran "allowed, with a raw body" vendors '/v1/matmul?m=1&k=1&n=1&vendor=allow' -H 'Content-Type: application/octet-stream' \
    --data-binary "@$scratch/raw"
ran "with a raw body" naive '/v1/matmul?m=1&k=1&n=1' -H 'Content-Type: application/octet-stream' --data-binary "@$scratch/raw"
curl -s --max-time 30 -o "$scratch/six.npy" -H "$json" -H 'Accept: application/x-npy' -d "{$product}" "$url/v1/matmul"
ran "allowed, in a form" vendors /v1/matmul -F "a=@$scratch/six.npy" -F "b=@$scratch/six.npy" -F vendor=allow
ran "never, in a form" naive /v1/matmul -F "a=@$scratch/six.npy" -F "b=@$scratch/six.npy" -F vendor=never
ran "a variant by its name, without permission" vendors /v1/matmul -H "$json" -d "{$product,\"variant\":\"vendors\"}"
ran "a variant by its name, with permission" naive '/v1/matmul?vendor=allow' -H "$json" -d "{$product,\"variant\":\"naive\"}"

post /v1/matmul -F "a=@$scratch/six.npy" -F "b=@$scratch/six.npy" -F vendor=yes
same "in a form, another value: status" 400 "$status"
same "in a form, another value: field" vendor "$(jq -r .field "$scratch/got")"

# On the CPU `auto` is the fastest whoever made it: with or without permission the same.
prepare_queued
post '/v1/matmul?backend=cpu' -H "$json" -d "@$scratch/queued"
ran "on the CPU, allowed" "$(header Matmul-Variant "$scratch/head")" '/v1/matmul?backend=cpu&vendor=allow' -H "$json" -d "@$scratch/queued"
ran "on the CPU, never" "$(header Matmul-Variant "$scratch/head")" '/v1/matmul?backend=cpu&vendor=never' -H "$json" -d "@$scratch/queued"
stop
finish
