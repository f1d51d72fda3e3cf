#!/bin/sh
# Runs the tests of clients/python, which start their own servers. Uses packages from PyPI, or else an installed
# NumPy. Ends with status 77 without NumPy.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

if make_venv python; then
    python=$venv/bin/python3
else
    python=$(python_with numpy) || {
        echo "no python3 here has NumPy: nothing is tested"
        exit 77
    }
fi

checks=$((checks + 1))
cd "$here/../../clients/python"
PYTHONDONTWRITEBYTECODE=1 "$python" -m unittest || fail "the tests of clients/python"
finish
