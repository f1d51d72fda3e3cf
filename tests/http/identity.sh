#!/bin/sh
# The identity times X is X, bit for bit, through every matmul variant that GET /v1/variants says is
# available, as raw bytes and as JSON, on shapes that fill no tile, which some refuse, and on one that does.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

json_rows() {
    "$FLOAT32" decode <"$1" | jq -s -c --argjson columns "$2" '[range(0; length; $columns) as $i | .[$i:$i + $columns]]'
}

# as_raw and as_json multiply $scratch/identity by $scratch/x, and leave the product's bytes in $scratch/c.
as_raw() {
    cat "$scratch/identity" "$scratch/x" | curl -s --max-time 60 -o "$scratch/c" -w '%{http_code}' \
        -H 'Content-Type: application/octet-stream' --data-binary @- \
        "$url/v1/matmul?m=$rows&k=$rows&n=$columns&backend=$backend&variant=$variant"
}

as_json() {
    jq -n -c --slurpfile a "$scratch/identity.json" --slurpfile b "$scratch/x.json" --arg backend "$backend" \
        --arg variant "$variant" '{a: $a[0], b: $b[0], $backend, $variant}' |
        curl -s --max-time 60 -o "$scratch/reply.json" -w '%{http_code}' -H 'Content-Type: application/json' \
            --data-binary @- "$url/v1/matmul"
    jq -r '.c[][]' "$scratch/reply.json" | "$FLOAT32" encode >"$scratch/c"
}

start
curl -s --max-time 30 -o "$scratch/variants.json" "$url/v1/variants"
jq -r '.variants[] | select(.op == "matmul" and .available and (.dtypes | index("float32")))
       | "\(.backend) \(.name) \(.multiple_of // 1)"' "$scratch/variants.json" >"$scratch/variants"

seed=1
for shape in '1 1' '3 5' '17 33' '65 31' '127 9' '32 64'; do
    rows=${shape% *}
    columns=${shape#* }
    "$FLOAT32" identity "$rows" >"$scratch/identity"
    "$FLOAT32" random $((rows * columns)) $seed >"$scratch/x"
    json_rows "$scratch/identity" "$rows" >"$scratch/identity.json"
    json_rows "$scratch/x" "$columns" >"$scratch/x.json"
    seed=$((seed + 1))
    while read -r backend variant multiple; do
        for format in raw json; do
            : >"$scratch/c"
            if [ $((rows % multiple + columns % multiple)) -ne 0 ]; then
                same "$backend:$variant, $rows rows, $columns columns, $format: refused" 422 "$("as_$format" 2>/dev/null)"
                continue
            fi
            same "$backend:$variant, $rows rows, $columns columns, $format: status" 200 "$("as_$format")"
            checks=$((checks + 1))
            cmp -s "$scratch/x" "$scratch/c" ||
                fail "$backend:$variant, $rows rows, $columns columns, $format: the product differs from X"
        done
    done <"$scratch/variants"
done
stop
same "variants without a product" "" "$(grep -c . "$scratch/variants" | grep -x 0)"
finish
