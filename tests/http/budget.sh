#!/bin/sh
# The memory budget: what can never fit is too large, what has to wait is busy, and nothing is computed that
# could not be answered. budget_waits.sh has how requests wait for memory.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

: "${DAWDLE:?the path of the program dawdle}" "${STEADY:?the path of the program steady}"

MATMULD=${FAULTY:?the path of the faulty matmuld} # the same, and starts faster
raw='Content-Type: application/octet-stream'
json='Content-Type: application/json'

is_taken() {
    has_metric 'staging_bytes{state="used"}' "$1"
}

# The longest --timeout-ms that there is. By it a body of 14 MiB is in time with some bytes a second.
far_ms=4294967295

# is_taken_meanwhile BYTES: both uploads of compete bring a little after each look, since one that brings nothing for a second is
# slow, however long this machine takes to start the other.
is_taken_meanwhile() {
    is_taken_beyond "$1" && code=0 || code=1
    printf '%0100d' 0 >&3
    printf '%0100d' 0 >&4
    left_bytes=$((left_bytes - 100))
    return "$code"
}

# compete WHAT [COMMAND]: of two that are both in time and wait for each other, the later has to go: each has sent 8 of 14 MiB
# before it goes on, and may hold 2 MiB more. Then the command, and the other is answered. $refused_ms is how long the refusal
# took. The server has --timeout-ms $far_ms.
compete() {
    rm -f "$scratch/one" "$scratch/two"
    mkfifo "$scratch/one" "$scratch/two"
    exec 3<>"$scratch/one" 4<>"$scratch/two"
    taken=$(metric 'staging_bytes{state="used"}') left_bytes=6291456
    for name in one two; do
        curl -s -o "$scratch/got.$name" -w '%{http_code}\n' -X POST -T - -H 'Expect:' -H "$raw" \
            "$url/v1/matmul?m=1&k=1835008&n=1" <"$scratch/$name" >"$scratch/status.$name" 3<&- 4<&- &
        eval "$name=\$!"
        head -c 8388608 /dev/zero >"$scratch/$name"
        await 60 is_taken_meanwhile $((taken += 8388607)) || fail "the upload $name did not come"
    done
    exec 5>"$scratch/one" 6>"$scratch/two" 3>&- 4>&- # only to write: who writes to one that is refused ends
    head -c "$left_bytes" /dev/zero >&5 5>&- 6>&- &
    head -c "$left_bytes" /dev/zero >&6 5>&- 6>&- &
    exec 5>&- 6>&-
    begun_ms=$(now_ms)
    # shellcheck disable=SC2154
    wait "$two" || :
    refused_ms=$(($(now_ms) - begun_ms))
    ${2:-:}
    # shellcheck disable=SC2154
    wait "$one" || :
    same "two that need more than the budget together, $1" "200 429" \
        "$(paste -d ' ' "$scratch/status.one" "$scratch/status.two")"
}

start --backend cpu --memory-budget 1MiB
"$FLOAT32" fill 150000 1 >"$scratch/row"
post_file row 'm=1&k=75000&n=1'
expect "600 kB raw" 200
post_file row 'm=1&k=75000&n=1' 'Transfer-Encoding: chunked'
expect "600 kB in chunks, which grow in place" 200

# Nor does what was read of a text, or room to grow, count against its matrices.
for row in '21000 1.23456789012345' '20000 1.234567890123456'; do
    awk -v count="${row% *}" -v number="${row#* }" 'BEGIN {
        printf "{\"a\":[[%s", number
        for (i = 1; i < count; i++) printf ",%s", number
        printf "]],\"b\":[[%s]", number
        for (i = 1; i < count; i++) printf ",[%s]", number
        printf "]}" }' >"$scratch/text"
    for framing in 'X-A: b' 'Transfer-Encoding: chunked'; do
        post_file text '' "$json" "$framing"
        expect "1×${row% *}×1 as JSON, $framing" 200
    done
done

