#!/bin/sh
# Large bodies take long to decode and to encode, and hold up nobody meanwhile: with one HTTP thread, others are
# answered in between. They are right, wrong or given up as small ones are.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

# answers_during NAME COMMAND…: runs the command, and asks for /healthz all the time; $longest is the time in
# seconds that its slowest answer took.
answers_during() {
    rm -f "$scratch/$1.done"
    : >"$scratch/times"
    name=$1
    shift
    ("$@"; : >"$scratch/$name.done") &
    until [ -f "$scratch/$name.done" ]; do
        curl -s -o /dev/null --max-time 60 -w '%{time_total}\n' "$url/healthz" >>"$scratch/times" || :
    done
    wait $!
    longest=$(sort -n "$scratch/times" | tail -n 1)
}

# post FILE QUERY [CURL ARGUMENT...]: to $scratch/reply and $scratch/status.
post() {
    file=$1 query=$2
    shift 2
    curl -s --max-time 120 -o "$scratch/reply" -w '%{http_code} %{time_total}' -H 'Expect:' "$@" \
        --data-binary "@$file" "$url/v1/$query" >"$scratch/status" || :
}

is_status() {
    same "$1: status" "$2" "$(cut -d ' ' -f 1 "$scratch/status")"
}

# What is given back is overwritten, so that whoever still reads it is found out.
export MALLOC_PERTURB_=165
start --backend cpu --threads 1

# An outer product: its kernel takes no time, its text does.
side=${POOL_SIDE:-3000}
"$FLOAT32" fill $((2 * side)) 1 >"$scratch/outer"
answers_during encode post "$scratch/outer" "matmul?m=$side&k=1&n=$side" -H 'Content-Type: application/octet-stream' \
    -H 'Accept: application/json' -D "$scratch/head"
is_status "a large reply" 200
same "a large reply: elements" "$((side * side))" "$(jq '[.c[] | length] | add' "$scratch/reply")"
same "a large reply: the others" '[1,1]' "$(jq -c '[.c[][] ] | [min, max]' "$scratch/reply")"
like "a large reply: the header tells its encoding" '*encode;dur=[1-9]*' "$(header Server-Timing "$scratch/head")"
at_most "the slowest answer while it was encoded, as a share of that time" 0.8 \
    "$(jq --arg longest "$longest" '1000 * ($longest | tonumber) / .timing.encode_ms' "$scratch/reply")"

# Wrong in its last character, so all of it is read.
{
    printf '{"b": [[1]], "a": [[0'
    awk -v count=$((side * side / 5)) 'BEGIN { for (i = 1; i < count; i++) printf ",0.%d", i }'
    printf ']}'
} >"$scratch/wrong"
answers_during decode post "$scratch/wrong" matmul -H 'Content-Type: application/json'
is_status "a large body that is wrong" 400
same "a large body that is wrong: code" bad_request "$(code_of "$scratch/reply")"
same "a large body that is wrong: line" 1 "$(jq .line "$scratch/reply")"
at_most "the slowest answer while it was decoded, as a share of that time" 0.8 \
    "$(awk -v longest="$longest" '{ print longest / $2 }' "$scratch/status")"

# The type behind the matrix: scanned once more, by the worker pool as well.
{
    printf '{"a": [[1'
    awk 'BEGIN { for (i = 1; i < 200000; i++) printf ",%d", i }'
    printf '],[2'
    awk 'BEGIN { for (i = 1; i < 200000; i++) printf ",-%d", i }'
    printf ']], "dtype": "int64"}'
} >"$scratch/turned"
post "$scratch/turned" transpose -H 'Content-Type: application/json'
is_status "a type that is told behind" 200
same "a type that is told behind: the last row" '[199999,-199999]' "$(jq -c '.c[199999]' "$scratch/reply")"

# Given up: its time is over while the worker pool works, or soon.
for body in wrong turned; do
    post "$scratch/$body" 'transpose?timeout_ms=1' -H 'Content-Type: application/json'
    like "$body, in a millisecond: status" '[45]0[04]' "$(cut -d ' ' -f 1 "$scratch/status")"
done
# And its caller leaves.
for _ in 1 2 3; do
    curl -s --max-time 0.3 -o "$scratch/left" -H 'Content-Type: application/octet-stream' -H 'Accept: application/json' \
        --data-binary "@$scratch/outer" "$url/v1/matmul?m=$side&k=1&n=$side" || :
done
await 30 has_free_budget || fail "what was given up holds memory"
stop

# Or they leave while they wait for the worker pool, which has one thread here and three large replies to encode.
first_core=$(taskset -cp $$ | sed 's/.*: \([0-9]*\).*/\1/')
printf '#!/bin/sh\nexec taskset -c %s "%s" "$@"\n' "$first_core" "$MATMULD" >"$scratch/on_one_core"
chmod +x "$scratch/on_one_core"
MATMULD="$scratch/on_one_core"
start --backend cpu --threads 1
# waiters_leave ROUND: they wait longer with each, since a slow machine takes long to receive what they send.
waiters_leave() {
    callers=
    for _ in 1 2 3; do
        curl -s -o /dev/null --max-time 120 -H 'Content-Type: application/octet-stream' -H 'Accept: application/json' \
            --data-binary "@$scratch/outer" "$url/v1/matmul?m=$side&k=1&n=$side" &
        callers="$callers $!"
    done
    for tenths in 4 6 8; do
        curl -s -o /dev/null --max-time "$((tenths * $1 / 10)).$((tenths * $1 % 10))" -H 'Expect:' -H 'Content-Type: application/json' \
            --data-binary "@$scratch/wrong" "$url/v1/matmul" &
        callers="$callers $!"
    done
    for caller in $callers; do
        wait "$caller" || :
    done
}
for round in 1 2 3 4 5 6 7 8; do
    waiters_leave "$round"
    [ "$(metric 'cancelled_total{stage="decode"}')" -lt 1 ] || break
done
await 30 has_free_budget || fail "what was given up holds memory"
at_most "given up while they waited to be decoded, at least" "$(metric 'cancelled_total{stage="decode"}')" 1
stop
finish
