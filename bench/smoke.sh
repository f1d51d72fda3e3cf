#!/bin/sh
# Runs each bench that needs no GPU for a short time, and checks that tables and CSV files have rows with
# figures. Usage: smoke.sh BUILD_FOLDER, in the top folder.
set -eu

build=$1
failed=0
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() {
    echo "$*"
    failed=$((failed + 1))
}

# bench ROWS NAME ARGUMENT…: expects at least ROWS rows with a figure.
bench() {
    least=$1 name=$2
    shift 2
    code=0
    sh "bench/$name.sh" "$build" --into "$scratch" "$@" >"$scratch/shown" 2>"$scratch/told" || code=$?
    rows=$(grep -c '^|.*[0-9].*|$' "$scratch/shown") || :
    lines=$(cat "$scratch/$name"-*.csv | wc -l) || lines=0
    if [ "$code" -ne 0 ] || [ "$rows" -lt "$least" ] || [ "$lines" -le "$least" ]; then
        fail "bench $name $*: exit status $code, $rows rows, $lines lines of CSV: $(cat "$scratch/shown" "$scratch/told")"
    fi
    rm -f "$scratch/$name"-*
}

bench 12 wire --quick
bench 12 gpu --dry --no-peers --rows wire,64,4096,json64,generated,chain
bench 17 trust --dry --rows overload,sigterm,kill,memory,tls
bench 4 kernels 33 17 29 --backend cpu --repeats 2
bench 2 kernels --transpose int64 33 17 --backend cpu --repeats 2
bench 4 accuracy --dry --backend cpu
bench 2 stacks --backend cpu --rows 1024x64 --dtypes float64 --rounds 1
bench 8 json 16 --rounds 1
! { python3 -c "import numpy" || /usr/bin/python3 -c "import numpy"; } 2>"$scratch/told" ||
    bench 1 client --backend cpu --rows 64 --rounds 1

echo "$failed failures"
[ "$failed" -eq 0 ]
