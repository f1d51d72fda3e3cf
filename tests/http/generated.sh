#!/bin/sh
# Tests generated operands, and replies without C, with a part of C, or with reductions of C. Usage:
# generated.sh BACKEND. Skipped (status 77) if the backend has no device.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

backend=$1
start
devices=$(curl -s --max-time 30 "$url/v1/devices" | jq "[.devices[] | select(.backend == \"$backend\")] | length")
stop
[ "$devices" -gt 0 ] || exit 77
start --backend "$backend" --memory-budget 64MiB --max-kernel-ms 2000 --max-device-memory 8MiB

# Each row: path|query|arguments of `expect`
while IFS='|' read -r path query outcome; do
    ask "/v1/$path?$query" -X POST
    # shellcheck disable=SC2086
    expect "$path?$query" $outcome
done <<'END_OF_CASES'
matmul|m=2&k=2&n=3&a_from=identity()&b_from=identity()|200 .c [[1,0,0],[0,1,0]] .dtype float32 .shape [2,3]
matmul|m=2&k=2&n=2&a_from=identity()&b_from=identity()&dtype=int8|200 .c [[1,0],[0,1]] .dtype int32 .operand_dtype int8
matmul|m=2&k=2&n=2&a_from=identity()&b_from=identity()&reply=none|200 has("c") false .shape [2,2]
matmul|a_shape=2,2,3&b_shape=3,2&a_from=identity()&b_from=identity()|200 .c [[[1,0],[0,1]],[[1,0],[0,1]]]
matmul|m=2&k=3&n=1&a_from=uniform(18446744073709551615)&b_from=identity()&transpose_a=1|200 .shape [2,1]
matmul|m=0&k=3&n=2&a_from=uniform(1)&b_from=uniform(2)|200 .c []
matmul|m=64&k=64&n=64&a_from=uniform(1)&b_from=uniform(2)&verify=1&reply=none|200 .verify.passed true has("c") false
transpose|m=2&n=3&a_from=identity()|200 .c [[1,0],[0,1],[0,0]]
transpose|shape=2,1,2&a_from=identity()&dtype=bool|200 .c [[[1],[0]],[[1],[0]]]
matmul|m=2&k=2&n=2&a_from=identity()|411 code length_required
matmul|m=2&k=2&n=2&a_from=identity()&b_from=weights()|422 code unsupported .field b_from detail uniform(SEED)
matmul|m=2&k=2&n=2&a_from=uniform(18446744073709551616)&b_from=identity()|422 code unsupported .field a_from
matmul|m=2&k=2&a_from=identity()&b_from=identity()|400 code bad_request .field n
matmul|a_shape=2,2&a_from=identity()&b_from=identity()|400 code bad_request .field b_shape
matmul|m=2&k=2&n=2&a_from=identity()&b_from=identity()&reply=all|400 code bad_request .field reply
matmul|m=2147483647&k=2147483647&n=2147483647&a_from=identity()&b_from=identity()|413 code too_large .field a .limit null detail --max-device-memory
matmul|m=2147483647&k=1&n=2147483647&a_from=identity()&b_from=identity()&reply=none|413 code too_large .field c .limit null detail --memory-budget
END_OF_CASES

# Each row: path|JSON body|arguments of `expect`
while IFS='|' read -r path body outcome; do
    ask "/v1/$path" -d "$body"
    # shellcheck disable=SC2086
    expect "$path $body" $outcome
