#!/bin/sh
# Compares the options and tables of variants in docs/ with the program. Checks the chart, links and curl
# commands.
# Usage: docs.sh MATMULD LIST_VARIANTS, in the top folder.
# shellcheck disable=SC2016
set -eu

matmuld=$1
list_variants=$2
failed=0
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() {
    echo "$*"
    failed=$((failed + 1))
}

# block FILE NAME: prints the lines from the comment NAME to the next comment end.
block() {
    sed -n "/^<!-- $2 -->\$/,/^<!-- end -->\$/p" "$1"
}

compare() {
    diff -u "$scratch/document" "$scratch/program" || fail "^ $1 (-) and the program (+) differ in $2"
}

block docs/operations.md options | sed -n '/^```$/,/^```$/p' | grep -v '^```$' >"$scratch/document" || :
"$matmuld" --help >"$scratch/program"
compare docs/operations.md "the options"

"$list_variants" >"$scratch/variants"
cut -d '|' -f 1 "$scratch/variants" | sort -u >"$scratch/tables"
while read -r op backend; do
    # Rows of the document have the form: | `name` | summary | figures | ...
    block docs/kernels.md "$op $backend" | sed -n 's/^| `\([^`]*\)` | \([^|]*\) |.*/\1|\2/p' >"$scratch/document"
    sed -n "s/^$op $backend|//p" "$scratch/variants" >"$scratch/all"
    cut -d '|' -f 1 "$scratch/document" >"$scratch/names"
    awk -F '|' 'NR == FNR { told[$1] = 1; next } $1 in told' "$scratch/names" "$scratch/all" >"$scratch/program"
    awk -F '|' 'NR == FNR { told[$1] = 1; next } !($1 in told) { print "not in docs/kernels.md yet: " $1 }' \
        "$scratch/names" "$scratch/all"
    compare docs/kernels.md "the variants of $op on $backend"
done <"$scratch/tables"

if command -v python3 >/dev/null; then
    python3 docs/ladder.py docs/figures/kernels-h200-2026-11-23.csv | cmp - docs/ladder.svg ||
        fail "docs/ladder.svg is not what docs/ladder.py draws"
    python3 tests/build/links.py ./*.md docs/*.md docs/lessons/*.md clients/python/README.md deploy/*/README.md || fail "^ links that lead nowhere"
else
    echo "Python is not installed: pictures and links are not checked"
fi

if grep -nE '(^|[|(] *)curl ' README.md docs/*.md docs/lessons/*.md deploy/*/README.md | grep -v -e '-sS --fail-with-body'; then
    fail "^ a curl that hides an error's body"
fi

echo "$failed failures"
[ "$failed" -eq 0 ]
