#!/bin/sh
# A process with few file descriptors: callers for whom there is none wait, and harm nobody who was there before; the
# process does not spin meanwhile, and serves them once others have left. Too few to serve anyone is an error.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

: "${DAWDLE:?the path of the program dawdle}" "${FLOOD:?the path of the program flood}"

# limited N: from here on matmuld may open so many.
program=$MATMULD
limited() {
    MATMULD=$scratch/limited
    printf '#!/bin/sh\nulimit -n %d\nexec "%s" "$@"\n' "$1" "$program" >"$MATMULD"
    chmod +x "$MATMULD"
}

# Of the process, user and system; the kernel's ticks are a hundredth of a second.
cpu_ms() {
    awk '{ print ($14 + $15) * 10 }' "/proc/$server/stat"
}

is_served() {
    [ "$(status_of --max-time 1 "$url/healthz")" = 200 ]
}

limited 32
start --backend cpu --threads 2 --receive-timeout-ms 60000
"$FLOOD" --port "${url##*:}" --rate 100 --seconds 1 >"$scratch/before" &
flood=$!
sleep 0.3
"$DAWDLE" --port "${url##*:}" --heads 100 --every-ms 1000000 --seconds 60 >"$scratch/many" &
dawdle=$!
trap 'kill "$dawdle" 2>/dev/null || :; clean_up' EXIT
wait $flood
same "the others hold on" ready "$(cat "$scratch/many")"
like "those who were there before" 'requests=100 ok=100 refused=0 bad=0 lost=0 unsent=0 *' "$(cat "$scratch/before")"
from=$(cpu_ms)
sleep 1
at_most "milliseconds of a processor's time in a second" 200 $(($(cpu_ms) - from))
at_most "descriptors" 32 "$(find "/proc/$server/fd" -mindepth 1 | wc -l)"
same "one more caller" 000 "$(status_of --max-time 0.5 "$url/healthz")"
kill $dawdle
wait $dawdle || :
await 5 is_served || fail "after the others have left nobody is served"
stop

limited 12
code=0
timeout 20 "$MATMULD" --port 0 --backend cpu --threads 2 --log-format text 2>"$scratch/log" || code=$?
same "12 descriptors: exit status" 1 "$code"
like "12 descriptors: the log" '*ulimit -n*' "$(cat "$scratch/log")"
finish
