#!/bin/sh
# ./dev bench json: times the JSON codec beside one by Jansson alone. How is bench.c's business; it judges no time.
#
#   json.sh BUILD_FOLDER ARGUMENT…  with the program json_bench built there
#
# Arguments: EDGE, of two square matrices (1024), and --rounds N, of which the median counts (7).
bench=json
# shellcheck source=bench/lib/report.sh
. "$(dirname "$0")/lib/report.sh"

read_arguments() {
    edge='' rounds=7
    while [ $# -gt 0 ]; do
        case $1 in
        --rounds)
            whole "--rounds takes a number" 100 "${2:-}"
            rounds=$2 && shift
            ;;
        -*) bad_usage "does not take '$1'" ;;
        *)
            [ -z "$edge" ] || bad_usage "takes one edge, got $edge and $1"
            whole "the edge is a number" 8192 "$1"
            edge=$1
            ;;
        esac
        shift
    done
}

take_arguments "$@"
exec "$build/bench/json/json_bench" "${edge:-1024}" "$rounds"
