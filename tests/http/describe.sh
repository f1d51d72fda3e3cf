#!/bin/sh
# GET /v1/variants and GET /v1/devices: the members that the contract names, of the types that it names,
# and that what they list can be chosen.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

# holds WHAT FILE CONDITION: jq's condition is true.
holds() {
    same "$1" true "$(jq -c "$3" "$2" 2>&1)"
}

start
for what in variants devices; do
    same "$what: status" 200 "$(curl -s --max-time 30 -o "$scratch/$what" -D "$scratch/head" -w '%{http_code}' "$url/v1/$what")"
    keep GET "/v1/$what" "$scratch/head" "$scratch/$what"
done

variants=$scratch/variants
holds "the default" "$variants" '.default == "auto"'
holds "the list" "$variants" '.variants | type == "array" and length > 0'
holds "op" "$variants" '.variants | all(.op == "matmul" or .op == "transpose")'
holds "names and summaries" "$variants" '.variants | all((.name, .backend, .summary) | type == "string" and . != "")'
holds "dtypes" "$variants" '.variants | all(.dtypes | type == "array" and length > 0 and all(type == "string"))'
holds "tile, a count or null" "$variants" '.variants | all(has("tile") and (.tile == null or .tile >= 1))'
holds "tiles, that of tile among them" "$variants" '.variants | all(.tiles == null or ([.tile] - .tiles) == [])'
holds "what it takes multiples of, and says so" "$variants" \
    '.variants | all(.multiple_of == null or
                     (.multiple_of >= 2 and .requires == "m, n and k that are multiples of \(.multiple_of)"))'
holds "available, or why not" "$variants" \
    '.variants | all((.available == true and .unavailable_because == null) or
                     (.available == false and (.unavailable_because | type == "string" and . != "")))'
holds "attributes, where there are any" "$variants" \
    '.variants | all((.threads_per_block, .registers_per_thread, .static_shared_bytes, .dynamic_shared_bytes,
                      .local_bytes, .blocks_per_multiprocessor) | . == null or (type == "number" and . >= 0))'
holds "no row twice" "$variants" '.variants | map([.op, .backend, .name]) | length == (unique | length)'
holds "the plain reference of the CPU" "$variants" \
    '.variants | any(.op == "matmul" and .backend == "cpu" and .name == "naive" and .available)'
holds "auto in every backend" "$variants" \
    '(.variants | map(select(.op == "matmul").backend) | unique) ==
     (.variants | map(select(.op == "matmul" and .name == "auto").backend) | unique)'

devices=$scratch/devices
holds "the CPU among the devices" "$devices" '.devices | map(select(.backend == "cpu")) | length == 1'
holds "index, backend, name, memory_bytes" "$devices" \
    '.devices | all((.index | type == "number") and (.backend | type == "string")
                    and (.name | type == "string" and . != "") and .memory_bytes > 0)'
holds "memory_free_bytes" "$devices" \
    '.devices | all(.memory_free_bytes == null or (.memory_free_bytes >= 0 and .memory_free_bytes <= .memory_bytes))'
holds "state" "$devices" '.devices | all(.state == "ready" or .state == "failed")'
holds "what CUDA devices have" "$devices" \
    '.devices | map(select(.backend == "cuda"))
     | all((.compute_capability, .driver) | type == "string" and test("^[0-9]+[.][0-9]+$"))'

# One that takes no 1×1×1 is as good as not there for this product.
jq -r '.variants[] | "\(.op) \(.backend) \(.name) \(.available and .multiple_of == null)"' "$variants" >"$scratch/rows"
while read -r op backend variant available; do
    what="$op $backend:$variant"
    case $op in
    matmul) operands='"a":[[2]],"b":[[3]]' result='[[6]]' ;;
    *) operands='"a":[[2,3]]' result='[[2],[3]]' ;;
    esac
    got=$(curl -s --max-time 30 -o "$scratch/got" -w '%{http_code}' -H 'Content-Type: application/json' \
        -d "{$operands,\"backend\":\"$backend\",\"variant\":\"$variant\"}" "$url/v1/$op") || :
    case $available in
    true)
        same "$what: status" 200 "$got"
        same "$what: what ran where" "[$result,\"$backend\"]" "$(jq -c '[.c, .backend]' "$scratch/got")"
        [ "$variant" = auto ] || same "$what: what ran" "$variant" "$(jq -r .variant "$scratch/got")"
        device=$(jq -r .device "$scratch/got")
        holds "$what: a device of the list" "$devices" ".devices | any(.name == \"$device\")"
        ;;
    *)
        same "$what: status" 422 "$got"
        same "$what: code" unsupported "$(code_of "$scratch/got")"
        ;;
    esac
done <"$scratch/rows"
stop
finish
