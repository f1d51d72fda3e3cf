#!/bin/sh
# POST /v1/benchmark: rows, table, limits at their edges, one at a time; users are served meanwhile, and who
# leaves frees the device, as does the end of a drain.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

: "${FAULTY:?the path of the faulty matmuld}"

# ask BODY [ARG…]: posts a benchmark; sets status, with the reply in $scratch/got and $scratch/head.
ask() {
    body=$1
    shift
    : >"$scratch/head"
    status=$(curl -s --max-time 120 -o "$scratch/got" -D "$scratch/head" -w '%{http_code}' "$@" -d "$body" \
        "$url/v1/benchmark") || :
    keep POST /v1/benchmark "$scratch/head" "$scratch/got"
}

# refused WHAT STATUS CODE FIELD: the last reply was this problem.
refused() {
    same "$1: status" "$2" "$status"
    same "$1: code" "$3" "$(code_of "$scratch/got")"
    same "$1: field" "$4" "$(jq -r '.field // "none"' "$scratch/got")"
}

told() {
    jq -r "$1" "$scratch/got"
}

# square N ROWS REPEATS: the body of a benchmark of these rows (JSON).
square() {
    printf '{"m": %s, "k": %s, "n": %s, "variants": %s, "repeats": %s}' "$1" "$1" "$1" "$2" "$3"
}

# post_long [ROWS]: starts a benchmark of so many rows (8), of two seconds each, of runs of some milliseconds, and does
# not wait for it.
post_long() {
    rows='"naive"'
    for _ in $(seq 2 "${1:-8}"); do
        rows="$rows,\"naive\""
    done
    rm -f "$scratch/long".*
    curl -s --max-time 120 -o "$scratch/long.got" -D "$scratch/long.head" -w '%{http_code}' \
        -d "$(square "$side" "[$rows]" 1000)" \
        "$url/v1/benchmark" >"$scratch/long.status" &
    long=$!
    await 10 is_benchmarking || fail "no benchmark is under way"
}

is_free() {
    [ "$(status_of -d '{"m":1,"k":1,"n":1,"variants":["cpu:naive"],"repeats":1}' "$url/v1/benchmark")" = 200 ]
}

milliseconds() {
    date +%s%3N
}

small() {
    curl -s --max-time 30 -H 'Content-Type: application/json' -d '{"a":[[2]],"b":[[3]]}' "$url/v1/matmul?backend=cpu" |
        jq -c .c
}

# What a run of about 10 ms takes; each row may have two seconds of them.
start --backend cpu
side=$(slow_side 0.01)

ask '{"m": 33, "k": 20, "n": 17, "variants": ["naive", "cpu:tiled_8", "auto"], "repeats": 3}'
same "two variants: status" 200 "$status"
same "two variants: type" application/json "$(header Content-Type "$scratch/head")"
same "two variants: what was asked" 'matmul 33 20 17 float32' "$(told '"\(.op) \(.m) \(.k) \(.n) \(.dtype)"')"
same "two variants: rows" 'naive cpu 3,tiled_8 cpu 3,auto cpu 3' \
    "$(told '[.rows[] | "\(.variant) \(.backend) \(.repeats)"] | join(",")')"
same "two variants: right" true "$(told '[.rows[] | .max_error > 0 and .max_error < 1] | all')"
same "two variants: right as a whole" true "$(told '[.rows[] | .relative_error > 0 and .relative_error < 2.5e-7] | all')"
same "two variants: times" true "$(told '[.rows[].kernel_ms | .min <= .median and .median <= .max and .max > 0] | all')"
same "two variants: rates" true \
    "$(told '[.rows[] | .gflops * .kernel_ms.median * 1e6 / (2 * 33 * 20 * 17) | . > 0.999 and . < 1.001] | all')"
same "two variants: loads" "$((2 * 33 * 20 * 17)) $((33 * 20 * 3 + 20 * 17 * 5))" "$(told '"\(.rows[0].global_loads) \(.rows[1].global_loads)"')"
same "two variants: what auto ran" true "$(told '.rows[2].ran != null and .rows[2].ran != "auto"')"
like "two variants: device" '?*' "$(told .device)"

# Requests are counted by their path; the kernels of a benchmark are not among those of products.
is_counted() {
    curl -s "$url/metrics" | grep -qx 'matmuld_http_requests_total{route="/v1/benchmark",code="200"} 1'
}
await 5 is_counted || fail "the benchmark is not counted"
same "kernels are not counted" 0 \
    "$(curl -s "$url/metrics" | sed -n 's/^matmuld_kernel_duration_seconds_count{.*variant="tiled_8",backend="cpu",op="matmul"} //p')"

