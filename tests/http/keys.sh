#!/bin/sh
# Tests API keys: which keys are accepted, reloading, and counters. The service must never print a key.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

alice=alice-has-this-key bob=this/is+bob~s=key%,0 carol=carol-came-later-1 env=one-of-environment
wrong=no-one-has-this-key
file=$scratch/keys
product='{"a":[[2]],"b":[[3]]}'
written=$scratch/written # all output of the service, in which no key may be
: >"$written"

# by STATUS KEY METHOD PATH [ARG…]: sends a request with this key. Sends no key if KEY is empty.
by() {
    wanted=$1 key=$2 verb=$3 path=$4
    shift 4
    [ -z "$key" ] || set -- "$@" -H "Authorization: Bearer $key"
    [ "$verb" != HEAD ] || set -- "$@" --head
    ask "$path" -X "$verb" "$@"
    what="$verb $path by '$key'"
    case $wanted:$verb in
    401:HEAD) expect "$what" 401 WWW-Authenticate: 'Bearer realm="matmuld"' ;;
    401:*) expect "$what" 401 WWW-Authenticate: 'Bearer realm="matmuld"' code unauthorized ;;
    *) expect "$what" "$wanted" ;;
    esac
    cat "$scratch/head" "$scratch/got" >>"$written"
}

# counted SERIES: prints a value of /metrics.
counted() {
    curl -s --max-time 30 -H "Authorization: Bearer $alice" "$url/metrics" >"$scratch/metrics"
    cat "$scratch/metrics" >>"$written"
    awk -v series="matmuld_$1" '$1 == series { print $2 }' "$scratch/metrics"
}

stop_and_look() {
    stop
    cat "$scratch/log" >>"$written"
}

umask 077
printf '# keys\n\nalice %s\n\t%s \r\n' "$alice" "$bob" >"$file"

start_with_key $env --api-key-file "$file" --log-format json
same "a private key file: warnings" 0 "$(grep -c '"level":"warn"' "$scratch/log")"
for key in "$alice" "$bob" "$env"; do
    by 200 "$key" POST /v1/matmul -d "$product"
    by 200 "$key" GET /v1/variants
done
for key in '' "$wrong" "alice $alice"; do
    by 401 "$key" POST /v1/matmul -d "$product"
done
while read -r status_without method path; do
    by "$status_without" '' "$method" "$path"
    by "$status_without" "$wrong" "$method" "$path"
done <<'END'
401 POST /v1/transpose
401 POST /v1/benchmark
401 GET /v1/variants
401 GET /v1/devices
401 GET /metrics
401 HEAD /metrics
200 GET /
200 GET /healthz
200 GET /readyz
200 GET /openapi.json
200 HEAD /healthz
404 GET /nothing
405 GET /v1/matmul
204 OPTIONS /v1/matmul
END
runs 0 '' --healthcheck --port "${url##*:}"

by 401 "$alice" GET /v1/devices -H "Authorization: Bearer $bob"
expect "two keys" 401 detail 'Authorization appears twice'

# The server checks the key before it checks lengths and types, and before it reads the body.
by 401 '' POST /v1/matmul -H 'Content-Length: 99999999999999' -H 'Content-Type: text/x-none'
expect "a large body" 401 Connection: close
"$FLOAT32" fill 500000 1 >"$scratch/body"
by 401 '' POST '/v1/matmul?m=500&k=500&n=500' -H 'Expect: 100-continue' --data-binary "@$scratch/body"
same "with Expect: bytes sent" 0 "$uploaded"
same "a small body: the connection stays" '401 1 200 0' "$(curl -s --max-time 30 -w '%{http_code} %{num_connects} ' -o "$scratch/got" \
    -d "$product" "$url/v1/matmul" --next -s -o "$scratch/got" -w '%{http_code} %{num_connects}' "$url/healthz")"

# Keys without a name, of the file and of the environment, count together.
before=$(counted unauthorized_total)
by 401 "$wrong" GET /v1/devices
same "refusals are counted" "$((before + 1)) $((before + 1))" "$(counted unauthorized_total) $(counted 'rejected_total{reason="unauthorized"}')"
for key in "$bob" "$env"; do
    before=$(counted 'key_requests_total{key="unnamed"}')
    by 200 "$key" GET /v1/devices
    same "requests counted for keys without a name" $((before + 1)) "$(counted 'key_requests_total{key="unnamed"}')"
done