done <<'END_OF_CASES'
matmul|{"a": {"from": "identity()"}, "b": [[1,2],[3,4]], "m": 3}|200 .c [[1,2],[3,4],[0,0]]
matmul|{"b": {"from": "identity()"}, "n": 1, "a": [[1,2],[3,4]], "dtype": "int64"}|200 .c [[1],[3]] .dtype int64
matmul|{"a": {"from": "identity()"}, "b": {"from": "identity()"}, "m": 1, "k": 0, "n": 2}|200 .c [[0,0]]
matmul|{"a": {"from": "identity()"}, "b": {"from": "identity()"}, "a_shape": [2,1,2], "b_shape": [2,1]}|200 .c [[[1]],[[1]]]
matmul|{"a": {"from": "identity()"}, "b": [[1,2],[3,4]], "m": 2, "k": 3}|422 code bad_shape .field k
matmul|{"a": {"from": "identity()"}, "b": [[1,2],[3,4]]}|400 code bad_request .field m
matmul|{"a": {"from": "identity()", "of": 1}, "b": [[1]], "m": 1}|400 code bad_request .field a
matmul|{"a": {"from": 7}, "b": [[1]], "m": 1}|400 code bad_request .field a.from
matmul|{"a": {"from": ["identity()"]}, "b": [[1]], "m": 1}|400 code bad_request .field a.from
matmul|{"a": {}, "b": [[1]], "m": 1}|400 code bad_request .field a
matmul|{"a": {"from": "weights()"}, "b": [[1]], "m": 1}|422 code unsupported .field a.from detail a.from
matmul|{"a": [[1]], "b": [[1]], "a_shape": [1,"1"]}|400 code bad_request .field a_shape
matmul|{"a": [[1]], "b": [[1]], "a_shape": [1,[1]]}|400 code bad_request .field a_shape
matmul|{"a": [[1]], "b": [[1]], "a_shape": 1}|400 code bad_request .field a_shape
matmul|{"a": [[1]], "b": [[1]], "a_shape": [1,2]}|422 code bad_shape .field a_shape
matmul|{"a": [[1]], "b": [[1]], "a_from": "identity()"}|400 code bad_request .field a_from
transpose|{"a": {"from": "identity()"}, "shape": [1,2]}|200 .c [[1],[0]]
transpose|{"a": {"from": "identity()"}, "m": 1}|400 code bad_request .field n
END_OF_CASES

# One operand is generated, and the body contains the other operand.
printf '1 2 3 4 ' | "$FLOAT32" encode >"$scratch/four"
ask '/v1/matmul?m=2&k=2&n=2&b_from=identity()' -H 'Content-Type: application/octet-stream' --data-binary "@$scratch/four"
same 'raw A by an identity' "$(od -An -tx1 "$scratch/four")" "$(od -An -tx1 "$scratch/got")"
ask '/v1/matmul?m=2&k=2&n=2&a_from=identity()' -H 'Content-Type: application/octet-stream' --data-binary "@$scratch/four"
same 'an identity by raw B' "$(od -An -tx1 "$scratch/four")" "$(od -An -tx1 "$scratch/got")"
ask '/v1/matmul?m=2&k=2&n=2&a_from=identity()&b_from=identity()' -H 'Content-Type: application/octet-stream' --data-binary "@$scratch/four"
expect 'bytes that no one asked for' 400 code bad_request detail 'make 0 '
printf '1,2\n3,4\n' >"$scratch/a.csv"
ask /v1/matmul -F "a=@$scratch/a.csv" -F 'b_from=identity()' -F n=3 -H 'Accept: text/csv'
same 'CSV by an identity' '1,2,0 3,4,0' "$(paste -sd ' ' "$scratch/got")"
ask '/v1/matmul?b_from=identity()&n=3' -F "a=@$scratch/a.csv" -H 'Accept: application/json'
expect 'CSV, and the rest in the query' 200 .c '[[1,2,0],[3,4,0]]'
ask '/v1/matmul?a_from=identity()&m=1' -d '{"b": [[5]]}'
expect 'JSON, and the rest in the query' 200 .c '[[5]]'
ask '/v1/matmul?a_from=identity()&m=1' -d '{"a": [[1]], "b": [[5]]}'
expect 'an operand twice' 400 code bad_request .field a
ask '/v1/matmul?m=1' -d '{"a": {"from": "identity()"}, "b": [[5]]}'
expect 'a dimension in the query, and the source in the body' 200 .c '[[5]]'
ask '/v1/matmul?a_shape=2,1' -d '{"a": {"from": "identity()"}, "b": [[5]]}'
expect 'a shape in the query, and the source in the body' 200 .c '[[5],[0]]'
ask '/v1/matmul?m=1' -F a_from='identity()' -F "b=@$scratch/a.csv" -H 'Accept: application/json'
expect 'a dimension in the query, and the source in a form' 200 .c '[[1,2]]'
ask '/v1/transpose?m=2&n=1' -H 'Content-Type: application/json' -d '{"a": {"from": "identity()"}}'
expect 'dimensions in the query, and the source of a transpose in the body' 200 .c '[[1,0]]'
ask '/v1/matmul?m=1' -d '{"a": [[1]], "b": [[5]]}'
expect 'a dimension in the query that nothing needs' 400 code bad_request .field m
ask '/v1/matmul?m=1&lda=5' -d '{"a": {"from": "identity()"}, "b": [[5]]}'
expect 'a stride in the query, and no raw body' 400 code bad_request .field lda
ask '/v1/matmul?m=2&k=2&n=2&a_from=identity()&b_from=identity()' --data-binary @/dev/null -H 'Transfer-Encoding: chunked'
expect 'an empty chunked body' 200 .c '[[1,0],[0,1]]'
ask '/v1/matmul?m=2&k=2&n=2&a_from=identity()&b_from=identity()' -d ''
expect 'an empty body with a length' 200 .c '[[1,0],[0,1]]'

