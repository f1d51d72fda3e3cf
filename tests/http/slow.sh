#!/bin/sh
# Callers who are slow: a head or a body that takes longer than it may is answered with 408, and closed; what
# comes at the least rate is not, nor is a connection that is merely idle. Who takes less of a reply than the least
# rate is dropped. Nothing of what was cut off remains.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

: "${TALK:?the path of the program talk}" "${DAWDLE:?the path of the program dawdle}"

milliseconds() {
    date +%s%3N
}

# slowly FILE PIECE PAUSE_MS: sends it like that, puts the replies into $scratch/replies, and sets elapsed.
slowly() {
    address=${url#http://}
    from=$(milliseconds)
    "$TALK" "${address%:*}" "${address##*:}" "$2" "$3" <"$scratch/$1" >"$scratch/raw" 2>"$scratch/complaint" || :
    elapsed=$(($(milliseconds) - from))
    tr -d '\r' <"$scratch/raw" | sed 's/}HTTP/}\nHTTP/' >"$scratch/replies"
}

statuses() {
    sed -n 's/.*HTTP\/1\.1 \([0-9]*\) .*/\1/p' "$scratch/replies" | tr '\n' ' ' | sed 's/ $//'
}

# took WHAT MOST LEAST
took() {
    at_most "$1: milliseconds" "$2" "$elapsed"
    at_most "$1: at least this many milliseconds" "$elapsed" "$3"
}

# cut_off WHAT STATUS CODE: the last reply is in the contract's form, and says that it is the last. One to a product
# is held against the OpenAPI document as well.
cut_off() {
    like "$1: statuses" "*$2" "$(statuses)"
    awk '/^HTTP\/1\.1/ { text = "" } { text = text $0 "\n" } END { printf "%s", text }' "$scratch/replies" >"$scratch/last"
    sed '/^$/q' "$scratch/last" >"$scratch/head"
    sed '1,/^$/d' "$scratch/last" >"$scratch/problem"
    same "$1: code" "$3" "$(code_of "$scratch/problem")"
    same "$1: Connection" close "$(header Connection "$scratch/head")"
    same "$1: X-Request-Id" "$(jq -r .request_id "$scratch/problem")" "$(header X-Request-Id "$scratch/head")"
    same "$1: Content-Length" "$(($(wc -c <"$scratch/problem") - 1))" "$(header Content-Length "$scratch/head")"
    like "$1: Date" '*GMT' "$(header Date "$scratch/head")"
    case $1 in *body*) keep POST /v1/matmul "$scratch/head" "$scratch/problem" ;; esac
}

is_all_given_back() {
    curl -s "$url/metrics" | grep -q '^matmuld_staging_bytes{state="used"} 0$'
}

# upload BYTES [QUERY]: the head of a raw body of so many bytes.
upload() {
    printf 'POST /v1/matmul?m=1&k=%d&n=1%s HTTP/1.1\r\nHost: x\r\nX-Request-Id: slow\r\nConnection: close\r\n' $(($1 / 8)) "${2:-}"
    printf 'Content-Type: application/octet-stream\r\nContent-Length: %d\r\n\r\n' "$1"
}

zeros() {
    head -c "$1" /dev/zero
}

start --backend cpu --receive-timeout-ms 1000 --receive-rate 1000 --memory-budget 64MiB

# Heads. They are looked at twice a second.
printf 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n' >"$scratch/get"
get_bytes=$(wc -c <"$scratch/get")
printf 'GET /healthz HTTP/1.1\r\nHost: x\r\nX-Long: %01000d' 0 >"$scratch/trickle"
slowly trickle 1 50
cut_off "a head that trickles" 408 request_timeout
took "a head that trickles" 4000 1000
printf 'GET /heal' >"$scratch/input"
slowly input 100 1
cut_off "a head that stops" 408 request_timeout
took "a head that stops" 4000 1000
cat "$scratch/get" "$scratch/trickle" >"$scratch/input"
slowly input "$get_bytes" 700
cut_off "a second head that trickles" 408 request_timeout
same "a second head that trickles: statuses" "200 408" "$(statuses)"
{
    printf 'GET /healthz HTTP/1.1\r\nHost: x\r\nX-Same: size-as-i\r\n\r\n'
    printf 'GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'
} >"$scratch/input"
slowly input $(($(wc -c <"$scratch/input") / 2)) 3000
same "a connection idle for three seconds: statuses" "200 200" "$(statuses)"

