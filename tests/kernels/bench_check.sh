#!/bin/sh
# What ./dev bench kernels writes has the form that people and programs rely on, and both files tell the same. It
# says nothing of how fast anything is. Usage: bench_check.sh BUILD_FOLDER, in the top folder.
set -eu

build=$1
failed=0
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() {
    echo "$*"
    failed=$((failed + 1))
}

# bench ARGUMENT…: into $scratch/report.md and .csv, on the CPU.
bench() {
    rm -rf "$scratch/made"
    sh tests/kernels/bench.sh "$build" --backend cpu --into "$scratch/made" "$@" >"$scratch/shown" 2>"$scratch/told" ||
        { cat "$scratch/shown" "$scratch/told" && fail "bench kernels $* fails" && return 0; }
    for form in md csv; do
        mv "$scratch"/made/kernels-20*."$form" "$scratch/report.$form"
    done
}

# Either's rows as: m k n backend variant tile repeats, min, median and max, and of products both errors. What is
# not there is a dash.
rows_of_markdown() {
    awk -F ' *[|] *' '
        /^## A / { split($0, edge, /[^0-9]+/); shape = edge[2] " " edge[3] " " edge[5] }
        /^[|] cpu / { print shape, $2, $3, ($4 == "" ? "-" : $4), $8, $5, $6, $7, $11, $12 }' "$1"
}

rows_of_csv() {
    awk -F , '
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        {
            print $at["m"], $at["k"], $at["n"], $at["backend"], $at["variant"], ($at["tile"] == "" ? "-" : $at["tile"]),
                $at["repeats"], $at["min_ms"], $at["median_ms"], $at["max_ms"], $at["relative_error"], $at["max_error"]
        }' "$1"
}

