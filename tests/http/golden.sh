#!/bin/sh
# Runs the cases of a golden folder against one server with golden.py. golden/README.md describes the cases.
# Usage: golden.sh FOLDER [CASE…]
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

folder=$1
shift

start
checks=$((checks + $(find "$folder" -name '*.case' | wc -l)))
python3 "$here/golden.py" "$folder" "$url" "$kept" "$@" || fail "see above"
stop
conform "$document" "$kept"
finish
