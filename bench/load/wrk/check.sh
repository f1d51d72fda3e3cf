#!/bin/sh
# The scripts for wrk, hey's command line and k6's script are what the service takes: each one's requests are answered
# with 200, as far as the tool is here. Usage: check.sh MATMULD, in the top folder; 77 where wrk is not here.
set -eu

matmuld=$1
load=bench/load
server=
scratch=$(mktemp -d)
failed=0

clean_up() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || :
    rm -rf "$scratch"
}
trap clean_up EXIT
trap 'exit 130' INT TERM HUP

fail() {
    echo "$*"
    failed=$((failed + 1))
}

if ! command -v wrk >/dev/null; then
    echo "wrk is not installed"
    exit 77
fi

: >"$scratch/log"
"$matmuld" --port 0 --backend cpu --log-format json 2>>"$scratch/log" &
server=$!
tries=3000
until grep -q 'ready' "$scratch/log"; do
    tries=$((tries - 1))
    if [ "$tries" -eq 0 ] || ! kill -0 "$server"; then
        cat "$scratch/log"
        exit 1
    fi
    sleep 0.02
done
url=$(sed -n 's|.*listening on \(http://[^ "]*\).*|\1|p' "$scratch/log")

# judge NAME: by what wrk says of itself.
judge() {
    grep -q '^ *[1-9][0-9]* requests in' "$scratch/$1" || fail "wrk with $1 made no requests: $(cat "$scratch/$1")"
    ! grep 'Non-2xx\|Socket errors' "$scratch/$1" || fail "wrk with $1: see above"
}

# wrk runs for a second at least, so that they do at once. Each has an edge of its own, by which the log tells them apart.
wrk -t 1 -c 4 -d 1s --timeout 60s -s "$load/wrk/raw.lua" "$url" -- 3 >"$scratch/raw" 2>&1 &
raw=$!
wrk -t 1 -c 4 -d 1s --timeout 60s -s "$load/wrk/json.lua" "$url" -- 5 >"$scratch/json" 2>&1 &
json=$!
wrk -t 1 -c 4 -d 1s --timeout 60s -s "$load/wrk/json.lua" "$url" -- 6 raw >"$scratch/json_raw" 2>&1 &
json_raw=$!
wrk -t 1 -c 4 -d 1s --timeout 60s -s "$load/wrk/transpose.lua" "$url" -- 7 shared >"$scratch/transpose" 2>&1 &
transpose=$!
wrk -t 1 -c 4 -d 1s --timeout 60s -s "$load/wrk/multipart.lua" "$url" >"$scratch/multipart" 2>&1 &
wait "$raw" "$json" "$json_raw" "$transpose" $!
for name in raw json json_raw transpose multipart; do
    judge "$name"
done

# The service's log has the very product of each.
for expected in '"code":200.*"in_bytes":72,"out_bytes":36,"m":3,"k":3,"n":3' '"code":200.*"m":5,"k":5,"n":5' \
    '"code":200.*"out_bytes":144,"m":6,"k":6,"n":6' '"code":200.*"out_bytes":192,"m":4,"k":4,"n":4' \
    '"code":200.*"in_bytes":196,"out_bytes":196,"m":7,"n":7.*"variant":"shared"'; do
    grep -q "$expected" "$scratch/log" || fail "the service was asked for no product like $expected"
done
! grep -v '"code":200' "$scratch/log" | grep '"code":' || fail "these were not answered with 200"

if command -v hey >/dev/null; then
    head -c 128 /dev/zero >"$scratch/body"
    hey -n 20 -c 2 -m POST -T application/octet-stream -D "$scratch/body" "$url/v1/matmul?m=4&k=4&n=4" >"$scratch/hey" 2>&1
    grep -q '\[200\].*20 responses' "$scratch/hey" || fail "hey: $(cat "$scratch/hey")"
else
    echo "hey is not here: its command line was not tried"
fi
if command -v k6 >/dev/null; then
    for form in raw json multipart; do
        k6 run --quiet -e RATE=20 -e EDGE=3 -e DURATION=1s -e VUS=4 -e FORM="$form" -e URL="$url" "$load/k6.js" \
            >"$scratch/k6" 2>&1 || fail "k6 with $form: $(cat "$scratch/k6")"
        grep -q 'checks.*100' "$scratch/k6" || fail "k6 with $form: $(cat "$scratch/k6")"
    done
elif command -v node >/dev/null; then
    cp "$load/k6.js" "$scratch/k6.mjs"
    node --check "$scratch/k6.mjs" || fail "k6.js is no JavaScript"
    echo "k6 is not here: of its script the syntax alone was looked at"
else
    echo "k6 is not here: its script was not looked at"
fi

echo "$failed failures"
[ "$failed" -eq 0 ]
