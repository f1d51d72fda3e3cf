#!/bin/sh
# Starts a matmuld on a free port, loads it by mixed.py, and looks at the process: after the load it holds the memory
# and the descriptors of before, by its own metrics no job and no byte of the budget, and a SIGTERM ends it with 0
# (under a sanitizer: no leak, no race). Needs /proc.
# Usage: soak.sh MATMULD [options of mixed.py]. The long run, for which ./dev bench trust --rows soak has faults as well:
#   SOAK_WARM_UP_S=60 sh tests/load/soak.sh build/cpu-only/server/matmuld --clients 100 --seconds 3600 --leave 10
# SOAK_WARM_UP_S: seconds of load before memory is looked at the first time, 2.
# SOAK_GROWTH_MAX_KIB: what resident memory may grow by from then on; "any" for a sanitizer's process.
#   The default is 16384, the arena for small pieces: its pages are taken as they are first lent, and stay.
#   A load that grows it by more is repeated, three times at most: only a leak grows it by as much each time.
# SOAK_SERVER_OPTIONS: more options of matmuld, as words.
set -eu

matmuld=$1
mixed=$(dirname "$0")/mixed.py
shift
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

# await WHAT COMMAND…: until the command succeeds, for a minute.
await() {
    what=$1
    shift
    tries=600
    until "$@"; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || fail "after a minute: $what"
        sleep 0.1
    done
}

is_ready() {
    kill -0 "$server" 2>/dev/null || fail "the server ended before it was ready"
    grep -q ' ready$' "$scratch/log"
}

resident_kib() {
    sed -n 's/^VmRSS:[^0-9]*\([0-9]*\) kB$/\1/p' "/proc/$server/status"
}

descriptors() {
    find "/proc/$server/fd" -mindepth 1 | wc -l
}

has_its_descriptors() {
    [ "$(descriptors)" -le "$descriptors_before" ]
}

# metric PATTERN: the sum over all of the labels that match; "none" if nothing matches.
metric() {
    curl -fs --noproxy '*' "http://127.0.0.1:$port/metrics" |
        awk -v name="$1" '$1 ~ "^matmuld_" name { sum += $2; found++ } END { printf found ? "%.0f" : "none", sum }'
}

is_zero() {
    [ "$(metric "$1")" = 0 ]
}

# Of the GPUs; 0 where there is none.
device_bytes() {
    metric 'device_memory_bytes.*cuda.*used' | sed 's/^none$/0/'
}

# Nothing is held once no client is left: the sweep and a kernel may take a moment. Memory for bodies and results is
# kept for ten seconds.
await_idle() {
    await "descriptors leaked" has_its_descriptors
    for gauge in 'queue_jobs$' queue_bytes 'staging_bytes.*used'; do
        await "matmuld_$gauge is not 0" is_zero "$gauge"
    done
    [ "$growth_max_kib" = any ] || await "memory is still kept" is_zero 'staging_bytes.*kept'
}

# With one arena and fixed thresholds, glibc gives back what is freed, so that resident memory tells
# what is held. Without them it varies by 20 MiB from one second to the next.
: >"$scratch/log"
# The options are words to be split.
# shellcheck disable=SC2086
MALLOC_ARENA_MAX=1 MALLOC_TRIM_THRESHOLD_=65536 MALLOC_MMAP_THRESHOLD_=65536 \
    "$matmuld" --port 0 --log-format text ${SOAK_SERVER_OPTIONS:-} 2>"$scratch/log" &
server=$!
await "the server is not ready" is_ready
port=$(sed -n 's|.*listening on http://.*:\([0-9]*\)$|\1|p' "$scratch/log")
descriptors_before=$(descriptors)

# What is allocated once is allocated now.
python3 "$mixed" --port "$port" "$@" --seconds "${SOAK_WARM_UP_S:-2}" >"$scratch/warm-up" || {
    cat "$scratch/warm-up"
    fail "mixed failed while warming up"
}
await_idle
resident_after_kib=$(resident_kib)
device_before_bytes=$(device_bytes)

for _ in 1 2 3; do
    resident_before_kib=$resident_after_kib
    python3 "$mixed" --port "$port" "$@" || fail "mixed failed"
    await_idle
    resident_after_kib=$(resident_kib)
    growth_kib=$((resident_after_kib - resident_before_kib))
    if [ "$growth_max_kib" = any ] || [ "$growth_kib" -le "$growth_max_kib" ]; then
        break
    fi
done
printf '%-36s %12d\n%-36s %12d\n' \
    "resident before, KiB" "$resident_before_kib" "grown by, KiB" "$growth_kib"
printf '%-36s %5d to %3d\n' "descriptors" "$descriptors_before" "$(descriptors)"
printf '%-36s %12d\n' "device memory grown by, bytes" "$(($(device_bytes) - device_before_bytes))"
printf '%-36s %12d\n' "given up or left, by its metrics" "$(metric cancelled_total)"

kill "$server"
exit_status=0
wait "$server" || exit_status=$?
server=
[ "$exit_status" -eq 0 ] || fail "the server ended with $exit_status on SIGTERM, expected 0"
[ "$growth_max_kib" = any ] || [ "$growth_kib" -le "$growth_max_kib" ] ||
    fail "resident memory grew by $growth_kib KiB, expected at most $growth_max_kib"