# judge MARKDOWN CSV: a line for each thing that is wrong.
judge() {
    # The backquotes are Markdown's.
    # shellcheck disable=SC2016
    for line in 'date: 20..-..-..T..:..:..Z' 'command: `./dev bench kernels .*`' 'commit: .' 'processors: [1-9]' \
        'driver: .' 'SM clock at most: .' 'memory clock at most: .' 'power limit: .' 'cpu: .'; do
        grep -q "^- $line" "$1" || echo "the Markdown has no line '- $line'"
    done
    rows_of_markdown "$1" >"$scratch/rows.md"
    rows_of_csv "$2" >"$scratch/rows.csv"
    # The Markdown has four digits behind the point, the CSV six.
    paste -d ' ' "$scratch/rows.md" "$scratch/rows.csv" | awk '
        {
            differs = NF != 24 # twelve of either
            for (i = 1; i <= 12; i++)
                differs = differs || (i < 8 || i > 10 ? $i != $(i + 12) : ($i - $(i + 12)) ^ 2 > 1.1e-4 ^ 2)
            if (differs)
                print "the Markdown and the CSV differ: " $0
        }
        END { if (NR == 0) print "there are no rows" }'
    awk -F , -v date="$(sed -n 's/^- date: //p' "$1")" '
        BEGIN {
            always = split("m k n repeats min_ms median_ms max_ms gflops", number, " ")
            numbers = always + split("tile percent_of_blas threads_per_block registers_per_thread " \
                "static_shared_bytes dynamic_shared_bytes local_bytes blocks_per_multiprocessor " \
                "sm_clock_mhz memory_clock_mhz power_limit_w", perhaps, " ")
            for (i = always + 1; i <= numbers; i++)
                number[i] = perhaps[i - always]
        }
        { gsub(/"[^"]*"/, "text") }
        NR == 1 {
            columns = NF
            for (i = 1; i <= NF; i++)
                at[$i] = i
            for (i = 1; i <= numbers; i++)
                if (!(number[i] in at))
                    print "the CSV has no column " number[i]
            next
        }
        NF != columns { print "line " NR " of the CSV has " NF " columns, not " columns }
        {
            for (i = 1; i <= numbers; i++) {
                value = $at[number[i]]
                if (value !~ /^[0-9]+([.][0-9]+)?$/ && (i <= always || value != ""))
                    print "line " NR " of the CSV: " number[i] " is no number: " value
            }
            errors = $at["max_error"] " " $at["relative_error"]
            if (errors !~ /^[0-9.]+(e-[0-9]+)? [0-9.]+(e-[0-9]+)?$/ || $at["max_error"] > 1 || $at["relative_error"] > 1e-6)
                print "line " NR " of the CSV is not right: its errors are " errors
            low = $at["min_ms"]
            middle = $at["median_ms"]
            flops = 2 * $at["m"] * $at["k"] * $at["n"]
            rate = middle * 1e6 * $at["gflops"]
            if (low > middle || middle > $at["max_ms"] || rate < 0.99 * flops || rate > 1.01 * flops)
                print "line " NR " of the CSV does not add up: " $0
            if ($at["op"] != "matmul" || $at["status"] != "ok" || $at["date"] != date)
                print "line " NR " of the CSV: expected matmul, ok and " date ", got: " $0
        }' "$2"
}

# damaged FILE SED: the judge must see what sed did to the md or the csv.
damaged() {
    cp "$scratch/report.md" "$scratch/report.csv" "$scratch/damage/"
    sed "$2" "$scratch/report.$1" >"$scratch/damage/report.$1"
    [ -n "$(judge "$scratch/damage/report.md" "$scratch/damage/report.csv")" ] ||
        fail "the judge sees nothing where sed '$2' was done to the $1"
}

bench 33 17 29 --repeats 3
judge "$scratch/report.md" "$scratch/report.csv" >"$scratch/wrong"
[ ! -s "$scratch/wrong" ] || fail "$(cat "$scratch/wrong")"
cmp -s "$scratch/report.md" "$scratch/shown" || fail "what is shown is not what is kept"
"$build/tests/kernels/kernels" --list --backend cpu | sed -n '/; missing: /d; s/^  matmul \([a-z0-9_]*\): .*/\1/p' >"$scratch/names"
rows_of_csv "$scratch/report.csv" | cut -d ' ' -f 1-5,7 >"$scratch/timed"
sed 's/.*/33 17 29 cpu & 3/' "$scratch/names" | cmp -s - "$scratch/timed" ||
    fail "expected 3 repeats of all of: $(cat "$scratch/names"), got: $(cat "$scratch/timed")"

mkdir "$scratch/damage"
damaged md '/^| cpu | naive /d'
damaged md 's/^- date: .*//'
damaged md '/^- power limit/d'
damaged md '/^| cpu | naive /s/ 3 / 4 /'
damaged csv 7d
damaged csv '1d'
damaged csv '2s/,cpu,naive,/,cpu,navie,/'
damaged csv '2s/,ok,3,[0-9.]*,/,ok,3,fast,/'
damaged csv '2s/,33,17,29,/,33,17,30,/'
damaged csv '2s/,[^,]*$//'
damaged csv '2s/,[^,]*e-0[0-9],/,2e-06,/'
damaged csv '2s/,[^,]*e-0[0-9],/,,/'
damaged csv '3s/,20[^,]*Z,/,now,/'

# What the driver's tool says stands in both, by a made-up tool that knows all but one thing.
mkdir "$scratch/tools"
cat >"$scratch/tools/nvidia-smi" <<'END'
#!/bin/sh
case $*/$CUDA_DEVICE_ORDER in
"--id=3 --query-gpu=driver_version --format=csv,noheader,nounits/PCI_BUS_ID") echo 580.65.06 ;;
*=clocks.sm*) echo 345 ;;
*=clocks.max.sm*) echo 1980 ;;
*=clocks.mem*) echo 3201 ;;
*=clocks.max.mem*) echo '[N/A]' ;;
*=power.limit*) echo 700.00 ;;
*=power.draw,clocks.sm*)
    printf '120.00, 1980\n690.00, 1500\n650.00, 1600\n629.00, 1400\n[N/A], 1\n700.00, 1450\n'
    exec sleep 60
    ;;
*) echo "nvidia-smi: got $*" >&2 && exit 1 ;;
esac
END
chmod +x "$scratch/tools/nvidia-smi"
(
    export PATH="$scratch/tools:$PATH" CUDA_VISIBLE_DEVICES=3,1
    bench 8 8 8 --repeats 1
)
grep -qx 'GPU, asked every 100 ms: at most 700 W; in the 3 samples of 90% of that and more an SM clock of 1500 MHz (median; 1450 to 1600)' \
    "$scratch/report.md" || fail "what the GPU drew is not told: $(cat "$scratch/report.md")"
for line in 'driver: 580.65.06' 'SM clock at the start: 345 MHz' 'SM clock at most: 1980 MHz' \
    'memory clock at the start: 3201 MHz' 'memory clock at most: not known' 'power limit: 700.00 W'; do
    grep -qxF -e "- $line" "$scratch/report.md" || fail "expected the line '$line', got: $(cat "$scratch/report.md")"
