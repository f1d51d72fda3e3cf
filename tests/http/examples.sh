#!/bin/sh
# Runs every curl command of the documents, which must get status 2xx or the status in a comment (# 404), and
# the programs in examples/. Skips blocks after a line that ends in "a GPU:". Usage: examples.sh DOCUMENT…
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

# Writes each shell block with a curl command to a file. The file's name has the document and the line.
awk -v to="$scratch" '
    FNR == 1 { is_inside = 0; before = ""; document = FILENAME; sub(".*/", "", document) }
    /^```sh$/ && !is_inside { is_inside = 1; name = sprintf("%s/block.%s:%04d", to, document, FNR); text = ""; next }
    /^```$/ && is_inside { is_inside = 0; if (text ~ /curl / && before !~ /a GPU:$/) printf "%s", text >name; next }
    is_inside { text = text $0 "\n"; next }
    NF > 0 { before = $0 }' "$@"

# answers BLOCK: runs a block and prints the statuses. Makes products of 512³ and 1024³ smaller.
answers() {
    sed -e "s|http://127.0.0.1:8080|$url|g" -e "s|curl -sS|curl -w '%{stderr}%{http_code}\\\\n' -sS|" \
        -e 's/"\([mkn]\)": \(512\|1024\)/"\1": 128/g' "$1" >"$scratch/block.sh"
    (cd "$scratch" && sh block.sh 2>&1 >reply) | grep -x '[0-9][0-9][0-9]' | tr '\n' ' '
}

# Limits are long, because a busy machine is slow and would reject products that take too long.
start --watchdog-ms 2000000 --max-kernel-ms 900000 --timeout-ms 600000
for block in "$scratch"/block.*:????; do
    # Skips blocks that need NumPy if the python3 on PATH does not have it.
    if grep -q numpy "$block" && ! python3 -c 'import numpy' 2>/dev/null; then
        continue
    fi
    place=${block##*/block.}
    expected=$(grep -o '# [0-9][0-9][0-9]' "$block" | tr -d '#\n') || :
    got=$(answers "$block") || :
    case $expected in
    '') same "$place: statuses" "$(echo "$got" | sed 's/[0-9][0-9][0-9]/2xx/g')" "$(echo "$got" | sed 's/2[0-9][0-9]/2xx/g')" ;;
    *) same "$place: statuses" "${expected# } " "$got" ;;
    esac
    same "$place: curls that were answered" "$(grep -c 'curl ' "$block")" "$(echo "$got" | wc -w | tr -d ' ')"
done
examples=$(dirname "$0")/../../examples
like "pagerank.sh" '*page 3 0.3183*' "$(sh "$examples/pagerank.sh" "$url")"
if python3 -c 'import numpy' 2>/dev/null; then
    like "pagerank.py" 'after * steps, the sum of all being 1.0000*' "$(python3 "$examples/pagerank.py" 300 "$url")"
fi
stop
finish
