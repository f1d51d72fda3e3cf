#!/bin/sh
# Starts matmuld, loads it with mixed.py, and checks the process afterwards: memory and descriptors are as
# before, no job runs, the memory budget is unused, and SIGTERM ends the server with status 0. Needs /proc.
# Usage: soak.sh MATMULD [options of mixed.py]. For a long run:
#   SOAK_WARM_UP_S=60 sh tests/load/soak.sh build/cpu-only/server/matmuld --clients 100 --seconds 3600 --leave 10
# Variables:
#   SOAK_WARM_UP_S       seconds of load before the first look at memory, default 2
#   SOAK_GROWTH_MAX_KIB  KiB by which resident memory may grow afterwards, or "any". The default, 16384, is the
#                        size of an arena whose pages are allocated on first use and then kept.
#   SOAK_SERVER_OPTIONS  further options of matmuld
# If memory grows more, the load is repeated, because only a leak makes memory grow each time.
MATMULD=$1
shift
# shellcheck source=tests/http/server.sh
. "$(dirname "$0")/../http/server.sh"

growth_max_kib=${SOAK_GROWTH_MAX_KIB:-16384}

mixed() {
    checks=$((checks + 1))
    python3 "$(dirname "$0")/mixed.py" --port "${url##*:}" "$@" || fail "mixed failed"
}

resident_kib() {
    sed -n 's/^VmRSS:[^0-9]*\([0-9]*\) kB$/\1/p' "/proc/$server/status"
}

# total PATTERN: prints the sum of all matching series, or "none" if there is no such series.
total() {
    curl -fs "$url/metrics" |
        awk -v name="$1" '$1 ~ "^matmuld_" name { sum += $2; found++ } END { printf found ? "%.0f" : "none", sum }'
}

is_zero() {
    [ "$(total "$1")" = 0 ]
}

device_bytes() {
    total 'device_memory_bytes.*cuda.*used' | sed 's/^none$/0/'
}

# Without clients the server must soon use no memory. It keeps memory for reuse for ten seconds.
await_idle() {
    for name in $(curl -fs "$url/v1/matrices" | jq -r '.matrices[].name'); do
        curl -s -o /dev/null -X DELETE "$url/v1/matrices/$name"
    done
    same_descriptors "$descriptors_before"
    for gauge in 'queue_jobs$' queue_bytes 'store_bytes.*(stored|reserved|released)' 'staging_bytes.*used' 'staging_bytes.*kept'; do
        [ "$gauge:$growth_max_kib" != 'staging_bytes.*kept:any' ] || continue
        await 60 is_zero "$gauge" || fail "matmuld_$gauge is not 0"
    done
}

# With these settings glibc returns freed memory at once. Otherwise resident memory varies by 20 MiB.
export MALLOC_ARENA_MAX=1 MALLOC_TRIM_THRESHOLD_=65536 MALLOC_MMAP_THRESHOLD_=65536
# shellcheck disable=SC2086
start --log-format text ${SOAK_SERVER_OPTIONS:-}
unset MALLOC_ARENA_MAX MALLOC_TRIM_THRESHOLD_ MALLOC_MMAP_THRESHOLD_
descriptors_before=$(descriptors)

# The warm-up makes allocations that the server makes only once.
mixed "$@" --seconds "${SOAK_WARM_UP_S:-2}" >"$scratch/warm-up"
[ "$failures" -eq 0 ] || cat "$scratch/warm-up"
await_idle
resident_after_kib=$(resident_kib)
device_before_bytes=$(device_bytes)

for _ in 1 2 3; do
    resident_before_kib=$resident_after_kib
    mixed "$@"
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
printf '%-36s %12d\n' "given up or left, by its metrics" "$(total cancelled_total)"
[ "$growth_max_kib" = any ] || at_most "resident memory grew by KiB" "$growth_max_kib" "$growth_kib"
stop
[ "$failures" -eq 0 ] || tail -n 100 "$scratch/log"
finish
