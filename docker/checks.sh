# Functions for smoke.sh and verify.sh, which source this file. Each check prints a line. The caller defines
# `beside`, which runs a command on a network where $url is reachable.
# shellcheck shell=sh disable=SC2034,SC2154

checks=0 failures=0

# check WHAT COMMAND…: runs the command, which must succeed. Prints the output if the command fails.
check() {
    what=$1
    shift
    checks=$((checks + 1))
    if "$@" >"$scratch/output" 2>&1; then
        echo "ok      $what"
    else
        failures=$((failures + 1))
        echo "FAILED  $what"
        sed 's/^/        /' "$scratch/output"
    fi
}

# multiply_zeros SIDE ARGUMENT...: multiplies two square matrices of zeros with the slowest variant. ARGUMENTs
# go to curl.
multiply_zeros() {
    side=$1
    shift
    head -c $((2 * 4 * side * side)) /dev/zero >"$scratch/zeros"
    beside curl -s --max-time 300 -o /dev/null "$@" -H 'Content-Type: application/octet-stream' \
        --data-binary "@$scratch/zeros" "$url/v1/matmul?m=$side&k=$side&n=$side&backend=cpu&variant=naive"
}

# Starts a product of about four seconds in the background. Times a small product to choose the size. Sets
# $slow to the background process, which writes the HTTP status to $scratch/slow.
begin_slow_product() {
    multiply_zeros 400 -D "$scratch/timing" || :
    milliseconds=$(sed -n 's/^Server-Timing:.*kernel;dur=\([0-9.]*\).*/\1/Ip' "$scratch/timing")
    multiply_zeros "$(awk -v ms="${milliseconds:-30}" 'BEGIN { print int(400 * (4000 / ms) ^ (1 / 3)) }')" \
        -w '%{http_code}' >"$scratch/slow" &
    slow=$!
    sleep 1
}
