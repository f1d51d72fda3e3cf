#!/bin/sh
# The parameter tile, with a made-up device one of whose variants leaves its tile to the client and tells as
# C's first element the one that came: where it is taken from, what is refused, and that the self-test at
# start tries each.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

MATMULD=${FAULTY:?the path of the faulty matmuld}

product='"a":[[2]],"b":[[3]]'
start --backend cuda
printf '2 3 ' | "$FLOAT32" encode >"$scratch/raw"
curl -s -o "$scratch/six.npy" -H 'Accept: application/x-npy' -d "{$product}" "$url/v1/matmul"
form="-HAccept:application/json -F a=@$scratch/six.npy -F b=@$scratch/six.npy -F variant=tiled"

# TILE that came to the kernel (0: none), or STATUS CODE FIELD DETAIL of a refusal; the query; arguments of curl.
# shellcheck disable=SC2086
while IFS='|' read -r outcome detail query arguments; do
    ask "/v1/matmul$query" $arguments
    what="$query $arguments"
    case $outcome in
    *\ *\ *)
        # shellcheck disable=SC2086
        set -- $outcome
        expect "$what" "$1" code "$2" '.field // "none"' "$3" detail "$detail"
        ;;
    *) expect "$what" 200 '.c[0][0]' "$outcome" .variant tiled ;;
    esac
done <<END
8|||-d {$product,"variant":"tiled","tile":8}
16|||-d {$product,"variant":"tiled","tile":16}
0|||-d {$product,"variant":"tiled"}
8||?variant=tiled&tile=8|-d {$product}
8||?tile=008|-d {$product,"variant":"tiled","tile":8.0}
16||?m=1&k=1&n=1&variant=tiled&tile=16|-HAccept:application/json -HContent-Type:application/octet-stream --data-binary @$scratch/raw
8|||$form -F tile=8
400 bad_request tile|8, 16, 64|?tile=32|-d {$product,"variant":"tiled"}
400 bad_request tile|is '4294967304'|?tile=4294967304|-d {$product,"variant":"tiled"}
400 bad_request tile|8, 16, 64||$form -F tile=1
400 bad_request tile|given twice|?tile=8|-d {$product,"variant":"tiled","tile":16}
422 unsupported variant|naive|?tile=8|-d {$product,"variant":"tiled_8"}
422 unsupported none|as told|?tile=64|-d {$product,"variant":"tiled"}
END
ask /v1/variants
expect "/v1/variants: rows with tiles" 200 '[.variants[] | select(has("tiles")) | [.name, .tile, .tiles]]' '[["tiled",16,[8,16,64]]]'
stop

# A tile that computes wrongly: the device is not served.
for tile in 8 16; do
    export MATMULD_FAULTY_TILE=$tile
    runs 1 'the known product by tiled is wrong' --port 0 --backend cuda
done
finish
