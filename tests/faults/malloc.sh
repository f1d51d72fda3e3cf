#!/bin/sh
# Memory that runs out at each place in turn while requests of a group are answered, of which tests/faults/routes.c
# says what must hold. When it is over nothing is held of what failed: no memory of the budget, no job, no
# descriptor, and, under the address sanitizer, nothing at all.
#
#   malloc.sh GROUP MOST [OPTION…]    with options of the server
#
# Of each request MOST places are tried, evenly spread, or so many as MALLOC_MOST says; with 0 none is left out.
# shellcheck source=tests/http/server.sh
. "$(dirname "$0")/../http/server.sh"

# shellcheck source=tests/faults/under.sh
. "$(dirname "$0")/under.sh"

group=$1
most=${MALLOC_MOST:-$2}
shift 2

[ "$group" != keys ] || export MATMULD_API_KEY=0123456789abcdef
start --open-metrics --backend cpu --threads 2 --self-test-ms 0 "$@"
before=$(descriptors)
checks=$((checks + 1))
"$ROUTES" "$control" "${url##*:}" "$group" "$most" || fail "the group $group"
if has_ended; then
    tail -n 40 "$scratch/log"
    fail "the server has ended"
    exit 1
fi
same_descriptors "$before"
await 30 has_free_budget || fail "the budget is in use"
await 30 has_metric queue_jobs 0 || fail "jobs wait"
stop
finish