# A file with an error changes nothing. A valid file adds and removes keys and keeps the counters.
printf 'carol %s\nshort\n' "$carol" >"$file"
reload 'stay as they were: the key file .*: line 2: a key must have 16 to 256 characters, and this one has 5'
by 200 "$alice" GET /v1/devices
by 401 "$carol" GET /v1/devices
same "reloads that failed" 1 "$(counted 'reload_failures_total{what="keys"}')"
printf 'carol %s\nalice %s\n' "$carol" "$alice" >"$file"
reload 'API keys in force: 3'
by 200 "$carol" POST /v1/matmul -d "$product"
out_bytes=$(wc -c <"$scratch/got")
by 422 "$carol" POST /v1/matmul -d '{"a":[[1,2]],"b":[[3]]}'
out_bytes=$((out_bytes + $(wc -c <"$scratch/got")))
by 200 "$env" GET /v1/devices
by 401 "$bob" GET /v1/devices

# has SERIES NUMBER: succeeds if the value is NUMBER. The server counts bytes shortly after the reply.
has() {
    [ "$(counted "$1")" = "$2" ]
}

while read -r number series; do
    await 30 has "$series" "$number" || fail "$series is $(counted "$series") instead of $number"
done <<END
2 key_requests_total{key="carol"}
1 key_products_total{key="carol"}
2 key_flops_total{key="carol"}
$((${#product} + 23)) key_bytes_total{key="carol",direction="in"}
$out_bytes key_bytes_total{key="carol",direction="out"}
1 key_rejected_total{key="carol",reason="bad_shape"}
0 key_requests_total{key="other"}
END
like "kernel seconds of carol" '[0-9]*' "$(counted 'key_kernel_seconds_total{key="carol"}')"
same "refusals that did not happen" 0 "$(grep -c '^matmuld_key_rejected_total{key="other"' "$scratch/metrics")"
# The log has the name. A request without a valid key has none.
same "names in the log" 'null "alice" "carol" "unnamed"' \
    "$(jq -sc 'map(select(.route == "/v1/matmul").key) | unique[]' "$scratch/log" | paste -sd ' ' -)"

# No request of a key that stays is lost in a reload.
change_keys() {
    printf 'alice %s\nother-%s key-of-other-%020d\n' "$alice" "$1" "$1" >"$file"
}
reload_under_load 'API keys in force: 3' change_keys -H "Authorization: Bearer $alice"

# All threads except main must block SIGHUP, which is signal 1 and so bit 0 of the mask.
threads=0
for task in /proc/"$server"/task/*; do
    case $(cat "$task/comm") in mm-* | MHD-*) ;; *) continue ;; esac
    threads=$((threads + 1))
    like "$(cat "$task/comm"): signals that are blocked" '*[13579bdf]' "$(sed -n 's/^SigBlk:[^0-9a-f]*//p' "$task/status")"
done
[ "$threads" -ge 5 ] || fail "only $threads threads of the server were found"

stop_and_look

chmod 644 "$file"
start --api-key-file "$file" --open-metrics --log-format json
like "a key file that every user can read: the log" '*"level":"warn"*can be read by every user*' "$(cat "$scratch/log")"
by 200 "$alice" GET /v1/devices
by 200 '' GET /metrics
same "open metrics: series of keys" 0 "$(grep -c '^matmuld_key_' "$scratch/got")"
by 401 '' GET /v1/devices
stop_and_look

# Keys come only from the environment, so SIGHUP has nothing to read.
start_with_key "$env,$alice" --host 0.0.0.0 --log-format text
same "with keys on 0.0.0.0: warnings" 0 "$(grep -c ' warn ' "$scratch/log")"
reload 'API keys in force: 2'
by 200 "$alice" GET /v1/devices
stop_and_look
# The server rejects a file with a duplicate key. tests/unit/server/keys.c tests more files.
printf '%s\n' "$alice" "$alice" >"$file"
runs 2 "line 2: the key is already on another line" --port 0 --api-key-file "$file"
cat "$scratch/err" >>"$written"

# Without keys the server warns, but only on a public address.
for row in '0.0.0.0 1' '127.0.0.2 0' '127.0.0.1 0'; do
    start --host "${row% *}" --log-format json
    same "on ${row% *}: warnings" "${row#* }" "$(grep -c '"level":"warn".*NO API KEYS' "$scratch/log")"
    stop_and_look
done

for key in "$alice" "$bob" "$carol" "$env" "$wrong"; do
    same "outputs that contain the key $key" 0 "$(grep -cF -e "$key" "$written")"
done
finish
