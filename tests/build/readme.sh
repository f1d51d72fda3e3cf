#!/bin/sh
# The README's list of options is what --help prints, and its tables of variants have names and summaries of
# the program's own, in their order; one that is new may wait for its figures. Each stands between comments: <!-- options --> or <!-- matmul cpu --> … <!-- end -->.
# Usage: readme.sh MATMULD LIST_VARIANTS, in the top folder.
# The backquotes in the patterns below are Markdown's.
# shellcheck disable=SC2016
set -eu

matmuld=$1
list_variants=$2
failed=0
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# The lines between the comment NAME and the next end.
block() {
    sed -n "/^<!-- $1 -->\$/,/^<!-- end -->\$/p" README.md
}

# compare WHAT: README (-) against the program (+).
compare() {
    if ! diff -u "$scratch/readme" "$scratch/program"; then
        echo "^ README.md (-) and the program (+) differ in $1"
        failed=$((failed + 1))
    fi
}

block options | sed -n '/^```$/,/^```$/p' | grep -v '^```$' >"$scratch/readme" || :
"$matmuld" --help >"$scratch/program"
compare "the options"

"$list_variants" >"$scratch/variants"
cut -d '|' -f 1 "$scratch/variants" | sort -u >"$scratch/tables"
while read -r op backend; do
    # | `name` | summary | figures | ...
    block "$op $backend" | sed -n 's/^| `\([^`]*\)` | \([^|]*\) |.*/\1|\2/p' >"$scratch/readme"
    sed -n "s/^$op $backend|//p" "$scratch/variants" >"$scratch/all"
    cut -d '|' -f 1 "$scratch/readme" >"$scratch/names"
    awk -F '|' 'NR == FNR { told[$1] = 1; next } $1 in told' "$scratch/names" "$scratch/all" >"$scratch/program"
    awk -F '|' 'NR == FNR { told[$1] = 1; next } !($1 in told) { print "not in the README yet: " $1 }' \
        "$scratch/names" "$scratch/all"
    compare "the variants of $op on $backend"
done <"$scratch/tables"

echo "$failed failures"
[ "$failed" -eq 0 ]
