#!/bin/sh
# Starts a matmuld on a free port, loads it by `mixed`, and looks at the process: after the load it holds
# the memory and the descriptors of before, by its own metrics no job and no byte of the budget, and a SIGTERM ends it with 0 (under a sanitizer: no leak, no
# race). Needs /proc.
# Usage: soak.sh MATMULD MIXED [options of mixed]
# SOAK_WARM_UP_S: seconds of load before memory is looked at the first time, 2.
# SOAK_GROWTH_MAX_KIB: what resident memory may grow by from then on; "any" for a sanitizer's process.
#   The default is 16384, the arena for small pieces: its pages are taken as they are first lent, and stay.
#   What is kept for who comes is waited for until it is given back. A load that grows it by more is repeated, three
#   times at most: only a leak grows it by as much each time.
# SOAK_SERVER_OPTIONS: more options of matmuld, as words.
set -eu

matmuld=$1
mixed=$2
shift 2
growth_max_kib=${SOAK_GROWTH_MAX_KIB:-16384}
scratch=$(mktemp -d)
server=

clean_up() {
    if [ -n "$server" ]; then
        kill -9 "$server" 2>/dev/null || :
        wait "$server" 2>/dev/null || :
    fi
    rm -rf "$scratch"
}
trap clean_up EXIT
trap 'exit 1' INT TERM HUP

fail() {
    echo "soak: $*"
    echo "soak: the server's log ends with:"
    tail -n 100 "$scratch/log"
    exit 1
}

# With one arena and fixed thresholds, glibc gives back what is freed, so that resident memory tells
# what is held. Without them it varies by 20 MiB from one second to the next.
start_server() {
    : >"$scratch/log"
    # The options are words to be split.
    # shellcheck disable=SC2086
    MALLOC_ARENA_MAX=1 MALLOC_TRIM_THRESHOLD_=65536 MALLOC_MMAP_THRESHOLD_=65536 \
        "$matmuld" --port 0 --log-format text ${SOAK_SERVER_OPTIONS:-} 2>"$scratch/log" &
    server=$!
    tries=600
    until grep -q ' ready$' "$scratch/log"; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || fail "the server is not ready after a minute"
        kill -0 "$server" 2>/dev/null || fail "the server ended before it was ready"
        sleep 0.1
    done
    port=$(sed -n 's|.*listening on http://.*:\([0-9]*\)$|\1|p' "$scratch/log")
}

resident_kib() {
    sed -n 's/^VmRSS:[^0-9]*\([0-9]*\) kB$/\1/p' "/proc/$server/status"
}

descriptors() {
    find "/proc/$server/fd" -mindepth 1 | wc -l
}

# The last connections are closed when the server has noticed that the clients are gone.
await_descriptors() {
    tries=600
    while [ "$(descriptors)" -gt "$1" ] && [ "$tries" -gt 0 ]; do
        sleep 0.1
        tries=$((tries - 1))
    done
}

# The sum of a metric over all its labels that match a pattern; "none" where nothing matches.
metric() {
    curl -fs --noproxy '*' "http://127.0.0.1:$port/metrics" |
        awk -v name="$1" '$1 ~ "^matmuld_" name { sum += $2; found++ } END { printf found ? "%.0f" : "none", sum }'
}

# Nothing is held once nobody asks: who has left may take the sweep a moment, and a kernel that runs its time.
await_idle() {
    tries=600
    for gauge in queue_jobs queue_bytes 'staging_bytes.*used'; do
        until [ "$(metric "$gauge")" = 0 ]; do
            tries=$((tries - 1))
            [ "$tries" -gt 0 ] || fail "after the load matmuld_$gauge is $(metric "$gauge"), expected 0"
            sleep 0.1
        done
    done
}

# Memory for bodies and results is kept for ten seconds, for who comes.
await_nothing_kept() {
    tries=600
    until [ "$(metric 'staging_bytes.*kept')" = 0 ]; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || fail "after a minute there are still $(metric 'staging_bytes.*kept') bytes kept"
        sleep 0.1
    done
}

# Of the GPUs; 0 where there is none.
device_bytes() {
    bytes=$(metric 'device_memory_bytes.*cuda.*used')
    if [ "$bytes" = none ]; then echo 0; else echo "$bytes"; fi
}

start_server
descriptors_before=$(descriptors)

# What is allocated once is allocated now.
"$mixed" --port "$port" "$@" --seconds "${SOAK_WARM_UP_S:-2}" >"$scratch/warm-up" || {
    cat "$scratch/warm-up"
    fail "mixed failed while warming up"
}
await_descriptors "$descriptors_before"
[ "$growth_max_kib" = any ] || await_nothing_kept
resident_after_kib=$(resident_kib)
device_before_bytes=$(device_bytes)

for _ in 1 2 3; do
    resident_before_kib=$resident_after_kib
    "$mixed" --port "$port" "$@" || fail "mixed failed"
    await_idle
    await_descriptors "$descriptors_before"
    [ "$growth_max_kib" = any ] || await_nothing_kept
    resident_after_kib=$(resident_kib)
    growth_kib=$((resident_after_kib - resident_before_kib))
    if [ "$growth_max_kib" = any ] || [ "$growth_kib" -le "$growth_max_kib" ]; then
        break
    fi
done
descriptors_after=$(descriptors)
printf '%-36s %12d\n%-36s %12d\n' \
    "resident before, KiB" "$resident_before_kib" "grown by, KiB" "$growth_kib"
printf '%-36s %5d to %3d\n' "descriptors" "$descriptors_before" "$descriptors_after"
printf '%-36s %12d\n' "device memory grown by, bytes" "$(($(device_bytes) - device_before_bytes))"
printf '%-36s %12d\n' "given up or left, by its metrics" "$(metric cancelled_total)"

kill "$server"
exit_status=0
wait "$server" || exit_status=$?
server=
[ "$exit_status" -eq 0 ] || fail "the server ended with $exit_status on SIGTERM, expected 0"
[ "$descriptors_after" -le "$descriptors_before" ] || fail "descriptors leaked"
[ "$growth_max_kib" = any ] || [ "$growth_kib" -le "$growth_max_kib" ] ||
    fail "resident memory grew by $growth_kib KiB, expected at most $growth_max_kib"