# The identity times a random matrix is that matrix. random.h defines the values of float32.
for dtype in float32 float64 float16 bfloat16 int8 int32 int64 bool; do
    ask "/v1/matmul?m=40&k=40&n=30&a_from=identity()&b_from=uniform(7)&dtype=$dtype" -X POST
    expect "identity·uniform of $dtype" 200 '[.c[][] | . < 128 and . > -128] | all' true
    jq -c .c "$scratch/got" >"$scratch/product"
    ask "/v1/matmul?m=40&k=30&n=30&a_from=uniform(7)&b_from=identity()&dtype=$dtype" -X POST
    same "uniform·identity of $dtype" "$(cat "$scratch/product")" "$(jq -c .c "$scratch/got")"
    ask "/v1/transpose?m=40&n=30&a_from=uniform(7)&dtype=$dtype" -X POST
    [ "$dtype" = bool ] || same "uniform, transposed, of $dtype" "$(cat "$scratch/product")" "$(jq -c '.c | transpose' "$scratch/got")"
done
ask '/v1/transpose?m=1&n=1&a_from=uniform(0)' -X POST
expect 'the first number of the stream 0' 200 .c[0][0] 0.76662165
ask '/v1/transpose?m=1&n=1&a_from=uniform(0)&dtype=int8' -X POST
expect 'the first whole number of the stream 0' 200 .c[0][0] -2

# If the client does not accept JSON, the reply has no body, and headers describe the product.
query='m=20&k=20&n=20&a_from=uniform(1)&b_from=uniform(2)&reply=none'
ask "/v1/matmul?$query&verify=true" -X POST -H 'Accept: application/octet-stream'
expect 'reply=none without JSON' 204 Matmul-Shape: '20, 20' Matmul-Verify: '*passed*' Server-Timing: 'receive*'
same 'its body' 0 "$(wc -c <"$scratch/got")"
ask "/v1/matmul?$query" -X POST -H 'Accept: text/plain'
expect 'reply=none without an available media type' 204
ask "/v1/matmul?$query" -X POST -H 'Accept: application/octet-stream, application/json;q=0.1'
expect 'reply=none with JSON as the second choice' 200 'has("c")' false

# Parts and reductions of the 3×4 identity. Each row: query|arguments of `expect`
while IFS='|' read -r query outcome; do
    ask "/v1/matmul?m=3&k=4&n=4&a_from=identity()&b_from=identity()&$query" -X POST
    # shellcheck disable=SC2086
    expect "$query" $outcome
