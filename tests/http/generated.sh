#!/bin/sh
# Operands that the server makes, and replies without C: on the CPU, by curl and jq.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

start --backend cpu --memory-budget 64MiB --max-kernel-ms 2000

# Products without a body: the query, and what `expect` is to find.
while IFS='|' read -r path query outcome; do
    ask "/v1/$path?$query" -X POST
    # shellcheck disable=SC2086
    expect "$path?$query" $outcome
done <<'END_OF_CASES'
matmul|m=2&k=2&n=3&a_from=identity()&b_from=identity()|200 .c [[1,0,0],[0,1,0]] .dtype float32 .shape [2,3]
matmul|m=2&k=2&n=2&a_from=identity()&b_from=identity()&dtype=int8|200 .c [[1,0],[0,1]] .dtype int32 .operand_dtype int8
matmul|m=2&k=2&n=2&a_from=identity()&b_from=identity()&reply=none|200 has("c") false .shape [2,2]
matmul|m=2&k=2&n=2&a_from=identity()&b_from=identity()&reply=matrix|200 .c [[1,0],[0,1]]
matmul|a_shape=2,2,3&b_shape=3,2&a_from=identity()&b_from=identity()|200 .c [[[1,0],[0,1]],[[1,0],[0,1]]]
matmul|m=2&k=3&n=1&a_from=uniform(18446744073709551615)&b_from=identity()&transpose_a=1|200 .shape [2,1]
matmul|m=0&k=3&n=2&a_from=uniform(1)&b_from=uniform(2)|200 .c []
matmul|m=64&k=64&n=64&a_from=uniform(1)&b_from=uniform(2)&verify=1&reply=none|200 .verify.passed true has("c") false
transpose|m=2&n=3&a_from=identity()|200 .c [[1,0],[0,1],[0,0]]
transpose|shape=2,1,2&a_from=identity()&dtype=bool|200 .c [[[1],[0]],[[1],[0]]]
matmul|m=2&k=2&n=2&a_from=identity()|411 code length_required
matmul|m=2&k=2&n=2&a_from=identity()&b_from=weights|422 code unsupported .field b_from detail uniform(SEED)
matmul|m=2&k=2&n=2&a_from=uniform(18446744073709551616)&b_from=identity()|422 code unsupported .field a_from
matmul|m=2&k=2&a_from=identity()&b_from=identity()|400 code bad_request .field n
matmul|a_shape=2,2&a_from=identity()&b_from=identity()|400 code bad_request .field b_shape
matmul|a_shape=2,2&b_shape=3,2&a_from=identity()&b_from=identity()|422 code bad_shape
matmul|m=2&k=2&n=2&lda=3&a_from=identity()&b_from=identity()|400 code bad_request .field lda
matmul|m=2&k=2&n=2&a_from=identity()&b_from=identity()&reply=all|400 code bad_request .field reply
matmul|m=2&k=2&n=2&a_from=identity()&b_from=identity()&dtype=int7|422 code unsupported .field dtype
transpose|m=2&n=3&b_from=identity()|411 code length_required
matmul|m=4000&k=4000&n=4000&a_from=uniform(1)&b_from=uniform(2)&reply=none|413 code too_large detail --memory-budget
matmul|m=2000&k=2000&n=2000&a_from=uniform(1)&b_from=uniform(2)&reply=none&variant=naive|413 code too_large .field variant detail --max-kernel-ms
END_OF_CASES

# Bodies of JSON.
while IFS='|' read -r path body outcome; do
    ask "/v1/$path" -d "$body"
    # shellcheck disable=SC2086
    expect "$path $body" $outcome
