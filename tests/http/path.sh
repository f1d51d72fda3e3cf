#!/bin/sh
# The path by which a result came about, with a made-up device some of whose variants tell one: in JSON, as a
# header of every form, in the metrics, and nowhere where a variant has one way only.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

MATMULD=${FAULTY:?the path of the faulty matmuld}

start --backend cuda
for row in 'certified certified' 'repaired repaired:5000000000' 'simt simt' 'naive '; do
    variant=${row%% *} path=${row#* } with_path=' path'
    [ -n "$path" ] || with_path=
    [ -z "$path" ] || same "$variant: the metric at first" 0 "$(metric "path_total{path=\"$variant\"}")"
    for type in application/octet-stream application/x-npy application/json; do
        ask "/v1/matmul?variant=$variant" -H "Accept: $type" -d '{"a":[[2]],"b":[[3]]}'
        expect "$variant as $type" 200 Matmul-Path: "$path"
    done
    expect "$variant" 200 '.path // ""' "$path" \
        'keys_unsorted | join(" ")' "c shape dtype variant backend device gflops batched$with_path timing"
    [ -z "$path" ] || same "$variant: the metric" 3 "$(metric "path_total{path=\"$variant\"}")"
done
stop
finish
