#!/bin/sh
# Runs triton.py, which asks the server by tritonclient, and the Python of docs/triton.md. Skipped if PyPI cannot be reached.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

make_venv triton || exit 77
start_with_key a-long-enough-key-0123456789abcdef --backend cpu
checks=$((checks + 1))
"$venv/bin/python3" "$here/triton.py" "${url#http://}" a-long-enough-key-0123456789abcdef || fail "triton.py"
stop

start --backend cpu
awk -v to="$scratch" '/^```/ { is_inside = /python$/; count += is_inside; next } is_inside { print >(to "/example" count ".py") }' \
    "$here/../../docs/triton.md"
for example in "$scratch"/example*.py; do
    checks=$((checks + 1))
    sed "s/127.0.0.1:8080/${url#http://}/" "$example" >"$scratch/example"
    "$venv/bin/python3" "$scratch/example" || fail "$(cat "$example")"
done
stop
finish
