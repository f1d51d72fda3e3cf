#!/bin/sh
# Tests that /v1/variants, /v1/devices and /openapi.json agree, and that each listed name can be used.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"
top=$(dirname "$0")/../..

start
for what in variants devices; do
    ask "/v1/$what"
    expect "$what" 200
    cp "$scratch/got" "$scratch/$what"
done

# Each row: file^name of the check^condition in jq
while IFS='^' read -r file what condition; do
    same "$file: $what" true "$(jq -c "$condition" "$scratch/$file" 2>&1)"
done <<'END'
variants^the default^.default == "auto"
variants^tiles, that of tile among them^.variants | all(.tiles == null or .tile == null or ([.tile] - .tiles) == [])
variants^multiples are said^.variants | all(.multiple_of == null or .requires == "m, n and k that are multiples of \(.multiple_of)")
variants^multiples of types that it takes^.variants | all((.multiples // {} | keys) - .dtypes == [] and (.multiples // {} | all(length > 0)))
variants^available, or why not^.variants | all(.available == (.unavailable_because == null))
variants^no row twice^.variants | map([.op, .backend, .name]) | length > 0 and length == (unique | length)
variants^the plain CPU reference^.variants | any(.op == "matmul" and .backend == "cpu" and .name == "naive" and .available)
variants^CUDA's rows, also if nothing here can run them^.variants | any(.op == "matmul" and .backend == "cuda" and .name == "tensor" and .tiles == [16, 32, 64, 128, 192, 256] and (.dtypes | index("float64")) != null)
variants^rows of backends without devices come last^(.variants | group_by(.backend) | map(select(any(.available))[0].backend)) as $open | .variants | map(.backend | IN($open[])) | . == (sort | reverse)
variants^auto in every backend^([.variants[] | select(.op == "matmul")] | (map(.backend) | unique) == (map(select(.name == "auto").backend) | unique))
devices^the CPU among the devices^.devices | map(select(.backend == "cpu")) | length == 1
devices^names and memory^.devices | all(.name != "" and .memory_bytes > 0 and (.memory_free_bytes == null or .memory_free_bytes <= .memory_bytes))
devices^what CUDA devices have^.devices | map(select(.backend == "cuda")) | all((.compute_capability, .driver) | test("^[0-9]+[.][0-9]+$"))
END

# Requests each listed variant. Some variants do not support float32 or 1×1×1.
jq -r '.variants[] | "\(.op) \(.backend) \(.name) \(.available and .multiple_of == null and (.dtypes | index("float32")) != null)"' "$scratch/variants" >"$scratch/rows"
while read -r op backend variant available; do
    what="$op $backend:$variant"
    case $op in
    matmul) operands='"a":[[2]],"b":[[3]]' result='[[6]]' ;;
    *) operands='"a":[[2,3]]' result='[[2],[3]]' ;;
    esac
    ask "/v1/$op" -d "{$operands,\"backend\":\"$backend\",\"variant\":\"$variant\"}"
    case $available in
    true)
        expect "$what" 200 '[.c, .backend]' "[$result,\"$backend\"]"
        [ "$variant" = auto ] || expect "$what" 200 .variant "$variant"
        same "$what: a device of the list" true "$(jq --arg name "$(jq -r .device "$scratch/got")" '.devices | any(.name == $name)' "$scratch/devices")"
        ;;
    *) expect "$what" 422 code unsupported ;;
    esac
done <"$scratch/rows"

jq -r '.variants[] | "op=\(.op)&backend=\(.backend) \(.name) \(.sources[])"' "$scratch/variants" >"$scratch/rows"
while read -r query variant path; do
    what="$variant: $path"
    ask "/v1/variants/$variant/source?$query&file=$path"
    expect "$what" 200 Content-Type: 'text/plain; charset=utf-8'
    same "$what: is the file" 0 "$(cmp "$scratch/got" "$top/$path" >&2; echo $?)"
done <"$scratch/rows"
[ -s "$scratch/rows" ] || fail "no variant has sources"

# Each row: target without the optional parameters, file
while read -r target path; do
    ask "/v1/variants/$target"
    expect "$target" 200
    same "$target: the file" 0 "$(cmp "$scratch/got" "$top/gpu/$path" >&2; echo $?)"
done <<'END'
naive/source cuda/variants/naive.cu
naive/source?op=transpose cuda/variants/transpose_naive.cu
naive/source?backend=cpu cpu/variants/naive.c
naive/source?backend=cpu&backend=cpu&op=transpose cpu/variants/transpose.c
padded/source cuda/variants/transpose_tiled.cu
simt/source cuda/variants/simt.cuh
END

while read -r target status code; do
    ask "/v1/variants/$target"
    expect "$target" "$status" code "$code"
done <<'END'
naive 404 not_found
naive/source/ 404 not_found
/source 404 not_found
none/source 404 not_found
a/naive/source 404 not_found
tensor/source?backend=cpu 404 not_found
tensor/source?op=transpose 404 not_found
naive/source?backend=tpu 404 not_found
naive/source?variant=naive 400 bad_request
naive/source?op=matmul&op=transpose 400 bad_request
naive/source?file 400 bad_request
naive/source?file=gpu/cuda/variants/tiled.cu 400 bad_request
naive/source?file=../../../../etc/passwd 400 bad_request
END

ask /openapi.json
expect "the document" 200 Content-Type: application/json

# The document names each variant and each open backend once.
open=$(jq -c '[.devices[].backend]' "$scratch/devices")
for row in 'VariantName select(.op == "matmul").name' 'TransposeVariantName select(.op == "transpose").name' 'BackendName .backend'; do
    same "the document: ${row%% *}" "$(jq -c --argjson open "$open" "[.variants[] | select(.backend | IN(\$open[])) | ${row#* }] + [\"auto\"] | unique" "$scratch/variants")" \
        "$(jq -c ".components.schemas.${row%% *}.enum | sort" "$document")"
done

# Each path accepts the methods of the document, and lists them for OPTIONS.
jq -r '.paths | to_entries[] | "\(.key) \(.value | keys_unsorted - ["parameters"] | join(" "))"' "$document" >"$scratch/paths"
while read -r path methods; do
    expected="$(echo "$methods" | tr '[:lower:]' '[:upper:]' | sed 's/GET/GET HEAD/; s/ /, /g'), OPTIONS"
    curl -s --max-time 30 -X OPTIONS -D "$scratch/head" -o "$scratch/got" "$url$path"
    same "$path: Allow" "$expected" "$(tr -d '\r' <"$scratch/head" | header Allow /dev/stdin)"
done <"$scratch/paths"
conform "$document"
stop
finish
