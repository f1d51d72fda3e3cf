#!/bin/sh
# ./dev bench gpu: whole requests to the service on a GPU, beside what a user would write instead (aiohttp, uvloop
# and PyTorch on the same GPU, by one process and by several) and beside the bare sockets. The same client sends all
# of them the same bodies, in turn; medians of the rounds count. It writes the table to a Markdown and a CSV file,
# and judges nothing by its exit status.
#
#   gpu.sh BUILD_FOLDER ARGUMENT…  in the top folder, with what was built there
#
# Arguments:
#   --rows LIST        these alone: wire,1,64,256,1024,4096,8192,bodies,json64,json1024,start
#   --rounds N         of each comparison (3)
#   --seconds N        of each run of a rate (2)
#   --processes LIST   of the peer; the best counts, for each row (1,4,8)
#   --backend NAME     of the service: cuda or cpu (cuda)
#   --peer NAME        torch or numpy (torch)
#   --no-peers         without aiohttp
#   --dry              a rehearsal without a GPU: --backend cpu --peer numpy, one short round, small shapes
#   --into FOLDER      where gpu-DATE.md and gpu-DATE.csv go (build/bench)
bench=gpu
known_rows='wire 1 64 256 1024 4096 8192 bodies json64 json1024 start'
rows=$known_rows backend=cuda library=torch processes='1 4 8' dry=no
# shellcheck source=bench/lib/service.sh
. "$(dirname "$0")/lib/service.sh"
rounds=3

take_processes() {
    processes=
    for count in $(echo "$1" | tr ',' ' '); do
        whole '--processes takes numbers with commas' 256 "$count"
        processes="$processes $count"
    done
    [ -n "$processes" ] || bad_usage "--processes takes numbers with commas, from 1 to 256"
}

read_arguments() {
    while [ $# -gt 0 ]; do
        common_option "$1" "${2:-}"
        case $taken:$1:${2:-} in
        2:* | 1:*) ;;
        0:--processes:*) take_processes "$2" && taken=2 ;;
        0:--backend:cuda | 0:--backend:cpu) backend=$2 taken=2 ;;
        0:--backend:*) bad_usage "--backend takes cuda or cpu, got '${2:-}'" ;;
        0:--peer:torch | 0:--peer:numpy) library=$2 taken=2 ;;
        0:--peer:*) bad_usage "--peer takes torch or numpy, got '${2:-}'" ;;
        0:--dry:*) dry=yes backend=cpu library=numpy processes='1 2' rounds=1 seconds=0.1 taken=1 ;;
        *) bad_usage "does not take '$1'" ;;
        esac
        shift "$taken"
    done
}

# edge_of ROW: what a rehearsal takes in its place is small.
edge_of() {
    case $dry:$1 in
    yes:1) echo 1 ;;
    yes:json64) echo 4 ;;
    yes:json1024) echo 32 ;;
    yes:*) echo $(($1 / 32)) ;;
    no:*) echo "${1#json}" ;;
    esac
}

# --- servers

# Sets service, and the port of the peer with so many processes as peer_COUNT, of those in `serving`.
start_all() {
    serving=''
    start_matmuld matmuld --backend "$backend" || return 1
    service=$port service_pid=$pid
    device=$(curl -s --max-time 5 "http://127.0.0.1:$service/v1/devices" |
        sed -n 's/.*"name": *"\([^"]*\)".*/\1/p' | head -n 1)
    [ "$peers" = yes ] || { no_peer='left out' && return 0; }
    find_python "$library" || { no_peer=$why && return 0; }
    for count in $processes; do
        if start_peer "peer_$count" "$library" "$count"; then
            eval "peer_$count=$port"
            serving="$serving $count"
        else
            say "$why"
            no_peer=$why
        fi
    done
}

# --- measuring

# Enough threads of the client for its connections, that leave cores to the server: on 16 cores with an H200, 4, 6,
# 8 and 12 threads had 1,440, 1,720, 1,740 and 1,740 products of 1024×1024 a second from 32 connections.
client_threads() {
    threads=$(($(nproc) / 2))
    [ "$threads" -ge 1 ] || threads=1
    [ "$threads" -le "$1" ] || threads=$1
    echo "$threads"
}

# in_turn ROW COUNTS ARGUMENT…: the service, then the peers with so many processes, in each round.
in_turn() {
    for _ in $(seq "$rounds"); do
        one_turn "$@"
    done
}

one_turn() {
    turn_row=row_$1 counts=$2 figures='rate p50_ms p99_ms'
    shift 2
    measure "$turn_row" "$figures" --port "$service" "$@" --query variant=auto
    for count in $counts; do
        eval "at=\$peer_$count"
        measure "${turn_row}_peer_$count" "$figures" --port "${at:?the port of the peer}" "$@"
    done
    drop_logs
}

# Sets best, the number of processes by which the peer answered most in the row.
find_best() {
    best=$(for count in $2; do
        echo "$(median "row_$1_peer_$count.rate") $count"
    done | sort -g | awk 'NF == 2 { count = $2 } END { print count }')
}

