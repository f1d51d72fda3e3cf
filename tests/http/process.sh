#!/bin/sh
# The command line, the environment and the log.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

# runs STATUS ARG…: the program ends by itself with this status; its output is in $scratch/out and err.
runs() {
    expected=$1
    shift
    status=0
    timeout 60 "$MATMULD" "$@" >"$scratch/out" 2>"$scratch/err" || status=$?
    same "matmuld $*: exit status" "$expected" "$status"
}

# refuses WORDS ARG…: exit status 2, with these words on stderr and nothing on stdout.
refuses() {
    words=$1
    shift
    runs 2 "$@"
    like "matmuld $*: stderr" "*$words*" "$(cat "$scratch/err")"
    same "matmuld $*: stdout" "" "$(cat "$scratch/out")"
}

# prints NAME VALUE: --print-config's line.
prints() {
    same "--print-config: $1" "$1 = $2" "$(grep "^$1 = " "$scratch/out")"
}

options='host port backend devices threads cpu-jobs queue-depth queue-wait-ms memory-budget max-body max-dimension timeout-ms
    drain-timeout-ms watchdog-ms self-test-ms receive-timeout-ms receive-rate send-timeout-ms send-rate benchmark-flops benchmark-run-flops benchmark-repeats no-benchmark log-format'

runs 0 --help
for option in $options help version print-config healthcheck; do
    like "--help names --$option" "*--$option*" "$(cat "$scratch/out")"
done
like "--help names the environment" "*MATMULD_*" "$(cat "$scratch/out")"
runs 0 --version
like "--version" '*[0-9].[0-9]*' "$(cat "$scratch/out")"
same "--version: lines" 1 "$(wc -l <"$scratch/out" | tr -d ' ')"

runs 0 --print-config
for option in $options; do
    like "--print-config names $option" "*$option*" "$(cat "$scratch/out")"
done
prints host 127.0.0.1
prints port 8080
prints backend auto
prints devices all
prints queue-depth 1024
prints max-dimension 2147483647
prints timeout-ms 60000
prints drain-timeout-ms 30000
prints send-timeout-ms 10000
prints send-rate 4096

# By default no more HTTP threads than cores that it may run on.
if command -v taskset >/dev/null; then
    one=$(taskset -cp $$ | sed 's/.*: *\([0-9]*\).*/\1/')
    same "threads on one core" "threads = 1" "$(taskset -c "$one" "$MATMULD" --print-config | grep '^threads ')"
fi

# Flag over environment over default.
export MATMULD_QUEUE_DEPTH=7 MATMULD_TIMEOUT_MS=1234 MATMULD_MAX_BODY=64MiB
runs 0 --print-config --queue-depth 9 --drain-timeout-ms=77
prints queue-depth 9
prints timeout-ms 1234
prints max-body 67108864
prints drain-timeout-ms 77
unset MATMULD_QUEUE_DEPTH MATMULD_TIMEOUT_MS MATMULD_MAX_BODY
runs 0 --print-config --max-body 1GiB --memory-budget 2GiB --devices 0,2
prints max-body 1073741824
prints memory-budget 2147483648
prints devices 0,2
runs 0 --print-config --max-body 3GiB --memory-budget 1GiB
prints max-body 1073741824

refuses --colour --colour
refuses --colour --colour red
refuses -x -x
refuses serve serve
refuses --port --port
refuses --port --port=
refuses http --port http
refuses 65536 --port 65536
refuses -1 --port -1
refuses abacus --backend abacus
refuses x --devices 0,x
refuses --queue-depth --queue-depth 1.5
refuses --queue-depth --queue-depth ''
refuses 64MB5 --max-body 64MB5
refuses 64XiB --max-body 64XiB
refuses 99999999999999999999GiB --memory-budget 99999999999999999999GiB
refuses 99999999999GiB --memory-budget 99999999999GiB
refuses --timeout-ms --timeout-ms soon
refuses --send-timeout-ms --send-timeout-ms 0
refuses --send-rate --send-rate 0
refuses xml --log-format xml
refuses --max-dimension --max-dimension -5
export MATMULD_PORT=http
refuses MATMULD_PORT
export MATMULD_PORT=0 MATMULD_LOG_FORMAT=xml
refuses MATMULD_LOG_FORMAT
unset MATMULD_PORT MATMULD_LOG_FORMAT

runs 1 --port 0 --host no.such.host.invalid
like "a host that is not there: stderr" '*no.such.host.invalid*' "$(cat "$scratch/err")"
runs 1 --port 0 --host 192.0.2.1
like "an address of somebody else: stderr" '*192.0.2.1*' "$(cat "$scratch/err")"

# Without a GPU, asking for one is an error with its reason.
if nvidia-smi >/dev/null 2>&1; then
    echo "there is a GPU here: --backend cuda is not refused"
else
    runs 1 --port 0 --backend cuda
    like "--backend cuda without a device: stderr" '*[Cc][Uu][Dd][Aa]*' "$(cat "$scratch/err")"
    same "--backend cuda without a device: it does not say ready" "" "$(grep -w ready "$scratch/err" || :)"
fi

for format in text json; do
    start --log-format $format
    like "$format log: the address" '*listening on http://127.0.0.1:[1-9]*' "$(grep listening "$scratch/log")"
    same "$format log: listening, once" 1 "$(grep -c 'listening on http://' "$scratch/log")"
    same "$format log: ready, once" 1 "$(grep -cw ready "$scratch/log")"
    same "$format log: an unready server says so after listening" listening \
        "$(grep -E -o -w 'listening|ready' "$scratch/log" | head -n 1)"
    if [ $format = json ]; then
        same "json log: each line is an object" object "$(jq -r type "$scratch/log" 2>&1 | sort -u)"
    fi

    # The port is taken now.
    port=${url##*:}
    runs 1 --port "$port"
    like "a taken port: stderr" "*$port*" "$(cat "$scratch/err")"
    like "a taken port: stderr" '*in use*' "$(cat "$scratch/err")"
    same "the server whose port it is" 200 "$(status_of "$url/healthz")"
    stop
done

# A free port that is named is the one that is taken.
launch --port "$port"
await 60 is_ready || fail "--port $port: not ready within a minute"
same "--port $port" "http://127.0.0.1:$port" "$url"
stop

if getent hosts localhost >/dev/null; then
    start --host localhost
    same "--host localhost" 200 "$(status_of "$url/healthz")"
    stop
fi

if grep -qs '^00000000000000000000000000000001 ' /proc/net/if_inet6; then
    start --host ::1
    like "--host ::1" 'http://\[::1\]:[1-9]*' "$url"
    stop
else
    echo "there is no IPv6 here: ::1 is not tried"
fi

# The environment reaches a server too.
MATMULD_MAX_DIMENSION=2
export MATMULD_MAX_DIMENSION
start
same "MATMULD_MAX_DIMENSION=2" 413 "$(status_of -d '{"a":[[1,2,3]],"b":[[1],[2],[3]]}' "$url/v1/matmul")"
stop
unset MATMULD_MAX_DIMENSION
finish
