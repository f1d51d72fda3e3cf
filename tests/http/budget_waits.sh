#!/bin/sh
# How requests wait for memory: who gets it, who goes on, and who has to come again.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

: "${DAWDLE:?the path of the program dawdle}"

MATMULD=${FAULTY:?the path of the faulty matmuld} # the same, and starts faster
raw='Content-Type: application/octet-stream'
"$FLOAT32" fill 20000 1 >"$scratch/row"

# write_part K BYTES: an upload of a row and a column of K, of whose body only so many bytes come.
write_part() {
    {
        printf 'POST /v1/matmul?m=1&k=%s&n=1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n' "$1"
        printf '%s\r\nContent-Length: %s\r\n\r\n' "$raw" $(($1 * 8))
        head -c "$2" /dev/zero
    } >"$scratch/part"
}

# A body that waits leaves memory for the result of one that is complete.
start --backend cpu --memory-budget 4MiB
{
    printf 'POST /v1/matmul?m=160&k=46&n=160 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n'
    printf '%s\r\nContent-Length: 58880\r\n\r\n' "$raw"
    head -c 58880 /dev/zero
} >"$scratch/trickle"
talk trickle 1200 20 &
talk=$!
await 60 is_taken_beyond 58879 || fail "the small upload did not come"
"$FLOAT32" fill 1046528 1 >"$scratch/large"
post_file large 'm=1&k=523264&n=1'
expect "a body that needs the memory of another" 200
wait $talk || :
last_reply
expect "the other, which needs memory for its result" 200
stop

# An upload that stands has to go too, however much it brought before. What it holds leaves less than the other needs.
start --backend cpu --memory-budget 3MiB
head -c 3100000 /dev/zero >"$scratch/most"
for framing in 'Transfer-Encoding: chunked' 'Content-Length: 3102000'; do
    {
        printf 'POST /v1/matmul?m=1&k=387750&n=1 HTTP/1.1\r\nHost: localhost\r\n%s\r\n%s\r\n\r\n' "$raw" "$framing"
        case $framing in Transfer*) printf '2f5530\r\n' ;; esac
        cat "$scratch/most"
    } >"$scratch/stands"
    talk stands 65536 &
    talk=$!
    await 60 is_taken_beyond 3099999 || fail "the upload that will stand did not come"
    post_file row 'm=1&k=10000&n=1'
    expect "80 kB beside an upload that stands, $framing" 200
    wait $talk || :
    last_reply
    expect "the one that stands, $framing" 429 code busy Retry-After: '[1-9]*'
done
stop

# A waiting body gets the memory that another releases, and keeps it while a third waits. A sixteenth is for results.
start_held --backend cpu --memory-budget 17156272
prepare_held cpu 1 2000000 1
hold_job first
write_part 10000 50000
talk part 65536 &
talk=$!
await 60 is_taken_beyond 16049999 || fail "the upload that will stand did not come"
for name in one two; do
    curl -s -o "$scratch/got.$name" -w '%{http_code}\n' -H Expect: -H "$raw" --data-binary "@$scratch/row" \
        "$url/v1/matmul?m=1&k=10000&n=1" >"$scratch/status.$name" &
    eval "$name=\$!"
    sleep 0.1
done
kill "$talk"
# shellcheck disable=SC2154
wait "$one" "$two" "$talk" || :
same "two that wait, and memory for one" "200 200" "$(paste -d ' ' "$scratch/status.one" "$scratch/status.two")"
release
finish_slow first "the one that came first" 200
stop

# A small body does not wait behind a large one that came before, though both wait. Once the small one has its memory, the large one
# gets what the held product has, if its three seconds are not over.
start_held --backend cpu --memory-budget 16070000
prepare_held cpu 1 2000000 1
hold_job first
write_part 8000 50000
"$TALK" 127.0.0.1 "${url##*:}" 65536 <"$scratch/part" >"$scratch/raw" 2>&1 &
talk=$!
await 60 is_taken_beyond 16063999 || fail "the small upload that holds memory did not come"
head -c 40000 /dev/zero >"$scratch/small"
for pair in 'row 10000' 'small 5000'; do
    name=${pair% *}
    curl -s -o "$scratch/got.$name" -w '%{http_code}\n' -H Expect: -H "$raw" --data-binary "@$scratch/$name" \
        "$url/v1/matmul?m=1&k=${pair#* }&n=1" >"$scratch/status.$name" &
    eval "$name=\$!"
    sleep 0.2
