#!/bin/sh
# Tests the memory budget. docs/http-api.md describes its rules in the section "Memory".
# shellcheck source=tests/http/server.sh disable=SC2119,SC2154
. "$(dirname "$0")/server.sh"

: "${DAWDLE:?the path of the program dawdle}" "${STEADY:?the path of the program steady}"
MATMULD=${FAULTY:?the path of the faulty matmuld} # starts faster than the real matmuld
raw='Content-Type: application/octet-stream' json='Content-Type: application/json'
used='staging_bytes{state="used"}' open=requests_in_flight

reach() {
    checks=$((checks + 1))
    await 60 has_metric "$1" "$2" || fail "$1 should be $2, but is $(metric "$1")"
}

# send NAME ARG…: starts a request in the background. Sets $NAME to its process, like send_file and hold.
send() {
    name=$1
    shift
    : >"$scratch/$name.head"
    curl -s --max-time 120 --expect100-timeout 60 -o "$scratch/$name.got" -D "$scratch/$name.head" -w '%{http_code}' "$@" \
        >"$scratch/$name.status" &
    eval "$name=\$!"
}

send_file() {
    name=$1 file=$2 query=$3
    shift 3
    case "$*" in *Expect:*) ;; *) set -- -H Expect: "$@" ;; esac
    send "$name" -H "$raw" --data-binary "@$scratch/$file" "$@" "$url/v1/matmul?$query"
}

# hold NAME BACKEND M K N: sends a product that runs until `answered` is called or the client leaves.
hold() {
    name=$1
    shift
    prepare_held "$@"
    : >"$scratch/hold"
    send_file "$name" slow "$slow_query"
    await 60 test -s "$scratch/hold" || fail "the product $name was not begun"
}

# received NAME WHAT STATUS [KEY VALUE]…: waits for a reply and checks it.
received() {
    eval "wait \$$1" || :
    cp "$scratch/$1.got" "$scratch/got"
    cp "$scratch/$1.head" "$scratch/head"
    status=$(cat "$scratch/$1.status")
    [ "$3" != 200 ] || [ ! -e "$scratch/$1.expected" ] || cmp "$scratch/got" "$scratch/$1.expected" || fail "$2: wrong product"
    shift
    expect "$@"
}

# answered NAME…: lets the products of `hold` finish, and checks the replies to these requests.
answered() {
    rm -f "$scratch/hold"
    for name in "$@"; do
        received "$name" "$name" 200
    done
}

leave() {
    kill "$@" 2>/dev/null || :
    wait "$@" 2>/dev/null || :
}

dawdle() {
    "$DAWDLE" --port "${url##*:}" --seconds 600 "$@" >"$scratch/dawdle" &
    dawdle=$!
}

# stall K HEADER BYTES: starts an upload that stops after BYTES bytes of its body.
stall() {
    {
        printf 'POST /v1/matmul?m=1&k=%s&n=1 HTTP/1.1\r\nHost: localhost\r\n%s\r\n%s\r\n\r\n' "$1" "$raw" "$2"
        case $2 in *chunked) printf '%x\r\n' $(($3 + 1)) ;; esac
        head -c "$3" /dev/zero
    } >"$scratch/stalled"
    talk stalled 65536 &
    stalled=$!
}

# write_text NAME COUNT NUMBER: writes a JSON request whose product has COUNT elements.
write_text() {
    awk -v count="$2" -v number="$3" 'BEGIN { printf "%s", number; while (++i < count) printf ",%s", number }' >"$scratch/$1.csv"
    printf '{"a":[[%s]],"\\u0062":[[1]],"transpose_a":true}' "$(cat "$scratch/$1.csv")" >"$scratch/$1"
    "$FLOAT32" fill "$2" "$3" >"$scratch/$1.expected"
}

for body in 'row 80000' 'small 40000' 'large 1048568' 'fits 3932144' 'more 3932160' 'over 3932161' 'outer 3600' 'tall 262148' 'empty 65536' \
    'integers 32768' 'square 262144' 'heavy 3800000' 'huge 12582912'; do
    head -c "${body#* }" /dev/zero >"$scratch/${body% *}"
