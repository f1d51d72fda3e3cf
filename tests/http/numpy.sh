#!/bin/sh
# Runs numpy.py, which makes files by NumPy and reads the replies by it, against a server; status 77 where no
# Python here has NumPy.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

python=$(python_with numpy) || {
    echo "no python3 here has NumPy: nothing is tested"
    exit 77
}

start
checks=$((checks + 1))
"$python" "$(dirname "$0")/numpy.py" "$url" "$scratch" || fail "numpy.py"
stop
finish