done <<'END_OF_CASES'
matmul|{"a": {"from": "identity()"}, "b": [[1,2],[3,4]], "m": 3}|200 .c [[1,2],[3,4],[0,0]]
matmul|{"b": {"from": "identity()"}, "n": 1, "a": [[1,2],[3,4]], "dtype": "int64"}|200 .c [[1],[3]] .dtype int64
matmul|{"a": {"from": "identity()"}, "b": {"from": "identity()"}, "m": 1, "k": 0, "n": 2}|200 .c [[0,0]]
matmul|{"a": {"from": "identity()"}, "b": {"from": "identity()"}, "a_shape": [2,1,2], "b_shape": [2,1]}|200 .c [[[1]],[[1]]]
matmul|{"a": {"from": "identity()"}, "b": [[1,2],[3,4]], "m": 2, "reply": "none"}|200 has("c") false
matmul|{"a": {"from": "identity()"}, "b": [[1,2],[3,4]], "m": 2, "k": 3}|422 code bad_shape .field k
matmul|{"a": {"from": "identity()"}, "b": [[1,2],[3,4]]}|400 code bad_request .field m
matmul|{"a": {"from": "identity()", "of": 1}, "b": [[1]], "m": 1}|400 code bad_request .field a
matmul|{"a": {"from": 7}, "b": [[1]], "m": 1}|400 code bad_request .field from
matmul|{"a": {"from": ["identity()"]}, "b": [[1]], "m": 1}|400 code bad_request .field from
matmul|{"a": {}, "b": [[1]], "m": 1}|400 code bad_request .field a
matmul|{"a": {"from": "weights"}, "b": [[1]], "m": 1}|422 code unsupported .field a_from
matmul|{"a": [[1]], "b": [[1]], "a_shape": [1,"1"]}|400 code bad_request .field a_shape
matmul|{"a": [[1]], "b": [[1]], "a_shape": [1,[1]]}|400 code bad_request .field a_shape
matmul|{"a": [[1]], "b": [[1]], "a_shape": 1}|400 code bad_request .field a_shape
matmul|{"a": [[1]], "b": [[1]], "a_shape": [1,1]}|400 code bad_request .field a_shape
matmul|{"a": [[1]], "b": [[1]], "a_from": "identity()"}|400 code bad_request .field a_from
transpose|{"a": {"from": "identity()"}, "shape": [1,2]}|200 .c [[1],[0]]
transpose|{"a": {"from": "identity()"}, "m": 1}|400 code bad_request .field n
END_OF_CASES

# The other operand is inline: raw alone in the body, CSV with its dimensions, and JSON beside the query.
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
expect 'a dimension in the query, and the source in the body' 400 code bad_request .field m
ask '/v1/matmul?m=2&k=2&n=2&a_from=identity()&b_from=identity()' --data-binary @/dev/null -H 'Transfer-Encoding: chunked'
expect 'an empty chunked body' 200 .c '[[1,0],[0,1]]'
ask '/v1/matmul?m=2&k=2&n=2&a_from=identity()&b_from=identity()' -d ''
expect 'an empty body with a length' 200 .c '[[1,0],[0,1]]'

# identity·uniform is uniform, and so is its transpose's transpose: float32 as the header random.h says, and others.
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

# Without JSON there is no body; the headers say all that they say of a product.
query='m=20&k=20&n=20&a_from=uniform(1)&b_from=uniform(2)&reply=none'
ask "/v1/matmul?$query&verify=true" -X POST -H 'Accept: application/octet-stream'
expect 'reply=none without JSON' 204 Matmul-Shape: '20, 20' Matmul-Verify: '*passed*' Server-Timing: 'receive*'
same 'its body' 0 "$(wc -c <"$scratch/got")"
ask "/v1/matmul?$query" -X POST -H 'Accept: text/plain'
expect 'reply=none, and nothing that there is' 204
ask "/v1/matmul?$query" -X POST -H 'Accept: application/octet-stream, application/json;q=0.1'
expect 'reply=none, and JSON if need be' 200 'has("c")' false

# A product that is made and long to make can be cancelled, and leaves no memory behind.
ask '/v1/transpose?m=1&n=7000000&a_from=uniform(1)&reply=none&timeout_ms=1' -X POST
expect 'too little time' 504 code timeout
checks=$((checks + 1))
await 20 has_free_budget || fail 'memory is not given back'

finish