ask '{"m": 40, "k": 40, "n": 40}' -H 'Accept: text/plain'
same "a table: status" 200 "$status"
same "a table: type" 'text/plain; charset=utf-8' "$(header Content-Type "$scratch/head")"
like "a table: title" 'matmul m=40 k=40 n=40 float32 on ?*' "$(head -n 1 "$scratch/got")"
like "a table: both errors" '*  of blas  relative error  max error  global loads' "$(sed -n 3p "$scratch/got")"
same "a table: rows are those that there are" \
    "$(curl -s "$url/v1/variants" | jq -r '.variants[] | select(.op == "matmul" and .available) | .name' | sort)" \
    "$(sed 1,3d "$scratch/got" | sed 's/ .*//' | sort)"
same "a table: aligned" 1 "$(sed 1,2d "$scratch/got" | awk '{ print length }' | sort -u | wc -l | tr -d ' ')"

# Operands that are stored transposed; the rows are compared with the exact product, which differs for each.
for stored in '"transpose_a": true' '"transpose_b": true' '"transpose_a": true, "transpose_b": true'; do
    ask "{\"m\": 33, \"k\": 20, \"n\": 17, $stored, \"repeats\": 1}"
    same "$stored: status" 200 "$status"
    same "$stored: told" "{$stored}" "$(told 'with_entries(select(.key | startswith("transpose_"))) | tojson' | sed 's/:/: /g; s/,/, /g')"
    same "$stored: right" true "$(told '[.rows[] | .max_error < 1 and .relative_error < 2.5e-7] | all')"
done
ask '{"m": 3, "k": 2, "n": 1, "transpose_a": false}'
same "stored as they are: not told" false "$(told 'has("transpose_a")')"
ask '{"m": 3, "k": 2, "n": 1, "transpose_b": true}' -H 'Accept: text/plain'
like "a table of a transposed B: title" 'matmul m=3 k=2 n=1 float32 transpose_b on ?*' "$(head -n 1 "$scratch/got")"

ask '{"op": "transpose", "m": 130, "n": 70, "dtype": "int64", "repeats": 2}'
same "transpositions: status" 200 "$status"
same "transpositions: right" true "$(told '[.rows[] | .max_error == 0 and .of_copy > 0 and .gigabytes_per_second > 0] | all')"
same "transpositions: no k" false "$(told 'has("k")')"
same "transpositions: no relative error" false "$(told '[.rows[] | has("relative_error")] | any')"

# Refusals.
ask '{"m": 1, "k": 1, "n": 1}' -H 'Content-Type: application/octet-stream'
refused "another type" 415 unsupported_media_type Content-Type
ask 'm=1'
refused "curl's own type, and no object" 415 unsupported_media_type Content-Type
ask '{"m": 1, "k": 1, "n": 1}' -H 'Accept: application/x-npy'
refused "another type of reply" 406 not_acceptable Accept
like "another type of reply: those there are" '*application/json, text/plain*' "$(told .detail)"
ask '{"m": 1, "k": 1, "n": 1, "colour": "red"}'
refused "an unknown member" 400 bad_request colour
ask '{"m": 1, "k": 1, "n": 1, "transpose_b": 1}'
refused "a flag that is a number" 400 bad_request transpose_b
ask '{"op": "transpose", "m": 1, "n": 1, "transpose_a": false}'
refused "a flag of another operation" 400 bad_request transpose_a
ask '{"op": "shared_access", "transpose_b": true}'
refused "a flag of accesses" 400 bad_request transpose_b
ask '{"m": 1, "k": 1, "n": 1' # and no end
refused "no JSON" 400 bad_request none
ask '{"m": 1, "k": 1, "n": 1, "variants": ["naive", "abacus"]}'
refused "an unknown variant" 422 unsupported variants
like "an unknown variant: those there are" '*naive*auto*' "$(told .detail)"
ask '{"m": 1, "k": 1, "n": 1, "variants": ["tpu:naive"]}'
refused "an unknown backend" 422 unsupported variants
ask '{"op": "shared_access"}'
refused "accesses to what there is not" 422 unsupported op
ask '{"m": 1, "k": 1, "n": 1, "variants": ["naive/8"]}'
refused "a tile that is not to be chosen" 400 bad_request variants
status=$(curl -s -o "$scratch/got" -w '%{http_code}' -d '{"m":1,"k":1,"n":1}' "$url/v1/benchmark?repeats=3")
refused "a parameter in the query" 400 bad_request repeats
status=$(curl -s -o "$scratch/got" -w '%{http_code}' "$url/v1/benchmark")
same "GET: status" 405 "$status"
printf '%-65535s}' '{"m": 1, "k": 1, "n": 1, "repeats": 1, "variants": ["cpu:naive"]' >"$scratch/body"
ask "@$scratch/body"
same "a body of the limit: status" 200 "$status"
printf ' ' >>"$scratch/body"
ask "@$scratch/body"
refused "a byte over the limit" 413 too_large none
same "a byte over the limit: limit" 65536 "$(told .limit)"
ask "@$scratch/body" -H 'Transfer-Encoding: chunked'
refused "a byte over the limit, chunked" 413 too_large none
same "a byte over the limit, chunked: limit" 65536 "$(told .limit)"
# ... and not kept until its end, which is in doubt.
head -c 3000000 /dev/zero | tr '\0' ' ' >"$scratch/body"
ask "@$scratch/body" -H 'Transfer-Encoding: chunked' -H 'Content-Type: application/json'
refused "3 MB in chunks" 413 too_large none
same "3 MB in chunks: Connection" close "$(header Connection "$scratch/head")"

