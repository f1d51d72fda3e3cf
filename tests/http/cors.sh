#!/bin/sh
# Tests what pages of other origins may request and read, with CORS off, for one origin, and for all origins.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

ours=https://example.org
key=a-key-for-the-tests
product='{"a":[[2]],"b":[[3]]}'

# from STATUS ORIGIN TARGET ARG…: sends a request from a page of ORIGIN, or without Origin if it is empty.
from() {
    wanted=$1 origin=$2
    shift 2
    what="$* by '$origin'"
    [ -z "$origin" ] || set -- "$@" -H "Origin: $origin"
    ask "$@"
    expect "$what" "$wanted"
}

# told ORIGIN VARY: checks the CORS headers of the reply. An empty ORIGIN means that there are none.
told() {
    same "$what: Access-Control-Allow-Origin" "$1" "$(header Access-Control-Allow-Origin "$scratch/head")"
    expect "$what" "$status" Vary: "$2" Access-Control-Allow-Credentials: ''
    [ -n "$1" ] || same "$what: no Access-Control header" 0 "$(grep -ci '^access-control' "$scratch/head")"
}

# preflight STATUS ORIGIN PATH METHOD: sends a preflight request. Browsers send no key with it.
preflight() {
    from "$1" "$2" "$3" -X OPTIONS -H "Access-Control-Request-Method: $4" -H 'Access-Control-Request-Headers: authorization,content-type'
}

allows() {
    expect "$what" "$status" Access-Control-Allow-Methods: "$1" Access-Control-Max-Age: 7200 \
        Access-Control-Allow-Headers: 'Authorization, Content-Type, Content-Encoding, Accept, X-Request-Id, traceparent, If-Match, If-None-Match, Inference-Header-Content-Length, Matmul-Affinity'
}

# refused OPTION: checks that the error names the option that would allow the request.
refused() {
    expect "$what" 403 code forbidden detail "$1"
}

# A page of another origin may read every documented header, except headers of the service's own pages.
exposes_all() {
    exposed=$(header Access-Control-Expose-Headers "$scratch/head")
    jq -r '[.components.responses | del(.Page, .PageFile, .PageKnown)[].headers | keys[]] | unique[]' "$document" >"$scratch/names"
    same "$what: Matmul-Path is one of them" 1 "$(grep -cx Matmul-Path "$scratch/names")"
    while read -r name; do
        like "$what: $name is exposed" "*, $name, *" ", $exposed, "
    done <"$scratch/names"
}

# Without CORS a page may only use the server that it comes from.
start
from 200 "$ours" "/v1/variants"
told '' ''
for origin in "$url" "https://${url#http://}" ''; do
    from 200 "$origin" "/v1/matmul" -d "$product"
    told '' ''
done
for path in matmul transpose benchmark; do
    from 403 "$ours" "/v1/$path" -d '{"m":1,"k":1,"n":1}'
    refused --cors-origin
    from 403 '' "/v1/$path" -H 'Host: evil.example' -d "$product"
    refused --allowed-hosts
done
from 403 "http://evil.example:${url##*:}" "/metrics" -H "Host: evil.example:${url##*:}"
from 403 '' "/" -H 'Host: evil.example'
for path in healthz readyz; do
    from 200 '' "/$path" -H 'Host: evil.example'
done
from 404 "$ours" "/v1/nothing" -H 'Host: evil.example' -d "$product"
from 405 "$ours" "/v1/matmul" -H 'Host: evil.example' -X PUT
from 200 '' "/v1/matmul" --http1.0 -H 'Host:' -d "$product"
preflight 204 "$ours" /v1/matmul POST
told '' ''
stop

# One allowed origin, and API keys. The preflight needs no key.
start_with_key "$key" --cors-origin "$ours"
preflight 204 "$ours" /v1/matmul POST
told "$ours" Origin
allows 'POST, OPTIONS'
same "$what: Allow" 'POST, OPTIONS' "$(header Allow "$scratch/head")"
preflight 204 "$ours" /v1/devices GET
allows 'GET, HEAD, OPTIONS'
curl -s -o "$scratch/got" -D "$scratch/head" -X OPTIONS -H "Origin: $ours" -H 'Access-Control-Request-Method: GET' "$url/nothing"
same "a preflight of no path: Access-Control-Allow-Origin" "$ours" "$(header Access-Control-Allow-Origin "$scratch/head")"
for other in https://example.org.evil https://example.or null '*'; do
    preflight 204 "$other" /v1/matmul POST
    told '' Origin
    from 200 "$other" "/v1/variants" -H "Authorization: Bearer $key"
    told '' Origin
    from 401 "$other" "/v1/matmul" -d "$product"
    from 403 "$other" "/v1/matmul" -H "Authorization: Bearer $key" -d "$product"
    told '' Origin
done
from 200 "$ours" "/v1/matmul?verify=1" -H "Authorization: Bearer $key" -d "$product"
told "$ours" Origin
exposes_all
from 200 '' "/v1/devices" -H "Authorization: Bearer $key"
told '' Origin
from 200 "$ours" "/healthz"
told "$ours" Origin
from 401 "$ours" "/v1/matmul" -d "$product"
told "$ours" Origin
from 400 "$ours" "/v1/matmul" -H "Authorization: Bearer $key" -d '{"a"'
told "$ours" Origin

stop

# The server writes errors during an upload without libmicrohttpd. They need the CORS headers too.
start_with_key "$key" --cors-origin "$ours" --receive-timeout-ms 1000
for row in '401 99999999 X-A: b' "408 9 Authorization: Bearer $key"; do
    length=${row#* }
    printf 'POST /v1/matmul HTTP/1.1\r\nHost: localhost\r\n%s\r\nOrigin: %s\r\nContent-Length: %s\r\n\r\n{' \
        "${length#* }" "$ours" "${length%% *}" >"$scratch/requests"
    talk requests 65536
    last_reply
    what="past libmicrohttpd: ${row%% *}"
    expect "$what" "${row%% *}"
    told "$ours" Origin
done
stop

# --allowed-hosts adds a host name. tests/unit/server/origin.c tests more names.
start --host 0.0.0.0 --allowed-hosts matmul.example,x
from 200 https://matmul.example "/v1/matmul" -H "Host: matmul.example" -d "$product"
from 403 '' "/v1/matmul" -H 'Host: evil.example' -d "$product"
refused matmul.example,x
stop
start --host 0.0.0.0
from 200 '' "/v1/matmul" -H 'Host: any.example' -d "$product"
from 403 "$ours" "/v1/matmul" -H 'Host: any.example' -d "$product"
stop

# If all origins are allowed, every page gets the same headers.
start --cors-origin '*'
for origin in '' "$ours" null; do
    from 200 "$origin" "/v1/matmul" -d "$product"
    told '*' ''
    exposes_all
done
preflight 204 "$ours" /v1/transpose POST
told '*' ''
allows 'POST, OPTIONS'
stop
finish
