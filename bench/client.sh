#!/bin/sh
# ./dev bench client: compares the Python client with a plain Python socket: the time of a product with the
# time to transfer as many bytes (load/client.py). Writes a Markdown and a CSV file.
# Usage: client.sh BUILD_FOLDER OPTION…, in the top folder.
bench=client
known_rows='64 1024 4096'
rows=$known_rows
# shellcheck source=bench/lib/service.sh
. "$(dirname "$0")/lib/service.sh"

options() {
    echo "--backend NAME|backend name|which multiplies (auto)"
}
backend=auto

run() {
    find_python client || { say "$why" && return 1; }
    start_matmuld matmuld --backend "$backend" || return 1
    print_head 'The Python client' "NumPy|$("$python" -c 'import numpy; print(numpy.__version__)')"
    for _ in $(seq "$rounds"); do
        for edge in $rows; do
            "$python" "$load/client.py" "$port" "$edge" $((20480 / edge)) >"$scratch/figures"
            while read -r who ms; do
                keep "$who.$edge" "$ms"
            done <"$scratch/figures"
        done
    done
    print_table_head
    for edge in $rows; do
        case $edge in 64) target='' ;; *) target='≤ 1.1' ;; esac
        row_ratio "$edge, the client; beside: a socket" "$target" "client.$edge" "socket.$edge" ms
    done
}

main "$@"