done
kill "$talk"
# shellcheck disable=SC2154
wait "$small" || :
release
# shellcheck disable=SC2154
wait "$row" || :
same "a large body and a later small one that wait" "200 200" "$(paste -d ' ' "$scratch/status.row" "$scratch/status.small")"
wait "$talk" 2>/dev/null || :
finish_slow first "the one that came first" 200
stop

# While an upload waits for memory its time stands still. This one has half a MiB of 20 then, which a quarter of a second should
# have brought.
start_held --backend cpu --memory-budget 24MiB
prepare_held cpu 1 2883584 1
hold_job first
head -c 20971520 /dev/zero >"$scratch/large"
curl -s -o "$scratch/got.one" -w '%{http_code}\n' -H Expect: -H "$raw" --data-binary "@$scratch/large" \
    "$url/v1/matmul?m=1&k=2621440&n=1&timeout_ms=10000" >"$scratch/status.one" &
one=$!
await 60 is_taken_beyond 23500000 || fail "the upload did not come"
sleep 1
release
wait "$one" || :
same "an upload that has waited for memory" 200 "$(cat "$scratch/status.one")"
finish_slow first "the one that came first" 200
stop

# So it does for --receive-timeout-ms. The second half comes soon after the wait.
start_held --backend cpu --memory-budget 16020004 --receive-timeout-ms 2200 --receive-rate 1000000
prepare_held cpu 1 2000000 1
hold_job first
write_part 4800 38400
talk part 20000 2600 &
talk=$!
sleep 2
release
wait $talk || :
last_reply
expect "an upload whose first half has waited for memory" 200
finish_slow first "the one that came first" 200
stop

# A deadline holds while an upload waits for memory, which it may do for three seconds.
start_held --backend cpu --memory-budget 16070000
prepare_held cpu 1 2000000 1
hold_job first
begun_ms=$(now_ms)
post_file row 'm=1&k=10000&n=1&timeout_ms=300'
at_most "a deadline of an upload that waits for memory, milliseconds" 2000 $(($(now_ms) - begun_ms))
expect "a deadline of an upload that waits for memory" 504 code timeout detail "of the body had come" Connection: close
# In all: this one waits for its body until an upload is refused that stands, and then for its result.
write_part 8000 20000
talk part 65536 &
talk=$!
await 60 is_taken_beyond 16019999 || fail "the upload that will stand did not come"
begun_ms=$(now_ms)
head -c 60000 /dev/zero >"$scratch/small"
post_file small 'm=150&k=50&n=150'
waited_ms=$(($(now_ms) - begun_ms))
expect "a request that has waited for three seconds in all" 429 code busy detail 'none became free' Retry-After: '[1-9]*'
at_most "a request that waits for three seconds in all, at least milliseconds" "$waited_ms" 2900
at_most "a request that waits for three seconds in all, milliseconds" 3600 "$waited_ms"
wait $talk || :
last_reply
expect "the upload that stood" 429 code busy
release
finish_slow first "the one that came first" 200
same "a deadline of an upload that waits for memory: counted" 1 "$(metric 'cancelled_total{stage="receive"}')"
stop

# While others serve the first that waits, the latest does not have to go, though it holds what the next one lacks: here the first
# gets memory as another's deadline passes, and holds it.
start_held --backend cpu --memory-budget 16230204
prepare_held cpu 1 2000000 1
hold_job first
prepare_held cpu 150 30 150
hold_job second timeout_ms=1500
prepare_held cpu 150 16 150
post_slow third
head -c 19200 /dev/zero >"$scratch/small"
for name in one two; do
    sleep 0.2
    curl -s -o "$scratch/got.$name" -w '%{http_code}\n' -H "$raw" --data-binary "@$scratch/small" \
        "$url/v1/matmul?m=150&k=16&n=150" >"$scratch/status.$name" &
    eval "$name=\$!"
done
sleep 2.3
release
wait "$one" "$two"
same "two that wait while memory comes" "200 200" "$(paste -d ' ' "$scratch/status.one" "$scratch/status.two")"
finish_slow second "the one whose deadline passed" 504
finish_slow third "the first that waited" 200

