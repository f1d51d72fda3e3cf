#!/bin/sh
# Tests compressed bodies of infer requests by compressed.py.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

# Each row: test of compressed.py, options of the server
while IFS='|' read -r test options; do
    # shellcheck disable=SC2086
    start $options
    checks=$((checks + 1))
    python3 "$here/compressed.py" "$url" "$test" || fail "compressed.py $test"
    stop
done <<'END'
codings|
refusals|
limit|--max-body 5000
bombs|--threads 1
memory|--memory-budget 24MiB
END
finish