done <<'END_OF_CASES'
rows=1:2|200 .c [[0,1,0,0]] .shape [1,4] Matmul-Shape: 1,*4
rows=:1&cols=2:|200 .c [[0,0]] .shape [1,2]
rows=3:3|200 .c [] .shape [0,4]
cols=4:|200 .c [[],[],[]]
reduce=sum,trace,min,max,max_abs,norm,finite&cols=0:3|200 .reduce {"sum":3,"trace":3,"min":0,"max":1,"max_abs":1,"norm":1.7320508075688772,"finite":true} has("c") false
reduce=sum&reply=matrix&rows=2:|200 .reduce {"sum":1} .c [[0,0,1,0]]
reduce=sum&reply=none|200 .reduce {"sum":3} has("c") false
reduce=min,sum,max&rows=1:1|200 .reduce {"sum":0,"min":null,"max":null}
reduce=trace|422 code bad_shape .field reduce
reduce=trace&cols=:3|200 .reduce {"trace":3}
reduce=mean|400 code bad_request .field reduce
reduce=|400 code bad_request .field reduce
rows=2:1|400 code bad_request .field rows
rows=:4|400 code bad_request .field rows
rows=1|400 code bad_request .field rows
cols=0:5|400 code bad_request .field cols
rows=0:1&rows=0:2|400 code bad_request .field rows
END_OF_CASES
while IFS='|' read -r body outcome; do
    ask /v1/matmul -d "$body"
    # shellcheck disable=SC2086
    expect "$body" $outcome
done <<'END_OF_CASES'
{"a": [[1,2],[3,4]], "b": [[1,0],[0,1]], "rows": "1:", "reduce": ["sum", "norm"]}|200 .reduce {"sum":7,"norm":5} .shape [1,2]
{"a": [[[1,2],[3,4]],[[5,6],[7,8]]], "b": [[1,0],[0,1]], "reduce": "trace,sum"}|200 .reduce {"sum":36,"trace":18}
{"a": [[[1,2],[3,4]],[[5,6],[7,8]]], "b": [[1,0],[0,1]], "rows": "1:", "cols": "1:"}|200 .c [[[4]],[[8]]]
{"a": [[1,2],[3,4]], "b": [1,1], "cols": "1:"}|200 .c [7] .shape [1]
{"a": [[1,2],[3,4]], "b": [1,1], "rows": "1:"}|400 code bad_request .field rows
{"a": [1,2], "b": [1,1], "cols": ":"}|400 code bad_request .field cols
{"a": [1,2], "b": [1,1], "reduce": "sum,finite"}|200 .reduce {"sum":3,"finite":true} .shape []
{"a": [["NaN",1]], "b": [[1],[1]], "reduce": "sum,min,finite"}|200 .reduce {"sum":"NaN","min":"NaN","finite":false}
{"a": [[1.7e308,1.7e308],[-1.7e308,-1.7e308]], "b": [[1,0],[0,1]], "dtype": "float64", "reduce": "sum,trace"}|200 .reduce {"sum":0,"trace":0}
{"a": [["Infinity"]], "b": [[-1]], "reduce": "sum,max_abs,norm"}|200 .reduce {"sum":"-Infinity","max_abs":"Infinity","norm":"Infinity"}
{"a": [[1]], "b": [[1]], "reduce": ["sum", 1]}|400 code bad_request .field reduce
{"a": [[1]], "b": [[1]], "reduce": []}|400 code bad_request .field reduce
{"a": [[1]], "b": [[1]], "reduce": true}|400 code bad_request .field reduce
{"a": [[1]], "b": [[1]], "rows": [0,1]}|400 code bad_request .field rows
END_OF_CASES
# These integers are too large for jq, which reads them as float64.
ask /v1/matmul -d '{"a": [[9223372036854775807,9223372036854775807]], "b": [[1,0],[0,1]], "reduce": "sum", "dtype": "int64"}'
like 'a sum of more than 64 bits' '*"sum": 18446744073709551614}*' "$(cat "$scratch/got")"
query='m=20&k=20&n=30&a_from=uniform(1)&b_from=uniform(2)'
ask "/v1/matmul?$query&reduce=sum" -X POST -H 'Accept: application/octet-stream'
expect 'figures, and no JSON' 400 code bad_request .field reduce
ask "/v1/matmul?$query&rows=5:7&cols=10:13" -X POST -H 'Accept: application/octet-stream'
expect 'a raw part' 200 Matmul-Shape: '2, 3'
same 'its bytes' 24 "$(wc -c <"$scratch/got")"
ask "/v1/matmul?$query&rows=5:7&cols=10:13" -X POST
jq -c .c "$scratch/got" >"$scratch/part"
ask "/v1/matmul?$query" -X POST
same 'a part is that of the whole' "$(cat "$scratch/part")" "$(jq -c '[.c[5:7][] | .[10:13]]' "$scratch/got")"
jq '[.c[][]] | add' "$scratch/got" >"$scratch/sum"
ask "/v1/matmul?$query&reduce=sum" -X POST
checks=$((checks + 1))
jq -e --argjson sum "$(cat "$scratch/sum")" '.reduce.sum - $sum | fabs < 1e-4' "$scratch/got" >/dev/null ||
    fail "the sum is $(jq .reduce.sum "$scratch/got"), but the elements add up to $(cat "$scratch/sum")"
