#!/bin/sh
# What the benches of the service write has the form that people and programs rely on. It says nothing of how fast
# anything is. Usage: check.sh BUILD_FOLDER, in the top folder.
set -eu

build=$1
failed=0
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() {
    echo "$*"
    failed=$((failed + 1))
}

# bench NAME ARGUMENT…: into $scratch/NAME.md and .csv.
bench() {
    name=$1
    shift
    sh "tests/load/bench/$name.sh" "$build" --into "$scratch/$name" "$@" >"$scratch/$name.shown" 2>"$scratch/$name.told" || {
        cat "$scratch/$name.shown" "$scratch/$name.told"
        fail "bench $name $* fails"
        return 0
    }
    for form in md csv; do
        mv "$scratch/$name/$name"-20*."$form" "$scratch/$name.$form"
    done
    cmp -s "$scratch/$name.md" "$scratch/$name.shown" || fail "bench $name: what is shown is not what is kept"
    [ "$(judge "$name" "$scratch/$name.md" "$scratch/$name.csv")" = "" ] || fail "$(judge "$name" "$scratch/$name.md" "$scratch/$name.csv")"
}

# judge NAME MARKDOWN CSV: a line for each thing that is wrong.
judge() {
    # The backquotes are Markdown's.
    # shellcheck disable=SC2016
    for line in 'date: 20..-..-..T..:..:..Z' 'command: `./dev bench .*`' 'commit: .' 'machine: .' 'processors: [1-9]' \
        'memory: [0-9]' 'GPU: .' 'kernel: Linux' 'libmicrohttpd: [0-9]' 'rounds: [1-9]'; do
        grep -q "^- $line" "$2" || echo "bench $1: the Markdown has no line '- $line'"
    done
    # Seven columns each; what is measured has a unit or none, what was compared has a ratio between those of its rounds.
    awk -F ' *[|] *' -v bench="$1" '
        function plain(text) { gsub(/,/, "", text); return text + 0 }
        /^[|]/ && !/^[|]-/ && !/^[|] what / {
            rows++
            split($7, span, " – ")
            number = "^-?[0-9][0-9,]*([.][0-9]+)?( (/s|ms|µs|MiB|GB/s|MB/s))?$"
            if (NF != 9 || $2 == "" || $3 !~ /^((≥|≤) [0-9.]+.*)?$/ || ($4 != "" && $4 !~ number) ||
                ($5 != "" && $5 !~ number) || $8 == "")
                print "bench " bench ": this row has not the form: " $0
            if ($6 != "" && (plain($6) < plain(span[1]) * 0.99 || plain($6) > plain(span[2]) * 1.01 || $7 == ""))
                print "bench " bench ": the ratio is not among its rounds: " $0
            if (($6 != "" && $3 != "" && $8 !~ /^(yes|no)$/) || ($4 == "" && $8 ~ /^(yes|no|–)$/))
                print "bench " bench ": the verdict does not go with the figures: " $0
        }
        END { if (rows == 0) print "bench " bench ": there are no rows" }' "$2"
    # The CSV tells the same rows.
    sed -n '/^| what /d; /^|-/d; s/^| \(.*\) |$/\1/p' "$2" | sed 's/ *| */","/g' >"$scratch/of_markdown"
    sed '1d; s/^"[a-z]*","//; s/","[^"]*","[^"]*"$//' "$3" >"$scratch/of_csv"
    cmp -s "$scratch/of_markdown" "$scratch/of_csv" || echo "bench $1: the Markdown and the CSV differ"
}

# measured NAME WHAT: a row that is there with a figure.
measured() {
    grep -q "^| $2.* | [0-9-][^|]* |" "$scratch/$1.md" || fail "bench $1 measured no '$2': $(cat "$scratch/$1.md" "$scratch/$1.told")"
}

# damaged NAME FORM SED: the judge must see what sed did to it.
damaged() {
    cp "$scratch/$1.md" "$scratch/damaged.md"
    cp "$scratch/$1.csv" "$scratch/damaged.csv"
    sed "$3" "$scratch/$1.$2" >"$scratch/damaged.$2"
    [ -n "$(judge "$1" "$scratch/damaged.md" "$scratch/damaged.csv")" ] || fail "the judge sees nothing where sed '$3' was done"
}

