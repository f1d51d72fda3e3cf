#!/bin/sh
# ./dev bench gpu: compares the service on a GPU with aiohttp and with plain sockets. The aiohttp server uses
# uvloop, and PyTorch on the same GPU. The servers run alternately. Writes medians to Markdown and CSV files.
# Usage: gpu.sh BUILD_FOLDER ARGUMENT…, in the top folder.
bench=gpu
known_rows='wire 1 64 256 1024 4096 8192 bodies json64 json1024 stored small generated out chain gpus shared start'
rows=$known_rows backend=cuda library=torch processes='1 4 8' dry=no
# shellcheck source=bench/lib/service.sh
. "$(dirname "$0")/lib/service.sh"
# shellcheck source=bench/lib/gpus.sh
. "$(dirname "$0")/lib/gpus.sh"
rounds=3

options() {
    cat <<'END'
--processes LIST|processes numbers 256|of the peer; the best counts, for each row (1,4,8)
--backend NAME|backend one cuda cpu|of the service (cuda)
--peer NAME|library one torch numpy|(torch)
--no-peers|alone yes|without aiohttp
--dry|dry yes|a rehearsal without a GPU: --backend cpu --peer numpy, one short round, small shapes
END
}

# edge_of ROW: prints the edge of the row's matrices, which is smaller in a rehearsal.
edge_of() {
    case $dry:$1 in
    yes:1) echo 1 ;;
    yes:json64) echo 4 ;;
    yes:json1024) echo 32 ;;
    yes:*) echo $(($1 / 32)) ;;
    no:*) echo "${1#json}" ;;
    esac
}

# Starts the service, and an aiohttp server for each number of processes. Sets the ports of all servers.
start_all() {
    serving=''
    [ "$dry" = no ] || backend=cpu library=numpy processes='1 2' rounds=1 seconds=0.1
    start_matmuld matmuld --backend "$backend" || return 1
    service=$port
    device=$(curl -s --max-time 5 "http://127.0.0.1:$service/v1/devices" |
        sed -n 's/.*"name": *"\([^"]*\)".*/\1/p' | head -n 1)
    [ "$alone" = no ] || { no_peer='left out' && return 0; }
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

# client_threads CONNECTIONS: prints the number of threads. Half of the cores stay for the server. With 16
# cores and an H200, 4, 6, 8 and 12 threads gave 1,440, 1,720, 1,740 and 1,740 products of 1024×1024 per
# second.
client_threads() {
    threads=$(($(nproc) / 2))
    [ "$threads" -ge 1 ] || threads=1
    [ "$threads" -le "$1" ] || threads=$1
    echo "$threads"
}

# squares EDGE CONNECTIONS [SECONDS]: prints arguments for steady.py.
squares() {
    echo "--shape $1x$1x$1 --connections $2 --threads $(client_threads "$2")" "${3:+--seconds $3}"
}

# floor_of EDGE CONNECTIONS: starts a socket loop for bodies of this size.
floor_of() {
    start_sockets "$2" $((8 * $1 * $1)) $((4 * $1 * $1)) || {
        say "$why"
        return 1
    }
}

# turns ROW PEERS ARGUMENT…: measures in turn the socket loop, the service, and aiohttp with each number of
# processes.
turns() {
    turn_row=row_$1 counts=$2 figures='rate p50_ms p99_ms'
    shift 2
    for _ in $(seq "$rounds"); do
        [ -z "$floor" ] || measure "${turn_row}_floor" "$figures" --port "$floor" "$@" --unchecked
        measure "$turn_row" "$figures" --port "$service" "$@" --query variant=auto
        for count in $counts; do
            eval "at=\$peer_$count"
            measure "${turn_row}_peer_$count" "$figures" --port "${at:?the port of the peer}" "$@"
        done
        drop_logs
    done
    [ -z "$floor" ] || stop "$floor_pid"
}

# Sets `best` to the number of processes with which aiohttp was fastest.
find_best() {
    best=$(for count in $serving; do
        echo "$(median "row_$1_peer_$count.rate") $count"
    done | sort -g | awk 'NF == 2 { count = $2 } END { print count }')
}

peer_name() {
    if [ "$1" -eq 1 ]; then
        echo "aiohttp + $library, one process"
    else
        echo "aiohttp + $library, $1 processes"
    fi
}

# Prints 1 if an aiohttp server with one process runs. Benches with one connection use only this server.
lone_peer() {
    case " $serving " in *' 1 '*) echo 1 ;; esac
}

beside_lone_peer() {
    [ -z "$(lone_peer)" ] || row_ratio "$2; beside: $(peer_name 1)" '' "row_$1.p50_ms" "row_$1_peer_1.p50_ms" ms
}