# Bodies: 10, 500 and 2000 bytes a second, of which 1000 are enough.
{
    upload 8000
    zeros 8000
} >"$scratch/upload"
slowly upload 1 20
cut_off "a body that trickles" 408 request_timeout
took "a body that trickles" 8000 1000
slowly upload 50 100
cut_off "a body at half the least rate" 408 request_timeout
took "a body at half the least rate" 4000 1500
same "its id" slow "$(header X-Request-Id "$scratch/head")"
slowly upload 200 100
same "a body at twice the least rate: statuses" 200 "$(statuses)"
took "a body at twice the least rate" 10000 3500
{
    printf 'POST /v1/matmul HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nExpect: 100-continue\r\n'
    printf 'Content-Length: 20\r\n\r\n'
} >"$scratch/input"
slowly input 1000 1
cut_off "no body after 100 Continue" 408 request_timeout
same "no body after 100 Continue: statuses" "100 408" "$(statuses)"
{
    printf 'POST /v1/matmul HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n'
    printf 'Transfer-Encoding: chunked\r\n\r\n5\r\n{"a":\r\n'
} >"$scratch/input"
slowly input 1000 1
cut_off "a chunked body that stops" 408 request_timeout
took "a chunked body that stops" 3000 1000
upload 8000 '&timeout_ms=300' >"$scratch/input"
slowly input 1000 1
cut_off "a body that is not there by its own deadline" 504 timeout
took "a body that is not there by its own deadline" 2000 300

# A deadline of its own that only the body tells, read while the sweep looks on.
{
    printf 'POST /v1/matmul HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n'
    printf 'Content-Length: 45\r\n\r\n{"a":[[2]],"b":[[3]],"timeout_ms":5000     }\n'
} >"$scratch/input"
slowly input 30 150
same "a body that comes in pieces: statuses" 200 "$(statuses)"

# A hundred that announce all the memory there is between them: more than one sweep cuts off.
upload 600000 >"$scratch/input"
talkers=
for number in $(seq 100); do
    "$TALK" "${address%:*}" "${address##*:}" 1000 1 <"$scratch/input" >"$scratch/many.$number" 2>&1 &
    talkers="$talkers $!"
done
# shellcheck disable=SC2086
wait $talkers
same "of a hundred cut off, those who could read it" 100 "$(grep -l '^HTTP/1.1 408' "$scratch"/many.* | wc -l)"
"$FLOAT32" fill 10000000 1 >"$scratch/body"
same "the budget after uploads that were cut off" 200 "$(status_of --max-time 60 \
    -H 'Content-Type: application/octet-stream' --data-binary "@$scratch/body" "$url/v1/matmul?m=1&k=5000000&n=1")"
stop

# Replies of 16 MiB, of which MHD has most while they are sent, and of 64 KiB, which the system's sockets hold; taken
# at 20 and 80 kB a second, of which 40 are enough.
# takes NAME ROWS BYTES ENDED: four callers, who take so much in 50 ms, for 5 s.
takes() {
    "$DAWDLE" --port "${url##*:}" --readers 4 --shape "$2x1x$2" --bytes "$3" --every-ms 50 --seconds 5 >"$scratch/taken.$1" &
    takers="$takers $!"
    expected_taken="$expected_taken$1 readers=4 ended=$4
"
}
takers='' expected_taken=''
start --backend cpu --send-timeout-ms 1000 --send-rate 40000 --memory-budget 512MiB
takes slow 2048 1000 4
takes fair 2048 4000 0
takes slow_small 128 1000 4
takes fair_small 128 4000 0
# shellcheck disable=SC2086
wait $takers
printf '%s' "$expected_taken" >"$scratch/expected_taken"
while read -r name expected; do
    same "callers who take a reply, $name" "$expected" "$(sed -n 's/^\(readers.*\) first.*/\1/p' "$scratch/taken.$name")"
done <"$scratch/expected_taken"
await 5 is_all_given_back || fail "callers who take a reply: the budget is not given back"
at_most "callers who take a reply: at least so many counted" \
    "$(curl -s "$url/metrics" | sed -n 's/^matmuld_cancelled_total{stage="send"} //p')" 4
stop

# The process's limit of time holds for a body that comes fast enough.
start --backend cpu --timeout-ms 1000
slowly upload 200 100
cut_off "a body that is not there by --timeout-ms" 408 request_timeout
took "a body that is not there by --timeout-ms" 3000 1000
stop
finish
