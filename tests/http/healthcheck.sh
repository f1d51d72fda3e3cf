#!/bin/sh
# --healthcheck, asked of a server and of what is none.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

: "${LISTEN:?the path of the program listen}"
listener=
trap '[ -z "$listener" ] || kill "$listener" 2>/dev/null || :; clean_up' EXIT

# health STATUS WHAT ARG…: the exit status of --healthcheck, within 4 s; what it says is one line on stderr
# where the status is not 0.
health() {
    expected=$1
    what=$2
    shift 2
    code=0
    timeout 4 "$MATMULD" --healthcheck "$@" >"$scratch/out" 2>"$scratch/err" || code=$?
    same "$what: exit status" "$expected" "$code"
    same "$what: stdout" "" "$(cat "$scratch/out")"
    [ "$expected" -eq 2 ] || same "$what: lines on stderr" "$expected" "$(wc -l <"$scratch/err" | tr -d ' ')"
}

says() {
    like "$1: stderr" "*$2*" "$(cat "$scratch/err")"
}

# listen_with REPLY [HOLD]: starts a listener that answers so, and sets port; REPLY is a format of printf.
listen_with() {
    # shellcheck disable=SC2059
    printf "$1" >"$scratch/reply"
    shift
    : >"$scratch/port"
    "$LISTEN" 127.0.0.1 "$@" <"$scratch/reply" >"$scratch/port" 2>"$scratch/listen.err" &
    listener=$!
    await 10 test -s "$scratch/port" || fail "no listener: $(cat "$scratch/listen.err")"
    port=$(cat "$scratch/port")
}

end_listener() {
    kill "$listener"
    wait "$listener" || :
    listener=
}

# answers REPLY STATUS WHAT WORDS: of a listener that answers so.
answers() {
    listen_with "$1"
    health "$2" "$3" --port "$port"
    says "$3" "$4"
    end_listener
}

# A server, by flags and by the environment.
start
port=${url##*:}
health 0 "a server" --port "$port"
MATMULD_PORT=$port health 0 "a server in the environment"
MATMULD_HOST=0.0.0.0 MATMULD_PORT=$port health 0 "a wildcard in the environment"
if getent hosts localhost | grep -q '^127'; then
    health 0 "a server by name" --host localhost --port "$port"
fi
health 1 "another address" --host 127.0.0.2 --port "$port"
stop
health 1 "a server that has ended" --port "$port"
says "a server that has ended" "127.0.0.1 port $port: Connection refused"

start --host 0.0.0.0
health 0 "a server on 0.0.0.0" --host 0.0.0.0 --port "${url##*:}"
stop

if grep -qs '^00000000000000000000000000000001 ' /proc/net/if_inet6; then
    start --host ::
    health 0 "a server on ::" --host :: --port "${url##*:}"
    health 0 "a server on :: by its loopback" --host ::1 --port "${url##*:}"
    stop
else
    echo "there is no IPv6 here: :: is not tried"
fi

# Up, but not ready to multiply: the health check is for the process.
start
prepare_slow "$(slow_side 3)"
post_slow draining
await_sent draining
kill -TERM "$server"
await 10 grep -q draining "$scratch/log" || fail "the server does not drain"
health 0 "a server that drains" --port "${url##*:}"
finish_slow draining
ended "a drained server"

# What is no healthy server.
answers 'HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n' 1 "a 503" "answered with 503"
answers 'HTTP/1.1 404 Not Found\r\n\r\n' 1 "a 404" "answered with 404"
answers 'HTTP/1.1 2000 OK\r\n\r\n' 1 "a status of four digits" "not HTTP"
answers 'HTTP/1.1 200' 1 "a reply cut short" "not HTTP"
answers '200 OK\r\n\r\n' 1 "no HTTP" "not HTTP"
answers '\033[31m\n\n\n' 1 "garbage" "not HTTP"
answers '' 1 "a close without a word" "not HTTP"
answers 'HTTP/1.0 200 OK\r\n\r\n' 0 "a 200" ""

listen_with '' HOLD
health 1 "a listener that never answers" --port "$port"
says "a listener that never answers" "timed out"
end_listener
listen_with 'HTTP/1.1 200 OK\r\n' HOLD
health 1 "a reply that never ends" --port "$port"
says "a reply that never ends" "timed out"
end_listener

# What cannot be asked.
health 2 "port 0" --port 0
says "port 0" "port 0"
health 1 "a host that is not there" --host no.such.host.invalid
says "a host that is not there" no.such.host.invalid
health 2 "an unknown flag" --healthy
finish
