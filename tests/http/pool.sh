#!/bin/sh
# Tests that decoding and encoding of large bodies does not delay other clients.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

# post FILE QUERY [CURL ARGUMENT...]: posts the file. Writes $scratch/reply and $scratch/status.
post() {
    file=$1 query=$2
    shift 2
    curl -s --max-time 120 -o "$scratch/reply" -w '%{http_code}' -H 'Expect:' "$@" \
        --data-binary "@$file" "$url/v1/$query" >"$scratch/status" || :
}

is_status() {
    same "$1: status" "$2" "$(cat "$scratch/status")"
}

# answers_during STAGE FILE QUERY [CURL ARGUMENT...]: posts the file. Succeeds if /healthz was answered during
# this stage of the request, by the times in the log.
answers_during() {
    rm -f "$scratch/done"
    stage=$1 rounds=$((rounds + 1))
    shift
    (post "$@" -H "X-Request-Id: round-$rounds"; : >"$scratch/done") &
    until [ -f "$scratch/done" ]; do
        curl -s -o "$scratch/health" --max-time 60 "$url/healthz" || :
    done
    await 60 has_logged "\"request_id\":\"round-$rounds\"" || fail "no line for the request"
    jq -es --arg stage "$stage" --arg id "round-$rounds" '
        def at_ms: (.time[:19] + "Z" | fromdateiso8601) * 1000 + (.time[20:23] | tonumber);
        def span($stages): . as $line | $stages | map($line[. + "_ms"]) | add;
        ["receive", "decode", "queue", "upload", "kernel", "download", "encode"] as $stages
        | ($stages | index($stage)) as $at
        | (map(select(.request_id == $id))[0]
            | [at_ms - .send_ms - span($stages[$at:]), at_ms - .duration_ms + span($stages[:$at + 1])]) as [$from, $to]
        | any(.[]; .route == "/healthz" and at_ms > $from + 1 and at_ms < $to - 1)' "$scratch/log" >"$scratch/answered"
}

# answers WHAT STATUS STAGE FILE QUERY...: tries several times, because the machine may be busy.
rounds=0
answers() {
    what=$1 expected=$2
    shift 2
    for _ in $(seq 20); do
        answers_during "$@" && break
    done
    is_status "$what" "$expected"
    same "$what: /healthz was answered meanwhile" true "$(cat "$scratch/answered")"
}

raw='Content-Type: application/octet-stream'
json='Content-Type: application/json'

# glibc overwrites freed memory, so a later read gives wrong results.
export MALLOC_PERTURB_=165
# On one core the server's worker pool has only one thread.
first_core=$(taskset -cp $$ | sed 's/.*: \([0-9]*\).*/\1/')
printf '#!/bin/sh\nexec taskset -c %s "%s" "$@"\n' "$first_core" "$MATMULD" >"$scratch/on_one_core"
chmod +x "$scratch/on_one_core"
MATMULD="$scratch/on_one_core"
start --backend cpu --threads 1 --log-level debug

# An outer product has a short kernel and a long reply.
side=2000
"$FLOAT32" fill $((2 * side)) 1 >"$scratch/outer"
answers "a large reply" 200 encode "$scratch/outer" "matmul?m=$side&k=1&n=$side" -H "$raw" -H 'Accept: application/json' -D "$scratch/head"
same "a large reply: its elements" "$((side * side)) {1}" "$(python3 -c 'import json, sys
elements = [element for row in json.load(sys.stdin)["c"] for element in row]
print(len(elements), set(elements))' <"$scratch/reply")"
like "a large reply: the header tells its encoding" '*encode;dur=[1-9]*' "$(header Server-Timing "$scratch/head")"

# The type comes after the matrix, so the worker pool must read the text again.
{
    printf '{"a": [[1'
    awk 'BEGIN { for (i = 1; i < 200000; i++) printf ",%d", i }'
    printf '],[2'
    awk 'BEGIN { for (i = 1; i < 200000; i++) printf ",-%d", i }'
    printf ']], "dtype": "int64"}'
} >"$scratch/turned"
answers "dtype after the elements" 200 decode "$scratch/turned" transpose -H "$json"
same "dtype after the elements: the last row" '[199999,-199999]' "$(jq -c '.c[199999]' "$scratch/reply")"

