#!/bin/sh
# ./dev bench fair: two API keys share one device. Twelve connections of one key send large products, and one
# connection of the other key sends small ones. Measures each alone, and then both (load/fair.py). Writes a report.
# Usage: fair.sh BUILD_FOLDER ARGUMENT…, in the top folder.
bench=fair
known_rows='1200 4096'
rows=1200 backend=cpu
# shellcheck source=bench/lib/service.sh
. "$(dirname "$0")/lib/service.sh"
rounds=3 seconds=5

options() {
    echo '--backend NAME|backend one cpu cuda|of the service (cpu)'
}

run() {
    printf 'large large-key-0123456789\nsmall small-key-0123456789\n' >"$scratch/keys"
    chmod 600 "$scratch/keys"
    start_matmuld matmuld --backend "$backend" --api-key-file "$scratch/keys" || return 1
    print_head 'Two keys share a device' "backend|$backend"
    for _ in $(seq "$rounds"); do
        for edge in $rows; do
            python3 "$load/fair.py" "$port" "$edge" "$seconds" >"$scratch/figures"
            while read -r what value; do
                keep "$what.$edge" "$value"
            done <"$scratch/figures"
        done
    done
    print_table_head
    for edge in $rows; do
        row_ratio "64³, median time beside 12 × $edge³; beside: alone" '' "small-beside.$edge" "small-alone.$edge" ms
        row_ratio "12 × $edge³, products a second beside 64³; beside: alone" '≥ 0.9' "large-beside.$edge" "large-alone.$edge" ''
    done
}

main "$@"
