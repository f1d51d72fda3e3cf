#!/bin/sh
# Tests POST /v1/benchmark: measured rows, text tables, limits, and products during a benchmark.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

post() {
    body=$1
    shift
    ask /v1/benchmark "$@" -d "$body"
}

# square N VARIANTS REPEATS: prints a request for N×N matrices. VARIANTS is a JSON array.
square() {
    printf '{"m": %s, "k": %s, "n": %s, "variants": %s, "repeats": %s}' "$1" "$1" "$1" "$2" "$3"
}

# refuses STATUS CODE FIELD LIMIT BODY [ARG…]: checks an error. LIMIT may be - for any limit.
refuses() {
    wanted=$1 code=$2 field=$3 limit=$4
    shift 4
    post "$@"
    expect "$*" "$wanted" code "$code" '.field // "none"' "$field"
    [ "$limit" = - ] || expect "$*" "$wanted" .limit "$limit"
}

is_free() {
    ! is_benchmarking
}

prepare_queued
MATMULD=${FAULTY:?the path of the faulty matmuld} # starts faster than the real matmuld

start --backend cpu

post '{"m": 33, "k": 20, "n": 17, "variants": ["naive", "cpu:tiled_8", "auto"], "repeats": 3}'
expect "two variants" 200 Content-Type: application/json \
    '"\(.op) \(.m) \(.k) \(.n) \(.dtype) \(.result_dtype)"' 'matmul 33 20 17 float32 float32' \
    '[.rows[] | "\(.variant) \(.backend) \(.repeats)"] | join(",")' 'naive cpu 3,tiled_8 cpu 3,auto cpu 3' \
    '[.rows[] | .max_error > 0 and .max_error < 1 and .relative_error > 0 and .relative_error < 2.5e-7] | all' true \
    '[.rows[].kernel_ms | .min <= .median and .median <= .max and .max > 0] | all' true \
    '[.rows[] | .gflops * .kernel_ms.median * 1e6 / (2 * 33 * 20 * 17) | . > 0.999 and . < 1.001] | all' true \
    '"\(.rows[0].global_loads) \(.rows[1].global_loads)"' "$((2 * 33 * 20 * 17)) $((33 * 20 * 3 + 20 * 17 * 5))" \
    '.rows[2].ran != null and .rows[2].ran != "auto"' true '.device != ""' true

# Benchmarks are counted as requests but not as products.
await 60 has_metric 'http_requests_total{route="/v1/benchmark",code="200"}' 1 || fail "the benchmark is not counted"
same "kernels are not counted" 0 "$(metric 'kernel_duration_seconds_count{variant="tiled_8",backend="cpu",op="matmul"}')"

post '{"m": 40, "k": 40, "n": 40, "transpose_b": true}' -H 'Accept: text/plain'
expect "a table" 200 Content-Type: 'text/plain; charset=utf-8'
like "a table: title" 'matmul m=40 k=40 n=40 float32 transpose_b on ?*' "$(head -n 1 "$scratch/got")"
like "a table: both errors" '*  of blas  relative error  max error  global loads' "$(sed -n 3p "$scratch/got")"
same "a table: rows are those that there are" \
    "$(curl -s "$url/v1/variants" | jq -r '.variants[] | select(.op == "matmul" and .available) | .name' | sort)" \
    "$(sed 1,3d "$scratch/got" | sed 's/ .*//' | sort)"
same "a table: aligned" 1 "$(sed 1,2d "$scratch/got" | awk '{ print length }' | sort -u | wc -l | tr -d ' ')"

post '{"m": 3, "k": 4, "n": 5, "dtype": "int8", "variants": ["naive"], "repeats": 1}'
expect "int8" 200 '"\(.dtype) \(.result_dtype) \(.rows[0].max_error == 0)"' 'int8 int32 true'
of_float16='{"m": 3, "k": 4, "n": 5, "dtype": "float16", "result_dtype": "float32", "variants": ["naive"], "repeats": 1}'
post "$of_float16"
expect "float16 in float32" 200 '"\(.dtype) \(.result_dtype)"' 'float16 float32'
post "$of_float16" -H 'Accept: text/plain'
like "float16 in float32: title" 'matmul m=3 k=4 n=5 float16 result_dtype=float32 on ?*' "$(head -n 1 "$scratch/got")"

