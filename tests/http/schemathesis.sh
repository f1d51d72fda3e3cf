#!/bin/sh
# The server and its OpenAPI document agree: schemathesis makes requests from the document, good ones and bad ones, and
# judges the replies by it. It is installed from PyPI into build/; where that fails, the test is skipped.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

make_venv schemathesis || exit 77
start --backend cpu --benchmark-run-flops 1000000 --benchmark-flops 10000000
curl -sS --fail-with-body -o "$scratch/document.json" "$url/openapi.json"
cd "$scratch" # where it leaves files of its own
"$venv/bin/schemathesis" --config-file "$here/schemathesis/schemathesis.toml" run --url "$url" document.json \
    >"$scratch/report" 2>&1 || fail "schemathesis: $(cat "$scratch/report")"
sed -n '/^Test cases:/{n;p}' "$scratch/report"
stop
finish