# As text the result takes more than the budget, which is known before anything is computed.
"$FLOAT32" fill 460 1 >"$scratch/outer"
post_file outer 'm=230&k=1&n=230'
expect "an outer product in raw" 200
"$FLOAT32" fill 520 1 >"$scratch/outer"
post_file outer 'm=260&k=1&n=260' 'Accept: application/json'
expect "an outer product as JSON" 413 code too_large

# A JSON body is counted with its matrices, and with nothing else: an escape in a name takes no more.
{
    printf '{"\\u0062": [], "a": [[0'
    awk 'BEGIN { for (i = 0; i < 49000; i++) printf ",0" }'
    printf ']]}'
} >"$scratch/matrix"
post_file matrix '' "$json"
expect "a body with its matrix, within the budget" 422 code bad_shape
stop

# The limit holds for chunks, whatever memory was used before: here a result of 1.2 MB.
start --backend cpu --max-body 1MiB
"$FLOAT32" fill 1100 1 >"$scratch/outer"
post_file outer 'm=550&k=1&n=550'
expect "a result over --max-body" 200
head -c 1150021 /dev/zero >"$scratch/row"
post_file row '' "$json" 'Transfer-Encoding: chunked'
expect "chunks over --max-body" 413
stop

# What a head claims costs nothing: only what comes counts. Here sixteen clients claim 24 MiB and send some kilobytes.
start --backend cpu --memory-budget 16MiB --receive-timeout-ms 600000
"$DAWDLE" --port "${url##*:}" --bodies 16 --claim 16777216 --bytes 1000 --every-ms 100 --seconds 600 >"$scratch/dawdle" &
dawdle=$!
await 60 grep -qs ready "$scratch/dawdle" || fail "the slow uploads did not begin"
"$FLOAT32" fill 20000 1 >"$scratch/row"
for _ in 1 2 3 4 5 6 7 8 9 10; do
    post_file row 'm=1&k=10000&n=1'
    expect "80 kB beside claims of the whole budget" 200
done
post_file row 'm=1&k=10000&n=1' 'Expect: 100-continue'
expect "80 kB with Expect, beside them" 200
kill $dawdle
wait $dawdle 2>/dev/null || :
await 60 has_free_budget || fail "the slow uploads left memory taken"

# A client that has all of the budget by 100-continue and sends little has to go when others need some, for a body or a result.
{
    printf 'POST /v1/matmul?m=1&k=2096128&n=1 HTTP/1.1\r\nHost: localhost\r\n%s\r\n' "$raw"
    printf 'Content-Length: 16769024\r\nExpect: 100-continue\r\n\r\n'
    head -c 30000 /dev/zero
} >"$scratch/slow_upload"
"$FLOAT32" fill 200 1 >"$scratch/outer"
for other in 'row 1 10000 1' 'outer 100 1 100'; do
    # shellcheck disable=SC2086
    set -- $other
    talk slow_upload 1000 100 &
    talk=$!
    await 60 is_taken 16769024 || fail "the large body has not its memory"
    post_file row 'm=1&k=10000&n=1' 'Expect: 100-continue'
    expect "80 kB with Expect, which does not wait" 429
    post_file "$1" "m=$2&k=$3&n=$4"
    expect "a product of $2×$3 and $3×$4 for which another has to go" 200
    wait $talk || :
    last_reply
    expect "the one that had to go" 429 code busy Retry-After: '[1-9]*'
    keep POST /v1/matmul
done

# So have small uploads that hold all of it, whether a result or the elements of a text find no memory.
"$DAWDLE" --port "${url##*:}" --bodies 256 --claim 65536 --every-ms 1000 --seconds 600 >"$scratch/dawdle" &
dawdle=$!
await 60 is_taken 16777216 || fail "the small uploads have not all memory"
"$FLOAT32" fill 400 1 >"$scratch/outer"
post_file outer 'm=200&k=1&n=200'
expect "a result beside small uploads" 200
for count in 25000 150000; do
    awk -v count=$count 'BEGIN { printf "1"; while (++i < count) printf ",1" }' >"$scratch/ones.csv"
    printf '{"a":[[%s]],"b":[[1]],"transpose_a":true}' "$(cat "$scratch/ones.csv")" >"$scratch/text"
    post_file text '' "$json" 'Accept: application/octet-stream'
    expect "$count elements of a text beside them" 200
    ask /v1/matmul -H Expect: -F "a=@$scratch/ones.csv" -F "b=@$scratch/ones.csv" -F transpose_b=true
    expect "$count elements of two files beside them" 200