# One at a time; products come in between, and a second of the device's time is theirs again when its caller leaves.
post_long
ask '{"m": 1, "k": 1, "n": 1}'
refused "a second one" 429 busy none
like "a second one: Retry-After" '[1-9]*' "$(header Retry-After "$scratch/head")"
from=$(milliseconds)
for _ in 1 2 3 4 5; do
    same "a product meanwhile" '[[6]]' "$(small)"
done
at_most "five products meanwhile: milliseconds" 8000 $(($(milliseconds) - from))
same "the benchmark goes on" 429 "$(status_of -d '{"m":1,"k":1,"n":1}' "$url/v1/benchmark")"
used=$(curl -s "$url/metrics" | sed -n 's/^matmuld_staging_bytes{state="used"} //p')
same "its memory is counted in the budget" true "$(awk -v used="$used" -v side="$side" 'BEGIN { print (used >= 2 * 12 * side * side) ? "true" : "false" }')"
kill -KILL "$long"
from=$(milliseconds)
await 5 is_free || fail "who left holds the device"
at_most "milliseconds from leaving to a free device" 2500 $(($(milliseconds) - from))
await 5 sh -c "curl -s '$url/metrics' | grep -qx 'matmuld_staging_bytes{state=\"used\"} 0'" ||
    fail "who left holds memory"

from=$(milliseconds)
ask "$(square "$side" '["naive","naive","naive","naive"]' 1000 | sed 's/}$/, "timeout_ms": 300}/')"
refused "a deadline" 504 timeout none
at_most "a deadline: milliseconds" 4000 $(($(milliseconds) - from))
await 5 is_free || fail "what was late holds the device"

# It is given two seconds, and what it did in them is told.
from=$(milliseconds)
ask "$(square "$side" '["naive"]' 1000)"
same "a row's time: status" 200 "$status"
same "a row's time: repeats" true "$(told '.rows[0].repeats < 1000 and .rows[0].repeats >= 1')"
at_most "a row's time: milliseconds" 12000 $(($(milliseconds) - from))

# A drain lets it end.
post_long 2
kill -TERM "$server"
wait "$long"
same "a drain: status" 200 "$(cat "$scratch/long.status")"
keep POST /v1/benchmark "$scratch/long.head" "$scratch/long.got"
ended "a drain"

# A short one does not.
start --backend cpu --drain-timeout-ms 300
post_long
from=$(milliseconds)
kill -TERM "$server"
wait "$long"
same "a short drain: status" 503 "$(cat "$scratch/long.status")"
same "a short drain: code" stopping "$(code_of "$scratch/long.got")"
ended "a short drain"
at_most "a short drain: milliseconds" 5000 $(($(milliseconds) - from))

