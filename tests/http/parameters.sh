#!/bin/sh
# Tests the parameters tile and vendor, and the path in a result, with a simulated device. Its variant `tiled`
# writes the tile to C's first element. `auto` chooses the variant `vendors` if the request allows it.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

sound=$MATMULD MATMULD=${FAULTY:?the path of the faulty matmuld}

product='"a":[[2]],"b":[[3]]'
start --backend cuda
printf '2 3 ' | "$FLOAT32" encode >"$scratch/raw"
curl -s -o "$scratch/six.npy" -H 'Accept: application/x-npy' -d "{$product}" "$url/v1/matmul"
form="-HAccept:application/json -F a=@$scratch/six.npy -F b=@$scratch/six.npy"
raw="-HAccept:application/json -HContent-Type:application/octet-stream --data-binary @$scratch/raw"

# Each row: arguments of `expect`|part of the detail|query|arguments of curl
while IFS='|' read -r outcome detail query arguments; do
    # shellcheck disable=SC2086
    ask "/v1/matmul$query" $arguments
    # shellcheck disable=SC2086
    expect "$query $arguments" $outcome
    [ -z "$detail" ] || expect "$query $arguments" "$status" detail "$detail"
done <<END
200 .c[0][0] 8 .variant tiled|||-d {$product,"variant":"tiled","tile":8}
200 .c[0][0] 16 .variant tiled|||-d {$product,"variant":"tiled","tile":16}
200 .c[0][0] 0 .variant tiled|||-d {$product,"variant":"tiled"}
200 .c[0][0] 8 .variant tiled||?variant=tiled&tile=8|-d {$product}
200 .c[0][0] 8 .variant tiled||?tile=008|-d {$product,"variant":"tiled","tile":8.0}
200 .c[0][0] 16 .variant tiled||?m=1&k=1&n=1&variant=tiled&tile=16|$raw
200 .c[0][0] 8 .variant tiled|||$form -F variant=tiled -F tile=8
400 code bad_request .field tile|8, 16, 64|?tile=32|-d {$product,"variant":"tiled"}
400 code bad_request .field tile|is '4294967304'|?tile=4294967304|-d {$product,"variant":"tiled"}
400 code bad_request .field tile|8, 16, 64||$form -F variant=tiled -F tile=1
400 code bad_request .field tile|given twice|?tile=8|-d {$product,"variant":"tiled","tile":16}
422 code unsupported .field variant|naive|?tile=8|-d {$product,"variant":"tiled_8"}
422 code unsupported .field null|simulated|?tile=64|-d {$product,"variant":"tiled"}
200 .variant naive|||-d {$product}
200 .variant naive|||-d {$product,"vendor":"never"}
200 .variant vendors|||-d {$product,"vendor":"allow"}
200 .variant vendors||?vendor=allow|-d {$product}
200 .variant vendors||?m=1&k=1&n=1&vendor=allow|$raw
200 .variant vendors|||$form -F vendor=allow
200 .variant naive|||$form -F vendor=never
200 .variant vendors|||-d {$product,"variant":"vendors"}
200 .variant naive||?vendor=allow|-d {$product,"variant":"naive"}
END
ask /v1/variants
expect "/v1/variants: rows with tiles" 200 '[.variants[] | select(has("tiles")) | [.name, .tile, .tiles]]' '[["tiled",16,[8,16,64]]]'

# The path of a result is in JSON, in a header and in the metrics. Variants with only one path report no path.
for row in 'certified certified' 'repaired repaired:5000000000' 'simt simt' 'naive '; do
    variant=${row%% *} path=${row#* } with_path=' path'
    [ -n "$path" ] || with_path=' reproducible'
    [ -z "$path" ] || same "$variant: the metric at first" 0 "$(metric "path_total{path=\"$variant\"}")"
    for type in application/octet-stream application/x-npy application/json; do
        ask "/v1/matmul?variant=$variant" -H "Accept: $type" -d "{$product}"
        expect "$variant as $type" 200 Matmul-Path: "$path"
    done
    expect "$variant" 200 '.path // ""' "$path" \
        'keys_unsorted | join(" ")' "c shape dtype variant backend device gflops batched devices$with_path timing"
    [ -z "$path" ] || same "$variant: the metric" 3 "$(metric "path_total{path=\"$variant\"}")"
done
stop

# The server does not use a device whose self-test with a tile gives a wrong result.
for tile in 8 16; do
    MATMULD_FAULTY_TILE=$tile runs 1 'the known product of float32 by tiled is wrong' --port 0 --backend cuda
done

# On the CPU the parameter vendor changes nothing, because `auto` may choose every variant there.
MATMULD=$sound
start --backend cpu
prepare_queued
ask /v1/matmul -d "@$scratch/queued"
natural=$(header Matmul-Variant "$scratch/head")
for vendor in allow never; do
    ask "/v1/matmul?vendor=$vendor" -d "@$scratch/queued"
    expect "$vendor" 200 .variant "$natural"
done
stop
finish