done
kill $dawdle 2>/dev/null || :
wait $dawdle 2>/dev/null || :
stop

# And replies that are hardly read, if that frees memory: not that of a stored matrix which has its name. A product's operand does
# not wait for its reply to be read.
start --backend cpu --memory-budget 24MiB --send-timeout-ms 600000
for shape in 'kept 1024 1024' 'gone 1400 1400' 'operand 1448 1'; do
    # shellcheck disable=SC2086
    set -- $shape
    head -c $(($2 * $3 * 4)) /dev/zero >"$scratch/zeros"
    ask "/v1/matrices/$1?m=$2&n=$3" -X PUT -H "$raw" -H Expect: --data-binary "@$scratch/zeros"
    expect "the stored matrix $1" 201
done
dawdles=
for request in 'GET /v1/matrices/kept' 'GET /v1/matrices/gone' 'POST /v1/matmul?a_from=operand&b_from=uniform(1)&n=1448'; do
    "$DAWDLE" --port "${url##*:}" --readers 1 --request "$request" --every-ms 600000 --seconds 60 >"$scratch/dawdle" &
    dawdles="$dawdles $!"
done
await 60 has_metric requests_in_flight 3 || fail "the replies that are not read did not begin"
await 60 is_taken_beyond 20421119 || fail "the product that is not read was not made"
ask /v1/matrices/gone -X DELETE
ask /v1/matrices/operand -X DELETE
await 10 has_metric 'store_bytes{state="released"}' 7840000 || fail "a stored operand waits for the reply to be read"
"$FLOAT32" fill 3500 1 >"$scratch/outer"
post_file outer 'm=1750&k=1&n=1750'
expect "a result for which replies have to go that are not read" 200
same "replies that have to go: closed" 2 "$(metric 'connections_closed_total{reason="slow_reader"}')"
# shellcheck disable=SC2086
set -- $dawdles
kill "$1"
wait "$2" "$3" || fail "the replies that are not read were not ended"
stop

# An upload that has its memory waits for more a moment later, here some 190 times. No wait is as long as the sweep's tenth of a
# second.
start --backend cpu --memory-budget 16MiB
"$DAWDLE" --port "${url##*:}" --bodies 240 --shape 1x8192x1 --bytes 100 --every-ms 1000 --seconds 600 >"$scratch/dawdle" &
dawdle=$!
await 60 grep -qs ready "$scratch/dawdle" || fail "the slow uploads did not begin"
await 60 is_taken_beyond 15728639 || fail "the slow uploads have not their memory"
head -c 12582912 /dev/zero >"$scratch/large"
begun_ms=$(now_ms)
post_file large 'm=1&k=1572864&n=1'
expect "12 MiB for which slow uploads have to go" 200
at_most "12 MiB for which slow uploads have to go, milliseconds" 5000 $(($(now_ms) - begun_ms))
kill $dawdle 2>/dev/null || :
wait $dawdle 2>/dev/null || :
stop

start --backend cpu --memory-budget 20MiB --timeout-ms $far_ms
compete "alone"
await 60 has_free_budget || fail "memory was left taken"

# An upload that is in time, but holds little and ends much later, changes nothing in that: nobody waits the two seconds for what it
# holds.
{
    printf 'POST /v1/matmul?m=1&k=25000&n=1 HTTP/1.1\r\nHost: localhost\r\n%s\r\nContent-Length: 200000\r\n\r\n' "$raw"
    head -c 200000 /dev/zero
} >"$scratch/trickle"
"$TALK" 127.0.0.1 "${url##*:}" 1000 200 <"$scratch/trickle" >"$scratch/raw" 2>&1 &
talk=$!
await 60 is_taken_beyond 0 || fail "the slow upload did not come"
sleep 1.6
compete "beside a slow upload"
at_most "beside a slow upload, milliseconds until the later is refused" 1500 "$refused_ms"
kill "$talk"
wait "$talk" 2>/dev/null || :
await 60 has_free_budget || fail "memory was left taken"

