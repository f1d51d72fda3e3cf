#!/bin/sh
# What ./dev bench accuracy writes has the form that people and programs rely on, both files tell the same, and its
# verdicts follow from its figures; and rows that are wrong on purpose are outside. It says nothing of how exact the
# variants are. Usage: accuracy_check.sh BUILD_FOLDER, in the top folder.
set -eu

build=$1
kernels=$build/tests/kernels/kernels
failed=0
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() {
    echo "$*"
    failed=$((failed + 1))
}

# Either's rows as: k variant, the three relative errors, the three errors of elements, the part of the bound, within.
# What is not there, or says nothing, is a dash.
rows_of_markdown() {
    awk -F ' *[|] *' '
        function shown(text) { return text ~ /^[0-9]/ ? text + 0 : "-" }
        /^## A / { split($0, edge, /[^0-9]+/); k = edge[3] }
        /^[|] / && $2 != "data" {
            sub(/ .*/, "", $3)
            printf "%s %s", k, $3
            for (i = 4; i <= 10; i++)
                printf " %s", shown($i)
            print " " ($11 == "yes" ? "yes" : $11 ~ /^[*][*]no[*][*]: ./ ? "no" : "-")
        }' "$1"
}

rows_of_csv() {
    awk -F , '
        function shown(text) { return text ~ /^[0-9]/ ? text + 0 : "-" }
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        {
            print $at["k"], $at["variant"], shown($at["relative_error"]), shown($at["blas_relative_error"]),
                shown($at["naive_relative_error"]), shown($at["element_error_u"]), shown($at["blas_element_error_u"]),
                shown($at["naive_element_error_u"]), shown($at["of_bound"]), ($at["within"] == "" ? "-" : $at["within"])
        }' "$1"
}

