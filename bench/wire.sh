#!/bin/sh
# ./dev bench wire: compares how fast servers receive and send bytes. Alternates between the service on the
# CPU, minimal servers (sockets.c, bare.c) and aiohttp (peers/). Writes median ratios to a report.
# Usage: wire.sh BUILD_FOLDER ARGUMENT…, in the top folder.
bench=wire
known_rows='small latency large memory start'
rows=$known_rows
# shellcheck source=bench/lib/service.sh
. "$(dirname "$0")/lib/service.sh"
rounds=7 seconds=1 # short runs, because other load on the machine varies

options() {
    cat <<'END'
--quick|quick yes|a smoke test: small shapes, one round, no peers
--no-peers|alone yes|without aiohttp
END
}

# Sets the sizes of large bodies. Budgets are in MiB.
set_sizes() {
    if [ "$quick" = yes ]; then
        rounds=1 seconds=0.1 alone=yes edge=128 budget=64 loaded=128x512x128 loaded_json=48x48x48 thick=512 idle=0.1
    else
        edge=4096 budget=256 loaded=1024x4096x1024 loaded_json=384x384x384 thick=16384 idle=3
    fi
    in_bytes=$((8 * edge * edge)) out_bytes=$((4 * edge * edge))
}

# rate KEY PORT CHECKED [PID]: measures the rate of 4×4 products over 64 connections, and the CPU time of the
# process for each product. Other load on the machine changes the CPU time less than the rate.
rate() {
    rated=$1 rate_port=$2 server=${4:-}
    [ "$3" = checked ] && unchecked='' || unchecked=--unchecked
    [ -z "$server" ] || before=$(cpu_us "$server")
    # $unchecked is an option or nothing.
    # shellcheck disable=SC2086
    measure "$rated" rate --port "$rate_port" --connections 64 --seconds "$seconds" $unchecked
    [ -n "$server" ] || return 0
    spent=$(($(cpu_us "$server") - before)) asked=$(figure requests)
    keep "$rated.cpu_us" "$(awk -v spent="$spent" -v asked="${asked:-0}" 'BEGIN { if (asked > 0) print spent / asked }')"
}

start_small() {
    start_matmuld matmuld --backend cpu && matmuld=$port matmuld_pid=$pid &&
        start_floor worker bare worker "$threads" 64 && worker=$port worker_pid=$pid &&
        start_floor handler bare handler "$threads" 64 && handler=$port
}

start_peers() {
    peer_one='' peer_many='' why='left out'
    [ "$alone" = no ] && find_python numpy || return 0
    start_peer peer numpy 1 && peer_one=$port || return 0
    [ "$(nproc)" -eq 1 ] || { start_peer peers numpy "$(nproc)" && peer_many=$port; } || :
}

bench_small() {
    start_peers
    drop_logs
    for _ in $(seq "$rounds"); do
        rate small "$matmuld" checked "$matmuld_pid"
        rate small_worker "$worker" unchecked "$worker_pid"
        rate small_handler "$handler" unchecked
        [ -z "$peer_one" ] || rate small_peer "$peer_one" checked
        [ -z "$peer_many" ] || rate small_peers "$peer_many" checked
        drop_logs
    done
    what='4×4 raw, 64 connections'
    row_ratio "$what; beside: libmicrohttpd, suspend, worker, resume" '≥ 0.9' small.rate small_worker.rate /s
    row_ratio "$what; beside: libmicrohttpd, answers in its handler" '≥ 0.8 (stretch)' small.rate small_handler.rate /s
    row_ratio "the same, processor time of the server for each; beside: suspend, worker, resume" '' small.cpu_us \
        small_worker.cpu_us µs
    if [ -n "$peer_one" ]; then
        row_ratio "$what; beside: aiohttp + NumPy, one process ($(versions_of_peer numpy))" '≥ 3' small.rate \
            small_peer.rate /s
    else
        row_left_out "$what; beside: aiohttp + NumPy" '≥ 3' "$why"
    fi
    [ -z "$peer_many" ] || row_ratio "$what; beside: aiohttp + NumPy, $(nproc) processes" '' small.rate small_peers.rate /s
}

bench_latency() {
    for _ in $(seq "$rounds"); do
        measure one 'p50_ms p99_ms' --port "$matmuld" --seconds "$seconds" --warm 100
        measure one_worker 'p50_ms p99_ms' --port "$worker" --seconds "$seconds" --warm 100 --unchecked
        drop_logs
    done
    what='4×4 raw, one connection'
    row_ratio "$what, p50; beside: suspend, worker, resume" '≤ 1.2' one.p50_ms one_worker.p50_ms ms
    row_ratio "$what, p99; beside: suspend, worker, resume" '≤ 2' one.p99_ms one_worker.p99_ms ms
}

# large KEY FIGURE ARGUMENT…: measures the time of one product without its kernel, and of four concurrent
# products without their kernels. A socket loop has no kernel.
large() {
    key=$1 wanted=$2
    shift 2
    measure "$key" "$wanted" --shape "${edge}x${edge}x$edge" --spans --requests 1 "$@"
}

