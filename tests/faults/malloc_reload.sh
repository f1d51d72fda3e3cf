#!/bin/sh
# Makes allocations fail while SIGHUP reloads the API keys. The old keys stay valid.
# shellcheck source=tests/http/server.sh
. "$(dirname "$0")/../http/server.sh"
# shellcheck source=tests/faults/under.sh
. "$(dirname "$0")/under.sh"

with() {
    status_of -H "Authorization: Bearer $1" "$url/v1/devices"
}

has_line() {
    [ "$(grep -c 'API keys' "$scratch/log")" -gt "$1" ]
}

reread() {
    lines=$(grep -c 'API keys' "$scratch/log" || :)
    kill -HUP "$server"
    await 20 has_line "$lines" || fail "nothing tells of the keys that were read"
}

old=0123456789abcdef
(umask 077 && echo "$old" >"$scratch/keys")
start --backend cpu --threads 2 --self-test-ms 0 --log-format text --api-key-file "$scratch/keys"
same "the key" 200 "$(with "$old")"
before=$(descriptors)
sites=0
for last in one all; do
    for first in 1 2 3 4 5 6 7 8 9; do
        new=0123456789abcdef-$last-$first
        echo "$new" >"$scratch/keys"
        fault arm "$first" "$([ "$last" = one ] && echo "$first" || echo 999999)"
        reread
        failed=$(fault disarm)
        [ "$failed" -gt 0 ] || break
        sites=$((sites + 1))
        like "$last, $first: the log" '*stay as they were*' "$(grep 'API keys' "$scratch/log" | tail -n 1)"
        same "$last, $first: the new key" 401 "$(with "$new")"
        same "$last, $first: the old key" 200 "$(with "$old")"
        reread
        same "$last, $first: the new key, read again" 200 "$(with "$new")"
        same "$last, $first: the old key, then" 401 "$(with "$old")"
        old=$new
    done
    [ "$failed" -eq 0 ] || fail "there are more than $first allocations"
    same "$last: without a failure" 200 "$(with "$new")"
    old=$new
done
echo "$sites reloads in which an allocation failed"
checks=$((checks + 1))
[ "$sites" -ge 4 ] || fail "nothing failed"
same_descriptors "$before"
stop
finish
