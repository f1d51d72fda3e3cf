#!/bin/sh
# Memory that runs out at each place in turn while the service starts: tests/faults/start.c says what must hold.
#
#   malloc_start.sh MOST    as malloc.sh has it
# shellcheck source=tests/http/server.sh
. "$(dirname "$0")/../http/server.sh"
# shellcheck source=tests/faults/under.sh
. "$(dirname "$0")/under.sh"

: "${START:?the path of start}"
export MATMULD_API_KEY=0123456789abcdef
checks=$((checks + 1))
"$START" "$control" "${MALLOC_MOST:-$1}" "$scratch/log" "$MATMULD" --port 0 --backend cpu --threads 2 --log-format text ||
    fail "a start"
finish