# The last character of a large body is wrong.
{
    printf '{"b": [[1]], "a": [[0'
    awk -v count=800000 'BEGIN { for (i = 1; i < count; i++) printf ",0.%d", i }'
    printf ']}'
} >"$scratch/wrong"
post "$scratch/wrong" matmul -H "$json"
is_status "a large body with an error" 400
same "a large body with an error: code" bad_request "$(code_of "$scratch/reply")"
same "a large body with an error: line" 1 "$(jq .line "$scratch/reply")"

# The deadline passes while the worker pool works, or soon after.
for body in wrong turned; do
    post "$scratch/$body" 'transpose?timeout_ms=1' -H "$json"
    like "$body, in a millisecond: status" '[45]0[04]' "$(cat "$scratch/status")"
done
await 60 has_free_budget || fail "cancelled requests still use memory"
stop

# Reductions of large matrices take turns with other work, and stop when their client leaves.
start --backend cpu --threads 1
many=$((20 * $(nproc))) # more cores need more requests to be busy
# reduce COUNT: sends COUNT requests at once with one curl process.
reduce() {
    for _ in $(seq "$1"); do printf 'url = "%s/v1/matrices/long?reduce=norm"\noutput = "%s/figures"\n' "$url" "$scratch"; done >"$scratch/urls"
    curl -s -Z --parallel-immediate --parallel-max "$1" -H 'X-Request-Id: figures' -K "$scratch/urls" 2>"$scratch/progress" &
    reducing=$!
}
reductions() { grep -c '"request_id":"figures"' "$scratch/log" || :; }
has_reduced() { [ "$(reductions)" -ge "$1" ]; }
# Finds a matrix large enough to keep the server busy.
for size in 5000000 20000000 60000000; do
    head -c $size /dev/zero >"$scratch/zeros"
    curl -s -o "$scratch/reply" -H "$raw" -T "$scratch/zeros" "$url/v1/matrices/long?m=1&n=$size&dtype=uint8"
    begun_ms=$(cpu_ms) before=$(reductions)
    reduce 1
    wait "$reducing"
    one_ms=$(($(cpu_ms) - begun_ms))
    await 60 has_reduced $((before + 1)) || fail "the reduction is not logged"
    [ "$one_ms" -lt 50 ] || break
done
before=$(reductions)
reduce "$many"
sleep 0.1
post "$scratch/turned" transpose -H "$json"
is_status "decoded beside $many reductions" 200
at_most "reductions that ended before the decoding" $((many / 2)) $(($(reductions) - before))
wait "$reducing"
await 60 has_reduced $((before + many)) || fail "the reductions are not logged"
begun_ms=$(cpu_ms)
reduce "$many"
sleep 0.1
kill "$reducing"
wait "$reducing" || :
await 60 has_metric requests_in_flight 0 || fail "reductions continue for clients that have left"
reduce 1
wait "$reducing"
at_most "milliseconds of reductions whose clients have left" $((many * one_ms / 2)) $(($(cpu_ms) - begun_ms))
stop

# Clients leave while the worker pool works on their own or on another request.
start --backend cpu --threads 1
{
    printf '{"a": [[1'
    awk 'BEGIN { for (i = 1; i < 60000; i++) printf ",%d", i }'
    printf ']], "dtype": "int64"}'
} >"$scratch/behind"
# leave TENTHS FILE QUERY CURL ARGUMENT…: sends a request and leaves after TENTHS tenths of a second.
leave() {
    tenths=$1 file=$2 query=$3
    shift 3
    curl -s -o /dev/null --max-time "$((tenths / 10)).$((tenths % 10))" -H 'Expect:' "$@" --data-binary "@$file" "$url/v1/$query" &
    left="$left $!"
}
for round in $(seq 100); do
    left=
    for _ in 1 2 3 4 5 6 7 8; do
        leave $((1 + round % 10)) "$scratch/outer" "matmul?m=$side&k=1&n=$side" -H "$raw" -H 'Accept: application/json'
    done
    leave $((1 + round % 10)) "$scratch/behind" transpose -H "$json"
    for caller in $left; do
        wait "$caller" || :
    done
    await 60 has_free_budget || fail "cancelled requests still use memory"
    decode=$(metric 'cancelled_total{stage="decode"}') encode=$(metric 'cancelled_total{stage="encode"}')
    [ "$decode" -lt 1 ] || [ "$encode" -lt 1 ] || break
done
at_most "cancelled while they waited to be decoded, at least" "$decode" 1
at_most "cancelled while their reply was encoded, at least" "$encode" 1
stop
finish
