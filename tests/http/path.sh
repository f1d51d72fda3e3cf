#!/bin/sh
# The path by which a result came about, with a made-up device some of whose variants tell one: in JSON, as a
# header of every form, in the metrics, and nowhere where a variant has one way only.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

MATMULD=${FAULTY:?the path of the faulty matmuld}

# ask VARIANT ACCEPT: a product of one element; leaves the reply in $scratch/got and $scratch/head.
ask() {
    target="/v1/matmul?variant=$1"
    status=$(curl -s --max-time 30 -o "$scratch/got" -D "$scratch/head" -w '%{http_code}' -H "Accept: $2" \
        -H 'Content-Type: application/json' -d '{"a":[[2]],"b":[[3]]}' "$url$target") || :
    same "$1 as $2: status" 200 "$status"
    keep POST "$target" "$scratch/head" "$scratch/got"
}

# counted PATH: how many products went by it, as the metrics tell.
counted() {
    curl -s --max-time 30 "$url/metrics" | sed -n "s/^matmuld_path_total{path=\"$1\"} //p"
}

start --backend cuda
for path in certified repaired simt; do
    same "$path: the metric at first" 0 "$(counted "$path")"
done
for row in 'certified certified' 'repaired repaired:5000000000' 'simt simt' 'naive '; do
    variant=${row%% *} path=${row#* }
    for type in application/octet-stream application/x-npy application/json; do
        ask "$variant" "$type"
        same "$variant as $type: Matmul-Path" "$path" "$(header Matmul-Path "$scratch/head")"
    done
    same "$variant: path" "${path:-none}" "$(jq -r '.path // "none"' "$scratch/got")"
done
same "the members, in order" 'c shape dtype variant backend device gflops batched timing' \
    "$(jq -r 'keys_unsorted | join(" ")' "$scratch/got")"
ask simt application/json
same "the members with a path, in order" 'c shape dtype variant backend device gflops batched path timing' \
    "$(jq -r 'keys_unsorted | join(" ")' "$scratch/got")"
same "certified: the metric" 3 "$(counted certified)"
same "repaired: the metric" 3 "$(counted repaired)"
same "simt: the metric" 4 "$(counted simt)"
stop
finish
