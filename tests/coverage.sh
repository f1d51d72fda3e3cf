#!/bin/sh
# Counts which lines of gpu/, api/ and server/ run in the unit tests, the HTTP tests and the fuzz corpora, on
# the CPU backend. ./dev coverage is the way to call this.
# Usage: coverage.sh JOBS, in the top folder, with the preset coverage built. It fails where a test does, or where
# less of api/ runs than it says below.
set -eu

api_percent=95

build=build/coverage
counts=$build/coverage.json

# A child that is killed writes no counts. Every other process adds its counts to the files.
find "$build" -name '*.gcda' -delete
code=0
ctest --preset coverage --parallel "$1" --tests-regex '^(unit|http|fuzz)/' || code=$?

gcovr --root . --object-directory "$build" --gcov-executable gcov --filter '(gpu|api|server)/' \
    --json "$counts"
mkdir -p "$build/report"
gcovr --root . --add-tracefile "$counts" --html-details "$build/report/index.html" --txt "$build/report/report.txt"
for folder in api gpu server; do
    gcovr --root . --add-tracefile "$counts" --filter "$folder/" --txt |
        sed '/^ *GCC Code/d; /^Directory/d; /^-*$/d; /^=*$/d'
done
gcovr --root . --add-tracefile "$counts" --filter api/ --fail-under-line "$api_percent" --txt >"$build/report/api.txt" || {
    echo "Less than $api_percent % of the lines of api/ ran: see above" >&2
    code=1
}
echo "Line by line: $build/report/index.html"
[ "$code" -eq 0 ] || echo "Some tests failed: see above" >&2
exit "$code"
