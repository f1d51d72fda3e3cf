#!/bin/sh
# Runs the cases of a golden folder (README.md there says how they are written) against one server, by golden.py.
# Usage: golden.sh FOLDER [CASE…]
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

folder=$1
shift

start
# A case is a check.
checks=$((checks + $(find "$folder" -name '*.case' | wc -l)))
python3 "$here/golden.py" "$folder" "$url" "$kept" "$@" || fail "see above"
stop
conform "$document" "$kept"
finish