post '{"m": 33, "k": 20, "n": 17, "transpose_a": true, "transpose_b": true, "repeats": 1}'
expect "both transposed" 200 '[.transpose_a, .transpose_b]' '[true,true]' \
    '[.rows[] | .max_error < 1 and .relative_error < 2.5e-7] | all' true \
    '[.rows[] | select(.variant == "blas").of_blas] - [1]' '[]' \
    '[.rows[] | select(.of_blas) | .of_blas * .kernel_ms.median] | length == 0 or max / min < 1.001' true

post '{"op": "transpose", "m": 130, "n": 70, "dtype": "int64", "repeats": 2}'
expect "transpositions" 200 'has("k") or has("result_dtype") or ([.rows[] | has("relative_error")] | any)' false \
    '[.rows[] | .max_error == 0 and .of_copy > 0 and .gigabytes_per_second > 0] | all' true

# tests/unit/api/benchmark.c tests more errors.
while IFS='|' read -r wanted code field detail body header; do
    refuses "$wanted" "$code" "$field" - "$body" ${header:+-H "$header"}
    expect "$body" "$wanted" detail "$detail"
done <<'END'
415|unsupported_media_type|Content-Type||{"m": 1, "k": 1, "n": 1}|Content-Type: application/octet-stream
406|not_acceptable|Accept|application/json, text/plain|{"m": 1, "k": 1, "n": 1}|Accept: application/x-npy
400|bad_request|none||{"m": 1, "k": 1, "n": 1|
422|unsupported|variants|naive*auto|{"m": 1, "k": 1, "n": 1, "variants": ["naive", "abacus"]}|
406|not_acceptable|Accept|application/json, text/plain|{"op": "shared_access"}|Accept: image/svg+xml
422|unsupported|backend|auto, cpu|{"op": "shared_access", "backend": "cuda"}|
END

# Without a GPU the server predicts the work of GPU kernels that have a model.
model='[.measured, .kernel_ms, .max_error, .repeats, .device, .error.code, .global_load_sectors]'
post '{"m": 5, "k": 6, "n": 7, "variants": ["cuda:naive", "cpu:naive"], "repeats": 2}'
expect "a model beside the CPU" 200 ".rows[0] | $model" '[false,null,null,0,"",null,30]' '.rows[1] | [.measured, .repeats]' '[true,2]'
post '{"m": 5, "k": 6, "n": 7, "variants": ["cuda:naive"]}'
expect "a model alone" 200 ".rows[0] | $model" '[false,null,null,0,"",null,30]' .device ''
post '{"m": 5, "k": 6, "n": 7, "variants": ["cuda:naive"]}' -H 'Accept: text/plain'
like "a model: a table" 'matmul m=5 k=6 n=7 float32, predicted*FLOP/byte*naive *cuda * 30 *' "$(cat "$scratch/got")"
refuses 422 unsupported variants - '{"m": 1, "k": 1, "n": 1, "variants": ["cuda:fails"]}'
expect "no model" 422 detail "'fails' has none for float32"
refuses 400 bad_request variants - '{"m": 1, "k": 1, "n": 1, "variants": ["cuda:naive/8"]}'

post '{"op": "shared_access"}'
expect "all accesses are predicted" 200 '"\(.backend) \(.rows | length) \(.shared_bank_bytes)"' 'cpu 208 null' \
    '[.rows[] | .measured or .cycles_per_access != null or .bytes_per_cycle != null or .latency_cycles != null] | any' false \
    '[.summary[]] | unique' '[null]' '[.rows[] | select(.memory == "shared") | .banks | length] | unique' '[32]'
post '{"op": "shared_access", "backend": "cpu", "patterns": "stride", "strides": 3, "word_bytes": 8, "padded": false}'
expect "banks of a stride" 200 '.rows[0] | [.access, .bank_bytes, .predicted_degree, .predicted_wavefronts]' '["read",4,1,2]' \
    '.rows[0].banks == [range(32) | . * 6 % 32]' true '.rows[1] | [.memory, .predicted_sectors, .measured]' '["global",24,false]'
post '{"op": "shared_access", "patterns": "stride", "strides": 1, "word_bytes": 4, "padded": false, "offset": 31}'
expect "a misaligned access" 200 '[.rows[] | [.memory, .offset, .predicted_sectors, .predicted_degree]]' '[["shared",31,null,1],["global",31,5,null]]' \
    '.rows[0].banks[:3]' '[31,0,1]'
chosen='{"op": "shared_access", "offsets": [0, 0, 64, null, 2047], "word_bytes": 4, "padded": false, "access": "write", "bank_bytes": 8}'
post "$chosen"
expect "chosen offsets" 200 '.rows | length' 1 \
    '.rows[0] | [.pattern, .stride, .access, .bank_bytes, .predicted_degree, .predicted_wavefronts]' '["offsets",null,"write",8,2,2]' \
    '.rows[0].banks[:6]' '[0,0,0,null,31,null]'
post "$chosen" -H 'Accept: text/plain'
like "chosen offsets: a drawing" '*
lane    0    1    2    3    4 *
byte    0    0  256    -*
bank   \*0   \*0   \*0    -   31    - *' "$(cat "$scratch/got")"

strides=$(seq -s, 1 16)
post '{"op": "occupancy", "threads_per_block": 256, "registers_per_thread": 40, "shared_bytes": 8192}'
expect "occupancy" 200 '.rows | length' 1 \
    '.rows[0] | [.compute_capability, .blocks, .warps, .warps_max, .occupancy, .limiters]' '["9.0",6,48,64,0.75,["registers"]]' \
    '.rows[0].blocks_by' '{"threads":8,"registers":6,"shared_memory":25,"blocks":32}'
combined='{"op": "occupancy", "compute_capability": ["7.0", "8.6"], "threads_per_block": [64, 1024], "registers_per_thread": [32, 64, 255]}'
post "$combined"
expect "occupancy of lists" 200 '[.rows[] | .blocks] | join(" ")' '32 16 4 2 1 0 16 16 4 1 1 0' \
    '[.rows[] | .blocks_by.shared_memory] | unique' '[null,100]' '.rows[5].limiters' '["registers"]' \
    '.rows[1] | [.compute_capability, .threads_per_block, .registers_per_thread]' '["7.0",64,64]'
post "$combined" -H 'Accept: text/plain'
same "occupancy: a table" 14 "$(wc -l <"$scratch/got" | tr -d ' ')"
like "occupancy: a row of the table" '*
8.6 *    64 *  32 *  0 | *   24 *  32 *  100 *  16 | *  16 *  32 *  66.7%  blocks
*' "$(cat "$scratch/got")"
refuses 413 too_large none 256 "{\"op\": \"occupancy\", \"threads_per_block\": [$strides], \"registers_per_thread\": [$strides], \"shared_bytes\": [0, 1]}"
ask '/v1/benchmark?repeats=3' -d '{"m":1,"k":1,"n":1}'
expect "a parameter in the query" 400 code bad_request .field repeats
printf '%-65535s}' '{"m": 1, "k": 1, "n": 1, "repeats": 1, "variants": ["cpu:naive"]' >"$scratch/body"
post "@$scratch/body"
expect "a body of the limit" 200
printf ' ' >>"$scratch/body"
for framing in 'X-A: b' 'Transfer-Encoding: chunked'; do
    refuses 413 too_large none 65536 "@$scratch/body" -H "$framing"
done
stop

# A benchmark may use at most fifteen sixteenths of the memory budget.
start --backend cpu --memory-budget 12800000
refuses 413 too_large none 12000000 "$(square 1000 '["naive"]' 1)"
stop
start_held --backend cpu --memory-budget 14100000
: >"$scratch/hold.benchmark"
post_benchmark 1000 naive
ask /v1/matmul -d '{"a": [[1,2]], "b": [[3],[4]]}'
expect "a small product beside the largest benchmark" 200 '.c' '[[11]]'
ask '/v1/matrices/small' -X PUT -d '{"a": [[1,2],[3,4]]}'
expect "a small matrix beside the largest benchmark" 201
kill -KILL "$benchmark"
await 60 is_free || fail "the largest one holds the device"
rm "$scratch/hold.benchmark"
stop

# Stored values leave too little memory for two sets of matrices, so the benchmark uses one set.
start --backend cpu --memory-budget 32MiB
"$FLOAT32" fill 2000000 1 >"$scratch/matrix"
ask '/v1/matrices/large?m=1000&n=2000' -X PUT -H 'Content-Type: application/octet-stream' --data-binary "@$scratch/matrix"
post '{"op": "transpose", "m": 1000, "n": 1500, "variants": ["naive"], "repeats": 1}'
expect "beside a store: one set" 200
stop

# A benchmark that would take hours ends when its client leaves or its time limit passes.
start_held --backend cpu
: >"$scratch/hold.benchmark"
post_benchmark 1000 naive naive
refuses 429 busy none - '{"m": 1, "k": 1, "n": 1}'
expect "a second benchmark" 429 Retry-After: '[1-9]*'
same "a second benchmark is counted" yes "$(metric 'busy_total{cause="benchmark"}' | awk '$1 > 0 { print "yes" }')"
same "beside a benchmark: a product" 200 "$(status_of -d @"$scratch/queued" "$url/v1/matmul?backend=cpu")"
at_most "bytes of the benchmark that count in the budget, at least" "$(metric 'staging_bytes{state="used"}')" $((2 * 12 * 1000 * 1000))
is_benchmarking || fail "the benchmark does not continue"
kill -KILL "$benchmark"
await 60 is_free || fail "the abandoned benchmark still uses the device"
await 60 has_free_budget || fail "the abandoned benchmark still uses memory"
refuses 504 timeout none - "$(square 1000 '["naive", "naive"]' 1000 | sed 's/}$/, "timeout_ms": 300}/')"
await 60 is_free || fail "the late benchmark still uses the device"

# After two seconds the benchmark ends and returns the runs that it measured.
post "$(square 64 '["naive"]' 1000)"
expect "a row's time" 200 '.rows[0].repeats < 1000 and .rows[0].repeats >= 1' true

rm "$scratch/hold.benchmark"
for epilogue in '{"alpha":0.5,"beta":-2,"bias":true,"activation":"none"}' '{"alpha":1,"beta":0,"bias":false,"activation":"gelu"}'; do
    for type in float32 float64 float16 bfloat16; do
        post "{\"m\": 33, \"k\": 20, \"n\": 170, \"dtype\": \"$type\", \"repeats\": 2, \"epilogue\": $epilogue}"
        expect "$epilogue of $type" 200 .epilogue "$epilogue" '[.rows[].max_error | . != null and . < 1] | all' true \
            '[.rows[].relative_error | . == null] | unique' "[$(echo "$epilogue" | grep -q none && echo false || echo true)]"
    done
done
for activation in none relu; do
    post "{\"m\": 33, \"k\": 20, \"n\": 17, \"dtype\": \"int8\", \"repeats\": 1, \"epilogue\": {\"alpha\": -3, \"beta\": 1000000000, \"activation\": \"$activation\"}}"
    expect "an epilogue of int8, $activation" 200 '.epilogue | [.alpha, .beta]' '[-3,1000000000]' '[.rows[].max_error] | unique' '[0]'
done
post '{"m": 3, "k": 4, "n": 5, "variants": ["naive"], "epilogue": {"bias": true}}' -H 'Accept: text/plain'
like "an epilogue: title" 'matmul m=3 k=4 n=5 float32 epilogue on ?*' "$(head -n 1 "$scratch/got")"
refuses 400 bad_request beta - '{"m": 1, "k": 1, "n": 1, "dtype": "int8", "epilogue": {"beta": 0.5}}'

: >"$scratch/hold.benchmark"
# The benchmark continues with its stored operand, even if a PUT replaces the value of this name.
ask /v1/matrices/a -X PUT -d '{"a": [[1,2,3],[4,5,6]]}'
post_json_benchmark '{"a": {"from": "a"}, "n": 100, "repeats": 1000, "variants": ["naive"]}'
ask /v1/matrices/a -X PUT -d '{"a": [[7,8],[9,1]]}'
expect "replaced while it runs" 200
same "replaced while it runs: the old value is held" 24 "$(metric 'store_bytes{state="released"}')"
ask /v1/matrices/a -X DELETE
expect "deleted while it runs" 204
rm "$scratch/hold.benchmark"
finish_benchmark
expect "deleted while it runs: the benchmark" 200 '[.m, .k, .n]' '[2,3,100]' '.rows[0].max_error < 1' true
same "deleted while it runs: nothing is held" 0 "$(metric 'store_bytes{state="released"}')"
: >"$scratch/hold.benchmark"

# A drain waits for the benchmark, but a drain with a short time limit cancels it.
post_benchmark 64 naive naive
kill -TERM "$server"
await 60 has_logged draining || fail "it does not drain"
rm "$scratch/hold.benchmark"
finish_benchmark
expect "a drain" 200
ended "a drain"
start_held --backend cpu --drain-timeout-ms 300
: >"$scratch/hold.benchmark"
post_benchmark 1000 naive
kill -TERM "$server"
finish_benchmark
expect "a short drain" 503 code stopping
ended "a short drain"
rm "$scratch/hold.benchmark"

# --benchmark-flops: two runs of 10×10×10 have 4000 operations, the limit.
start --backend cpu --benchmark-flops 4000 --benchmark-repeats 2
post "$(square 10 '["naive"]' 2)"
expect "work of the limit" 200
refuses 413 too_large repeats 4000 '{"m": 10, "k": 10, "n": 11, "variants": ["naive"], "repeats": 2}'
refuses 413 too_large repeats - "$(square 10 '["naive", "naive"]' 2)"
refuses 413 too_large repeats 2 "$(square 1 '["naive"]' 3)"
stop
start --backend cpu --benchmark-run-flops 2000
post "$(square 10 '["naive"]' 20)"
expect "a run of the limit" 200
refuses 413 too_large m 2000 '{"m": 10, "k": 11, "n": 10, "variants": ["naive"], "repeats": 1}'
stop
start --backend cpu --max-kernel-ms 1
post "$(square 600 '["naive"]' 1)"
expect "a row that takes too long" 200 .rows[0].error.code too_large
like "a row that takes too long: detail" 'naive would take *(--max-kernel-ms)*' "$(jq -r '.rows[0].error.detail' "$scratch/got")"
stop
start --backend cpu --memory-budget 1118481 --max-dimension 400 # a benchmark may use fifteen sixteenths, which are 1 MiB
for sides in '"m": 256, "k": 241, "n": 256' '"m": 1, "k": 400, "n": 1'; do
    post "{$sides, \"variants\": [\"naive\"], \"repeats\": 1}"
    expect "$sides, of the limit" 200
done
refuses 413 too_large none 1048576 '{"m": 256, "k": 242, "n": 256, "variants": ["naive"], "repeats": 1}'
expect "matrices over the budget" 413 detail ' 1050104 bytes'
refuses 413 too_large k - '{"m": 1, "k": 401, "n": 1, "variants": ["naive"], "repeats": 1}'
stop

# A stored operand needs memory twice, for the store and for the benchmark.
start --backend cpu --memory-budget 1118481 --store-memory 512KiB
"$FLOAT32" fill 80000 1 >"$scratch/matrix"
ask '/v1/matrices/a?m=400&n=200' -X PUT -H 'Content-Type: application/octet-stream' --data-binary "@$scratch/matrix"
expect "a matrix of 320000 bytes" 201
refuses 413 too_large none 1048576 '{"a": {"from": "a"}, "n": 170, "variants": ["naive"], "repeats": 1}'
expect "operands above the memory budget" 413 detail " $((2 * 4 * (400 * 200 + 200 * 170) + 4 * 400 * 170 + 8 * (4 * 170 + 5 * 601 + 200) + 262144 / 680 * 680)) bytes"
post '{"a": {"from": "a"}, "n": 10, "variants": ["naive"], "repeats": 1}'
expect "operands within the memory budget" 200 '.rows[0].max_error < 1' true
stop

start --backend cpu --no-benchmark
refuses 404 not_found none - '{"m": 1, "k": 1, "n": 1}'
expect "switched off" 404 detail 'switched off'
stop

# A CPU that does not compute is not predicted.
start --backend cuda
refuses 422 unsupported variants - '{"m": 1, "k": 1, "n": 1, "variants": ["cpu:naive"]}'
stop

# A failure can end one row, or all rows of a device.
start
post '{"op": "shared_access", "patterns": ["linear", "stride"], "strides": [1, 32], "word_bytes": 4}'
expect accesses 200 '[.rows[] | .measured] | unique' '[true]' '.rows[0].latency_cycles == 29' true '[.rows[].predicted_degree | tostring] | join(" ")' '1 1 32 1 1 1 null null' \
    '"\(.op) \(.backend) \(.device) \(.shared_bank_bytes)"' 'shared_access cuda Faulty 4'
post '{"op": "shared_access", "patterns": "broadcast"}' -H 'Accept: text/plain'
expect "accesses that fail" 507
post '{"op": "shared_access", "offsets": [0,0,32,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31], "word_bytes": 4, "padded": false, "bank_bytes": 4}'
expect "offsets that are timed" 200 '.rows[0] | [.measured, .predicted_degree == 2, .cycles_per_access == 2]' '[true,true,true]'
while IFS='|' read -r backend members; do
    post "{\"op\": \"shared_access\", \"word_bytes\": 4, $members}"
    expect "$members" 200 '"\(.backend) \([.rows[].measured] | unique)"' "$backend [false]"
done <<'END'
cuda|"access": "write"
cuda|"bank_bytes": 8
cuda|"offsets": [0]
cpu|"backend": "cpu"
END
post '{"op": "shared_access", "patterns": "broadcast", "word_bytes": 4}' -H 'Accept: text/plain'
like "a table of accesses" 'Faulty (cuda), banks of 4 bytes*' "$(cat "$scratch/got")"
mixed='{"m": 1, "k": 9, "n": 300, "repeats": 2,
    "variants": ["naive", "cpu:naive", "fails", "cpu:tiled_8", "needs_memory", "forgets_corner", "tiled/8", "cuda:auto"]}'
