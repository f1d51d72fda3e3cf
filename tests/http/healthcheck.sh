#!/bin/sh
# Tests --healthcheck with a server, and with programs that reply something else.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

listener=
trap '[ -z "$listener" ] || kill "$listener" 2>/dev/null || :; clean_up' EXIT

# health STATUS WORDS ARG…: runs --healthcheck. ThreadSanitizer's wait of a second at exit is turned off.
health() {
    wanted=$1 words=$2
    shift 2
    TSAN_OPTIONS=${TSAN_OPTIONS:-}:atexit_sleep_ms=0 runs "$wanted" "$words" --healthcheck "$@"
    same "--healthcheck $*: stdout" "" "$(cat "$scratch/out")"
    [ "$expected" -eq 2 ] || same "--healthcheck $*: lines on stderr" "$expected" "$(wc -l <"$scratch/err" | tr -d ' ')"
}

# The address comes from options or from the environment.
start
port=${url##*:}
health 0 '' --port "$port"
for host in 127.0.0.1 0.0.0.0; do
    export MATMULD_HOST=$host MATMULD_PORT="$port"
    health 0 ''
done
unset MATMULD_HOST MATMULD_PORT
! getent hosts localhost | grep -q '^127' || health 0 '' --host localhost --port "$port"
health 1 '' --host 127.0.0.2 --port "$port"
stop
health 1 "127.0.0.1 port $port: Connection refused" --port "$port"

start --host 0.0.0.0
health 0 '' --host 0.0.0.0 --port "${url##*:}"
stop

if grep -qs '^00000000000000000000000000000001 ' /proc/net/if_inet6; then
    start --host ::
    health 0 '' --host :: --port "${url##*:}"
    stop
else
    echo "there is no IPv6 here: :: is not tried"
fi

# The check succeeds if the server runs but is not ready, because it checks only the process.
start_held
prepare_held cuda
hold_job draining
kill -TERM "$server"
await 60 has_logged draining || fail "the server does not drain"
health 0 '' --port "${url##*:}"
release
finish_slow draining
ended "a drained server"

# Each row: exit status|words|reply of a program that is no healthy server|HOLD if the connection stays open
while IFS='|' read -r expected words reply hold; do
    # shellcheck disable=SC2059
    printf "$reply" >"$scratch/reply"
    : >"$scratch/port"
    # shellcheck disable=SC2086
    python3 "$here/listen.py" $hold <"$scratch/reply" >"$scratch/port" 2>"$scratch/listen.err" &
    listener=$!
    await 30 test -s "$scratch/port" || fail "no listener: $(cat "$scratch/listen.err")"
    health "$expected" "$words" --port "$(cat "$scratch/port")"
    kill "$listener"
    wait "$listener" || :
    listener=
done <<'END'
1|answered with 503|HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n|
1|answered with 404|HTTP/1.1 404 Not Found\r\n\r\n|
1|not HTTP|HTTP/1.1 2000 OK\r\n\r\n|
1|not HTTP|HTTP/1.1 200|
1|not HTTP|200 OK\r\n\r\n|
1|not HTTP|\033[31m\n\n\n|
1|not HTTP||
0||HTTP/1.0 200 OK\r\n\r\n|
1|timed out||HOLD
1|timed out|HTTP/1.1 200 OK\r\n|HOLD
END

health 2 "port 0" --port 0
health 1 no.such.host.invalid --host no.such.host.invalid
health 2 '' --healthy
finish