# The list of stored matrices counts as well, here 900 names of 128 characters: else each client that does not read it would take
# memory beyond the budget.
name=$(printf 'm%.0s' $(seq 125))
curl -s -o /dev/null -X PUT --data-binary 1234 "$url/v1/matrices/${name}[100-999]?m=1&n=1"
prepare_held cpu 1 2000000 1
hold_job fourth
ask /v1/matrices
expect "a list for which nothing is left" 429 code busy Retry-After: '[1-9]*' detail --memory-budget
ask '/v1/matrices?limit=100'
expect "a shorter list" 200 '.matrices | length' 100
release
finish_slow fourth "the one beside it" 200
ask /v1/matrices
expect "a list" 200 '.matrices | length' 900
stop

# Of two that fit one by one, the second has to come again if it asks before it sends.
start_held --backend cpu --memory-budget 24000000
prepare_held cpu 1 2000000 1
hold_job first
post_file slow "$slow_query" 'Expect: 100-continue'
expect "the budget is taken" 429 code busy Retry-After: '[1-9]*'
release
finish_slow first "the one that came first" 200
post_slow second
finish_slow second "once there is room" 200
stop

# A few bytes can ask for an output of any size. Large ones leave a sixteenth to others while their kernels run.
start_held --backend cpu --memory-budget 14000000
"$FLOAT32" fill 3700 1 >"$scratch/outer"
post_file outer 'm=1850&k=1&n=1850'
expect "an output that leaves nothing to others" 413 code too_large .limit 12250000 .got 13690000
prepare_held cpu 1600 1 1600
hold_job first
"$FLOAT32" fill 1800 1 >"$scratch/outer"
curl -s -o "$scratch/got.one" -H "$raw" --data-binary "@$scratch/outer" "$url/v1/matmul?m=900&k=1&n=900" &
one=$!
sleep 0.2
post_file outer 'm=900&k=1&n=900'
expect "an output for which nothing is left" 429 code busy detail 'none became free'
wait "$one"
like "an output before it, which that would not have helped" '*none became free*' "$(cat "$scratch/got.one")"
# A deadline that only the body tells, which the worker pool reads, ends the wait.
awk 'BEGIN { for (i = 1; i <= 36000; i++) printf "0.12345%s", i % 40 ? "," : "\n" }' >"$scratch/a.csv"
awk 'BEGIN { for (i = 1; i <= 36000; i++) printf "0.12345%s", i % 900 ? "," : "\n" }' >"$scratch/b.csv"
ask /v1/matmul -H Expect: -H 'Accept: application/octet-stream' -F "a=@$scratch/a.csv" -F "b=@$scratch/b.csv" -F timeout_ms=400
expect "a deadline in a form that waits for memory" 504 code timeout
post_file row 'm=1&k=10000&n=1'
expect "80 kB beside large outputs" 200

# Large outputs that wait are served in their order: a smaller one does not overtake.
for name in 900 550; do
    curl -s --max-time 60 -o /dev/null -w '%{http_code}\n' -X POST "$url/v1/matmul?m=$name&k=1&n=$name&a_from=identity()&b_from=identity()&reply=none" \
        >"$scratch/status.$name" &
    eval "size_$name=\$!"
    sleep 0.3
done
# A body goes past them if all that do so take less than a sixteenth together.
post_file row 'm=1&k=10000&n=1'
expect "80 kB beside large outputs that wait" 200
head -c 2000000 /dev/zero >"$scratch/large"
curl -s -o /dev/null -w '%{http_code}\n' -H Expect: -H "$raw" --data-binary "@$scratch/large" \
    "$url/v1/matmul?m=1&k=250000&n=1" >"$scratch/status.large" &
large=$!
sleep 0.2
same "what waits behind a larger output" '' "$(cat "$scratch/status.550" "$scratch/status.large")"
release
# shellcheck disable=SC2154
wait "$size_900" "$size_550" "$large"
same "they are computed" "200 200 200" "$(cat "$scratch/status.900" "$scratch/status.550" "$scratch/status.large" | paste -sd ' ')"
finish_slow first "a large output" 200

