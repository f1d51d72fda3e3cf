#!/bin/sh
# ./dev bench json: times the JSON codec beside one by Jansson alone. How is bench.c's business; it judges no time.
#
#   bench.sh --check ARGUMENT…       whether the arguments are right: exit status 2 where they are not
#   bench.sh BUILD_FOLDER ARGUMENT…  with the program json_bench built there
#
# Arguments: EDGE, of two square matrices (1024), and --rounds N, of which the median counts (7).
set -eu

bad_usage() {
    echo "bench json: $*" >&2
    echo "see ./dev --help" >&2
    exit 2
}

# whole WHAT MAX TEXT: refuses what is no number from 1 to MAX; no shell overflows on four digits.
whole() {
    case $3 in
    '' | *[!0-9]* | ?????*) ;;
    *) [ "$3" -lt 1 ] || [ "$3" -gt "$2" ] || return 0 ;;
    esac
    bad_usage "$1 a number from 1 to $2, got '$3'"
}

build=$1
shift
edge='' rounds=7
while [ $# -gt 0 ]; do
    case $1 in
    --rounds)
        whole "--rounds takes" 100 "${2:-}"
        rounds=$2 && shift
        ;;
    -*) bad_usage "does not take '$1'" ;;
    *)
        [ -z "$edge" ] || bad_usage "takes one edge, got $edge and $1"
        whole "the edge is" 8192 "$1"
        edge=$1
        ;;
    esac
    shift
done
[ "$build" != --check ] || exit 0
exec "$build/tests/json/json_bench" "${edge:-1024}" "$rounds"