ask "/v1/transpose?m=3&n=2&a_from=uniform(1)&dtype=int8&reduce=sum,max" -X POST
jq -c .reduce "$scratch/got" >"$scratch/part"
ask "/v1/transpose?m=3&n=2&a_from=uniform(1)&dtype=int8" -X POST
same 'of a transpose' "$(cat "$scratch/part")" "$(jq -c '[.c[][]] | {sum: add, max: max}' "$scratch/got")"

# A long request that is cancelled leaves no memory reserved.
query='a_from=uniform(1)&b_from=uniform(2)&reply=none'
case $backend in
cpu)
    ask "/v1/matmul?m=4000&k=4000&n=4000&$query" -X POST
    expect 'memory of the host' 413 code too_large detail --memory-budget
    ask "/v1/matmul?m=2000&k=2000&n=2000&variant=naive&$query" -X POST
    expect 'time' 413 code too_large .field variant detail --max-kernel-ms
    ask '/v1/transpose?m=1&n=7000000&a_from=uniform(1)&reply=none&timeout_ms=1' -X POST
    expect 'too little time' 504 code timeout
    ;;
cuda)
    ask "/v1/matmul?m=2000&k=2000&n=2000&$query" -X POST
    expect 'memory of the device' 413 code too_large .field variant .limit 8388608 detail --max-device-memory
    ask "/v1/matmul?m=2000&k=2000&n=2000&variant=simt&verify=1&$query" -X POST
    expect 'smaller tiles' 200 '.tiles > 1' true .verify.passed true
    same 'the header of tiles' "$(jq .tiles "$scratch/got")" "$(header Matmul-Tiles "$scratch/head")"
    ask "/v1/matmul?m=1000&k=1000000000&n=1000&variant=naive_uncoalesced&$query" -X POST
    expect 'time' 413 code too_large .field variant detail --max-kernel-ms
    copied() { echo "$(metric 'transfer_bytes_total{direction="upload"}') $(metric 'transfer_bytes_total{direction="download"}')"; }
    before=$(copied)
    ask "/v1/matmul?m=600&k=600&n=600&$query" -X POST
    expect 'a large one' 200 '.timing.upload_ms > 0' true
    same 'bytes that were copied' "$before" "$(copied)"
    ;;
esac
checks=$((checks + 1))
await 20 has_free_budget || fail 'memory is not given back'

stop
finish