# by_32 COMMAND…: with the arguments of a load by 32 connections.
by_32() {
    "$@" --shape "${edge}x${edge}x$edge" --connections 32 --threads "$(client_threads 32)" --seconds "$seconds"
}

# bench_rate ROW TARGET TARGET_P99: a square by 32 connections; beside it, what plain sockets carry by as many.
bench_rate() {
    edge=$(edge_of "$1")
    what="$edge, raw, 32 connections"
    floor=''
    if start_floor sockets sockets 127.0.0.1 32 $((8 * edge * edge + 4096)) $((4 * edge * edge)); then
        floor=$port floor_pid=$pid
    else
        say "$why"
    fi
    for _ in $(seq "$rounds"); do
        [ -z "$floor" ] || by_32 measure "row_$1_floor" rate --port "$floor" --unchecked
        by_32 one_turn "$1" "$serving"
    done
    [ -z "$floor" ] || stop "$floor_pid"
    find_best "$1" "$serving"
    row_ratio "$what; beside: socket loop by as many" '' "row_$1.rate" "row_$1_floor.rate" /s
    [ -n "$best" ] || row "$what" "$2" "$(shown "$(median "row_$1.rate")" /s)" '' '' '' "no peer: $no_peer"
    for count in $serving; do
        target=''
        [ "$count" != "$best" ] || target=$2
        row_ratio "$what; beside: $(peer_name "$count")" "$target" "row_$1.rate" "row_$1_peer_$count.rate" /s
    done
    row_value "$what, p50" '' "row_$1.p50_ms" ms
    if [ -n "$best" ]; then
        row_ratio "$what, p99; beside: $(peer_name "$best")" "$3" "row_$1.p99_ms" "row_$1_peer_$best.p99_ms" ms
    fi
}

peer_name() {
    if [ "$1" -eq 1 ]; then
        echo "aiohttp + $library, one process"
    else
        echo "aiohttp + $library, $1 processes"
    fi
}

# The peer with one process, where it runs: one connection has no use for more.
lone_peer() {
    case " $serving " in *' 1 '*) echo 1 ;; esac
}

# bench_large ROW TARGET REQUESTS: a square by one connection, beside the socket loop moving the same bytes.
bench_large() {
    edge=$(edge_of "$1") shape="$(edge_of "$1")x$(edge_of "$1")x$(edge_of "$1")"
    if ! start_floor sockets sockets 127.0.0.1 1 $((8 * edge * edge + 4096)) $((4 * edge * edge)); then
        row_left_out "$edge, raw, one connection" "$2" "$why"
        return 0
    fi
    floor=$port floor_pid=$pid asked=$3
    for _ in $(seq "$rounds"); do
        measure "row_$1_floor" p50_ms --port "$floor" --shape "$shape" --requests "$asked" --unchecked
        one_turn "$1" "$(lone_peer)" --shape "$shape" --requests "$asked"
    done
    stop "$floor_pid"
    what="$edge, raw, one connection, p50"
    row_ratio "$what; beside: socket loop" "$2" "row_$1.p50_ms" "row_$1_floor.p50_ms" ms
    [ -z "$(lone_peer)" ] ||
        row_ratio "$what; beside: $(peer_name 1)" '' "row_$1.p50_ms" "row_$1_peer_1.p50_ms" ms
}

# bench_bodies EDGE TARGET CONNECTIONS…: whole bodies over so many connections, beside plain sockets that move the same,
# and beside libmicrohttpd alone, which has to copy each body.
bench_bodies() {
    edge=$(edge_of "$1") target=$2
    shift 2
    for count in "$@"; do
        bodies=bodies_${edge}_$count what="$edge, raw, $count connections, whole bodies"
        if ! start_floor sockets sockets 127.0.0.1 "$count" $((8 * edge * edge + 4096)) $((4 * edge * edge)); then
            row_left_out "$what" "$target" "$why"
            continue
        fi
        floor=$port floor_pid=$pid
        if ! start_floor library bare bodies "$count" $((4 * edge * edge)) $((8 * edge * edge)); then
            row_left_out "$what" "$target" "$why"
            stop "$floor_pid"
            continue
        fi
        for _ in $(seq "$rounds"); do
            by_bodies "${bodies}_floor" "$floor" --unchecked
            by_bodies "${bodies}_library" "$port" --unchecked
            by_bodies "$bodies" "$service" --query variant=auto
            drop_logs
        done
        stop "$pid"
        stop "$floor_pid"
        row_ratio "$what; beside: socket loop by as many" "$target" "$bodies.rate" "${bodies}_floor.rate" /s
        row_ratio "$what; beside: libmicrohttpd alone" '≥ 0.95' "$bodies.rate" "${bodies}_library.rate" /s
        row_ratio "$what, p99; beside: its p50" '≤ 2' "$bodies.p99_ms" "$bodies.p50_ms" ms
    done
}

# by_bodies KEY PORT ARGUMENT…
by_bodies() {
    key_of=$1 port_of=$2
    shift 2
    measure "$key_of" 'rate p50_ms p99_ms' --port "$port_of" --shape "${edge}x${edge}x$edge" --connections "$count" \
        --threads "$(client_threads "$count")" --seconds "$seconds" "$@"
}

