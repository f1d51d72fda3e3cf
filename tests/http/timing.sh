#!/bin/sh
# What a connection does in time, by varnishtest: a script of tests/http/timing for each. Without varnishtest, which comes
# with the package varnish, it is skipped (77).
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

command -v varnishtest >/dev/null || {
    echo "varnishtest is not here"
    exit 77
}
start --backend cpu --receive-timeout-ms 60000
port=${url##*:}
for script in "$(dirname "$0")"/timing/*.vtc; do
    checks=$((checks + 1))
    varnishtest -D port="$port" "$script" >"$scratch/said" 2>&1 || {
        fail "$(basename "$script"): $(head -n 1 "$script")"
        tail -n 30 "$scratch/said"
    }
done
stop
finish