# Nor do uploads that are too small for any of them, one after the other, though each is fast.
{
    printf 'POST /v1/matmul?m=1&k=8320&n=1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n'
    printf '%s\r\nContent-Length: 66560\r\n\r\n' "$raw"
    head -c 66560 /dev/zero
} >"$scratch/small"
: >"$scratch/goes_on"
for pause_s in 0 0.5 1; do
    (
        sleep $pause_s
        while [ -f "$scratch/goes_on" ]; do
            "$TALK" 127.0.0.1 "${url##*:}" 66000 800 <"$scratch/small" >"$scratch/raw.$pause_s" 2>&1 || :
        done
    ) &
done
await 60 is_taken_beyond 0 || fail "the small uploads did not come"
sleep 1
compete "beside small uploads"
at_most "beside small uploads, milliseconds until the later is refused" 1500 "$refused_ms"
rm "$scratch/goes_on"
await 60 has_free_budget || fail "memory was left taken"
stop

# Nor does a client that reads its reply, of 8 MiB, but slowly.
start --backend cpu --memory-budget 29MiB --timeout-ms $far_ms
"$DAWDLE" --port "${url##*:}" --readers 1 --shape 1448x1x1448 --bytes 16000 --every-ms 60 --seconds 600 >"$scratch/dawdle" &
dawdle=$!
await 60 is_taken_beyond 8386815 || fail "the reply that is read slowly did not come"
sleep 2.2
compete "beside a reply that is read slowly"
at_most "beside a reply that is read slowly, milliseconds until the later is refused" 1500 "$refused_ms"
kill $dawdle
wait $dawdle 2>/dev/null || :
await 60 has_free_budget || fail "memory was left taken"
stop

# Nor does a product that takes longer than any of them waits.
start_held --backend cpu --memory-budget 20MiB --timeout-ms $far_ms
prepare_held cpu
hold_job first
compete "beside a product that takes long" release
finish_slow first "the product that takes long" 200
await 60 has_free_budget || fail "memory was left taken"
stop

# Many together need more than twice the budget, and come again and again: it goes on, since who comes later waits.
start --backend cpu --memory-budget 64MiB
"$STEADY" --port "${url##*:}" --shape 64x12288x64 --connections 48 --threads 4 --seconds 2 --refusals >"$scratch/figures"
at_most "products of 6 MiB by 48 clients in 2 s, at least" "$(sed -n 's/.* ok=\([0-9]*\) .*/\1/p' "$scratch/figures")" 20
await 60 has_free_budget || fail "memory was left taken"
# Whether a request fits does not depend on larger pieces of memory that are kept for others.
"$FLOAT32" fill 655368 1 >"$scratch/outer"
post_file outer 'm=655360&k=1&n=8'
expect "a result of 20 MiB" 200
"$FLOAT32" fill 6389864 1 >"$scratch/outer"
post_file outer 'm=491520&k=13&n=8&verify=true'
expect "59 MiB with their check, after it" 200
# The check of integers takes 256 times (k and a few) and 8 times k.
head -c 524288 /dev/zero >"$scratch/outer"
post_file outer 'm=1&k=262144&n=1&dtype=int8&verify=true'
expect "integers, whose check takes more than there is" 413 code too_large .field verify .limit 67108864 \
    .got $((256 * (1 + 1 + 262144 + 1) + 8 * 262144 + 2 * 262144 + 4)) \
    detail 'verify needs 69206784 bytes * 524292 *--memory-budget*'
# With the check alone it would fit, and as text alone too.
"$FLOAT32" fill 1048577 1 >"$scratch/outer"
post_file outer 'm=1048576&k=1&n=1&verify=true' 'Accept: application/json'
expect "a checked product as JSON" 413 code too_large
stop
finish
