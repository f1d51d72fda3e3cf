#!/bin/sh
# What takes hours and finds what ./dev test may not: clang-tidy, every place where memory may run out, valgrind,
# fuzzing, and an hour of mixed load with faults. ./dev nightly is the way to call this. It runs all parts, and fails
# if one did.
set -u

cd "$(dirname "$0")/.." || exit
logs=build/nightly
mkdir -p "$logs"
failed=

# part NAME COMMAND…
part() {
    name=$1
    shift
    if "$@" >"$logs/$name.log" 2>&1; then result=ok; else result=FAILED failed="$failed $name"; fi
    printf '%-8s %-7s %s\n' "$name" "$result" "$(tail -n 1 "$logs/$name.log")"
}

part lint ./dev lint
for preset in cpu-only asan; do
    part "malloc-$preset" env MALLOC_MOST=0 ./dev test --preset "$preset" -- -R faults/malloc
done
part valgrind ./dev test --preset valgrind
part attacks python3 tests/load/attacks.py build/cpu-only/server/matmuld --require 99
part fuzz ./dev fuzz --total 1800
part soak sh tests/load/soak.sh build/cpu-only/tests/http/faulty --backend cpu --faults 1 --leave 10 --clients 100 --seconds 3600
[ -z "$failed" ] || echo "failed:$failed; the logs are in $logs"
[ -z "$failed" ]
