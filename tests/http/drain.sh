#!/bin/sh
# Tests the drain after SIGTERM or SIGINT: accepted requests are answered, others are rejected.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

load() {
    hold_job runs
    queue_job waits
}

is_unready() {
    [ "$(status_of "$url/readyz")" = 503 ]
}

# drain WHAT [SIGNAL]: sends the signal, and waits until the drain has begun.
drain() {
    kill -s "${2:-TERM}" "$server"
    await 60 is_unready || fail "$1: /readyz did not turn 503 while a job ran"
}

prepare_held cpu
for signal in TERM INT; do
    start_held --backend cpu --cpu-jobs 1
    load
    drain "SIG$signal" $signal
    ask /readyz
    expect "SIG$signal: /readyz" 503 code stopping Retry-After: '[1-9]*'
    same "SIG$signal: the metrics ready, draining" "0 1" "$(metric ready) $(metric draining)"
    same "SIG$signal: /healthz" 200 "$(status_of "$url/healthz")"
    ask /v1/matmul -d '{"a":[[2]],"b":[[3]]}'
    expect "SIG$signal: a new job" 503 code stopping Retry-After: '[1-9]*'
    same "SIG$signal: an invalid query is still reported" 400 "$(status_of -d '{}' "$url/v1/matmul?colour=red")"
    release
    for job in runs waits; do
        finish_slow $job "SIG$signal: the job that $job" 200
    done
    ended "SIG$signal"
    same "SIG$signal: connecting afterwards" 000 "$(status_of "$url/healthz")"
done

# A signal that comes while devices open, or just after the server listens, is not lost.
: >"$scratch/hold.open"
MATMULD=$FAULTY MATMULD_FAULTY_HOLD=$scratch/hold
export MATMULD_FAULTY_HOLD
launch --port 0 --drain-timeout-ms 600000
kill -TERM "$server"
sleep 0.1
rm "$scratch/hold.open"
ended "while the devices are being opened"
unset MATMULD_FAULTY_HOLD
MATMULD=$sound
for _ in 1 2; do
    launch --port 0 --drain-timeout-ms 600000
    stop
done

# A rejected client that never sends all of its body does not delay the end.
start_held --backend cpu
hold_job runs
drain "a stalled client"
mkfifo "$scratch/rest"
exec 3<>"$scratch/rest"
curl -s -X POST -T - -H 'Expect:' -H 'Content-Type: application/json' "$url/v1/matmul" <"$scratch/rest" >/dev/null 2>&1 3<&- &
stalled=$!
printf '{' >&3
await 60 has_metric requests_in_flight 2 || fail "the stalled client did not begin"
release
finish_slow runs "a stalled client: the job that runs" 200
ended "a stalled client"
kill $stalled 2>/dev/null || :

# A rejected client that sends the end of its body a little later still gets the reply.
is_told() {
    start_held --backend cpu
    hold_job runs
    drain "a late sender"
    {
        printf '{'
        await 60 has_metric requests_in_flight 2
        release
        await 60 is_done runs
        sleep 0.3
        printf '}'
    } | curl -s --max-time 60 -X POST -T - -H 'Expect:' -H 'Content-Type: application/json' -o "$scratch/late" \
        -w '%{http_code}' "$url/v1/matmul" >"$scratch/late.status" || :
    finish_slow runs "a late sender: the job that runs" 200
    ended "a late sender"
    [ "$(cat "$scratch/late.status") $(code_of "$scratch/late")" = "503 stopping" ]
}
for _ in 1 2 3 4 5 6 7 8; do
    ! is_told || break
done
same "a late sender: status and code" "503 stopping" "$(cat "$scratch/late.status") $(code_of "$scratch/late")"

start_held --backend cpu --cpu-jobs 1 --drain-timeout-ms 300
load
kill -TERM "$server"
for job in waits runs; do
    finish_slow $job "a short drain: the job that $job" 503 code stopping
done
ended "a short drain"

# A second signal ends the server at once.
start_held --backend cpu --cpu-jobs 1
load
drain "two signals"
kill -TERM "$server"
await 60 has_ended || fail "two signals: the server does not end"
server=
for job in runs waits; do
    finish_slow $job "two signals: the job that $job has no reply" 000
done

# After SIGKILL, the next server can use the port at once, even if a client was connected.
start
port=${url##*:}
"$TALK" 127.0.0.1 "$port" 1 </dev/null >"$scratch/held" 2>&1 &
held=$!
await 30 has_metric 'connections{state="idle"}' 1 || fail "killed: the client is not connected"
kill -KILL "$server"
wait "$server" "$held" 2>/dev/null || :
launch --port "$port"
await_ready
stop
finish