done
grep -q ',580.65.06,[^,]*,345,3201,700.00,' "$scratch/report.csv" || fail "the CSV does not tell of the GPU"

# Operands that are stored transposed are told in both.
bench 9 8 7 --repeats 1 --variant naive --transpose-b
grep -qx '## A 9×8 · B 8×7, B stored transposed' "$scratch/report.md" || fail "the Markdown does not tell of the transposed B"
grep -q '^matmul,float32,9,8,7,0,1,cpu,naive,' "$scratch/report.csv" || fail "the CSV does not tell of the transposed B"

# Each way of storing them is another product of the same numbers, and so has other errors.
: >"$scratch/errors"
for stored in '' --transpose-a --transpose-b '--transpose-a --transpose-b'; do
    # None, one or two words.
    # shellcheck disable=SC2086
    bench 33 17 29 --repeats 1 --variant naive $stored
    rows_of_csv "$scratch/report.csv" | cut -d ' ' -f 11-12 >>"$scratch/errors"
done
[ "$(sort -u "$scratch/errors" | grep -c .)" -eq 4 ] ||
    fail "expected the errors of four different products, got: $(cat "$scratch/errors")"

# Transpositions, against a plain copy.
bench --transpose int64 9 8 --repeats 1
grep -qx '## A 9×8 transposed, int64' "$scratch/report.md" || fail "the Markdown does not tell of the transposition"
[ "$(cut -d , -f 1-5,8,9 "$scratch/report.csv" | sed 1d | tr '\n' ' ')" = "transpose,int64,8,0,9,cpu,copy \
transpose,int64,8,0,9,cpu,naive transpose,int64,8,0,9,cpu,shared transpose,int64,8,0,9,cpu,auto " ] ||
    fail "expected copy, naive, shared and auto of 8×9 in int64, got: $(cat "$scratch/report.csv")"
awk -F , '
    NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    {
        moved = $at["gigabytes_per_second"] * $at["median_ms"] * 1e6
        if ($at["variant"] == "copy")
            copy = $at["median_ms"]
        if (moved < 0.98 * 2 * 72 * 8 || moved > 1.02 * 2 * 72 * 8 || $at["gflops"] != "")
            exit 1
        if ($at["percent_of_copy"] < 97 * copy / $at["median_ms"] || $at["percent_of_copy"] > 103 * copy / $at["median_ms"])
            exit 1
    }' "$scratch/report.csv" || fail "the rates do not add up: $(cat "$scratch/report.csv")"

# A row that has used its time is not repeated on and on.
bench 96 96 96 --variant naive --repeats 1000000 --seconds 1
read -r _ _ _ _ _ _ repeats min _ max _ <<END
$(rows_of_csv "$scratch/report.csv")
END
awk -v repeats="$repeats" -v min="$min" -v max="$max" 'BEGIN { exit !(repeats >= 1 && repeats * min <= 1000 + max) }' ||
    fail "expected about 1 s of repeats, got $repeats of $min to $max ms"

# wrong REMARK VARIANT ARGUMENT…: a row that is wrong on purpose is told to be, and makes the whole fail.
wrong() {
    remark=$1 variant=$2
    shift 2
    code=0
    "$build/tests/kernels/kernels" --backend cpu --broken --variant "$variant" --repeats 1 --csv "$scratch/csv" "$@" \
        >"$scratch/shown" || code=$?
    [ "$code" -eq 1 ] || fail "expected exit status 1 of $variant, got $code"
    grep -q "^| cpu | $variant | .* | $remark |\$" "$scratch/shown" || fail "$variant is not told wrong: $(cat "$scratch/shown")"
    grep -q ' 1 failures$' "$scratch/shown" || fail "$variant does not count as a failure: $(cat "$scratch/shown")"
    grep -q "^[a-z]*,.*,cpu,$variant,.*,wrong,1," "$scratch/csv" || fail "the CSV tells nothing of it: $(cat "$scratch/csv")"
}

wrong 'inf | inf | .* | wrong' unwritten_element --time 33 17 29
wrong '0[.]00[0-9]* | [0-9]* |  |  |  | wrong' narrow_operand --time 64 64 64 --transpose-a
wrong wrong unwritten_element --time 33 0 29 --transpose float64
! "$build/tests/kernels/kernels" --broken --time 8 8 8 2>/dev/null || fail "rows that write anywhere are timed"

echo "$failed failures"
[ "$failed" -eq 0 ]
