#!/bin/sh
# --connections-per-address: as many connections from one address and no more, until one of them ends; another address has
# its own.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

# hold: an idle connection, for half a minute, once who asked before has gone; sets $held to the process that has it.
hold() {
    await 30 has_connections $holds || fail "a connection that has ended counts"
    "$TALK" 127.0.0.1 "${url##*:}" 1 </dev/null >"$scratch/held" 2>&1 &
    held=$!
    holds=$((holds + 1))
    await 30 has_connections $holds || fail "$holds connections were not taken"
}

# Beside the one that asks, which comes from another address.
has_connections() {
    curl -s --max-time 10 --interface 127.0.0.2 "$url/metrics" |
        awk -v others="$1" '/^matmuld_connections\{state="(idle|active)"\}/ { count += $2 } END { exit count != others + 1 }'
}

# answer STATUS ARG…: of one connection more; 000: it was closed without a word.
answer() {
    expected=$1
    shift
    [ "$(status_of "$@" "$url/healthz")" = "$expected" ]
}

# judge WHAT STATUS ARG…: within half a minute.
judge() {
    what=$1
    shift
    checks=$((checks + 1))
    await 30 answer "$@" || fail "$what: expected $1"
}

holds=0
start --connections-per-address 2
hold
first=$held
judge "a second connection" 200
hold
judge "a third one" 000
judge "one from another address" 200 --interface 127.0.0.2
kill "$first"
judge "once one has ended" 200
kill "$held"
at_most "connections closed, below 0" -1 "-$(metric 'connections_closed_total{reason="address"}')"
stop

holds=0
start
hold
first=$held
hold
judge "without a limit" 200
kill "$first" "$held"
stop
finish
