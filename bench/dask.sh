#!/bin/sh
# ./dev bench dask: products of Dask arrays on several servers, beside Dask alone (load/dask_matmul.py): the time,
# the bytes to and from the servers, and the time if a server dies. Writes a Markdown and a CSV file.
# Usage: dask.sh BUILD_FOLDER OPTION…, in the top folder.
bench=dask
known_rows='time wire dead'
rows=$known_rows
# shellcheck source=bench/lib/service.sh
. "$(dirname "$0")/lib/service.sh"

options() {
    cat <<END
--backend NAME|backend name|which multiplies (auto)
--beside WHAT|beside one numpy cupy|blocks of Dask alone ($beside)
--edge N|edge number 131072|of the square matrices ($edge)
--block N|block number 32768|edge of a block ($block)
--servers N|count number 8|servers ($count)
--workers N|workers number 64|workers of Dask ($workers)
END
}
backend=auto beside=numpy edge=8192 block=2048 count=2 workers=2

# of METHOD MEMBER BYTES: prints the sum of the member over the requests of the method, divided by BYTES.
of() {
    cat "$scratch"/matmuld*.log | sed -n "s/.* method=\"$1\" .* $2=\([0-9]*\) .*/\1/p" |
        awk -v all="$3" '{ sum += $1 } END { print sum / all }'
}

# multiply COUNT [PID]: keeps the figures of dask_matmul.py.
multiply() {
    rounds_now=$1
    shift
    "$python" "$load/dask_matmul.py" "$edge" "$block" "$rounds_now" "$workers" "$beside" "$urls" "$@" \
        >"$scratch/figures" 2>"$scratch/errors" || { cat "$scratch/errors" >&2 && return 1; }
    while read -r key value; do
        keep "$key" "$value"
    done <"$scratch/figures"
}

run() {
    find_python dask || { say "$why" && return 1; }
    urls=
    for index in $(seq "$count"); do
        # The servers share the processors, so a product may take long.
        start_matmuld "matmuld$index" --backend "$backend" --max-kernel-ms 250000 || return 1
        urls=$urls${urls:+,}http://127.0.0.1:$port
    done
    print_head 'Products of Dask arrays' "Dask|$("$python" -c 'import dask; print(dask.__version__)'), $workers workers of one thread" \
        "servers|$count" "matrices|float32, $edge×$edge in blocks of $block×$block"
    multiply "$rounds" || return 1
    print_table_head
    ! has_row time || row_ratio "seconds; beside: Dask with $beside" '' matmuld beside s
    if has_row wire; then
        # One more than the rounds, because the first product is only checked.
        bytes=$(((rounds + 1) * edge * edge * 4))
        row_is 'bytes to the servers, of those of A and B for each server' '' "$(of PUT in_bytes $((2 * count * bytes)))"
        row_is 'bytes from the servers, of those of C' '' "$(of POST out_bytes "$bytes")"
    fi
    if has_row dead && [ "$count" -gt 1 ]; then
        multiply 0 "$pid" || return 1
        row_value 'seconds, if the last server dies in the middle' '' dead s
    fi
}

main "$@"
