#!/bin/sh
# Schemathesis generates valid and invalid requests from the server's OpenAPI document and checks the replies.
# Skipped if PyPI cannot be reached.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

make_venv schemathesis || exit 77
start --backend cpu --benchmark-run-flops 1000000 --benchmark-flops 10000000
curl -sS --fail-with-body -o "$scratch/document.json" "$url/openapi.json"
cd "$scratch" # schemathesis writes files to the current folder
"$venv/bin/schemathesis" --config-file "$here/schemathesis/schemathesis.toml" run --url "$url" document.json \
    >"$scratch/report" 2>&1 || fail "schemathesis: $(cat "$scratch/report")"
sed -n '/^Test cases:/{n;p}' "$scratch/report"
stop
finish
