#!/bin/sh
# Runs the checks that take hours: clang-tidy, a failure of every allocation, valgrind, fuzzing, and an hour of mixed
# load with faults. Runs all of them even if one fails, and then fails itself. ./dev nightly calls this script.
set -u

cd "$(dirname "$0")/.." || exit
logs=build/nightly
mkdir -p "$logs"
failed=

# part NAME COMMAND…: runs the command with its output in a log, and prints the result.
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
