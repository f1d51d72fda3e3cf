# Benches of trust.sh for SIGTERM under load, restart after SIGKILL, and little memory. Source this file.
# shellcheck shell=sh disable=SC2034,SC2154

# --- SIGTERM under load

bench_sigterm() {
    heavy=512x32x512
    serve sigterm --cpu-jobs 1 && capacity sigterm || return 0
    stop "$pid"
    lost=0 answered=0 refused=0 others=0
    for _ in $(seq "$times"); do
        serve sigterm --cpu-jobs 1 || return 0
        flood sigterm --shape "$heavy" --query "$heavy_query" --rate "$(times_rate 0.8)" --seconds 60 \
            --kill "$pid" --after 0.5 --burst "$(whole_or_dry 200 50)"
        ended "$pid"
        if [ "$code" -ne 0 ]; then
            say "SIGTERM: exit status $code: $(grep -v 'info  request\|^$' "$scratch/sigterm.log" | tail -n 1 | cut -c 1-200)"
            others=$((others + 1))
        fi
        lost=$((lost + $(wrong_of sigterm)))
        answered=$((answered + $(of sigterm ok))) refused=$((refused + $(of sigterm refused)))
        keep sigterm.ms $(($(logged_ms stopped) - $(logged_ms draining)))
    done
    what="SIGTERM at 80% of the capacity and $(whole_or_dry 200 50) requests more at once, $times times"
    row_is "$what, requests begun before it and answered with the product" '≥ 1' $answered
    row_is "$what, told to come again (503, their heads not yet judged)" '' $refused
    row_is "$what, neither" '≤ 0' $lost
    row_is "$what, other exit statuses than 0" '≤ 0' $others
    row_is "$what, the longest drain" '≤ 30000 ms' "$(most sigterm.ms)" ms
}

# --- restart after SIGKILL

# When the service is killed, 32 clients have sent only a part of a head, and 32 only a part of a body.
bench_kill() {
    what="kill -9 with 64 callers connected, and started again on the same port, $times times"
    failed=0 port=0
    for _ in $(seq "$times"); do
        begun=$(now_ms)
        if start_matmuld kill --backend cpu --port "$port"; then
            keep kill $(($(logged_ms ' ready$') - begun))
            dawdle --heads 32 --bodies 32
            kill -9 "$pid"
            ended "$pid"
            kill "$slow" 2>/dev/null || :
            wait "$slow" 2>/dev/null || :
        else
            failed=$((failed + 1))
        fi
    done
    row_is "$what, starts that failed" '≤ 0' $failed
    row_is "$what, the slowest until ready" '≤ 2000 ms' "$(most kill)" ms
}

# --- little memory

# press KEY: sends more products of 4 MiB at once than the budget allows, and one that is too large. Sets
# `wrong`, the number of replies other than 200, 413 or 429, and `small`, the status of a small product
# afterwards.
press() {
    flood "$1" --shape 1024x512x1024 --query 'backend=cpu&variant=tiled_32' --rate 40 --connections 64 \
        --expect 200,413 --seconds "$(whole_or_dry 10 0.4)"
    small=$(curl -s --max-time 10 -o /dev/null -w '%{http_code}' -d '{"a": [[2]], "b": [[3]]}' "http://127.0.0.1:$port/v1/matmul") || :
    huge=$(curl -s --max-time 10 -o /dev/null -w '%{http_code}' -H 'Content-Type: application/octet-stream' -H 'Expect:' \
        --data-binary 12345678 "http://127.0.0.1:$port/v1/matmul?m=20000&k=1&n=20000") || :
    wrong=$(wrong_of "$1")
    [ "$huge" = 413 ] || wrong=$((wrong + 1))
}

bench_memory() {
    budget=64
    serve memory --memory-budget ${budget}MiB || return 0
    press idle
    limit=$(($(memory_kib VmPeak "$pid") + 16384))
    stop "$pid"
    printf 'ulimit -v %d\nMALLOC_ARENA_MAX=1 exec "$@"\n' "$limit" >"$scratch/limiter"
    limiter="sh $scratch/limiter"
    serve memory --memory-budget ${budget}MiB || return 0
    press limited
    what="address space limited to what it takes with its budget of $budget MiB full, and 16 MiB"
    row_is "$what, answered with 200" '≥ 1' "$(of limited ok)"
    row_is "$what, with 429" '≥ 1' "$(of limited refused)"
    row_is "$what, otherwise, 413 for one that never fits" '≤ 0' "$wrong"
    stop "$pid"
    row_is "$what, ends or fails afterwards (exit status, or no 200)" '≤ 0' $((code + (small == 200 ? 0 : 1)))
}
