#!/bin/sh
# Runs numpy.py with a server. Skips the types of ml_dtypes if PyPI cannot be reached. Ends with status 77
# without NumPy.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

find_numpy || {
    echo "no python3 here has NumPy: nothing is tested"
    exit 77
}

start --backend cpu
checks=$((checks + 1))
"$python" "$(dirname "$0")/numpy.py" "$url" "$scratch" || fail "numpy.py"
stop
finish
