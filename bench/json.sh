#!/bin/sh
# ./dev bench json: measures how long the service takes to read and to write a number in JSON. Compares the
# times with those of a codec that only uses Jansson (json.c). Writes a Markdown and a CSV file.
# Usage: json.sh BUILD_FOLDER [EDGE] OPTION…, in the top folder. Matrices are EDGE×EDGE (default 1024).
bench=json
known_rows='random short'
rows=$known_rows edge=''
# shellcheck source=bench/lib/service.sh
. "$(dirname "$0")/lib/service.sh"
rounds=7

options() {
    :
}

operand() {
    [ -z "$edge" ] || bad_usage "takes one edge, got $edge and $1"
    whole "the edge is a number" 8192 "$1"
    edge=$1
}

row_beside_jansson() {
    row_value "$2, $4, a number" "$3" "$1.$2" ns
    row_ratio "Jansson alone; beside: $2, $4" '≥ 8' "$1.$2_jansson" "$1.$2" ns
}

run() {
    print_head 'JSON' "shape|${edge:=1024}×$edge by ${edge}×$edge"
    "$build/bench/json_bench" "$edge" "$rounds" >"$scratch/figures"
    while read -r key value; do
        keep "$key" "$value"
    done <"$scratch/figures"
    print_table_head
    for kind in $rows; do
        case $kind in random) what='nine digits' ;; *) what='short ones, as -4.5 or 3' ;; esac
        row_beside_jansson "$kind" decode '≤ 25 ns' "$what"
        row_beside_jansson "$kind" encode '≤ 30 ns' "$what"
    done
}

main "$@"
