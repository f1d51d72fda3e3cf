#!/bin/sh
# Tests a server with few file descriptors: to accept new connections it closes idle ones, or new ones wait.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

: "${DAWDLE:?the path of the program dawdle}" "${STEADY:?the path of the program steady}"

# limited N: sets MATMULD to a script that limits the server to N descriptors.
program=$MATMULD
limited() {
    MATMULD=$scratch/limited
    printf '#!/bin/sh\nulimit -n %d\nexec "%s" "$@"\n' "$1" "$program" >"$MATMULD"
    chmod +x "$MATMULD"
}

is_served() {
    [ "$(status_of "$url/healthz")" = 200 ]
}

has_flood() {
    [ "$(metric 'http_requests_total{route="/v1/matmul",code="200"}')" -ge 20 ]
}

dawdlers=
trap 'kill $dawdlers 2>/dev/null || :; clean_up' EXIT

dawdle() {
    into=$scratch/$1
    shift
    "$DAWDLE" --port "${url##*:}" --seconds 600 "$@" >"$into" &
    dawdlers="$dawdlers $!"
}

leave() {
    for dawdler in $dawdlers; do
        kill "$dawdler"
        wait "$dawdler" 2>/dev/null || :
    done
    dawdlers=
}

limited 1024
begun=$(now_ms)
start --backend cpu --threads 2
"$STEADY" --port "${url##*:}" --rate 100 --seconds 1 >"$scratch/before" &
flood=$!
await 30 has_flood || fail "the flood did not begin"
dawdle one --heads 600 --every-ms 1000000
dawdle other --heads 600 --every-ms 1000000
for name in one other; do
    await 60 grep -qsx ready "$scratch/$name" || fail "600 are not connected"
done
for round in $(seq 10); do
    for path in healthz metrics v1/variants; do
        same "round $round: $path" 200 "$(status_of "$url/$path")"
    done
    same "round $round: a product" 200 "$(status_of -d '{"a":[[1]],"b":[[2]]}' "$url/v1/matmul")"
done
wait $flood
# Some of the 100 requests may fail, because a connection that pauses may be the one that was idle longest.
at_most "at least 90 of 100 requests on older connections succeed" -90 "-$(sed -n 's/^requests=100 ok=\([0-9]*\) .*/\1/p' "$scratch/before")"
at_most "connections evicted, at least" "$(metric 'connections_closed_total{reason="evicted"}')" 300
at_most "idle connections, at least" "$(metric 'connections{state="idle"}')" 600
same "active connections" 1 "$(metric 'connections{state="active"}')"
like "the log" '*idle longest were closed to make room for new ones: *' "$(cat "$scratch/log")"
# The server logs evictions at most every ten seconds.
at_most "lines in the log" $((2 + ($(now_ms) - begun) / 10000)) "$(grep -c 'to make room for new ones' "$scratch/log")"
leave
stop

limited 32
start --backend cpu --threads 2 --receive-timeout-ms 600000
dawdle many --heads 100 --every-ms 400
await 60 has_logged 'none is idle: new ones wait' || fail "the log does not say that new ones wait"
await 60 grep -qsx ready "$scratch/many" || fail "the clients do not keep their connections"
from=$(cpu_ms)
sleep 1
at_most "milliseconds of a processor's time in a second" 200 $(($(cpu_ms) - from))
at_most "descriptors" 32 "$(descriptors)"
same "one client more than the limit" 000 "$(status_of --max-time 0.5 "$url/healthz")"
leave
await 30 is_served || fail "no client is served after the others have left"
stop

limited 12
runs 1 'ulimit -n' --port 0 --backend cpu --threads 2 --log-format text
finish
