#!/bin/sh
# Counts which lines of gpu/, api/ and server/ run in the unit tests, the HTTP tests and the fuzz corpora, on
# the CPU backend. Fails if a test fails, or if too few lines of api/ run. ./dev coverage calls this script.
# Usage: coverage.sh JOBS, in the top folder, with the preset coverage built.
set -eu

api_percent=95

build=build/coverage
counts=$build/coverage.json

# Each process adds its counts to these files, so old counts must be deleted.
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