bench wire --quick
for what in '4×4 raw, 64 connections; beside: libmicrohttpd, suspend' '4×4 raw, 64 connections; beside: .*handler' \
    'the same, processor time' '4×4 raw, one connection, p50' '4×4 raw, one connection, p99' '0.125 MiB in, 0.0625 MiB out (128³, blas)' \
    'the same, four at once' 'the same by a form' '0.508 MiB in' '0.0312 MiB in' 'resident at most' 'copies of a raw body' 'the socket accepts' 'ready'; do
    measured wire "$what"
done
damaged wire md '/^- machine/d'
damaged wire md '0,/ ms | / s// ms | fast /'
damaged wire md 's/| \(yes\|no\) |$/| |/'
damaged wire csv '2d'

bench gpu --dry --no-peers --rows wire,64,4096,json64
for what in 'socket loop, one stream' '2, raw, 32 connections' '2, raw, 32 connections, p50' \
    '128, raw, one connection, p50; beside: socket loop' '4, JSON'; do
    measured gpu "$what"
done

# What a rehearsal of the trust rows can tell of the service itself must hold, times and rates aside. Other tests hold
# the other rows.
bench trust --dry --rows overload,sigterm,kill,memory,tls
for what in 'overload: .* answered otherwise' 'SIGTERM .* neither' 'SIGTERM .* exit statuses' 'kill -9 .* failed' \
    'address space .* otherwise' 'address space .* ends'; do
    measured trust "$what"
    grep -q "^| $what.* | yes |\$" "$scratch/trust.md" || fail "bench trust: this does not hold: $(grep "^| $what" "$scratch/trust.md")"
done
if grep -q 'TLS: a .*not measured' "$scratch/trust.md" || ! grep -q '^| tls\|TLS: ' "$scratch/trust.md"; then
    fail "bench trust measured nothing by TLS: $(grep -i tls "$scratch/trust.md")"
fi

# The client sees a reply that is no product, and one of another length.
"$build/tests/load/sockets" 127.0.0.1 1 4096 64 >"$scratch/sockets" &
floor=$!
trap 'kill "$floor" 2>/dev/null || :; rm -rf "$scratch"' EXIT
until [ -s "$scratch/sockets" ]; do
    kill -0 "$floor"
    sleep 0.02
done
for seen in '4x4x4 element 0, 0 of the product is' '4x4x5 the reply.s body has 64 bytes, expected 80'; do
    ! "$build/tests/load/steady" --port "$(sed 's/.* //' "$scratch/sockets")" --shape "${seen%% *}" --requests 1 2>"$scratch/told" ||
        fail "steady takes for the product what is none"
    grep -q "^steady: ${seen#* }" "$scratch/told" || fail "expected to be told '${seen#* }', got: $(cat "$scratch/told")"
done

# With nothing to lay a link with, that is told and no failure.
mkdir "$scratch/tools"
printf '#!/bin/sh\necho 1000\n' >"$scratch/tools/id"
chmod +x "$scratch/tools/id"
PATH=$scratch/tools:$PATH bench remote
grep -q '^| all | ≥ 0.9 |  |  |  |  | this takes root |$' "$scratch/remote.md" ||
    fail "expected to be told that bench remote takes root, got: $(cat "$scratch/remote.md")"

# What a service that ends at once leaves is rows that say so.
mkdir -p "$scratch/broken/server" "$scratch/broken/tests"
ln -s "$(readlink -f "$build")/tests/load" "$scratch/broken/tests/load"
printf '#!/bin/sh\necho "no such device" >&2\nexit 1\n' >"$scratch/broken/server/matmuld"
chmod +x "$scratch/broken/server/matmuld"
(
    build=$scratch/broken
    bench gpu --rows 64 --no-peers
)
grep -q '^| all |.* matmuld did not start: no such device' "$scratch/gpu.md" ||
    fail "expected to be told that matmuld did not start, got: $(cat "$scratch/gpu.md")"

echo "$failed failures"
[ "$failed" -eq 0 ]