# Limits at their edges: 2·10·10·10·2 operations, a thousandfold; 4·(256·253 + 253·256 + 256·256) bytes
# of matrices, and of what judges them 8·(256 + 253) + 4·256 and a piece of all of C: 1047528, and 2056 for one more of k.
start --backend cpu --benchmark-flops 4000000 --benchmark-repeats 2
ask "$(square 10 '["naive"]' 2)"
same "work of the limit: status" 200 "$status"
ask '{"m": 10, "k": 10, "n": 11, "variants": ["naive"], "repeats": 2}'
refused "work over the limit" 413 too_large repeats
same "work over the limit: limit" 4000000 "$(told .limit)"
ask "$(square 10 '["naive", "naive"]' 2)"
refused "a row over the limit" 413 too_large repeats
ask "$(square 1 '["naive"]' 3)"
refused "repeats over the limit" 413 too_large repeats
same "repeats over the limit: limit" 2 "$(told .limit)"
stop
start --backend cpu --benchmark-run-flops 2000000
ask "$(square 10 '["naive"]' 20)"
same "a run of the limit: status" 200 "$status"
ask '{"m": 10, "k": 11, "n": 10, "variants": ["naive"], "repeats": 1}'
refused "a run over the limit" 413 too_large m
same "a run over the limit: limit" 2000000 "$(told .limit)"
stop
start --backend cpu --memory-budget 1MiB --max-dimension 400
ask '{"m": 256, "k": 253, "n": 256, "variants": ["naive"], "repeats": 1}'
same "matrices of the budget: status" 200 "$status"
ask '{"m": 256, "k": 254, "n": 256, "variants": ["naive"], "repeats": 1}'
refused "matrices over the budget" 413 too_large none
same "matrices over the budget: limit" 1048576 "$(told .limit)"
like "matrices over the budget: what they take" '* 1049584 bytes*' "$(told .detail)"
ask '{"m": 1, "k": 400, "n": 1, "variants": ["naive"], "repeats": 1}'
same "a dimension of the limit: status" 200 "$status"
ask '{"m": 1, "k": 401, "n": 1, "variants": ["naive"], "repeats": 1}'
refused "a dimension over the limit" 413 too_large k
rows=$(printf '"naive",%.0s' $(seq 64))
ask "$(square 1 "[${rows%,}]" 1)"
same "as many rows as there may be: status" 200 "$status"
ask "$(square 1 "[$rows\"naive\"]" 1)"
refused "a row more than there may be" 413 too_large variants
stop

# Switched off.
for how in flag environment; do
    if [ "$how" = flag ]; then
        start --backend cpu --no-benchmark
    else
        export MATMULD_NO_BENCHMARK=1
        start --backend cpu
        unset MATMULD_NO_BENCHMARK
    fi
    ask '{"m": 1, "k": 1, "n": 1}'
    refused "switched off by the $how" 404 not_found none
    like "switched off by the $how: detail" '*switched off*' "$(told .detail)"
    same "switched off by the $how: GET" 404 "$(status_of "$url/v1/benchmark")"
    same "switched off by the $how: a product" '[[6]]' "$(small)"
    stop
done
conform "$scratch/exchanges"
rm "$scratch/exchanges"/*
kept=0

# Two kinds of device in one request, and rows that fail as told: by themselves, and with their device.
MATMULD=$FAULTY
start
ask '{"op": "shared_access", "patterns": ["linear", "stride"], "strides": [1, 32], "word_bytes": 4}'
same "accesses: status" 200 "$status"
same "accesses: rows" '1 1 32 1 1 1 null null' "$(told '[.rows[].predicted_degree | tostring] | join(" ")')"
same "accesses: device" 'shared_access cuda Faulty 4' "$(told '"\(.op) \(.backend) \(.device) \(.shared_bank_bytes)"')"
ask '{"op": "shared_access", "patterns": "broadcast"}' -H 'Accept: text/plain'
same "accesses that fail: status" 507 "$status"
ask '{"op": "shared_access", "patterns": "broadcast", "word_bytes": 4}' -H 'Accept: text/plain'
same "a table of accesses: status" 200 "$status"
like "a table of accesses" 'Faulty (cuda), banks of 4 bytes*' "$(cat "$scratch/got")"
ask '{"op": "shared_access", "patterns": "zigzag"}'
refused "an unknown pattern" 400 bad_request patterns
ask '{"m": 1, "k": 9, "n": 300, "repeats": 2, "variants": ["naive", "cpu:naive", "fails", "cpu:tiled_8", "needs_memory", "forgets_corner"]}'
same "two backends: status" 200 "$status"
same "two backends: rows" 'cuda Faulty none,cpu CPU none,cuda Faulty internal,cpu CPU none,cuda Faulty no_device_memory,cuda Faulty none' \
    "$(told '[.rows[] | "\(.backend) \(if .device == "Faulty" then "Faulty" else "CPU" end) \(.error.code // "none")"] | join(",")')"
like "two backends: devices" 'Faulty, ?*' "$(told .device)"
same "two backends: right" 'true true null true null Infinity' \
    "$(told '[.rows[].max_error | if type == "number" then . < 1 else . end | tostring] | join(" ")')"
same "two backends: right as a whole" 'true true null true null Infinity' \
    "$(told '[.rows[].relative_error | if type == "number" then . < 1e-6 else . end | tostring] | join(" ")')"
same "what failed has no figures" null "$(told '.rows[2].kernel_ms')"
ask '{"m": 1, "k": 2, "n": 3, "variants": ["naive", "loses_device", "cpu:naive", "naive"]}'
same "a device is lost: status" 200 "$status"
same "a device is lost: rows" 'device_failed device_failed none device_failed' "$(told '[.rows[] | .error.code // "none"] | join(" ")')"
gives_up "a device is lost"
finish
