#!/bin/sh
# Tests the lame duck: after SIGTERM /readyz is 503 but requests are served, until the drain begins.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"
unset MATMULD_LAME_DUCK_MS

product='{"a":[[2]],"b":[[3]]}'
forever=600000

is_unready() {
    [ "$(status_of "$url/readyz")" = 503 ]
}

# leave_soon WHAT: sends SIGTERM, and waits until the lame duck has begun.
leave_soon() {
    kill -TERM "$server"
    await 60 is_unready || fail "$1: /readyz did not turn 503"
}

# same_stage WHAT STAGE: the stop must have come this far.
same_stage() {
    checks=$((checks + 1))
    if [ "$2" = drain ]; then
        await 60 has_logged 'draining: ' || fail "$1: the drain does not begin"
    else
        { ! has_logged 'draining: ' && ! has_ended; } || fail "$1: the drain has begun"
    fi
}

runs 0 '' --print-config
same "--print-config" 'lame-duck-ms = 5000' "$(grep '^lame-duck-ms' "$scratch/out")"
runs 0 '' --print-config --lame-duck-ms 4294967295
runs 2 "--lame-duck-ms is '4294967296', but must be MS from 0 to 4294967295" --lame-duck-ms 4294967296

# A connection that was open before the signal gets its next product, and then closes.
start --lame-duck-ms $forever
python3 -IS - "$server" "${url##*:}" "$product" >"$scratch/kept_open" <<'END' || fail "the open connection: $(cat "$scratch/kept_open")"
import http.client, os, signal, sys, time

server, port, product = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]


def ask(connection, *request):
    connection.request(*request)
    response = connection.getresponse()
    response.read()
    return response


lasting, probe = (http.client.HTTPConnection("127.0.0.1", port, timeout=30) for _ in range(2))
before = ask(lasting, "POST", "/v1/matmul", product)
begun = time.monotonic()
os.kill(server, signal.SIGTERM)
while ask(probe, "GET", "/readyz").status == 200 and time.monotonic() < begun + 30:
    pass
seconds = time.monotonic() - begun
after = ask(lasting, "POST", "/v1/matmul", product)
replies = (f"{reply.status}:{reply.getheader('Connection')}" for reply in (before, after))
print(*replies, "closed" if lasting.sock is None else "open", seconds)
END
read -r before after state seconds <"$scratch/kept_open"
same "an open connection before the signal" 200:None "$before"
same "and after it" 200:close "$after"
same "the client's connection" closed "$state"
[ -n "$sanitizer" ] || at_most "seconds until /readyz was 503" 1 "$seconds"

# New connections are accepted, and every response closes its connection.
ask /readyz
expect /readyz 503 code stopping Retry-After: '[1-9]*' Connection: close detail 'still serves requests'
for path in /v2/health/ready /v2/models/matmul/ready; do
    ask $path
    expect "$path" 503 Retry-After: '[1-9]*' Connection: close
done
for path in /healthz /v2/health/live /metrics /v1/devices; do
    ask $path
    expect "$path" 200 Connection: close
done
ask /v1/matmul -d "$product"
expect "a product" 200 .c '[[6]]' Connection: close
ask /v1/matmul -d '{"a":[[2]],"b":[[3],[4]]}'
expect "an invalid product" 422 Connection: close
same "two products of one client: connections" '200 1 200 1' "$(curl -s -o "$scratch/got" -w '%{http_code} %{num_connects} ' \
    -d "$product" "$url/v1/matmul" --next -s -o "$scratch/got" -w '%{http_code} %{num_connects}' -d "$product" "$url/v1/matmul")"
same "the metrics ready, draining" "0 1" "$(metric ready) $(metric draining)"
reload 'SIGHUP: there are no API keys and no certificate to reload'
same_stage "SIGTERM" lame

# A second SIGTERM begins the drain.
kill -TERM "$server"
ended "a second SIGTERM, idle"
same_stage "a second SIGTERM, idle" drain

# SIGINT begins the drain, before and in the lame duck.
start --lame-duck-ms $forever
kill -INT "$server"
ended "SIGINT"
start --lame-duck-ms $forever
leave_soon "SIGINT in the lame duck"
kill -INT "$server"
ended "SIGINT in the lame duck"

# A product that begins in the lame duck is answered in the drain. A third signal ends the process at once.
prepare_held cpu
for third in none TERM:143 INT:130; do
    start_held --backend cpu --cpu-jobs 1 --lame-duck-ms $forever
    leave_soon "a product in the lame duck"
    hold_job runs
    same_stage "a product in the lame duck" lame
    kill -TERM "$server"
    same_stage "a second SIGTERM" drain
    ask /v1/matmul -d "$product"
    expect "a product in the drain" 503 code stopping detail 'accepts no new requests' Connection: close
    case $third in
    none)
        release
        finish_slow runs "a product that began in the lame duck" 200 Connection: close
        ended "a second SIGTERM"
        ;;
    *)
        kill -s ${third%:*} "$server"
        ends ${third#*:} "a third signal, SIG${third%:*}"
        finish_slow runs "a third signal: no reply" 000
        ;;
    esac
done

# An idle server leaves when the time is over, not before. An idle connection does not delay it.
start --lame-duck-ms 1500
printf 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n' >"$scratch/requests"
talk requests 65536 &
talking=$!
await 30 has_metric 'connections{state="idle"}' 1 || fail "the idle client is not connected"
from=$(now_ms)
kill -TERM "$server"
ended "an idle server"
took=$(($(now_ms) - from))
at_most "an idle server: at least, milliseconds" "$took" 1500
[ -n "$sanitizer" ] || at_most "an idle server: milliseconds" 5000 "$took"
wait "$talking" || fail "the idle connection was not closed"
same "an idle connection: replies" 200 "$(statuses)"

# Without a lame duck the first SIGTERM begins the drain, and the second ends the process.
start_held --backend cpu --cpu-jobs 1 --lame-duck-ms 0
hold_job runs
kill -TERM "$server"
same_stage "--lame-duck-ms 0" drain
kill -TERM "$server"
ends 143 "--lame-duck-ms 0: a second SIGTERM"
finish_slow runs "--lame-duck-ms 0: no reply" 000

# A server that loses its device does not wait for the end of the lame duck.
MATMULD=$FAULTY
start --backend cuda --lame-duck-ms $forever
leave_soon "a device is lost"
ask /v1/matmul -d '{"a":[[1]],"b":[[1]],"variant":"loses_device"}'
gives_up "a device is lost in the lame duck"
MATMULD=$sound
finish