post "$mixed"
expect "two backends" 200 \
    '[.rows[] | "\(.backend) \(if .device == "Faulty" then "Faulty" else "CPU" end) \(.error.code // "none")"] | join(",")' \
    'cuda Faulty none,cpu CPU none,cuda Faulty internal,cpu CPU none,cuda Faulty no_device_memory,cuda Faulty none,cuda Faulty none,cuda Faulty none' \
    '[.rows[].max_error | if type == "number" then . < 1 else . end | tostring] | join(" ")' 'true true null true null Infinity false true' \
    '[.rows[].relative_error | if type == "number" then . < 1e-6 else . end | tostring] | join(" ")' \
    'true true null true null Infinity false true' '.device | startswith("Faulty, ")' true \
    '.rows[2] | [.kernel_ms, .gflops, .of_blas, .global_loads, .repeats, .error.detail]' '[null,null,null,null,0,"simulated launch failure"]' \
    '.rows[0, 7] | [.global_loads, .global_load_sectors, .global_store_sectors, .shared_load_passes, .bank_conflict_passes, .arithmetic_intensity]' \
    '[5,9,300,null,null,0.546117] [5,9,300,null,null,0.546117]' \
    '.rows[1, 2] | [has("global_load_sectors"), .global_load_sectors, .arithmetic_intensity]' '[false,null,null] [true,null,null]' \
    '[.rows[6].tile, .rows[6].global_loads]' '[8,null]' '[.rows[0, 7] | .tile, .ran]' '[null,null,null,"naive"]'
