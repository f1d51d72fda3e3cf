#!/bin/sh
# ./dev bench trust: measures the service on the CPU under overload, slow clients, restarts and other trouble.
# Each row has a target and a result. Writes a Markdown and a CSV file.
# Usage: trust.sh BUILD_FOLDER ARGUMENT…, in the top folder.
bench=trust
known_rows='overload slow leave sigterm kill memory tls soak'
rows=$known_rows times=100 soak_s=3600 soak_backend=cpu dry=no
# shellcheck source=bench/lib/service.sh
. "$(dirname "$0")/lib/service.sh"
# shellcheck source=bench/lib/trust_process.sh
. "$(dirname "$0")/lib/trust_process.sh"
# shellcheck source=bench/lib/trust_tls.sh
. "$(dirname "$0")/lib/trust_tls.sh"
rounds=3 seconds=60

options() {
    cat <<'END'
--times N|times number 10000|how often the process is ended (100)
--soak N|soak_s number 1000000|seconds of the soak (3600)
--backend NAME|soak_backend one cpu cuda|of the soak: cpu, with faults, or cuda (cpu)
--dry|dry yes|a rehearsal, of a second or two for each row
END
}

# whole_or_dry VALUE SHORT: prints SHORT in a rehearsal, else VALUE.
whole_or_dry() {
    if [ "$dry" = yes ]; then echo "$2"; else echo "$1"; fi
}

# A long product with small operands. The client on the same machine then needs little CPU time.
heavy=512x64x512 heavy_query='backend=cpu&variant=naive'

# serve ROW OPTION…: starts the service. If that fails, prints the row as left out and returns false.
serve() {
    start_matmuld "$@" --backend cpu && return 0
    row_left_out "$1" '' "$why"
    return 1
}

# dawdle ARGUMENT…: starts slow clients as process $slow, and waits until they are connected.
dawdle() {
    : >"$scratch/dawdle"
    "$load/dawdle.py" --port "$port" "$@" >"$scratch/dawdle" &
    slow=$!
    until grep -q ready "$scratch/dawdle" || ! kill -0 $slow 2>/dev/null; do
        sleep 0.02
    done
}

# flood KEY ARGUMENT…: sends products at a constant rate. `of KEY FIGURE` prints a figure of the run.
flood() {
    into=$scratch/flood.$1
    shift
    "$load/steady.py" --port "$port" "$@" >"$into" 2>"$into.told" || :
    [ ! -s "$into.told" ] || say "$(head -n 1 "$into.told" | cut -c 1-300)"
}

of() {
    figure "$2" "$scratch/flood.$1"
}

# wrong_of KEY: prints how many requests had an unexpected reply or none.
wrong_of() {
    echo $(($(of "$1" bad) + $(of "$1" lost) + $(of "$1" unsent)))
}

# metric PORT PATTERN: prints the sum of matching samples in /metrics.
metric() {
    curl -s --max-time 10 "http://127.0.0.1:$1/metrics" | awk -v name="^matmuld_$2" '$1 ~ name { sum += $2 } END { printf "%.0f", sum }'
}

now_ms() {
    date +%s%3N
}

# capacity ROW: sets `rate`, the products per second of a closed loop. If that fails, prints the row as left
# out and returns false.
capacity() {
    measure capacity rate --port "$port" --shape "$heavy" --query "$heavy_query" --connections 4 \
        --seconds "$(whole_or_dry 10 0.5)"
    rate=$(figure rate)
    [ -n "$rate" ] || row_left_out "$1" '' 'the capacity was not measured'
    [ -n "$rate" ]
}

times_rate() {
    awk -v rate="$rate" -v factor="$1" 'BEGIN { printf "%.3f", rate * factor }'
}

bench_overload() {
    budget=128
    serve overload --cpu-jobs 1 --queue-depth 32 --memory-budget ${budget}MiB && capacity overload || return 0
    before=$(memory_kib VmRSS "$pid")
    first=$rate
    printf 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n' >"$scratch/healthz"
    flood health --file "$scratch/healthz" --rate 50 --seconds "$seconds" &
    prober=$!
    flood overload --shape "$heavy" --query "$heavy_query" --rate "$(times_rate 10)" --seconds "$seconds"
    wait "$prober"
    peak=$(memory_kib VmHWM "$pid")
    capacity again || rate=$first
    keep overload.capacity "$(awk -v a="$first" -v b="$rate" 'BEGIN { print (a + b) / 2 }')"
    keep overload.goodput "$(of overload rate)"
    what="overload: ten times the capacity ($heavy, naive, one at a time), $seconds s"
    row_ratio "$what, products a second; beside: the capacity, before and after" '≥ 0.95' overload.goodput overload.capacity /s
    row_is "$what, requests" '' "$(of overload requests)"
    row_is "$what, requests that are lost, not sent, or answered otherwise than by 200, or 429 with Retry-After" '≤ 0' \
        "$(wrong_of overload)"
    row_is "$what, p99 of a refusal" '≤ 10 ms' "$(of overload refused_p99_ms)" ms
    row_is "$what, p99 of /healthz" '≤ 50 ms' "$(of health p99_ms)" ms
    row_is "$what, resident at most, over before" "≤ $budget MiB" $(((peak - before) / 1024)) MiB
    stop "$pid"
}

dawdled() {
    sed -n "s/^$1=.* $2=\([0-9.]*\).*/\1/p" "$scratch/dawdle"
}

others() {
    measure "$1" p99_ms --port "$port" --shape 64x64x64 --connections 4 --seconds "$(whole_or_dry 8 0.3)"
}