# bench_json ROW TARGET SECONDS
bench_json() {
    edge=$(edge_of "$1")
    in_turn "$1" "$(lone_peer)" --form json --shape "${edge}x${edge}x$edge" --seconds "$3"
    row_value "$edge, JSON, one connection, p50" "$2" "row_$1.p50_ms" ms
    [ -z "$(lone_peer)" ] ||
        row_ratio "$edge, JSON, one connection, p50; beside: $(peer_name 1)" '' "row_$1.p50_ms" "row_$1_peer_1.p50_ms" ms
}

# What the sockets carry here, by one stream and by four, both ways together; and beside it, where that row is
# wanted, what the service does under the load of 1024.
bench_wire() {
    edge=$(edge_of 4096) edge_loaded=$(edge_of 1024)
    if ! start_floor sockets sockets 127.0.0.1 4 $((8 * edge * edge + 4096)) $((4 * edge * edge)); then
        row_left_out 'wire' '' "$why"
        return 0
    fi
    floor=$port floor_pid=$pid shape="${edge}x${edge}x$edge"
    for _ in $(seq "$rounds"); do
        measure stream rate --port "$floor" --shape "$shape" --requests 5 --unchecked
        measure streams rate --port "$floor" --shape "$shape" --requests 5 --unchecked --connections 4 --threads 4
        watch_memory &
        watcher=$!
        measure loaded 'rate kernel_mean_ms upload_mean_ms download_mean_ms' --port "$service" --spans \
            --shape "${edge_loaded}x${edge_loaded}x$edge_loaded" --connections 32 --threads "$(client_threads 32)" \
            --seconds "$seconds"
        wait "$watcher"
        drop_logs
    done
    stop "$floor_pid"
    gigabytes stream.rate "$edge" stream.gb
    gigabytes streams.rate "$edge" streams.gb
    gigabytes loaded.rate "$edge_loaded" loaded.gb
    row_value 'socket loop, one stream' '' stream.gb GB/s
    row_value 'socket loop, four streams' '' streams.gb GB/s
    row_ratio "$edge_loaded, raw, 32 connections; beside: socket loop, four streams" '≥ 0.9' loaded.gb streams.gb GB/s
    for span in kernel upload download; do
        paste "$scratch/values/loaded.rate" "$scratch/values/loaded.${span}_mean_ms" |
            awk '!/failed/ { print $1 / 1e3 * $2 }' >"$scratch/values/loaded.$span"
        row_value "under that load, ${span}s under way (of all requests, over the time)" '' "loaded.$span" ''
    done
    read -r middle least most <<END_OF_SUMMARY
$(summary "$scratch/values/loaded.resident")
END_OF_SUMMARY
    row 'under that load, resident memory, five times a second' '' "$(shown "$middle" MiB)" '' '' \
        "$(shown "$least" '') – $(shown "$most" '')" '–'
}

# Notes what the service has resident, from a quarter of the load's time on, and once at least.
watch_memory() {
    sleep "$(awk -v seconds="$seconds" 'BEGIN { print seconds / 4 }')"
    for _ in $(seq "$(awk -v seconds="$seconds" 'BEGIN { print int(3.5 * seconds) + 1 }')"); do
        keep loaded.resident "$(($(memory_kib VmRSS "$service_pid") / 1024))"
        sleep 0.2
    done
}

# gigabytes RATES EDGE INTO: of bodies and replies.
gigabytes() {
    awk -v edge="$2" '{ print ($1 == "failed" ? $1 : $1 * 12 * edge * edge / 1e9) }' "$scratch/values/$1" >"$scratch/values/$3"
}

# The rows, each with its target and what else its function wants.
bench_row() {
    case $1 in
    wire) bench_wire ;;
    1) bench_rate 1 '≥ 20' '' ;;
    64) bench_rate 64 '≥ 15' '' ;;
    256) bench_rate 256 '≥ 10' '' ;;
    1024) bench_rate 1024 '≥ 10' '≤ 0.1' ;;
    4096) bench_large 4096 '≤ 1.5' 5 ;;
    8192) bench_large 8192 '≤ 1.5' 3 ;;
    bodies)
        bench_bodies 1024 '≥ 0.75' 1 4 8 16
        bench_bodies 2048 '≥ 0.8' 1 4 8 16
        bench_bodies 4096 '≥ 0.85' 1 4 8 16
        ;;
    json64) bench_json json64 '≤ 1 ms' "$seconds" ;;
    json1024) bench_json json1024 '≤ 120 ms' "$seconds" ;;
    start) rows_of_start "$backend" ;;
    esac
}

run() {
    code=0
    start_all || code=$?
    print_head 'End to end' "device|${device:-none}" "backend|$backend" \
        "peer|${serving:+aiohttp + $library by$serving processes; $(versions_of_peer "$library")}" \
        "driven by|steady, our own client, by $(client_threads 32) threads for 32 connections"
    print_table_head
    if [ "$code" -ne 0 ]; then
        row_left_out 'all' '' "$why; --dry rehearses on the CPU"
        return 0
    fi
    for wanted in $rows; do
        bench_row "$wanted"
    done
}

main "$@"
