#!/bin/sh
# API keys: who is let in and who is not, before the body; what a reload changes; what is counted; and that a
# key stands in nothing that the service writes.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

: "${TALK:?the path of the program talk}"

alice=alice-has-this-key bob=this/is+bob~s=key%,0 carol=carol-came-later-1 env=one-of-environment
wrong=no-one-has-this-key
file=$scratch/keys
product='{"a":[[2]],"b":[[3]]}'
written=$scratch/written # all that the service has written
: >"$written"

# ask STATUS KEY METHOD PATH [ARG…]: by a key, or without one where it is empty.
ask() {
    expected=$1 key=$2 method=$3 path=$4
    shift 4
    [ -z "$key" ] || set -- "$@" -H "Authorization: Bearer $key"
    [ "$method" != HEAD ] || set -- "$@" --head
    : >"$scratch/got"
    status=$(curl -s --max-time 30 -o "$scratch/got" -D "$scratch/head" -w '%{http_code}' -X "$method" "$@" "$url$path") || :
    same "$method $path by '$key': status" "$expected" "$status"
    cat "$scratch/head" "$scratch/got" >>"$written"
    [ "$status" = 000 ] || keep "$method" "$path" "$scratch/head" "$scratch/got"
    [ "$expected" != 401 ] || is_refusal
}

is_refusal() {
    [ "$method" = HEAD ] || same "$method $path by '$key': code" unauthorized "$(code_of "$scratch/got")"
    same "$method $path by '$key': WWW-Authenticate" 'Bearer realm="matmuld"' "$(header WWW-Authenticate "$scratch/head")"
}

# start_with ARG…: as start, which reads /openapi.json, for which it has no key.
start_with() {
    launch --port 0 "$@"
    await 60 says_ready || fail "matmuld $*: it is not ready"
}

# counted SERIES: its value in /metrics.
counted() {
    curl -s --max-time 30 -H "Authorization: Bearer $alice" "$url/metrics" >"$scratch/metrics"
    cat "$scratch/metrics" >>"$written"
    awk -v series="matmuld_$1" '$1 == series { print $2 }' "$scratch/metrics"
}

has_logged() {
    grep -q "$1" "$scratch/log"
}

# reload WORDS: by SIGHUP, until the log says so.
reload() {
    kill -HUP "$server"
    await 10 has_logged "$1" || fail "the log does not say '$1'"
}

stop_and_look() {
    stop
    cat "$scratch/log" >>"$written"
}

umask 077
printf '# keys\n\nalice %s\n\t%s \r\n' "$alice" "$bob" >"$file"

# A file and the environment.
MATMULD_API_KEY=$env
export MATMULD_API_KEY
start_with --api-key-file "$file" --log-format json
unset MATMULD_API_KEY
same "the file is ours alone: warnings" 0 "$(grep -c '"level":"warn"' "$scratch/log")"
for key in "$alice" "$bob" "$env"; do
    ask 200 "$key" POST /v1/matmul -d "$product"
    ask 200 "$key" GET /openapi.json
done
cp "$scratch/got" "$scratch/openapi.json"
for key in '' "$wrong" "${alice}x" "${alice%y}" "alice $alice" ALICE-HAS-THIS-KEY; do
    ask 401 "$key" POST /v1/matmul -d "$product"
done
for row in 'POST /v1/transpose' 'POST /v1/benchmark' 'GET /v1/variants' 'GET /v1/devices' 'GET /metrics' 'GET /openapi.json' 'HEAD /metrics'; do
    ask 401 '' "${row% *}" "${row#* }"
done
for row in 'GET /' 'GET /healthz' 'GET /readyz' 'HEAD /healthz'; do
    ask 200 '' "${row% *}" "${row#* }"
    ask 200 "$wrong" "${row% *}" "${row#* }"
