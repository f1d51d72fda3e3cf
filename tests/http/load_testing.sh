#!/bin/sh
# Runs the commands of docs/load-testing.md for a short time. All replies must be 200.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"
: "${STEADY:?the path of steady}"
ln -s "$here/../../bench" "$scratch/bench"

awk '/^## / { is_inside = /running service$/ } /^```/ { is_sh = /sh$/; next } is_inside && is_sh { printf sub(/\\$/, "") ? "%s" : "%s\n", $0 }' \
    "$here/../../docs/load-testing.md" >"$scratch/recipes"

counts() {
    curl -sS --max-time 60 "$url/metrics" | grep -F 'matmuld_http_requests_total{route="/v1/matmul"' | sort
}

# On a busy machine products take longer, and the server would reject requests that wait too long.
start --queue-wait-ms 900000
while read -r recipe; do
    tool=${recipe%% *} expected=200
    case $recipe in
    *'>body') expected= ;;
    bench/load/steady.py*) tool=$STEADY ;;
    hey*) like "the type that hey names, by default text/html" '* -T application/octet-stream *' "$recipe" ;;
    k6*) continue ;;
    esac
    command -v "$tool" >/dev/null || { echo "not run, since it is not installed: $tool" && continue; }
    echo "$recipe" | sed -E "s|http://127.0.0.1:8080|$url|; s|--port 8080|--port ${url##*:}|; s/10s/1s/
        s/512|1024|4096/64/g" >"$scratch/recipe"
    counts >"$scratch/before"
    (cd "$scratch" && sh recipe >output 2>&1 </dev/null) || fail "$recipe: $(cat "$scratch/output")"
    counts >"$scratch/after"
    # Status 499 counts clients that left. Load tools do not wait for their last replies.
    same "$recipe: statuses" "$expected" "$(comm -13 "$scratch/before" "$scratch/after" | sed 's/.*code="\([0-9]*\).*/\1/' | grep -vx 499 | paste -sd ' ')"
done <"$scratch/recipes"
stop
finish
