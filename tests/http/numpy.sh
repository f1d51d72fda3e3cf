#!/bin/sh
# Runs numpy.py, which makes files by NumPy and reads the replies by it, against a server. ml_dtypes has the types that
# NumPy lacks; without PyPI an installed NumPy does, and these types are left out; status 77 without either.
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