done
write_text few 500 1
write_text some 30000 1
write_text many 100000 1
write_text tight 187000 1.23456789012345
"$FLOAT32" fill 1 100000 >"$scratch/files.expected"
many_bytes=$(wc -c <"$scratch/many")

# --- Requests that are too large. The limit is fifteen sixteenths of 4 MiB, 3932160 bytes.
start --backend cpu --memory-budget 4MiB
for row in '200 fits m=2&k=245759&n=2' '200 fits m=2&k=245759&n=2 Transfer-Encoding:chunked' \
    '413 over dtype=float32 Content-Type:application/json Transfer-Encoding:chunked' \
    '200 tight dtype=float32 Content-Type:application/json Accept:application/octet-stream' \
    '200 tight dtype=float32 Content-Type:application/json Accept:application/octet-stream Transfer-Encoding:chunked' \
    '413 outer m=450&k=1&n=450 Accept:application/json' '200 tall m=65536&k=1&n=1&verify=true' \
    '200 tall m=65536&k=1&n=1 Accept:text/csv' '413 tall m=65536&k=1&n=1&verify=true Accept:text/csv'; do
    wanted=${row%% *}
    # shellcheck disable=SC2086
    set -- ${row#* }
    post_file "$@"
    expect "$*" "$wanted"
    [ "$wanted" = 200 ] || expect "$*" "$wanted" code too_large .limit 3932160
done
post_file more 'm=1&k=491520&n=1' 'Expect: 100-continue'
expect "four bytes more" 413 code too_large .limit 3932160
same "four bytes more: bytes that were sent" 0 "$uploaded"
# The result has no elements, but its JSON brackets would need almost 2^64 bytes.
post_file empty 'a_shape=128,128&b_shape=130772797,4933,883,23,128,0' 'Accept: application/json'
expect "a text of almost 2^64 bytes" 413 code too_large .limit 3932160
post_file outer 'm=450&k=1&n=450' 'Accept: application/json' 'Transfer-Encoding: chunked'
expect "a text, refused before its chunked body" 413 code too_large .limit 3932160 .got 4256528
# Checking integers needs 256 + 8 bytes for each k, together 4326144 bytes.
post_file integers 'm=1&k=16384&n=1&dtype=int8&verify=true'
expect "a check of integers" 413 code too_large .field verify .limit 3932160 .got $((4326144 + 2 * 16384 + 4)) \
    detail 'verify needs 4326144 bytes * 32772 *--memory-budget*'
ask /v1/benchmark -d '{"m":600,"k":600,"n":600}'
expect "a benchmark" 413 code too_large .limit 3932160
reach "$used" 0 && stop

# --- An upload reserves memory in steps of 64 KiB, or at once if the request needs at most 2 MiB.
start --backend cpu --memory-budget 16MiB --receive-timeout-ms 600000
dawdle --bodies 16 --shape 1x262144x1 --every-ms 600000
dawdles=$dawdle
reach "$used" 1048576
dawdle --bodies 2 --shape 1x262143x1 --every-ms 600000
reach "$used" $((1048576 + 2 * 2097148))
for header in 'X-A: b' 'Transfer-Encoding: chunked' 'Expect: 100-continue'; do
    post_file row 'm=1&k=10000&n=1' "$header"
    expect "80 kB beside uploads with reserved memory, $header" 200
done
leave "$dawdles" "$dawdle"
reach "$used" 0
# 256 small uploads fill the budget, but they are too slow and lose their memory.
dawdle --bodies 256 --claim 65536 --every-ms 1000
reach "$used" 16777216
post_file huge 'm=1&k=1572864&n=1'
expect "12 MiB beside slow small uploads" 200
leave "$dawdle"
reach "$used" 0 && stop

# --- A large body waits for memory before it is read.
start_held --backend cpu --memory-budget 4MiB --memory-wait-ms 60000
hold first cpu 2 245759 2
reach "$used" 3932160
send_file expecting row 'm=1&k=10000&n=1' -H 'Expect: 100-continue'
reach "$open" 2
send_file chunked row 'm=1&k=10000&n=1' -H 'Transfer-Encoding: chunked'
reach "$used" $((3932160 + 65536))
for header in 'X-A: b' 'Transfer-Encoding: chunked' 'Expect: 100-continue'; do
    post_file small 'm=1&k=5000&n=1' "$header"
    expect "40 kB beside waiting uploads, $header" 200
    post_file few '' "$json" "$header"
    expect "JSON beside waiting uploads, $header" 200
done
reach "$open" 3
same "the reply before memory is free" '' "$(cat "$scratch/expecting.head")"
answered expecting chunked first
like "the reply after memory is free" 'HTTP/1.1 100 *' "$(cat "$scratch/expecting.head")"

# A text that already has memory gets free memory before two earlier requests that have none.
hold first cpu 1 446000 1
hold second cpu 1 32767 1
reach "$used" $((bytes = 3568004 + 262140))
send_file large large 'm=1&k=131071&n=1'
reach "$open" 3
send_file behind row 'm=1&k=10000&n=1'
reach "$open" 4
for name in some leaver; do
    send $name -H "$json" -H Expect: -H 'Accept: application/octet-stream' --data-binary "@$scratch/some" "$url/v1/matmul"
    reach "$used" $((bytes += 65536))
done
leave "$leaver"
reach "$used" $((bytes - 65536))
reach "$open" 5
leave "$second"
received some "a text that had reserved memory" 200
post_file small 'm=1&k=5000&n=1'
expect "40 kB beside requests that wait" 200
reach "$open" 3
answered large behind first
reach "$used" 0

# A text that finds no memory for its elements is decoded later. A deadline ends the wait.
hold first cpu 1 446000 1
send many -H "$json" -H 'Accept: application/octet-stream' --data-binary "@$scratch/many" "$url/v1/matmul"
await 60 is_taken_beyond $((3568003 + many_bytes)) || fail "the text did not arrive"
send files -H 'Accept: application/octet-stream' -F "a=@$scratch/many.csv" -F "b=@$scratch/many.csv" -F transpose_b=true \
    "$url/v1/matmul"
reach "$open" 3
post_file row 'm=1&k=10000&n=1&timeout_ms=300'
expect "a deadline of an upload that waits" 504 code timeout detail "of the body had arrived"
answered first many files
reach "$used" 0

# Together two uploads need more than the budget, so the later upload is rejected at once.
hold first cpu 1 15000 1
send_file one heavy 'm=1&k=475000&n=1' --limit-rate 400k
reach "$open" 2
send_file two heavy 'm=1&k=475000&n=1' --limit-rate 400k
received two "the later of two uploads" 429 code busy detail 'this one arrived last'
answered first one
reach "$used" 0

# A stalled upload keeps its memory for two seconds if other requests wait, and otherwise longer.
for framing in 'Content-Length: 3100000' 'Transfer-Encoding: chunked'; do
    begun_ms=$(now_ms)
    stall 387500 "$framing" 3000000
    await 60 is_taken_beyond 2999999 || fail "the upload did not arrive"
    case $framing in *chunked) sleep 2.5 && reach "$open" 1 ;; esac
    post_file large 'm=1&k=131071&n=1'
    took_ms=$(($(now_ms) - begun_ms))
    expect "1 MiB beside a stalled upload, $framing" 200
    at_most "1 MiB beside a stalled upload, at least milliseconds" $took_ms 2000
    at_most "1 MiB beside a stalled upload, milliseconds" 5000 $took_ms
    wait "$stalled" || :
    last_reply
    expect "the stalled upload, $framing" 429 code busy detail 'too slow' Retry-After: '[1-9]*' Connection: close