bench_slow() {
    if [ "$dry" = yes ]; then
        set -- --receive-timeout-ms 1000 --send-timeout-ms 1000
        senders=10 readers=20
    else
        set --
        senders=250 readers=500
    fi
    serve slow --memory-budget 512MiB "$@" || return 0
    for _ in $(seq "$rounds"); do
        others slow.without
        dawdle --heads $senders --bodies $senders --readers $readers --shape 384x1x384 --seconds 90
        others slow.with
        wait $slow || :
        keep slow.left $((2 * senders + readers - $(dawdled heads ended) - $(dawdled bodies ended) - $(dawdled readers ended)))
        keep slow.last "$(awk -F 'last_s=' 'NF > 1 && $2 > last { last = $2 } END { print last }' "$scratch/dawdle")"
        drop_logs
    done
    what="$((2 * senders + readers)) slow clients ($senders heads, $senders bodies, $readers readers of 576 KiB, a byte a second each)"
    row_ratio "$what, p99 of others (64×64, 4 connections); beside: without them" '≤ 1.1' slow.with.p99_ms slow.without.p99_ms ms
    row_is "$what, slow ones that are still there" '≤ 0' "$(most slow.left)"
    row_value "$what, seconds until the last is gone" '≤ 35' slow.last ''
    stop "$pid"
}

# Waits until nothing is queued, and prints how many milliseconds that took.
until_queue_is_empty() {
    from=$(now_ms)
    until [ "$(metric "$port" 'queue_jobs$')" -eq 0 ] || [ $(($(now_ms) - from)) -gt 5000 ]; do :; done
    echo $(($(now_ms) - from))
}

kernels() {
    metric "$port" kernel_duration_seconds_count
}

# While one product runs for seconds, 300 more products wait. Then the clients of these 300 products
# disconnect.
bench_leave() {
    serve leave --cpu-jobs 1 --memory-budget 512MiB || return 0
    before=$(kernels)
    "$load/steady.py" --port "$port" --shape 1024x2048x1024 --query "$heavy_query" --warm 0 --requests 1 >"$scratch/long" &
    long=$!
    sleep 0.3 # the first product runs by then
    "$load/steady.py" --port "$port" --shape 512x128x512 --query "$heavy_query" --connections 300 \
        --rate 3000 --seconds 0.1 >/dev/null 2>&1 &
    leavers=$!
    tries=200
    until [ "$(metric "$port" 'queue_jobs$')" -ge 300 ] || [ "$tries" -eq 0 ]; do
        sleep 0.02
        tries=$((tries - 1))
    done
    waited=$(metric "$port" 'queue_jobs$')
    kill -9 $leavers 2>/dev/null || :
    empty_ms=$(until_queue_is_empty)
    wait $leavers 2>/dev/null || :
    wait $long || :
    row_is 'callers who leave while their products are queued behind one of some seconds' '≥ 300' "$waited"
    row_is 'callers who leave, until the last was cancelled (and seen to be)' '≤ 250 ms' "$empty_ms" ms
    row_is 'callers who leave, kernels run but for that one' '≤ 0' $(($(kernels) - before - 1))
    row_is 'callers who leave, not counted as cancelled' '≤ 0' $((300 - $(metric "$port" cancelled_total)))
    stop "$pid"
}

bench_soak() {
    if [ "$soak_backend" = cuda ]; then
        set -- "$build/server/matmuld" --backend cuda
        what="soak: $soak_s s of mixed load on a GPU"
    else
        set -- "$build/tests/http/faulty" --backend cpu --faults 1
        what="soak: $soak_s s of mixed load, 1% of it faults"
    fi
    if ! SOAK_GROWTH_MAX_KIB=any SOAK_WARM_UP_S=$(whole_or_dry 120 1) sh tests/load/soak.sh "$@" --leave 10 \
        --clients "$(whole_or_dry 100 10)" --seconds "$soak_s" >"$scratch/soak" 2>&1; then
        cp "$scratch/soak" "$report-soak.txt"
        why=$(grep -m 1 '^FAILED: ' "$scratch/soak" | cut -c 1-100) || :
        say "$why; all that was said is in $report-soak.txt"
        row_left_out "$what" '' "$why"
        return 0
    fi
    row_is "$what, requests, each judged" '≥ 1' "$(soaked 'requests')"
    row_is "$what, wrong or broken" '≤ 0' $(($(soaked mismatches) + $(soaked 'broken connections')))
    row_is "$what, answered by 500 or 507, as told" '' $(($(soaked '500 internal') + $(soaked '507 no_device_memory')))
    row_is "$what, resident over after the warm-up" '≤ 1024' "$(soaked 'grown by, KiB')"
    row_is "$what, descriptors more than before" '≤ 0' "$(awk '/^descriptors / { print $4 - $2 }' "$scratch/soak")"
    [ "$soak_backend" = cpu ] || row_is "$what, device memory over after the warm-up" '≤ 0' "$(soaked 'device memory grown by, bytes')"
}

# soaked NAME: prints a figure of the last table in the soak's report, or 0.
soaked() {
    sed -n "s/^$1  *\(-*[0-9]*\)\$/\1/p" "$scratch/soak" | tail -n 1 | grep . || echo 0
}

run() {
    # shellcheck disable=SC3045
    ulimit -n "$(ulimit -Hn)" 2>/dev/null || :
    [ "$dry" = no ] || rounds=1 seconds=1 times=3 soak_s=2
    print_head 'Trust' "load|$(cut -d ' ' -f 1-3 /proc/loadavg)"
    print_table_head
    for wanted_row in $rows; do
        "bench_$wanted_row"
        end_servers
    done
}

main "$@"