# judge MARKDOWN CSV: a line for each thing that is wrong.
judge() {
    # The backquotes are Markdown's.
    # shellcheck disable=SC2016
    for line in 'date: 20..-..-..T..:..:..Z' 'command: `./dev bench accuracy .*`' 'commit: .' 'machine: .' 'GPU: .' 'cpu: .' \
        'error: .' 'element error: .' 'within: .'; do
        grep -q "^- $line" "$1" || echo "the Markdown has no line '- $line'"
    done
    rows_of_markdown "$1" >"$scratch/rows.md"
    rows_of_csv "$2" >"$scratch/rows.csv"
    [ -s "$scratch/rows.csv" ] || echo "there are no rows"
    diff "$scratch/rows.md" "$scratch/rows.csv" | sed 's/^/the Markdown (<) and the CSV (>) differ: /'
    awk -F , -v last="$(tail -n 1 "$1")" '
        { gsub(/"[^"]*"/, "text") }
        NR == 1 {
            columns = NF
            for (i = 1; i <= NF; i++)
                at[$i] = i
            next
        }
        NF != columns { print "line " NR " of the CSV has " NF " columns, not " columns }
        $at["status"] == "unsupported" { unsupported++; next }
        {
            error = $at["relative_error"]
            naive = $at["naive_relative_error"]
            allowed = $at["relative_error_allowed"]
            outside = $at["elements_wrong"] > 0 || (error != "" && allowed != "" && error + 0 > allowed + 0)
            if ($at["within"] != (outside ? "no" : "yes"))
                print "line " NR " of the CSV: within is " $at["within"] ", which does not follow from its figures"
            if ($at["of_bound"] == "" || (($at["of_bound"] > 1) && $at["elements_wrong"] == 0))
                print "line " NR " of the CSV: its part of the bound is not what its elements say"
            expected = 1.5 * naive > 2.5e-7 ? 1.5 * naive : 2.5e-7
            judged = naive != "" && $at["elements"] >= 256
            if (judged != (allowed != "") || (judged && (allowed < 0.99 * expected || allowed > 1.01 * expected)))
                print "line " NR " of the CSV: allows " allowed " where naive has " naive
            if ($at["variant"] == "naive" && (error != naive || $at["element_error_u"] != $at["naive_element_error_u"]))
                print "line " NR " of the CSV: naive is not what stands beside the others"
            if ($at["variant"] == "blas" && error != $at["blas_relative_error"])
                print "line " NR " of the CSV: blas is not what stands beside the others"
            found += outside
        }
        END {
            words = NR - 1 " rows, " unsupported + 0 " of shapes that the variant does not do, " found + 0 " outside"
            if (last != words)
                print "the last line is not: " words
        }' "$2"
}

# bench ARGUMENT…: into $scratch/report.md and .csv, on the CPU; it judges them.
bench() {
    rm -rf "$scratch/made"
    sh tests/kernels/accuracy.sh "$build" --backend cpu --into "$scratch/made" "$@" >"$scratch/shown" 2>"$scratch/told" ||
        { cat "$scratch/shown" "$scratch/told" && fail "bench accuracy $* fails" && return 0; }
    for form in md csv; do
        mv "$scratch"/made/accuracy-20*."$form" "$scratch/report.$form"
    done
    cmp -s "$scratch/report.md" "$scratch/shown" || fail "what is shown is not what is kept"
    judge "$scratch/report.md" "$scratch/report.csv" >"$scratch/wrong"
    [ ! -s "$scratch/wrong" ] || fail "bench accuracy $*: $(cat "$scratch/wrong")"
}

# damaged FILE SED: the judge must see what sed did to the md or the csv.
damaged() {
    cp "$scratch/report.md" "$scratch/report.csv" "$scratch/damage/"
    sed "$2" "$scratch/report.$1" >"$scratch/damage/report.$1"
    [ -n "$(judge "$scratch/damage/report.md" "$scratch/damage/report.csv")" ] ||
        fail "the judge sees nothing where sed '$2' was done to the $1"
}

# The rehearsal has every family and variant at each k, and the plain loop is within everywhere.
bench --dry
families=$("$kernels" --accuracy --family '' 2>&1 | sed -n 's/.*takes one of: //p')
variants=$("$kernels" --list --backend cpu | sed -n '/; missing: /d; s/^  matmul \([a-z0-9_]*\): .*/\1/p')
for k in 65 1024; do
    for family in $families; do
        for variant in $variants; do
            echo "$family,17,$k,17,cpu,$variant"
        done
    done
done >"$scratch/expected"
cut -d , -f 1-4,6,7 "$scratch/report.csv" | sed 1d | diff "$scratch/expected" - || fail "these rows differ from all of them"
[ "$(echo "$families" | wc -w)" -ge 16 ] || fail "these families are too few: $families"
rows_of_csv "$scratch/report.csv" | grep ' naive ' | grep -v ' yes$' && fail "the plain loop is outside"
grep -q '^[|] NaN and Inf [|] naive [|] not finite [|]' "$scratch/report.md" || fail "the norm of NaN and Inf says something"

mkdir "$scratch/damage"
damaged md '/^| U(0,1) | naive /d'
damaged md 's/^- date: .*//'
damaged md 's/^- within: .*//'
damaged md '/^| U(0,1) | naive /s/ yes / **no**: it is not /'
damaged md '/^| U(0,1) | tiled_8 /s/ [0-9.]* | yes/ 0.5 | yes/'
damaged md 's/, 0 outside/, 1 outside/'
damaged csv 7d
damaged csv 1d
damaged csv '2s/,yes,/,no,/'
damaged csv '2s/,[^,]*$//'
damaged csv '2s/,ok,[^,]*,/,ok,1e-3,/'
damaged csv '3s/,2.5e-07,/,9.5e-07,/'
damaged csv '3s/,0,yes,/,1,yes,/'

# A C of few elements is not held against naive's.
bench --variant tiled_8 --family unit --family sparse --depths 9,70 --edge 15
[ "$(cut -d , -f 1,3,7 "$scratch/report.csv" | tr '\n' ' ')" = "data,k,variant unit,9,tiled_8 sparse,9,tiled_8 unit,70,tiled_8 sparse,70,tiled_8 " ] ||
    fail "expected tiled_8 on two families at two depths, got: $(cat "$scratch/report.csv")"
[ "$(awk -F , 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next } { print $at["relative_error_allowed"] }' "$scratch/report.csv" | tr -d '\n')" = '' ] ||
    fail "a norm of 225 elements is judged"

# outside VARIANT FAMILY K PATTERN: the row that is wrong on purpose is told so, and the plain loop beside it is not.
outside() {
    "$kernels" --backend cpu --accuracy --broken --variant "$1" --family "$2" --depths "$3" --edge 20 --csv "$scratch/csv" >"$scratch/shown" ||
        fail "$1 on $2 at $3 ends with $?"
    grep -q "^| .* | $1 | .* | $4 |\$" "$scratch/shown" || fail "$1 on $2 at $3 is not told: $(cat "$scratch/shown")"
    grep -q '^1 rows, 0 of shapes that the variant does not do, 1 outside$' "$scratch/shown" || fail "$1 does not count: $(cat "$scratch/shown")"
    grep -q "^$2,20,$3,20,[0-9]*,cpu,$1,.*,no,\"" "$scratch/csv" || fail "the CSV tells nothing of it: $(cat "$scratch/csv")"
}

# Each element keeps its bound, which is wide for this k, and the norm alone tells.
outside narrow_operand symmetric 4096 '[*][*]no[*][*]: error over [0-9.e-]*, by a norm that rests on [0-9.]* elements'
# Each of these is told by elements alone: the norm is not finite, or does not notice what is so small.
outside zero_skipped nonfinite 70 '[*][*]no[*][*]: [0-9]* of 400 elements'
outside flushed subnormals 70 '[*][*]no[*][*]: [0-9]* of 400 elements'
outside unwritten_element unit 64 '[*][*]no[*][*]: 1 of 400 elements'
# Both tell.
outside lost_last_slab unit 70 '[*][*]no[*][*]: 400 of 400 elements, error over .*'
outside lost_last_slab balanced 70 '[*][*]no[*][*]: 400 of 400 elements, error over .*'

# A shape that a variant does not do is no row that is outside.
"$kernels" --backend cpu --accuracy --broken --variant refused --family unit --depths 9 >"$scratch/shown" || fail "refused ends with $?"
grep -q '^1 rows, 1 of shapes that the variant does not do, 0 outside$' "$scratch/shown" || fail "refused counts: $(cat "$scratch/shown")"

# refused WORDS ARGUMENT…: the harness ends with 2 and says why.
refused() {
    words=$1
    shift
    code=0
    "$kernels" "$@" >"$scratch/shown" 2>&1 || code=$?
    [ "$code" -eq 2 ] || fail "kernels $*: exit status $code, expected 2"
    grep -qF -e "$words" "$scratch/shown" || fail "kernels $*: expected '$words', got: $(cat "$scratch/shown")"
}
refused 'one of: symmetric unit' --accuracy --family unity
refused 'a bad value: --depths' --accuracy --depths 64,,128
refused 'a bad value: --depths' --accuracy --depths 99999999999999999999
refused 'a bad value: --edge' --accuracy --edge 1025
refused 'go with --accuracy' --edge 8
refused 'checks, times and lists nothing' --accuracy --time 8 8 8
refused 'takes a --variant' --accuracy --broken
refused "no backend 'gpu'" --accuracy --backend gpu

echo "$failed failures"
[ "$failed" -eq 0 ]