post "$mixed" -H 'Accept: text/plain'
for line in ' on Faulty, ' 'tiled/8 ' 'auto (naive) ' 'fails *  internal: simulated launch failure' 'forgets_corner *  inf *  inf  ' \
    'predicted memory traffic*FLOP/byte*naive *cuda * 9 * 300 * - * - * - * 0.546' 'FLOP/byte*auto (naive)'; do
    like "a table of two backends" "*$line*" "$(cat "$scratch/got")"
done
post '{"m": 2, "k": 9, "n": 30, "repeats": 1}'
expect "all variants except one that is wrong on purpose" 200 '[.rows[].variant] | contains(["off_by_one", "simt"])' true \
    '[.rows[].variant] | contains(["racy"])' false
post '{"m": 2, "k": 9, "n": 30, "variants": ["racy"], "repeats": 1}'
expect "wrong on purpose" 200 '.rows[0] | .max_error > 1 and .relative_error > 0.01 and .repeats == 1 and .error == null' true
post '{"m": 2, "k": 9, "n": 30, "variants": ["racy"], "repeats": 1}' -H 'Accept: text/plain'
like "wrong on purpose: a table" '*racy (wrong on purpose)  cuda *' "$(cat "$scratch/got")"
stop
start
post '{"m": 1, "k": 2, "n": 3, "variants": ["naive", "loses_device", "cpu:naive", "naive"]}'
expect "a device is lost" 200 '[.rows[] | .error.code // "none"] | join(" ")' 'device_failed device_failed none device_failed'
gives_up "a device is lost"
finish