done
ask 404 '' GET /nothing
ask 405 '' GET /v1/matmul
ask 204 '' OPTIONS /v1/matmul
same "the probe needs no key" 0 "$("$MATMULD" --healthcheck --port "${url##*:}" && echo $?)"

# The scheme's name has no case, and a key of another scheme is none.
ask 200 '' GET /v1/devices -H "authorization: bEARER   $alice"
ask 401 '' GET /v1/devices -H "Authorization: Basic $alice"
ask 401 '' GET /v1/devices -H "Authorization: $alice"
ask 401 "$alice" GET /v1/devices -H "Authorization: Bearer $bob"
like "two keys" '*must stand once*' "$(jq -r .detail "$scratch/got")"

# Judged before lengths and types, and before the body: as all refusals by the head.
ask 401 '' POST /v1/matmul -H 'Content-Length: 99999999999999' -H 'Content-Type: text/x-none' --max-time 5
same "a large body: the connection" close "$(header Connection "$scratch/head")"
"$FLOAT32" fill 500000 1 >"$scratch/body"
sent=$(curl -s --max-time 30 --expect100-timeout 30 -o "$scratch/got" -D "$scratch/head" -w '%{http_code} %{size_upload}' -H 'Expect: 100-continue' \
    --data-binary "@$scratch/body" "$url/v1/matmul?m=500&k=500&n=500")
same "with Expect, nothing is sent" '401 0' "$sent"
same "a small body: the connection stays" '401 1 200 0' "$(curl -s --max-time 30 -w '%{http_code} %{num_connects} ' -o "$scratch/got" \
    -d "$product" "$url/v1/matmul" --next -s -o "$scratch/got" -w '%{http_code} %{num_connects}' "$url/healthz")"

# What is counted: by names, by lines, by places in the environment.
before=$(counted unauthorized_total)
ask 401 "$wrong" GET /v1/devices
same "refusals are counted" $((before + 1)) "$(counted unauthorized_total)"
same "the same, by code" $((before + 1)) "$(counted 'rejected_total{reason="unauthorized"}')"
for row in "$bob 4" "$env env:1"; do
    label=${row#* }
    same "requests of $label" 2 "$(counted "key_requests_total{key=\"$label\"}")"
    ask 200 "${row% *}" GET /v1/devices
    same "one more of $label" 3 "$(counted "key_requests_total{key=\"$label\"}")"
done

# A bad file changes nothing; a good one takes keys out and brings others in; the counts go on.
printf 'carol %s\nshort\n' "$carol" >"$file"
reload 'stay as they were: the key file .*: line 2: a key must have 16 to 256 characters, and this one has 5'
ask 200 "$alice" GET /v1/devices
ask 401 "$carol" GET /v1/devices
rm "$file"
reload 'stay as they were: the key file .*: No such file'
ask 200 "$alice" GET /v1/devices
printf 'carol %s\nalice %s\n' "$carol" "$alice" >"$file"
reload 'API keys in force: 3'
ask 200 "$carol" GET /v1/devices
ask 200 "$env" GET /v1/devices
ask 401 "$bob" GET /v1/devices
same "requests of carol" 1 "$(counted 'key_requests_total{key="carol"}')"
same "requests by the line that went" 3 "$(counted 'key_requests_total{key="4"}')"

# Of the process's own threads, all but main are left alone by SIGHUP: blocked is signal 1, bit 0.
threads=0
for task in /proc/"$server"/task/*; do
    case $(cat "$task/comm") in mm-* | MHD-*) ;; *) continue ;; esac
    threads=$((threads + 1))
    like "$(cat "$task/comm"): signals that are blocked" '*[13579bdf]' "$(sed -n 's/^SigBlk:[^0-9a-f]*//p' "$task/status")"
done
[ "$threads" -ge 5 ] || fail "of its own threads only $threads were found"

# Under load, nobody who has a key is refused by a reload.
seq 300 | sed "s|.*|url = \"$url/v1/devices\"|" >"$scratch/many"
curl -s --max-time 120 -H "Authorization: Bearer $alice" -K "$scratch/many" -w '\n%{http_code}\n' >"$scratch/codes" &
asking=$!
for turn in $(seq 30); do
    printf 'turn%s key-of-turn-%08d\nalice %s\n' "$turn" "$turn" "$alice" >"$file.new"
    mv "$file.new" "$file"
    kill -HUP "$server"
    sleep 0.02
done
wait "$asking" || fail "the requests under reloads"
same "requests under reloads" 300 "$(grep -cx 200 "$scratch/codes")"
is_in_force() {
    [ "$(status_of -H "Authorization: Bearer $1" "$url/v1/devices")" = 200 ]
}
await 10 is_in_force key-of-turn-00000030 || fail "the last of the reloads is not in force"
ask 200 key-of-turn-00000030 GET /v1/devices
stop_and_look

# Others can read the file.
chmod 644 "$file"
start_with --api-key-file "$file" --open-metrics --log-format json
like "a file for all: the log" '*"level":"warn"*can be read by every user*' "$(cat "$scratch/log")"
ask 200 '' GET /metrics
ask 401 '' GET /openapi.json
stop_and_look

# The environment alone, on an address that others reach; SIGHUP has nothing to read again, and ends.
export MATMULD_API_KEY="$env,$alice"
start_with --host 0.0.0.0 --log-format text
url=$(echo "$url" | sed 's/0\.0\.0\.0/127.0.0.1/')
same "with keys on 0.0.0.0: warnings" 0 "$(grep -c ' warn ' "$scratch/log")"
ask 200 "$alice" GET /v1/devices
stop_and_look
"$MATMULD" --api-key-file "$file" --print-config >"$scratch/config"
cat "$scratch/config" >>"$written"
same "--print-config: the file" "api-key-file = $file" "$(grep '^api-key-file' "$scratch/config")"
same "--print-config: the environment" 'api-key = (set)' "$(grep '^api-key ' "$scratch/config")"
unset MATMULD_API_KEY

# refused WORDS ARG…: does not start: status 2 and a sentence.
refused() {
    words=$1
    shift
    code=0
    "$MATMULD" --port 0 "$@" >"$scratch/out" 2>&1 || code=$?
    cat "$scratch/out" >>"$written"
    same "$*: exit status" 2 "$code"
    like "$*" "*$words*" "$(cat "$scratch/out")"
}
printf '%s\n' "${alice}" "$alice" >"$file"
refused "line 2: its key stands in another line already" --api-key-file "$file"
: >"$file"
refused "it has no key" --api-key-file "$file"
refused "No such file" --api-key-file "$file.none"
refused "it is no regular file" --api-key-file "$scratch"
refused "set MATMULD_API_KEY" "--api-key=$alice"
MATMULD_API_KEY=
export MATMULD_API_KEY
refused "MATMULD_API_KEY: key 1: a key must have 16 to 256 characters"
unset MATMULD_API_KEY

# Without keys: a warning where others reach it, and none where they do not.
for row in '0.0.0.0 1' '127.0.0.2 0' '127.0.0.1 0'; do
    start_with --host "${row% *}" --log-format json
    same "on ${row% *}: warnings" "${row#* }" "$(grep -c '"level":"warn".*NO API KEYS' "$scratch/log")"
    stop_and_look
done

for key in "$alice" "$bob" "$carol" "$env" "$wrong" key-of-turn; do
    same "the key $key is in nothing that was written" 0 "$(grep -cF -e "$key" "$written")"
done
finish
