#!/bin/sh
# ./dev bench json: times the JSON codec beside one by Jansson alone. How is bench.c's business; it judges no time.
#
#   json.sh BUILD_FOLDER [EDGE] OPTION…  with the program json_bench built there; EDGE is of two square matrices (1024)
bench=json edge='' rounds=7
# shellcheck source=bench/lib/report.sh
. "$(dirname "$0")/lib/report.sh"

options() {
    echo '--rounds N|rounds number 100|rounds; the median counts (7)'
}

operand() {
    [ -z "$edge" ] || bad_usage "takes one edge, got $edge and $1"
    whole "the edge is a number" 8192 "$1"
    edge=$1
}

take_arguments "$@"
exec "$build/bench/json/json_bench" "${edge:-1024}" "$rounds"
