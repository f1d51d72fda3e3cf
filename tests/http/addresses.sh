#!/bin/sh
# --connections-per-address: as many connections as that from one address, and not one more, until one of them
# ends; another address has its own.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

: "${TALK:?the path of the program talk}"

# hold: a connection on which nothing is asked, for half a minute; sets $held to who has it.
hold() {
    "$TALK" 127.0.0.1 "${url##*:}" 1 </dev/null >"$scratch/held" 2>&1 &
    held=$!
    sleep 0.3
}

# answer STATUS ARG…: of a connection more; 000: it was closed without a word.
answer() {
    expected=$1
    shift
    [ "$(status_of "$@" "$url/healthz")" = "$expected" ]
}

# judge WHAT STATUS ARG…: within ten seconds.
judge() {
    what=$1
    shift
    checks=$((checks + 1))
    await 10 answer "$@" || fail "$what: expected $1"
}

start --connections-per-address 2
hold
first=$held
judge "a second connection" 200
hold
second=$held
judge "a third one" 000
judge "one from another address" 200 --interface 127.0.0.2
kill "$first"
judge "once one has ended" 200
kill "$second"
stop

start
hold
first=$held
hold
second=$held
judge "without a limit" 200
kill "$first" "$second"
stop
finish