bench_large() {
    if ! { start_matmuld large --backend cpu && large=$port large_pid=$pid && start_sockets 4 "$in_bytes" "$out_bytes"; }; then
        row_left_out 'large bodies' '' "$why"
        return 0
    fi
    for _ in $(seq "$rounds"); do
        large raw outside_ms --port "$large" --query variant=blas
        large raw_sockets p50_ms --port "$floor" --unchecked
        large form outside_ms --port "$large" --query variant=blas --form multipart
    done
    for _ in $(seq "$rounds"); do
        large four rest_ms --port "$large" --query variant=blas --connections 4 --threads 4
        large four_sockets rest_ms --port "$floor" --unchecked --connections 4 --threads 4
    done
    what="$(mib $((2 * edge * edge))) in, $(mib $((edge * edge))) out ($edge³, blas), outside the kernel"
    row_ratio "$what; beside: socket loop" '≤ 1.3' raw.outside_ms raw_sockets.p50_ms ms
    row_ratio "the same, four at once; beside: socket loop, four at once" '≤ 1.5' four.rest_ms four_sockets.rest_ms ms
    row_ratio "the same by a form of .npy files; beside: raw" '≤ 1.1' form.outside_ms raw.outside_ms ms
    stop "$large_pid"
    stop "$floor_pid"
}

mib() {
    awk -v elements="$1" 'BEGIN { printf "%.3g MiB", elements / 262144 }'
}

# Measures the peak memory while requests exceed the budget. A rejection counts as a valid reply.
bench_budget() {
    start_matmuld loaded --backend cpu --memory-budget "${budget}MiB" || { row_left_out 'memory' '' "$why" && return 0; }
    measure loaded requests --port "$port" --shape 4x4x4 --requests 10
    before=$(memory_kib VmRSS "$pid")
    measure loaded 'requests refused' --port "$port" --connections 16 --seconds "$seconds" --shape "$loaded" --refusals
    measure loaded 'requests refused' --port "$port" --connections 16 --seconds "$seconds" --shape "$loaded_json" \
        --form json --refusals
    keep loaded.peak "$(($(memory_kib VmHWM "$pid") - budget * 1024))"
    sleep "$idle"
    keep loaded.idle "$(($(memory_kib VmRSS "$pid") - before))"
    stop "$pid"
    row_mib "resident at most, over a budget of $budget MiB" '≤ 64' loaded.peak
    row_mib "idle ${idle} s after that load, over before it" '' loaded.idle
}

# Measures how many copies of a large body the service keeps. The reply is small.
bench_copies() {
    body_kib=$((thick * thick / 256))
    if [ "$(awk '/^MemAvailable/ { print $2 }' /proc/meminfo)" -lt $((4 * body_kib)) ]; then
        row_left_out "copies of a body of $((body_kib / 1024)) MiB" '≤ 1.02' 'too little memory here'
        return 0
    fi
    start_matmuld thick --backend cpu || { row_left_out 'copies of a body' '' "$why" && return 0; }
    measure thick requests --port "$port" --shape 4x4x4 --requests 10
    before=$(memory_kib VmRSS "$pid")
    measure thick requests --port "$port" --shape "${thick}x${thick}x1" --query variant=blas --warm 0 --requests 1
    peak=$(memory_kib VmHWM "$pid")
    keep copies "$(awk -v grown=$((peak - before)) -v body="$body_kib" 'BEGIN { print grown / body }')"
    sleep "$idle"
    keep copies.idle "$(($(memory_kib VmRSS "$pid") - before))"
    stop "$pid"
    row_value "copies of a raw body of $((body_kib / 1024)) MiB" '≤ 1.02' copies ''
    row_mib "idle ${idle} s after it, over before it" '' copies.idle
}

# row_mib WHAT TARGET KEY: prints a row in MiB from values in KiB, which may be negative.
row_mib() {
    mib=$(awk -v kib="$(median "$3")" 'BEGIN { printf "%.1f", kib / 1024 }')
    row "$1" "$2" "$mib MiB" '' '' '' "$(met "$mib" "$2")"
}

run() {
    set_sizes
    threads=$("$build/server/matmuld" --print-config | sed -n 's/^threads = //p')
    print_head 'The wire' "driven by|wrk for small bodies, bench/load/steady.py for large ones" "load|$(cut -d ' ' -f 1-3 /proc/loadavg)"
    print_table_head
    if has_row small || has_row latency; then
        if start_small; then
            ! has_row small || bench_small
            ! has_row latency || bench_latency
        else
            row_left_out 'small requests' '' "$why"
        fi
        end_servers
    fi
    ! has_row large || bench_large
    ! has_row memory || { bench_budget && bench_copies; }
    ! has_row start || rows_of_start cpu ' (the target is for a GPU)'
}

main "$@"
