#!/bin/sh
# ./dev bench data: measures fp32_tensor on several kinds of input data (load/data.py). Reports accuracy, time
# compared with simt, and the number of repaired elements. Needs a GPU of compute capability 9.0.
# Usage: data.sh BUILD_FOLDER OPTION…, in the top folder.
bench=data
known_rows=data
rows=$known_rows
# shellcheck source=bench/lib/service.sh
. "$(dirname "$0")/lib/service.sh"

options() {
    echo "--edge N|edge number 16384|of the square matrices ($edge)"
}
edge=4096

run() {
    find_python client || { say "$why" && return 1; }
    start_matmuld matmuld --backend cuda || return 1
    print_head 'fp32_tensor on data of several kinds'
    "$python" "$load/data.py" "$port" "$edge" "$rounds"
}

main "$@"
