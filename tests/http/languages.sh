#!/bin/sh
# Runs the programs in JavaScript and Go of examples/. Ends with status 77 without node 18 and without go.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"
examples=$here/../../examples

# prints COMMAND…: the program must print the product, and the service's sentence if the service rejects the request.
prints() {
    same "$1: the product" '58 64
139 154' "$("$@" "$url" 2>&1)"
    if "$@" "$url/nowhere" >"$scratch/out" 2>&1; then
        fail "$1: status 0 after an error"
    fi
    like "$1: an error" '*/nowhere/v1/matmul*' "$(cat "$scratch/out")"
}

start --backend cpu
if node -e fetch 2>/dev/null; then
    prints node "$examples/javascript/multiply.mjs"
else
    echo "there is no node 18: the client in JavaScript is not tested"
fi
if command -v go >/dev/null; then
    prints go run "$examples/go/main.go"
else
    echo "there is no go: the client in Go is not tested"
fi
[ "$checks" -gt 0 ] || exit 77
stop
finish
