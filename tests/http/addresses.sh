#!/bin/sh
# The option --connections-per-address limits the connections from each client address separately.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

# open_idle: opens a connection and sends nothing for half a minute. Sets $idle to the process.
open_idle() {
    await 30 has_connections $idle_count || fail "an ended connection still counts"
    "$TALK" 127.0.0.1 "${url##*:}" 1 </dev/null >"$scratch/idle" 2>&1 &
    idle=$!
    idle_count=$((idle_count + 1))
    await 30 has_connections $idle_count || fail "$idle_count connections were not taken"
}

# Whether there are this many connections. Asks from another address, which has a separate limit.
has_connections() {
    curl -s --max-time 10 --interface 127.0.0.2 "$url/metrics" |
        awk -v others="$1" '/^matmuld_connections\{state="(idle|active)"\}/ { count += $2 } END { exit count != others + 1 }'
}

# answer STATUS ARG…: sends a request on a new connection. Status 000 means that no reply comes.
answer() {
    expected=$1
    shift
    [ "$(status_of "$@" "$url/healthz")" = "$expected" ]
}

# expect_answer WHAT STATUS ARG…: repeats a request for half a minute until it gets this status.
expect_answer() {
    what=$1
    shift
    checks=$((checks + 1))
    await 30 answer "$@" || fail "$what: expected $1"
}

idle_count=0
start --connections-per-address 2
open_idle
first=$idle
expect_answer "a second connection" 200
open_idle
expect_answer "a third connection" 000
expect_answer "a connection from another address" 200 --interface 127.0.0.2
kill "$first"
expect_answer "after a connection has ended" 200
kill "$idle"
at_most "connections closed, below 0" -1 "-$(metric 'connections_closed_total{reason="address"}')"
stop

idle_count=0
start
open_idle
first=$idle
open_idle
expect_answer "without a limit" 200
kill "$first" "$idle"
stop
finish