# bench_rate ROW TARGET TARGET_P99: squares over 32 connections.
bench_rate() {
    edge=$(edge_of "$1")
    what="$edge, raw, 32 connections"
    floor_of "$edge" 32 || :
    # shellcheck disable=SC2046
    turns "$1" "$serving" $(squares "$edge" 32 "$seconds")
    find_best "$1"
    row_ratio "$what; beside: socket loop by as many" '' "row_$1.rate" "row_$1_floor.rate" /s
    [ -n "$best" ] || row "$what" "$2" "$(shown "$(median "row_$1.rate")" /s)" '' '' '' "no peer: $no_peer"
    for count in $serving; do
        row_ratio "$what; beside: $(peer_name "$count")" "$([ "$count" != "$best" ] || echo "$2")" "row_$1.rate" \
            "row_$1_peer_$count.rate" /s
    done
    row_value "$what, p50" '' "row_$1.p50_ms" ms
    [ -z "$best" ] ||
        row_ratio "$what, p99; beside: $(peer_name "$best")" "$3" "row_$1.p99_ms" "row_$1_peer_$best.p99_ms" ms
}

# bench_large ROW TARGET REQUESTS: squares over one connection, beside a socket loop with equal bytes.
bench_large() {
    edge=$(edge_of "$1")
    what="$edge, raw, one connection, p50"
    floor_of "$edge" 1 || :
    # shellcheck disable=SC2046
    turns "$1" "$(lone_peer)" $(squares "$edge" 1) --requests "$3"
    row_ratio "$what; beside: socket loop" "$2" "row_$1.p50_ms" "row_$1_floor.p50_ms" ms
    beside_lone_peer "$1" "$what"
}

bench_json() {
    edge=$(edge_of "$1") floor=''
    what="$edge, JSON, one connection, p50"
    # shellcheck disable=SC2046
    turns "$1" "$(lone_peer)" --form json $(squares "$edge" 1 "$seconds")
    row_value "$what" "$2" "row_$1.p50_ms" ms
    beside_lone_peer "$1" "$what"
}

# bench_bodies EDGE TARGET CONNECTIONS…: large bodies over each number of connections. They are compared with
# plain sockets, and with libmicrohttpd alone, which must copy each body.
bench_bodies() {
    edge=$(edge_of "$1") target=$2
    shift 2
    for count in "$@"; do
        bodies=bodies_${edge}_$count what="$edge, raw, $count connections, whole bodies"
        if ! floor_of "$edge" "$count" ||
            ! start_floor library bare bodies "$count" $((4 * edge * edge)) $((8 * edge * edge)); then
            row_left_out "$what" "$target" "$why"
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

by_bodies() {
    key_of=$1 port_of=$2
    shift 2
    # shellcheck disable=SC2046
    measure "$key_of" 'rate p50_ms p99_ms' --port "$port_of" $(squares "$edge" "$count" "$seconds") "$@"
}

write_request() {
    printf 'POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n\r\n' "$1" >"$scratch/request"
}

# store_square NAME EDGE FROM [DTYPE]: stores a square, which the service generates.
store_square() {
    curl -sf --max-time 60 -o /dev/null -X POST \
        "http://127.0.0.1:$service/v1/transpose?m=$2&n=$2&a_from=$3&out=$1&reply=none&dtype=${4:-float32}"
}

by_request() {
    key_of=$1 port_of=$2 figures_of=$3
    shift 3
    measure "$key_of" "$figures_of" --port "$port_of" --file "$scratch/request" "$@"
}

# path_of KIND EDGE: prints the query of a product. The stored square of an edge has the name wEDGE, or
# TYPE_EDGE if it is not float32.
path_of() {
    case $1 in
    stored) echo "a_from=w$2&b_from=w$2" ;;
    float16 | bfloat16 | int8) echo "a_from=$1_$2&b_from=$1_$2" ;;
    out) echo "a_from=w$2&b_from=w$2&out=y$2" ;;
    generated) echo "m=$2&k=$2&n=$2&a_from=uniform(1)&b_from=uniform(2)" ;;
    esac
}

