#!/bin/sh
# The parameter tile, with a made-up device one of whose variants leaves its tile to the caller and tells as
# C's first element the one that came: where it is taken from, what is refused, and that the self-test at
# start tries each.
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

# came WHAT TILE TARGET ARG…: the product is answered, and that tile came to the kernel; 0 is none.
came() {
    what=$1 tile=$2
    shift 2
    post "$@"
    same "$what: status" 200 "$status"
    same "$what: the tile" "$tile" "$(jq '.c[0][0]' "$scratch/got")"
    same "$what: the variant" tiled "$(jq -r .variant "$scratch/got")"
}

# refused WHAT STATUS CODE FIELD DETAIL TARGET ARG…
refused() {
    what=$1 expected=$2 code=$3 field=$4 detail=$5
    shift 5
    post "$@"
    same "$what: status" "$expected" "$status"
    same "$what: code" "$code" "$(code_of "$scratch/got")"
    same "$what: field" "$field" "$(jq -r '.field // "none"' "$scratch/got")"
    like "$what: detail" "*$detail*" "$(jq -r .detail "$scratch/got")"
}

json='Content-Type: application/json'
product='"a":[[2]],"b":[[3]]'

start --backend cuda
came "as a member" 8 /v1/matmul -H "$json" -d "{$product,\"variant\":\"tiled\",\"tile\":8}"
came "the variant's own" 16 /v1/matmul -H "$json" -d "{$product,\"variant\":\"tiled\",\"tile\":16}"
came "none" 0 /v1/matmul -H "$json" -d "{$product,\"variant\":\"tiled\"}"
came "in the query" 8 '/v1/matmul?variant=tiled&tile=8' -H "$json" -d "{$product}"
came "in both" 8 '/v1/matmul?tile=008' -H "$json" -d "{$product,\"variant\":\"tiled\",\"tile\":8.0}"
printf '2 3 ' | "$FLOAT32" encode >"$scratch/raw"
came "with a raw body" 16 '/v1/matmul?m=1&k=1&n=1&variant=tiled&tile=16' -H 'Accept: application/json' \
    -H 'Content-Type: application/octet-stream' --data-binary "@$scratch/raw"
curl -s --max-time 30 -o "$scratch/six.npy" -H "$json" -H 'Accept: application/x-npy' -d "{$product}" "$url/v1/matmul"
came "in a form" 8 /v1/matmul -H 'Accept: application/json' -F "a=@$scratch/six.npy" -F "b=@$scratch/six.npy" \
    -F variant=tiled -F tile=8

refused "not one of its tiles" 400 bad_request tile '8, 16, 64' '/v1/matmul?tile=32' -H "$json" \
    -d "{$product,\"variant\":\"tiled\"}"
refused "a tile past 32 bits" 400 bad_request tile "is '4294967304'" '/v1/matmul?tile=4294967304' -H "$json" \
    -d "{$product,\"variant\":\"tiled\"}"
refused "in a form, not one of its tiles" 400 bad_request tile '8, 16, 64' /v1/matmul \
    -F "a=@$scratch/six.npy" -F "b=@$scratch/six.npy" -F variant=tiled -F tile=1
refused "in a form, 0" 400 bad_request tile 'from 1 to' /v1/matmul \
    -F "a=@$scratch/six.npy" -F "b=@$scratch/six.npy" -F variant=tiled -F tile=0
refused "in a form, two that differ" 400 bad_request tile 'given twice' /v1/matmul \
    -F "a=@$scratch/six.npy" -F "b=@$scratch/six.npy" -F variant=tiled -F tile=8 -F tile=16
refused "two that differ" 400 bad_request tile 'given twice' '/v1/matmul?tile=8' -H "$json" \
    -d "{$product,\"variant\":\"tiled\",\"tile\":16}"
refused "a variant without a choice" 400 bad_request tile 'naive leaves no tile' '/v1/matmul?tile=8' -H "$json" \
    -d "{$product,\"variant\":\"naive\"}"
refused "auto" 400 bad_request tile 'auto leaves no tile' '/v1/matmul?tile=8' -H "$json" -d "{$product}"
refused "an unknown variant" 422 unsupported variant 'naive' '/v1/matmul?tile=8' -H "$json" \
    -d "{$product,\"variant\":\"tiled_8\"}"
refused "a tile that the device has no room for" 422 unsupported none 'as told' '/v1/matmul?tile=64' -H "$json" \
    -d "{$product,\"variant\":\"tiled\"}"

status=$(curl -s -o "$scratch/got" -D "$scratch/head" -w '%{http_code}' "$url/v1/variants")
keep GET /v1/variants "$scratch/head" "$scratch/got"
same "/v1/variants: status" 200 "$status"
same "/v1/variants: who has tiles" '[["tiled",16,[8,16,64]]]' \
    "$(jq -c '[.variants[] | select(has("tiles")) | [.name, .tile, .tiles]]' "$scratch/got")"
stop

# A tile that computes wrongly: the device is not served.
for tile in 8 16; do
    status=0
    MATMULD_FAULTY_TILE=$tile timeout 20 "$MATMULD" --port 0 --backend cuda 2>"$scratch/log" || status=$?
    same "wrong by a tile of $tile: exit status" 1 "$status"
    like "wrong by a tile of $tile: the log" '*the known product by tiled is wrong*' "$(cat "$scratch/log")"
done
finish
