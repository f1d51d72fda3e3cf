#!/bin/sh
# Runs numpy.py, which makes files by NumPy and reads the replies by it, against a server; status 77 where no
# Python here has NumPy.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

# The system's own is looked for too: another one may stand before it on PATH.
python=
for candidate in python3 /usr/bin/python3; do
    if [ -z "$python" ] && "$candidate" -c 'import numpy' 2>/dev/null; then
        python=$candidate
    fi
done
if [ -z "$python" ]; then
    echo "no python3 here has NumPy: nothing is tested"
    exit 77
fi

start
checks=$((checks + 1))
"$python" "$(dirname "$0")/numpy.py" "$url" "$scratch" || fail "numpy.py"
stop
finish