# bench_had KIND EDGE TARGET SHARE: products of stored or generated squares over 32 connections, without
# returned elements. Products of stored squares are compared with aiohttp and with libmicrohttpd alone. SHARE
# is the target for the rate times the time of the kernel. TARGET is a ratio, except for types other than
# float32, which have no peer.
bench_had() {
    edge=$(edge_of "$2") had=had_$1_$2 counts='' bare=''
    what="$edge, $1, 32 connections, reply=none"
    [ "$1" != stored ] || counts=$serving
    case $1 in
    stored) store_square "w$edge" "$edge" 'uniform(1)' ;;
    float16 | bfloat16 | int8)
        store_square "$1_$edge" "$edge" 'uniform(1)' "$1"
        what="$edge, stored $1, 32 connections, reply=none"
        ;;
    out)
        store_square "w$edge" "$edge" 'uniform(1)'
        what="$edge, stored, kept by out, 32 connections, reply=none"
        ;;
    esac
    threads=$(client_threads 32)
    if [ "$1" = stored ] && start_floor "bare$2" bare worker "$threads" 256; then
        bare=$port bare_pid=$pid
    fi
    for _ in $(seq "$rounds"); do
        write_request "/v1/matmul?$(path_of "$1" "$edge")&reply=none"
        [ -z "$bare" ] || by_request "row_${had}_bare" "$bare" rate --connections 32 --threads "$threads" --seconds "$seconds" \
            --unchecked
        by_request "${had}_one" "$service" kernel_mean_ms --requests 20 --warm 5 --spans
        by_request "row_$had" "$service" 'rate p50_ms p99_ms' --connections 32 --threads "$threads" --seconds "$seconds"
        write_request "/kept?edge=$edge"
        for count in $counts; do
            eval "at=\$peer_$count"
            by_request "row_${had}_peer_$count" "${at:?the port of the peer}" rate --connections 32 --threads "$threads" \
                --seconds "$seconds"
        done
        drop_logs
    done
    paste "$scratch/values/row_$had.rate" "$scratch/values/${had}_one.kernel_mean_ms" |
        awk '!/failed/ { print $1 / 1e3 * $2 }' >"$scratch/values/$had.share"
    best=''
    [ -z "$counts" ] || find_best "$had"
    if [ -n "$best" ]; then
        row_ratio "$what; beside: $(peer_name "$best"), its tensors on the device" "$3" "row_$had.rate" "row_${had}_peer_$best.rate" /s
    else
        row_value "$what" "$([ "$1" = stored ] || echo "$3")" "row_$had.rate" /s
    fi
    if [ -n "$bare" ]; then
        stop "$bare_pid"
        row_ratio "$what; beside: libmicrohttpd alone" '' "row_$had.rate" "row_${had}_bare.rate" /s
    fi
    row_value "$what, by the time of the kernel alone" "$4" "$had.share" ''
    row_value "$what, p99" '' "row_$had.p99_ms" ms
}

# Measures a chain of products. Each product uses the previous result.
bench_chain() {
    edge=$(edge_of 1024)
    what="$edge, chained by out, one connection, reply=none"
    store_square y "$edge" 'uniform(1)'
    store_square one "$edge" 'identity()'
    write_request '/v1/matmul?a_from=y&b_from=one&out=y&reply=none'
    for _ in $(seq "$rounds"); do
        by_request row_chain "$service" 'p50_ms outside_ms' --requests 100 --warm 10 --spans
        drop_logs
    done
    row_value "$what, p50" '' row_chain.p50_ms ms
    row_value "$what, a request's time beside its kernel, median" '≤ 0.2 ms' row_chain.outside_ms ms
}

# Measures the bytes per second that one and four sockets carry in both directions. If row 1024 runs, also
# measures the service under the load of that row.
bench_wire() {
    edge=$(edge_of 4096) edge_loaded=$(edge_of 1024)
    if ! floor_of "$edge" 4; then
        row_left_out 'wire' '' "$why"
        return 0
    fi
    shape="${edge}x${edge}x$edge"
    for _ in $(seq "$rounds"); do
        measure stream rate --port "$floor" --shape "$shape" --requests 5 --unchecked
        measure streams rate --port "$floor" --shape "$shape" --requests 5 --unchecked --connections 4 --threads 4
        # shellcheck disable=SC2046
        measure loaded 'rate kernel_mean_ms upload_mean_ms download_mean_ms' --port "$service" --spans \
            $(squares "$edge_loaded" 32 "$seconds")
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
}

# gigabytes RATES EDGE INTO: converts rates to GB/s of requests and replies.
gigabytes() {
    awk -v edge="$2" '{ print ($1 == "failed" ? $1 : $1 * 12 * edge * edge / 1e9) }' "$scratch/values/$1" >"$scratch/values/$3"
}

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
    stored)
        bench_had stored 64 '≥ 20' ''
        bench_had stored 256 '≥ 8' ''
        bench_had stored 1024 '≥ 2' '≥ 0.8'
        bench_had stored 4096 '≥ 4' '≥ 0.95'
        bench_had bfloat16 4096 '' '≥ 0.9'
        ;;
    small)
        for type in bfloat16 float16 int8; do
            bench_had "$type" 128 '≥ 150000' ''
            bench_had "$type" 256 '≥ 120000' ''
        done
        ;;
    generated)
        bench_had generated 1024 '' ''
        bench_had generated 4096 '' '≥ 0.85'
        ;;
    out)
        bench_had out 64 '' ''
        bench_had out 256 '' ''
        ;;
    chain) bench_chain ;;
    gpus) bench_all_gpus ;;
    shared) bench_one_product ;;
    json64) bench_json json64 '≤ 1 ms' ;;
    json1024) bench_json json1024 '≤ 120 ms' ;;
    start) rows_of_start "$backend" ;;
    esac
}

run() {
    code=0
    start_all || code=$?
    print_head 'End to end' "device|${device:-none}" "backend|$backend" \
        "peer|${serving:+aiohttp + $library by$serving processes; $(versions_of_peer "$library")}" \
        "driven by|wrk for small bodies, bench/load/steady.py for large ones, by $(client_threads 32) threads for 32 connections"
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