done

# Replies with stored matrices and benchmarks wait for memory that other requests use.
ask '/v1/matrices/square?m=256&n=256' -X PUT -H "$raw" -H Expect: --data-binary "@$scratch/square"
curl -s -o /dev/null -X PUT --data-binary 1234 "$url/v1/matrices/$(printf 'm%.0s' $(seq 125))[100-999]?m=1&n=1"
reach "$used" $((stored = 262144 + 900 * 4))
ask '/v1/matmul?m=970&k=1&n=970&a_from=identity()&b_from=identity()&reply=none' -X POST
expect "a result too large beside stored matrices" 429 code busy detail "stored matrices use $stored"
await 60 has_metric 'busy_total{cause="stored_matrices"}' 1 || fail "a result too large beside stored matrices is not counted"
hold first cpu 1 450000 1
send list "$url/v1/matrices"
send text -H 'Accept: text/csv' "$url/v1/matrices/square"
send part "$url/v1/matrices/square?cols=0:128"
send benchmark -d '{"m":128,"k":128,"n":128,"repeats":1,"variants":["naive"]}' "$url/v1/benchmark"
reach "$open" 5
ask '/v1/matrices?limit=100'
expect "a short list, which is small" 200 '.matrices | length' 100
reach "$open" 5
reach "$used" $((stored + 3600004 + 65536))
answered text part benchmark first list
expect "the list" 200 '.matrices | length' 901
reach "$used" $stored && stop