# The text of a stored matrix leaves a sixteenth as well, and what stored matrices take is not waited for.
"$FLOAT32" fill 500000 1 >"$scratch/outer"
ask '/v1/matrices/large?m=500&n=1000' -X PUT -H "$raw" -H Expect: --data-binary "@$scratch/outer"
expect "a stored matrix" 201
ask /v1/matrices/large -H 'Accept: application/json'
expect "its text" 200
begun_ms=$(now_ms)
ask '/v1/matmul?m=1700&k=1&n=1700&a_from=identity()&b_from=identity()&reply=none' -X POST
expect "an output that has no room beside it" 429 code busy detail 'stored matrices take 2000000'
at_most "that is told at once, milliseconds" 2000 $(($(now_ms) - begun_ms))
stop

# Three clients ask by a few bytes for results of almost seven eighths of the budget, again and again, and hardly read them. Bodies
# and smaller results go past those that wait.
start --backend cpu --memory-budget 64MiB
: >"$scratch/goes_on"
for reader in 1 2 3; do
    while [ -f "$scratch/goes_on" ]; do
        "$DAWDLE" --port "${url##*:}" --readers 1 --bytes 100 --every-ms 300 --seconds 600 \
            --request 'POST /v1/matmul?m=3800&k=1&n=3800&a_from=uniform(1)&b_from=uniform(2)&variant=naive' >"$scratch/dawdle.$reader" &
        echo $! >"$scratch/reader.$reader"
        wait $! 2>/dev/null || :
    done &
done
await 60 has_metric requests_in_flight 3 || fail "the results that are hardly read did not begin"
await 60 is_taken_beyond 57759999 || fail "no result that is hardly read has its memory"
head -c 2097152 /dev/zero >"$scratch/large"
slow=0
for _ in 1 2 3 4 5; do
    for body in 'large m=1&k=262144&n=1 X-A:b' 'row m=1&k=10000&n=1 Transfer-Encoding:chunked' 'row m=1&k=10000&n=1 Expect:100-continue'; do
        # shellcheck disable=SC2086
        set -- $body
        begun_ms=$(now_ms)
        post_file "$@"
        expect "$* beside huge results that wait" 200
        [ $(($(now_ms) - begun_ms)) -le 1000 ] || slow=$((slow + 1))
    done
    sleep 0.2
done
at_most "of fifteen bodies beside huge results that wait, those that take more than a second" 1 $slow
rm "$scratch/goes_on"
for reader in 1 2 3; do
    kill "$(cat "$scratch/reader.$reader")" 2>/dev/null || :
done
await 60 has_free_budget || fail "the results that are hardly read were not ended"
stop

# So do they if what is hardly read is a stored matrix that was deleted meanwhile. Its reader goes for the huge result, but only after
# a second.
start --backend cpu --memory-budget 64MiB --store-memory 64MiB
least_ms=60000
for _ in 1 2 3; do
    ask '/v1/matmul?m=3800&k=1&n=3800&a_from=uniform(1)&b_from=uniform(2)&variant=naive&out=gone&reply=none' -X POST
    expect "a result that is stored" 200
    "$DAWDLE" --port "${url##*:}" --readers 1 --bytes 100 --every-ms 300 --seconds 600 --request 'GET /v1/matrices/gone' >"$scratch/dawdle" &
    dawdle=$!
    await 60 has_metric requests_in_flight 1 || fail "the stored matrix is not read"
    ask /v1/matrices/gone -X DELETE
    expect "its end" 204
    curl -s --max-time 60 -o /dev/null -w '%{http_code}\n' -X POST \
        "$url/v1/matmul?m=3800&k=1&n=3800&a_from=uniform(1)&b_from=uniform(2)&variant=naive&reply=none" >"$scratch/status.huge" &
    huge=$!
    sleep 0.1
    begun_ms=$(now_ms)
    post_file large 'm=1&k=262144&n=1'
    took_ms=$(($(now_ms) - begun_ms))
    expect "2 MiB beside a deleted matrix that is hardly read" 200
    [ $took_ms -ge $least_ms ] || least_ms=$took_ms
    wait $huge
    same "the huge result" 200 "$(cat "$scratch/status.huge")"
    kill $dawdle 2>/dev/null || :
    wait $dawdle 2>/dev/null || :
done
at_most "the shortest wait beside a deleted matrix that is hardly read, milliseconds" 300 $least_ms
stop
finish
