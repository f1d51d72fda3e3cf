#!/bin/sh
# GET /openapi.json is OpenAPI 3.1, as far as can be told without its own schema, and names what there is
# here. Its examples and defaults conform to its schemas; that replies do is golden.sh's.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

document=$scratch/document

start
same "status" "200 application/json" \
    "$(curl -s --max-time 30 -o "$document" -w '%{http_code} %{content_type}' "$url/openapi.json")"
at_most "it is indented: at least so many lines" "$(wc -l <"$document")" 1200
curl -s --max-time 30 -o "$scratch/variants" "$url/v1/variants"
same "the version" "$("$MATMULD" --version)" "matmuld $(jq -r .info.version "$document")"
for row in 'matmul VariantName' 'transpose TransposeVariantName'; do
    same "the variants of ${row% *}" \
        "$(jq -c --arg op "${row% *}" '[.variants[] | select(.op == $op).name] + ["auto"] | unique' "$scratch/variants")" \
        "$(jq -c ".components.schemas.${row#* }.enum | sort" "$document")"
done
same "the backends" "$(jq -c '[.variants[].backend] + ["auto"] | unique' "$scratch/variants")" \
    "$(jq -c '.components.schemas.BackendName.enum | sort' "$document")"
same "again" "$(cat "$document")" "$(curl -s --max-time 30 "$url/openapi.json")"

# The paths are those that the server has: each takes its methods, and says so.
jq -r '.paths | to_entries[] | "\(.key) \(.value | keys_unsorted - ["parameters"] | join(" "))"' "$document" >"$scratch/paths"
while read -r path method; do
    case $method in
    get) expected='GET, HEAD, OPTIONS' ;;
    *) expected="$(echo "$method" | tr '[:lower:]' '[:upper:]'), OPTIONS" ;;
    esac
    curl -s --max-time 30 -X OPTIONS -D "$scratch/head" -o "$scratch/got" "$url$path"
    same "$path: Allow" "$expected" "$(tr -d '\r' <"$scratch/head" | header Allow /dev/stdin)"
done <"$scratch/paths"
stop
conform "$document"
finish
