#!/bin/sh
# ./dev bench json: what a number in JSON costs the service, read and written, in products of EDGE·EDGE by one
# connection, by the spans of Server-Timing: numbers are read while they are received. It judges no time.
#
#   json.sh BUILD_FOLDER OPTION…  in the top folder, with what was built there
bench=json
known_rows='read write'
rows=$known_rows edge=1024
# shellcheck source=bench/lib/service.sh
. "$(dirname "$0")/lib/service.sh"
rounds=7

options() {
    echo '--edge N|edge number 4096|of both matrices (1024)'
}

# ns_of SPAN NUMBERS
ns_of() {
    awk -v numbers="$2" '{ print ($1 == "failed" ? $1 : $1 * 1e6 / numbers) }' "$scratch/values/json.$1_mean_ms" >"$scratch/values/$1"
}

run() {
    print_head 'JSON, time per number'
    print_table_head
    start_matmuld matmuld --backend cpu || { row_left_out 'all' '' "$why" && return 0; }
    for _ in $(seq "$rounds"); do
        measure json 'receive_mean_ms encode_mean_ms' --port "$port" --form json --shape "${edge}x${edge}x$edge" --spans --requests 3
    done
    ns_of receive $((2 * edge * edge))
    ns_of encode $((edge * edge))
    ! has_row read || row_value "read, of $edge×$edge · $edge×$edge, nine digits" '≤ 25 ns' receive ns
    ! has_row write || row_value "write, of $edge×$edge, nine digits" '≤ 30 ns' encode ns
}

main "$@"
