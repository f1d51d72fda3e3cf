#!/bin/sh
# ./dev bench stacks: compares the kernel times of the variant `auto` with those of the vendor's library
# (`blas`) for stacks of products. Alternates between the two. Checks each product once. Writes a report.
# Usage: stacks.sh BUILD_FOLDER ARGUMENT…, in the top folder.
bench=stacks
known_rows='1024x64 512x128 256x256 64x512'
rows=$known_rows backend=cuda dtypes='float32 float64'
# shellcheck source=bench/lib/service.sh
. "$(dirname "$0")/lib/service.sh"
rounds=15

options() {
    cat <<'END'
--backend NAME|backend one cuda cpu|of the service (cuda)
--dtypes LIST|dtypes some float16 bfloat16 float32 float64|element types (float32,float64)
END
}

# write_operands COUNT EDGE DTYPE: writes two stacks of numbers below 1 as a raw body to $scratch/body.
write_operands() {
    python3 - "$@" >"$scratch/body" <<'END'
import array, random, sys
count, edge, dtype = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
numbers = array.array("d" if dtype == "float64" else "f", [random.uniform(-1, 1) for _ in range(1 << 16)])
if dtype == "float16":
    import struct
    numbers = array.array("H", struct.unpack(f"{len(numbers)}H", struct.pack(f"{len(numbers)}e", *numbers)))
elif dtype == "bfloat16":
    numbers = array.array("H", numbers.tobytes())[1::2]
left = 2 * count * edge * edge
while left > 0:
    sys.stdout.buffer.write(numbers[: min(left, len(numbers))].tobytes())
    left -= len(numbers)
END
}

# multiply VARIANT QUERY: sets kernel_ms, or empties it if the product fails.
multiply() {
    kernel_ms=$(curl -s --max-time 60 -o /dev/null -D - --data-binary "@$scratch/body" -H 'Content-Type: application/octet-stream' \
        "http://127.0.0.1:$port/v1/matmul?variant=$1&backend=$backend&$2" |
        sed -n 's/^server-timing:.*kernel;dur=\([0-9.]*\).*/\1/Ip')
}

# check VARIANT QUERY: prints a line if the product is wrong.
check() {
    curl -s --max-time 60 --data-binary "@$scratch/body" -H 'Content-Type: application/octet-stream' -o /dev/null -D - \
        "http://127.0.0.1:$port/v1/matmul?variant=$1&backend=$backend&verify=true&$2" | grep -qi '^matmul-verify:.*passed' ||
        say "$1 of $2: the check did not pass"
}

bench_stack() {
    key=$3.$1x$2
    query="a_shape=$1,$2,$2&b_shape=$1,$2,$2&dtype=$3"
    write_operands "$@"
    for variant in auto blas; do
        check "$variant" "$query"
    done
    for _ in $(seq "$rounds"); do
        for variant in auto blas; do
            multiply "$variant" "$query"
            keep "$key.$variant" "$(awk -v ms="$kernel_ms" -v count="$1" -v edge="$2" \
                'BEGIN { if (ms > 0) print 2 * count * edge * edge * edge / ms / 1e9 }')"
        done
    done
    row_ratio "$1 × $2, $3, auto; beside: blas" "$4" "$key.auto" "$key.blas" TFLOP/s
}

# row_mean DTYPE: prints a row with the geometric mean of the ratios.
row_mean() {
    mean=$(for row in $rows; do
        paste "$scratch/values/$1.$row.auto" "$scratch/values/$1.$row.blas" | awk '!/failed/ && $2 > 0 { print $1 / $2 }' |
            sort -g | awk '{ value[NR] = $1 } END { if (NR > 0) print value[int((NR + 1) / 2)] }'
    done | awk '$1 > 0 { sum += log($1); count++ } END { if (count > 0) print exp(sum / count) }')
    [ -n "$mean" ] || return 0
    row_is "$1, geometric mean of the ratios" '≥ 1' "$mean"
}

run() {
    start_matmuld matmuld --backend "$backend" --memory-budget 2GiB || return 1
    print_head 'Stacks of products'
    print_table_head
    for dtype in $dtypes; do
        for row in $rows; do
            bench_stack "${row%x*}" "${row#*x}" "$dtype" ''
        done
        row_mean "$dtype"
    done
}

main "$@"