# Even if stored matrices use the budget, a small request waits, because a part is for small requests only.
head -c 3900000 /dev/zero >"$scratch/full"
start --backend cpu --memory-budget 4MiB --store-memory 4MiB
ask '/v1/matrices/full?m=975&n=1000' -X PUT -H "$raw" -H Expect: --data-binary "@$scratch/full"
dawdle --bodies 4 --claim 65536 --every-ms 1000
reach "$used" $((3900000 + 262144))
post_file small 'm=1&k=5000&n=1'
expect "40 kB beside a full store, after slow uploads end" 200
leave "$dawdle"
reach "$used" 3900000 && stop

# When a stalled upload ends, one of two waiting uploads gets memory.
start_held --backend cpu --memory-budget 4MiB
hold first cpu 1 451000 1
dawdle --bodies 1 --shape 1x375000x1 --bytes 1200 --every-ms 200
stall 375000 'Content-Length: 3000000' 1000
reach "$used" $((3608004 + 2 * 65536))
send twice -H "$json" -H Expect: --data-binary "@$scratch/many" "$url/v1/matmul"
reach "$open" 4
send_file once large 'm=1&k=131071&n=1' -H 'Expect: 100-continue'
for row in "twice $many_bytes" 'once 0'; do
    received "${row% *}" "a request that waits ${row% *}" 429 code busy detail 'became free in 3000 ms' Retry-After: '[1-9]*'
    ms=$(sed -n 's/.*"code":429.*"in_bytes":'"${row#* }"',.*"duration_ms":\([0-9]*\).*/\1/p' "$scratch/log")
    at_most "milliseconds at which a request that waits ${row% *} ends, at least" "$ms" 3000
    at_most "milliseconds at which a request that waits ${row% *} ends" 4000 "$ms"
done
like "the reply to an upload that got no memory" 'HTTP/1.1 429*' "$(cat "$scratch/once.head")"
reach "$used" $((3608004 + 65536))
leave "$dawdle" "$stalled"
answered first
at_most "requests that got no memory, at least" "$(metric 'busy_total{cause="memory"}')" 2
reach "$used" 0 && stop

start_held --memory-budget 4MiB --timeout-ms 1500 --memory-wait-ms 60000
hold first cuda 1 446000 1
send complete -H "$json" -H Expect: --data-binary "@$scratch/some" "$url/v1/matmul"
send_file incomplete large 'm=1&k=131071&n=1'
received complete "a deadline of a request that waits" 504 code timeout detail 'before the result was ready'
received incomplete "a deadline of an upload that waits" 408 code request_timeout detail 'of the body had arrived'
received first "a deadline of a product" 504 code timeout
reach "$used" 3568004
release
reach "$used" 0 && stop

