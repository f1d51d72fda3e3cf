#!/bin/sh
# Tests the command line, the environment and the log. tests/unit/server/options.c tests values.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

# prints NAME=VALUE…: the output of --print-config must have these settings.
prints() {
    for setting in "$@"; do
        same "--print-config: ${setting%%=*}" "${setting%%=*} = ${setting#*=}" "$(grep "^${setting%%=*} = " "$scratch/out")"
    done
}

# --print-config and --help must list the same options.
runs 0 '' --help
sed -n 's/^ *--\([a-z-]*\).*/\1/p' "$scratch/out" | grep -vxE 'help|version|print-config|healthcheck' | sort >"$scratch/options"
same "--help lists the options that print and end" 4 "$(grep -cE '^ *--(help|version|print-config|healthcheck)' "$scratch/out")"
like "--help names the environment" "*MATMULD_*" "$(cat "$scratch/out")"
runs 0 '' --print-config
same "the options of --help and --print-config" "$(cat "$scratch/options")" "$(sed 's/ = .*//' "$scratch/out" | grep -vx api-key | sort)"
at_most "options, at least" "$(wc -l <"$scratch/options")" 30
runs 0 '' --version
like "--version" 'matmuld [0-9].[0-9]* commit ?*' "$(cat "$scratch/out")"

# By default the server has at most as many HTTP threads as usable cores.
if command -v taskset >/dev/null; then
    one=$(taskset -cp $$ | sed 's/.*: *\([0-9]*\).*/\1/')
    same "threads on one core" "threads = 1" "$(taskset -c "$one" "$MATMULD" --print-config | grep '^threads ')"
fi

# An option overrides the environment, and the environment overrides the default.
export MATMULD_QUEUE_DEPTH=7 MATMULD_TIMEOUT_MS=1234
runs 0 '' --print-config --queue-depth 9 --max-body 3GiB --memory-budget 1GiB --devices 0,2
prints queue-depth=9 timeout-ms=1234 drain-timeout-ms=30000 max-body=1006632960 memory-budget=1073741824 devices=0,2
unset MATMULD_QUEUE_DEPTH MATMULD_TIMEOUT_MS

# For options whose default depends on the machine, --print-config prints the actual value.
like "--print-config: cpu-jobs" 'cpu-jobs = [1-9]*' "$(grep '^cpu-jobs = ' "$scratch/out")"
jobs=$(sed -n 's/^cpu-jobs = //p' "$scratch/out")
runs 0 '' --print-config --cpu-jobs 1024
prints cpu-jobs="$jobs"

# Unknown MATMULD_ variables give a warning, except those that Kubernetes sets for a service named matmuld.
while read -r variable words; do
    export "${variable?}"
    runs 0 "$words" --print-config --log-format text
    [ -n "$words" ] || same "$variable: stderr" "" "$(cat "$scratch/err")"
    prints port=8080
    unset "${variable%%=*}"
done <<'END'
MATMULD_QUEUE_DEPHT=7 warn  MATMULD_QUEUE_DEPHT is no option and is ignored; the nearest is MATMULD_QUEUE_DEPTH
MATMULD_PROT=1 warn  MATMULD_PROT is no option*MATMULD_PORT
MATMULD_PORT=tcp://10.96.3.7:8080 warn  MATMULD_PORT is 'tcp://10.96.3.7:8080', which Kubernetes *enableServiceLinks: false
MATMULD_SERVICE_HOST=10.96.3.7
MATMULD_SERVICE_PORT_HTTP=8080
MATMULD_PORT_8080_TCP=tcp://10.96.3.7:8080
MATMULD_PORT_8080_TCP_PROTO=tcp
MATMULD_GPU_PORT=tcp://10.96.3.8:80
MATMULD_GPU_SERVICE_HOST=10.96.3.8
MATMULDX=1
END
long=MATMULD_$(printf '%0200d' 0)
export "$long=1"
runs 0 "warn  MATMULD_00*is no option" --print-config --log-format text
unset "$long"

# The JSON log is valid even if a variable is not UTF-8.
MATMULD_PORT=$(printf 'tcp://\303\251\377"') "$MATMULD" --print-config --log-format json 2>&1 >"$scratch/out" |
    jq -r .message >"$scratch/err" || fail "the log is not JSON"
like "invalid UTF-8 in a JSON log" "MATMULD_PORT is 'tcp://é�\"', which*" "$(cat "$scratch/err")"

runs 2 --colour --colour red
same "matmuld --colour red: stdout" "" "$(cat "$scratch/out")"
runs 2 'No such file' --print-config --api-key-file "$scratch/none"
MATMULD_PORT=tcp runs 2 MATMULD_PORT
unset MATMULD_PORT
runs 1 no.such.host.invalid --port 0 --host no.such.host.invalid
runs 1 192.0.2.1 --port 0 --host 192.0.2.1

# On a machine without a GPU, --backend cuda is an error with a reason.
if nvidia-smi >/dev/null 2>&1; then
    echo "there is a GPU here: --backend cuda is not refused"
else
    runs 1 '[Cc][Uu][Dd][Aa]' --port 0 --backend cuda
    same "--backend cuda without a device: lines that say ready" "" "$(grep -w ready "$scratch/err" || :)"
fi

for format in text json; do
    start --log-format $format
    same "$format log: an unready server says so after listening, once" "listening ready" \
        "$(grep -E -o -w 'listening on http://127.0.0.1:[1-9][0-9]*|ready' "$scratch/log" | cut -d ' ' -f 1 | paste -sd ' ' -)"
    [ $format = text ] || same "json log: each line is an object" object "$(jq -r type "$scratch/log" 2>&1 | sort -u)"
    port=${url##*:}
    runs 1 "$port*in use" --port "$port"
    same "the server that has the port" 200 "$(status_of "$url/healthz")"
    stop
done

launch --port "$port"
await_ready
same "--port $port" "http://127.0.0.1:$port" "$url"
stop

if getent hosts localhost >/dev/null; then
    start --host localhost
    stop
fi
if grep -qs '^00000000000000000000000000000001 ' /proc/net/if_inet6; then
    start --host ::1
    like "--host ::1" 'http://\[::1\]:[1-9]*' "$url"
    stop
else
    echo "there is no IPv6 here: ::1 is not tried"
fi

# Without files to reload, SIGHUP only writes a line to the log.
start
reload 'SIGHUP: there are no API keys and no certificate to reload'
same "after SIGHUP" 200 "$(status_of "$url/healthz")"
stop

export MATMULD_MAX_DIMENSION=2
start
same "MATMULD_MAX_DIMENSION=2" 413 "$(status_of -d '{"a":[[1,2,3]],"b":[[1],[2],[3]]}' "$url/v1/matmul")"
stop
finish
