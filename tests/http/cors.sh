#!/bin/sh
# Pages of another origin (CORS): off, for one origin, for all; what a browser asks before a request; and on
# replies of every kind, those past libmicrohttpd included.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

: "${TALK:?the path of the program talk}"

ours=https://example.org
key=a-key-for-the-tests
product='{"a":[[2]],"b":[[3]]}'

# ask STATUS ORIGIN ARG…: by the key; the origin may be empty.
ask() {
    expected=$1 origin=$2
    shift 2
    [ -z "$origin" ] || set -- "$@" -H "Origin: $origin"
    got=$(curl -s --max-time 30 -o "$scratch/got" -D "$scratch/head" -w '%{http_code}' "$@") || :
    same "$* by '$origin': status" "$expected" "$got"
    what="$* by '$origin'"
}

# told ORIGIN VARY: what the reply says, of which nothing stands where it is empty.
told() {
    same "$what: Access-Control-Allow-Origin" "$1" "$(header Access-Control-Allow-Origin "$scratch/head")"
    same "$what: Vary" "$2" "$(header Vary "$scratch/head")"
    same "$what: Access-Control-Allow-Credentials" "" "$(header Access-Control-Allow-Credentials "$scratch/head")"
    [ -n "$1" ] || same "$what: no Access-Control header" 0 "$(grep -ci '^access-control' "$scratch/head")"
}

# preflight STATUS ORIGIN PATH METHOD: as a browser asks, which never sends a key with it.
preflight() {
    ask "$1" "$2" -X OPTIONS -H "Access-Control-Request-Method: $4" \
        -H 'Access-Control-Request-Headers: authorization,content-type' "$url$3"
}

allows() {
    same "$what: methods" "$1" "$(header Access-Control-Allow-Methods "$scratch/head")"
    same "$what: headers" 'Authorization, Content-Type, Accept, X-Request-Id' "$(header Access-Control-Allow-Headers "$scratch/head")"
    same "$what: how long" 7200 "$(header Access-Control-Max-Age "$scratch/head")"
}

# Each header that the document has for a reply can be read by a page.
exposes_all() {
    exposed=$(header Access-Control-Expose-Headers "$scratch/head")
    jq -r '[.components.responses[].headers | keys[]] | unique[]' "$scratch/openapi.json" >"$scratch/names"
    same "$what: Matmul-Path is one of them" 1 "$(grep -cx Matmul-Path "$scratch/names")"
    while read -r name; do
        like "$what: $name is exposed" "*, $name, *" ", $exposed, "
    done <"$scratch/names"
}

# Off: nothing is told, as ever.
start
ask 200 "$ours" -d "$product" "$url/v1/matmul"
told '' ''
preflight 204 "$ours" /v1/matmul POST
told '' ''
stop

# One origin, with keys: the preflight comes without one, and passes.
MATMULD_API_KEY=$key
export MATMULD_API_KEY
launch --port 0 --cors-origin "$ours" --receive-timeout-ms 1000
await 60 says_ready || fail "it is not ready"
unset MATMULD_API_KEY
curl -s --max-time 30 -H "Authorization: Bearer $key" -o "$scratch/openapi.json" "$url/openapi.json"
preflight 204 "$ours" /v1/matmul POST
told "$ours" Origin
allows 'POST, OPTIONS'
same "$what: Allow" 'POST, OPTIONS' "$(header Allow "$scratch/head")"
keep OPTIONS /v1/matmul "$scratch/head" "$scratch/got"
preflight 204 "$ours" /v1/devices GET
allows 'GET, HEAD, OPTIONS'
preflight 404 "$ours" /nothing GET
told "$ours" Origin
for other in https://example.com http://example.org https://example.org.evil https://example.or HTTPS://EXAMPLE.ORG null '*'; do
    preflight 204 "$other" /v1/matmul POST
    told '' Origin
    ask 200 "$other" -H "Authorization: Bearer $key" -d "$product" "$url/v1/matmul"
    told '' Origin
done
ask 200 "$ours" -H "Authorization: Bearer $key" -d "$product" "$url/v1/matmul?verify=1"
told "$ours" Origin
exposes_all
keep POST '/v1/matmul?verify=1' "$scratch/head" "$scratch/got"
ask 200 '' -H "Authorization: Bearer $key" "$url/v1/devices"
told '' Origin
ask 200 "$ours" "$url/healthz"
told "$ours" Origin
ask 401 "$ours" -d "$product" "$url/v1/matmul"
told "$ours" Origin
keep POST /v1/matmul "$scratch/head" "$scratch/got"
ask 400 "$ours" -H "Authorization: Bearer $key" -d '{"a"' "$url/v1/matmul"
told "$ours" Origin

# Past libmicrohttpd: a refusal amid a large body, and a body that never comes.
printf 'POST /v1/matmul HTTP/1.1\r\nHost: x\r\nOrigin: %s\r\nContent-Length: 99999999\r\n\r\n' "$ours" >"$scratch/raw"
"$TALK" 127.0.0.1 "${url##*:}" 65536 <"$scratch/raw" | tr -d '\r' >"$scratch/head"
what="a refusal past libmicrohttpd"
like "$what" '*401 Unauthorized*' "$(head -n 1 "$scratch/head")"
same "$what: WWW-Authenticate" 'Bearer realm="matmuld"' "$(header WWW-Authenticate "$scratch/head")"
told "$ours" Origin
printf 'POST /v1/matmul HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nOrigin: %s\r\nContent-Length: 9\r\n\r\n{' "$key" "$ours" >"$scratch/raw"
"$TALK" 127.0.0.1 "${url##*:}" 65536 <"$scratch/raw" | tr -d '\r' >"$scratch/head"
what="a body that never comes"
like "$what" '*408 Request Timeout*' "$(head -n 1 "$scratch/head")"
told "$ours" Origin
stop

# All origins: the same for everyone.
start --cors-origin '*'
for origin in '' "$ours" null; do
    ask 200 "$origin" -d "$product" "$url/v1/matmul"
    told '*' ''
    exposes_all
    keep POST /v1/matmul "$scratch/head" "$scratch/got"
done
preflight 204 "$ours" /v1/transpose POST
told '*' ''
allows 'POST, OPTIONS'
stop
finish