# If a client does not read a reply, the server ends the reply. It does not if the store has the matrix.
start --backend cpu --memory-budget 24MiB --send-timeout-ms 600000
for shape in 'kept 1024 1024' 'gone 1400 1400' 'operand 1448 1'; do
    # shellcheck disable=SC2086
    set -- $shape
    head -c $(($2 * $3 * 4)) /dev/zero >"$scratch/zeros"
    ask "/v1/matrices/$1?m=$2&n=$3" -X PUT -H "$raw" -H Expect: --data-binary "@$scratch/zeros"
done
set --
for request in 'GET /v1/matrices/kept' 'GET /v1/matrices/gone' 'POST /v1/matmul?a_from=operand&b_from=uniform(1)&n=1448&variant=naive'; do
    dawdle --readers 1 --request "$request" --every-ms 600000
    set -- "$@" "$dawdle"
done
reach "$open" 3
reach "$used" $((4194304 + 7840000 + 5792 + 8386816))
ask /v1/matrices/gone -X DELETE
ask /v1/matrices/operand -X DELETE
reach "$used" $((4194304 + 7840000 + 8386816))
head -c 14000 /dev/zero >"$scratch/outer"
post_file outer 'm=1750&k=1&n=1750&variant=naive'
expect "a result that needs the memory of two replies" 200
same "connections of slow readers that were closed" 2 "$(metric 'connections_closed_total{reason="slow_reader"}')"
reach "$open" 1
leave "$@"
reach "$used" 4194304 && stop

# A chunked upload needs more memory, so the server ends one of four stalled uploads.
start --backend cpu --memory-budget 4MiB
mkfifo "$scratch/late"
set --
for shape in '3 1x130000x1' '1 1x89000x1' '1 1x10000x1'; do
    dawdle --bodies "${shape% *}" --shape "${shape#* }" --every-ms 600000
    set -- "$@" "$dawdle"
done
reach "$used" $((bytes = 3932160 - 100144 + 80004))
{ head -c 4000 /dev/zero && sleep 2 && head -c 76000 /dev/zero; } >"$scratch/late" &
send chunked -H "$raw" -H Expect: -T "$scratch/late" -X POST "$url/v1/matmul?m=1&k=10000&n=1"
reach "$used" $((bytes + 65536))
leave "$dawdle"
received chunked "80 kB in chunks beside stalled uploads" 200
leave "$@"
reach "$used" 0 && stop

# A request whose upload had stalled still gets its whole reply.
start --backend cpu --memory-budget 24MiB
mkfifo "$scratch/reply.got"
for _ in 1 2; do
    { head -c 8000 /dev/zero && sleep 2.5 && head -c 8000 /dev/zero; } >"$scratch/late" &
    { sleep 1 && wc -c; } <"$scratch/reply.got" >"$scratch/taken" &
    reader=$!
    send reply -H "$raw" -H Expect: -T "$scratch/late" -X POST "$url/v1/matmul?m=2000&k=1&n=2000"
    sleep 2.5
    reach "$used" 16000000
    post_file outer 'm=1750&k=1&n=1750&variant=naive'
    expect "a result beside a reply whose upload stalled" 200
    wait "$reply" "$reader"
    same "a reply whose upload stalled: bytes" 16000000 "$(tr -d ' ' <"$scratch/taken")"
done
reach "$used" 0 && stop

# Many clients together need four times the budget and repeat rejected requests. Every client gets answers.
start --backend cpu --memory-budget 64MiB
"$STEADY" --port "${url##*:}" --shape 64x12288x64 --connections 48 --threads 4 --seconds 2 --refusals >"$scratch/figures"
at_most "products of 6 MiB by 48 clients in 2 s, at least" "$(sed -n 's/.* ok=\([0-9]*\) .*/\1/p' "$scratch/figures")" 20
reach "$used" 0 && stop
finish
