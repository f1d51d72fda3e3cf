#!/bin/sh
# Runs the commands of docs/load-testing.md for a short time. All replies must be 200. Skips Locust and perf_analyzer if
# they cannot be fetched.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"
: "${STEADY:?the path of steady}"
make_venv locust || :
"$here/../../bench/load/perf_analyzer.sh" --version || :
ln -s "$here/../../bench" "$here/../../build" "$scratch"

awk '/^## / { is_inside = /running service$/ } /^```/ { is_sh = /sh$/; next } is_inside && is_sh { printf sub(/\\$/, "") ? "%s" : "%s\n", $0 }' \
    "$here/../../docs/load-testing.md" >"$scratch/recipes"

counts() {
    curl -sS --max-time 60 "$url/metrics" | grep -E 'matmuld_http_requests_total.*route="/v(1/matmul|2/models/\{name\}/infer)"' | sort
}

# On a busy machine products take longer, and the server would reject requests that wait too long.
start --queue-wait-ms 900000
while read -r recipe; do
    tool=${recipe%% *} expected=200
    case $recipe in
    *8080*) ;;
    *) expected= ;;
    esac
    case $recipe in
    FORM=v2*) tool=build/locust/bin/locust ;;
    bench/load/perf_analyzer.sh*) [ -e "$here/../../build/perf_analyzer/fetched" ] || continue ;;
    bench/load/steady.py*) tool=$STEADY ;;
    hey*) like "the type that hey names, by default text/html" '* -T application/octet-stream *' "$recipe" ;;
    k6*) continue ;;
    esac
    (cd "$scratch" && command -v "$tool" >/dev/null) || { echo "not run, since it is not installed: $tool" && continue; }
    echo "$recipe" | sed -E "s|127.0.0.1:8080|${url#http://}|; s|--port 8080|--port ${url##*:}|; s/10s -H/3s -H/; s/10s/1s/; s/count 500/count 50/
        s/512|1024|4096/64/g" >"$scratch/recipe"
    counts >"$scratch/before"
    (cd "$scratch" && sh recipe >output 2>&1 </dev/null) || fail "$recipe: $(cat "$scratch/output")"
    counts >"$scratch/after"
    # Status 499 counts clients that left. Load tools do not wait for their last replies.
    same "$recipe: statuses" "$expected" "$(comm -13 "$scratch/before" "$scratch/after" | sed 's/.*code="\([0-9]*\).*/\1/' | grep -vx 499 | paste -sd ' ')"
done <"$scratch/recipes"
stop
finish
