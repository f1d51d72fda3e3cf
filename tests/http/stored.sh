#!/bin/sh
# Tests stored operands and results: stored.sh BACKEND. Skipped (status 77) if the backend has no device.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

backend=$1
[ "$backend" = cuda ] || MATMULD=$FAULTY # starts faster than the real matmuld
start
devices=$(curl -s --max-time 30 "$url/v1/devices" | jq "[.devices[] | select(.backend == \"$backend\")] | length")
stop
[ "$devices" -gt 0 ] || exit 77
raw='Content-Type: application/octet-stream'

store() {
    ask "/v1/matrices/$1" -X PUT -H 'Content-Type: application/json' -d "$2"
    expect "stored: $1" 201
}

start --backend "$backend"
store a '{"a": [[1,2,3],[4,5,6]]}'
store b '{"a": [[1,0],[0,1],[1,1]]}'
store v '{"a": [1,2,3]}'
store stack '{"a": [[[1,2]],[[3,4]]], "dtype": "int8"}'
store pair '{"a": [[1],[2]], "dtype": "int8"}'
store none '{"a": [[]]}'
store int8 '{"a": [[1,-128],[127,3]], "dtype": "int8"}'
store words '{"a": [[-1,9007199254740993],[-1,-9223372036854775807]], "dtype": "int64"}'
store endless '{"a": [["Infinity",1,2]]}'

# Requests without a body. Each row: path|query|arguments of `expect`
while IFS='|' read -r path query outcome; do
    ask "/v1/$path?$query" -X POST
    # shellcheck disable=SC2086
    expect "$path?$query" $outcome
done <<'END_OF_CASES'
matmul|a_from=a&b_from=b|200 .c [[4,5],[10,11]] .dtype float32 .shape [2,2]
matmul|a_from=a&b_from=a&transpose_b=1|200 .c [[14,32],[32,77]]
matmul|a_from=a&b_from=v|200 .c [14,32]
matmul|a_from=v&b_from=b|200 .c [4,5]
matmul|a_from=stack&b_from=pair|200 .c [[[5]],[[11]]] .dtype int32 .operand_dtype int8
matmul|a_from=a&b_from=b&m=2&k=3&n=2&dtype=float32|200 .c [[4,5],[10,11]]
matmul|a_from=a&b_from=identity()&n=2|200 .c [[1,2],[4,5]]
matmul|a_from=identity()&b_from=pair&m=3|200 .c [[1],[2],[0]] .operand_dtype int8
matmul|a_from=a&b_from=b&rows=1:2&reduce=sum|200 .reduce {"sum":21} has("c") false
matmul|a_from=a&b_from=b&verify=1&reply=none|200 .verify.passed true has("c") false
matmul|a_from=a&b_shape=3,1&b_from=identity()|200 .c [[1],[4]]
transpose|a_from=a|200 .c [[1,4],[2,5],[3,6]]
transpose|a_from=stack|200 .c [[[1],[2]],[[3],[4]]] .dtype int8
matmul|a_from=a&b_from=nothing|404 code no_such_matrix .field b_from detail nothing
matmul|a_from=a&b_from=nothing&rows=x|400 code bad_request .field rows
matmul|a_from=nothing&b_from=b&m=4294967296|413 code too_large .field m
matmul|a_from=a&b_from=..|422 code unsupported .field b_from
matmul|a_from=a&a_from=b&b_from=b|400 code bad_request .field a_from detail twice
matmul|a_from=a&a_from=nothing&b_from=b|400 code bad_request .field a_from detail twice
matmul|a_from=a&a_from=a&b_from=b|200 .shape [2,2]
matmul|a_from=a&b_from=a|422 code bad_shape
matmul|a_from=a&b_from=b&k=4|422 code bad_shape .field k
matmul|a_from=v&b_from=b&m=1|200 .c [4,5]
matmul|a_from=a&b_from=v&n=2|422 code bad_shape .field n
matmul|a_shape=3,2&b_shape=3,2&a_from=a&b_from=b|422 code bad_shape .field a_shape
matmul|a_from=a&b_from=pair|400 code bad_request .field b detail int8
matmul|a_from=a&b_from=b&dtype=float64|400 code bad_request .field a detail float64
matmul|a_from=a&b_from=identity()|400 code bad_request .field n
matmul|a_from=a|411 code length_required
matmul|a_from=a&b_from=b&lda=3|400 code bad_request .field lda
END_OF_CASES

# Each row: path|JSON body|arguments of `expect`
while IFS='|' read -r path body outcome; do
    ask "/v1/$path" -d "$body"
    # shellcheck disable=SC2086
    expect "$path $body" $outcome
done <<'END_OF_CASES'
matmul|{"a": {"from": "a"}, "b": [[1],[1],[1]]}|200 .c [[6],[15]]
matmul|{"a": [[1,1]], "b": {"from": "a"}}|200 .c [[5,7,9]]
matmul|{"a": [[1,1]], "b": {"from": "pair"}}|200 .c [[3]] .operand_dtype int8
matmul|{"a": [[1.5,1]], "b": {"from": "pair"}}|400 code bad_request detail int8
matmul|{"b": {"from": "pair"}, "a": [[1,1]], "dtype": "int8"}|200 .c [[3]] .operand_dtype int8
matmul|{"dtype": "float32", "a": [[1,1]], "b": {"from": "pair"}}|400 code bad_request .field b detail float32
matmul|{"a": {"from": "a"}, "b": [[1],[1],[1]], "m": 3}|422 code bad_shape .field m
matmul|{"a": {"from": "a"}, "b": {"from": "b"}, "m": 9, "dtype": "int8"}|400 code bad_request .field a detail int8
matmul|{"a": {"from": "nothing"}, "b": [[1]]}|404 code no_such_matrix .field a.from detail nothing
transpose|{"a": {"from": "b"}}|200 .c [[1,0,1],[0,1,1]]
transpose|{"a": {"from": "v"}}|422 code bad_shape
benchmark|{"a": {"from": "a"}, "n": 4}|200 [.m,.k,.n] [2,3,4] .dtype float32 all(.rows[];.max_error<1) true
benchmark|{"b": {"from": "b"}, "m": 5, "repeats": 1}|200 [.m,.k,.n] [5,3,2] all(.rows[];.max_error<1) true
benchmark|{"a": {"from": "a"}, "b": {"from": "a"}, "transpose_b": true}|200 [.m,.k,.n] [2,3,2] all(.rows[];.relative_error<1e-6) true
benchmark|{"a": {"from": "stack"}, "n": 2}|422 code bad_shape .field a detail 2×1×2
benchmark|{"a": {"from": "int8"}, "b": {"from": "int8"}, "k": 2}|200 [.dtype,.result_dtype] ["int8","int32"] all(.rows[];.max_error==0) true
benchmark|{"op": "transpose", "a": {"from": "words"}}|200 .dtype int64 all(.rows[];.max_error==0) true
benchmark|{"a": {"from": "words"}, "b": {"from": "words"}, "variants": ["naive"]}|200 .rows[0].max_error==0 true .rows[0].relative_error==0 true
benchmark|{"a": {"from": "endless"}, "n": 1, "variants": ["naive"]}|200 .rows[0].max_error null .rows[0].relative_error null
benchmark|{"a": {"from": "nothing"}, "n": 4}|404 code no_such_matrix .field a.from detail nothing
benchmark|{"a": {"from": "a"}, "b": {"from": "a"}}|422 code bad_shape detail transpose_b
benchmark|{"a": {"from": "a"}, "n": 4, "dtype": "int8"}|400 code bad_request .field a detail int8
benchmark|{"a": {"from": "a"}, "b": {"from": "int8"}}|400 code bad_request .field b detail float32
benchmark|{"a": {"from": "none"}, "n": 4}|422 code bad_shape .field a
END_OF_CASES
ask /v1/benchmark -d '{"a": {"from": "endless"}, "n": 1, "variants": ["naive"]}' -H 'Accept: text/plain'
like "a table of what could not be judged" 'naive * - *- *-*' "$(grep -m 1 '^naive' "$scratch/got")" # CUDA also has naive_uncoalesced

# The other operand is a raw body. The query may omit dimensions that the stored operand gives.
printf '1 1 1 ' | "$FLOAT32" encode >"$scratch/ones"
ask '/v1/matmul?a_from=a&n=1' -H "$raw" -H 'Accept: application/json' --data-binary "@$scratch/ones"
expect "a stored A by raw B" 200 .c '[[6],[15]]'
ask '/v1/matmul?b_from=b&m=1' --data-binary "@$scratch/ones"
same "raw A by a stored B, without a type" "$(printf '2 2 ' | "$FLOAT32" encode | od -An -tx1)" "$(od -An -tx1 "$scratch/got")"
ask '/v1/matmul?b_from=v&m=1' -H "$raw" -H 'Accept: application/json' --data-binary "@$scratch/ones"
expect "raw A by a stored vector" 200 .c '[6]'
ask '/v1/matmul?a_from=a&n=2' -H "$raw" --data-binary "@$scratch/ones"
expect "a raw B of the wrong length" 400 code bad_request detail 'make 24 '
ask '/v1/matmul?a_from=a' -H "$raw" --data-binary "@$scratch/ones"
expect "a raw B without its columns" 400 code bad_request .field n

{ npy_head '<f4' False '(3,)' && cat "$scratch/ones"; } >"$scratch/ones.npy"
printf '1\n1\n1\n' >"$scratch/ones.csv"
ask /v1/matmul -F a_from=a -F "b=@$scratch/ones.npy" -H 'Accept: application/json'
expect "a form of a stored A and a .npy file" 200 .c '[6,15]'
ask '/v1/matmul?a_from=a' -F "b=@$scratch/ones.csv" -H 'Accept: application/json'
expect "a CSV file in a form, beside the query" 200 .c '[[6],[15]]'
ask /v1/matmul -F a_from=stack -F "b=@$scratch/ones.npy"
expect "types that differ" 400 code bad_request .field a detail 'stack*int8*float32'
ask '/v1/matmul?b_from=b' -F a_from=a -F "b=@$scratch/ones.npy"
expect "an operand from two places" 400 code bad_request .field b

# Products of a matrix that is copied to a device must be right, also if several run at once.
"$FLOAT32" fill 65536 1 >"$scratch/large"
ask '/v1/matrices/large?m=256&n=256' -X PUT -H "$raw" --data-binary "@$scratch/large"
expect "a large matrix" 201
for turn in 1 2 3; do
    for one in 1 2 3 4 5 6 7 8; do
        curl -s --max-time 60 -X POST "$url/v1/matmul?a_from=large&b_from=large&reduce=sum" >"$scratch/turn.$one" &
        eval "turn_$one=\$!"
    done
    # shellcheck disable=SC2154
    wait "$turn_1" "$turn_2" "$turn_3" "$turn_4" "$turn_5" "$turn_6" "$turn_7" "$turn_8"
    same "eight at a time, turn $turn" 8 "$(cat "$scratch"/turn.? | grep -o "\"sum\": $((turn * turn * 16777216))[.,}]" | wc -l)"
    "$FLOAT32" fill 65536 $((turn + 1)) >"$scratch/large"
    ask '/v1/matrices/large?m=256&n=256' -X PUT -H "$raw" --data-binary "@$scratch/large"
    expect "replaced, turn $turn" 200
done
ask '/v1/matmul?a_from=large&b_from=a' -X POST
expect "shapes that differ" 422 code bad_shape

# A request uses the value that the name had when the request arrived.
ask /v1/matrices/a -X DELETE
expect "deleted" 204
ask '/v1/matmul?a_from=a&b_from=b' -X POST
expect "a product of a deleted matrix" 404 code no_such_matrix
store a '{"a": [[1,1,1]]}'
ask '/v1/matmul?a_from=a&b_from=b' -X POST
expect "a product of a matrix stored again" 200 .c '[[2,2]]'

# With `out` the store gets the complete result, even if the reply has only a part.
store left '{"a": [[1,2,3],[4,5,6]]}'
store right '{"a": [[1,0],[0,1],[1,1]]}'
while IFS='|' read -r query accept outcome; do
    ask "/v1/matmul?a_from=left&b_from=right&out=c&$query" -X POST -H "Accept: $accept"
    # shellcheck disable=SC2086
    expect "out, $query as $accept" $outcome Location: /v1/matrices/c ETag: '"*"'
    tag=$(header ETag "$scratch/head")
    cp "$scratch/got" "$scratch/product"
    ask /v1/matrices/c -H 'Accept: application/json'
    expect "the matrix stored by $query" 200 . '{"a":[[4,5],[10,11]],"dtype":"float32"}' ETag: "$tag"
    ask /v1/matrices/c -X DELETE
    expect "delete the matrix stored by $query" 204
done <<'END_OF_CASES'
|application/json|200 .c [[4,5],[10,11]]
reply=none|application/json|200 has("c") false .shape [2,2]
reply=none|application/octet-stream|204
rows=1:2|application/json|200 .c [[10,11]]
cols=1:2|application/json|200 .c [[5],[11]]
reduce=sum,trace&cols=1:&rows=1:|application/json|200 .reduce {"sum":11,"trace":11} has("c") false
verify=1|application/json|200 .verify.passed true
END_OF_CASES
for part in '' '&rows=1:' '&cols=1:' '&rows=1:1' '&rows=2:' '&cols=2:'; do
    for type in octet-stream x-npy; do
        ask "/v1/matmul?a_from=left&b_from=right$part" -X POST -H "Accept: application/$type"
        cp "$scratch/got" "$scratch/expected"
        ask "/v1/matmul?a_from=left&b_from=right&out=c$part" -X POST -H "Accept: application/$type"
        expect "$type$part, stored as well" 200
        same "$type$part: the same bytes" "$(od -An -tx1 "$scratch/expected")" "$(od -An -tx1 "$scratch/got")"
        ask /v1/matrices/c -H 'Accept: application/json'
        expect "$type$part: the stored matrix" 200 .a '[[4,5],[10,11]]'
    done
done
ask '/v1/transpose?a_from=left&out=left&ttl_s=100' -X POST
expect "a matrix in place of its transpose" 200 .c '[[1,4],[2,5],[3,6]]'
ask '/v1/matmul?a_from=left&b_from=c&out=d' -X POST
expect "a product of results" 200 .c '[[44,49],[58,65],[72,81]]'
ask /v1/matmul -d '{"a": [[2]], "b": [[3]], "out": "e", "ttl_s": 1, "reply": "none"}'
expect "out as a JSON member" 200 Location: /v1/matrices/e
ask /v1/matmul -F a_from=left -F b_from=right -F transpose_a=1 -F out=f -H 'Accept: application/json'
expect "out as a form field" 200 Location: /v1/matrices/f
ask /v1/matrices
expect "the list" 200 '[.matrices[] | [.name, .shape]] | map(select(.[0] | test("^[c-f]$|left")))' \
    '[["c",[2,2]],["d",[3,2]],["e",[1,1]],["f",[2,2]],["left",[3,2]]]' '[.matrices[] | select(.expires) | .name]' '["e","left"]'
sleep 1
ask /v1/matrices/e
expect "a result after its lifetime" 404

# Conditions such as If-Match apply to the name in `out`.
ask '/v1/matmul?a_from=left&b_from=c&out=d' -X POST -H 'If-None-Match: *'
expect "If-None-Match: * for an existing result" 412 code precondition_failed
ask /v1/matrices/d -I
tag=$(header ETag "$scratch/head")
ask '/v1/matmul?a_from=left&b_from=c&out=d&reply=none' -X POST -H "If-Match: $tag"
expect "If-Match with the current ETag" 200
ask '/v1/matmul?a_from=left&b_from=c&out=d&reply=none' -X POST -H "If-Match: $tag"
expect "If-Match with an old ETag" 412
ask /v1/matmul -d '{"a": [[2]], "b": [[3]], "out": "new"}' -H 'If-None-Match: *'
expect "a condition with out in the body" 400 code bad_request .field out detail query

# A request uses one value even if the name is replaced while the body arrives.
store x '{"a": [[2]]}'
rm -f "$scratch/slow"
mkfifo "$scratch/slow"
curl -s --max-time 60 -X POST -H 'Content-Type: application/json' -T - "$url/v1/matmul?a_from=x" <"$scratch/slow" >"$scratch/answer" &
answer=$!
exec 3>"$scratch/slow"
printf ' ' >&3
sleep 1
ask /v1/matrices/x -X PUT -d '{"a": [[3]]}'
expect "x is replaced during the request" 200
printf '{"b": {"from": "x"}}' >&3
exec 3>&-
wait $answer
same "x·x" '[[4]]' "$(jq -c .c "$scratch/answer")"

while IFS='|' read -r query outcome; do
    ask "/v1/matmul?a_from=left&b_from=c&$query" -X POST
    # shellcheck disable=SC2086
    expect "$query" $outcome
done <<'END_OF_CASES'
out=a/b|400 code bad_request .field out
out=..|400 code bad_request .field out
out=|400 code bad_request .field out
ttl_s=7|400 code bad_request .field ttl_s
out=x&ttl_s=0|400 code bad_request .field ttl_s
out=x&out=y|400 code bad_request .field out
END_OF_CASES
stop

# Two small vectors do not push other matrices out of a device's memory. A GPU computes their product in tiles.
start --backend "$backend" --max-device-memory 1MiB
"$FLOAT32" fill 1000 1 >"$scratch/ones"
ask '/v1/matrices/v?shape=1000,1' -X PUT -H "$raw" --data-binary "@$scratch/ones"
ask '/v1/matmul?a_from=v&b_from=v&transpose_b=1&reduce=sum' -X POST
expect "an outer product of stored vectors" 200 .reduce '{"sum":1000000}'
[ "$backend" != cuda ] || expect "the tiles of this product" 200 '.tiles > 1' true
stop

# The store reserves memory for a result before the product. A product that fails leaves nothing reserved.
start --backend "$backend" --store-memory 1000 --store-memory-per-key 1000
ask '/v1/matmul?m=16&k=1&n=16&a_from=identity()&b_from=identity()&out=x' -X POST
expect "a result that the store cannot hold" 507 code store_full '[.needed_bytes, .free_bytes, .limit]' '[1024,1000,1000]'
ask '/v1/matmul?m=10&k=1&n=25&a_from=identity()&b_from=identity()&out=x&reply=none' -X POST
expect "a result that fills the store to the byte" 200
ask '/v1/matmul?m=1&k=1&n=1&a_from=identity()&b_from=identity()&out=y' -X POST
expect "a result for a full store" 507 code store_full .free_bytes 0
ask '/v1/matmul?m=1&k=1&n=1&a_from=x&b_from=y&out=x' -X POST
expect "a missing operand" 404
ask /v1/matrices/x -X DELETE
same "all bytes of the store are free again" 1000 "$(metric 'store_bytes{state="free"}')"
stop
start --backend "$backend" --store-memory 0
ask '/v1/matmul?a_from=a&b_from=identity()&m=1&k=1&n=1' -X POST
expect "an operand without the store" 422 code unsupported .field a_from detail '--store-memory 0'
ask /v1/benchmark -d '{"a": {"from": "a"}, "n": 1}'
expect "a benchmark without the store" 422 code unsupported .field a.from detail '--store-memory 0'
ask '/v1/matmul?m=1&k=1&n=1&a_from=identity()&b_from=identity()&out=x' -X POST
expect "out without the store" 422 code unsupported .field out detail '--store-memory 0'
stop

# Results that exist only in a GPU's memory. Machines without a GPU use a simulated GPU.
export MATMULD_FAULTY_DEVICES=2
start
store x '{"a": [[1,2,3],[4,5,6]]}'
store w '{"a": [[1,0],[0,1],[1,1]]}'
used=$(metric 'staging_bytes{state="used"}')
ask '/v1/matmul?a_from=x&b_from=w&backend=cuda&out=y&reply=none' -X POST
expect "a result of a GPU" 200
ask /v1/matrices
expect "the devices of stored matrices" 200 '[.matrices[].device | sub("[0-9]+$"; "")]' '["cuda:","cuda:","cuda:"]'
same "a result on a GPU uses no host memory" "$used" "$(metric 'staging_bytes{state="used"}')"
while IFS='|' read -r query outcome; do
    ask "/v1/matrices/y?$query" -H 'Accept: application/json'
    # shellcheck disable=SC2086
    expect "y?$query" $outcome
done <<'END_OF_CASES'
|200 .a [[4,5],[10,11]]
rows=1:|200 .a [[10,11]]
cols=1:|200 .a [[5],[11]]
rows=1:1|200 .a []
reduce=sum,trace,min,max|200 .reduce {"sum":30,"trace":15,"min":4,"max":11}
reduce=sum&cols=1:|200 .reduce.sum 16
END_OF_CASES
ask '/v1/matrices/y?cols=1:' -H 'Accept: text/csv'
same "a column as CSV" '5 11' "$(tr '\n' ' ' <"$scratch/got" | sed 's/ $//')"
ask /v1/matrices/y
same "a result on a GPU as .npy" 4 "$(tail -c 16 "$scratch/got" | od -An -tf4 | wc -w | tr -d ' ')"
ask /v1/matrices/y -I
expect "HEAD" 200 Matmul-Shape: '2, 2' Content-Length: 144
ask '/v1/matrices/y?rows=1:&reduce=sum' -I
expect "HEAD of a reduction" 200 Content-Type: application/json
ask /v1/matrices/y -H "If-None-Match: $(header ETag "$scratch/head")"
expect "a result that the client has already" 304
while IFS='|' read -r path outcome; do
    ask "/v1/$path" -X POST -H 'Accept: application/json'
    # shellcheck disable=SC2086
    expect "$path" $outcome
done <<'END_OF_CASES'
matmul?backend=cuda&a_from=y&b_from=y|200 .c [[66,75],[150,171]]
matmul?backend=cpu&a_from=y&b_from=y|200 .c [[66,75],[150,171]]
matmul?backend=cpu&a_from=y&b_from=x|200 .c [[24,33,42],[54,75,96]]
matmul?backend=cpu&a_from=w&b_from=y&transpose_b=1|200 .c [[4,10],[5,11],[9,21]]
matmul?backend=cpu&a_from=y&b_from=y&verify=1&out=z&reply=none|200 .verify.passed true
transpose?backend=cpu&a_from=y|200 .c [[4,10],[5,11]]
matmul?backend=cuda&a_from=y&b_from=y&rows=1:|200 .c [[150,171]]
matmul?backend=cuda&a_from=y&b_from=z|200 .c [[1014,1155],[2310,2631]]
matmul?backend=cuda&a_from=y&b_from=y&out=y&reply=none|200
matmul?backend=cuda&a_from=y&b_from=w&transpose_b=1&out=n&rows=1:&cols=1:2|200 .c [[171]]
matmul?backend=cuda&a_from=n&b_from=x&transpose_b=1|200 .c [[639,1485],[1455,3381]]
END_OF_CASES
ask /v1/matmul -d '{"a": [[1,2]], "b": [[1,0,2],[0,1,3]], "backend": "cuda", "out": "row", "reply": "none"}'
for given in '"a": {"from": "row"}, "n": 5' '"b": {"from": "row"}, "m": 1' '"a": {"from": "row"}, "b": {"from": "row"}, "transpose_b": true'; do
    ask /v1/benchmark -d "{$given, \"variants\": [\"cuda:naive\", \"cpu:naive\"], \"repeats\": 2}"
    expect "a benchmark of a stored row: $given" 200 '[.rows[].backend]' '["cuda","cpu"]' 'all(.rows[]; .max_error < 1)' true
done
ask /v1/matrices/row -X DELETE
expect "DELETE after the benchmarks" 204
same "bytes of deleted matrices in use" 0 "$(metric 'store_bytes{state="released"}')"
if [ "$backend" = cpu ]; then
    ask '/v1/matmul?backend=cuda&variant=fails&out=y' -d '{"a": [[1]], "b": [[1]]}'
    expect "a product that fails" 500
    # A client sends many requests and reads none of the error replies, until the server waits for the client.
    body='{"a": [[1]], "b": [[1]]}'
    for _ in $(seq 20000); do
        printf 'POST /v1/matmul?backend=cuda&variant=fails&out=y HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n%s' ${#body} "$body"
    done >"$scratch/requests"
    "$TALK" 127.0.0.1 "${url##*:}" 10000000 UNREAD <"$scratch/requests" >"$scratch/raw" &
    unread=$!
    answered() { metric 'http_requests_total{route="/v1/matmul",code="500"}'; }
    is_stalled() { before=$(answered) && [ "$before" -gt 100 ] && [ "$before" -lt 20000 ] && sleep 0.5 && [ "$(answered)" = "$before" ]; }
    await 60 is_stalled || fail "the server never waits for the client"
    same "bytes reserved for a failed product whose reply is not read" 0 "$(metric 'store_bytes{state="reserved"}')"
    kill "$unread"
    wait "$unread" || :
    curl -s --max-time 60 -o "$scratch/got" -d '{"a":[[1]],"b":[[1]],"variant":"loses_device"}' "$url/v1/matmul?backend=cuda" || :
    for part in '' '?rows=0:0' '?reduce=sum'; do
        ask "/v1/matrices/y$part"
        expect "its device is lost: $part" 500 code device_failed
    done
    ask /v1/matrices/y -I
    expect "its device is lost: HEAD" 500
    ask '/v1/matmul?backend=cpu&a_from=y&b_from=y' -X POST
    expect "its device is lost: an operand" 500 code device_failed
    ask /v1/benchmark -d '{"a": {"from": "y"}, "n": 3, "variants": ["cpu:naive"]}'
    expect "its device is lost: a benchmark" 200 '.rows[0].error.code' device_failed
fi
for name in n w x y z; do
    ask /v1/matrices/$name -X DELETE
done
same "bytes stored at the end" 0 "$(metric 'store_bytes{state="stored"}')"
has_free_budget || fail "memory is still in use"
stop
[ "$backend" = cpu ] || { finish; exit; }

# A product runs on the GPU that stores the operands. If this GPU is busy, the product runs on another GPU.
lies() {
    ask /v1/matrices
    expect "$3" 200 ".matrices[] | select(.name == \"$1\") | .device" "$2"
}
rm "$scratch/slow" # was a pipe
prepare_held cuda
head -c 80000 "$scratch/slow" >"$scratch/row"
tail -c 80000 "$scratch/slow" >"$scratch/zeros"
start_held
store x '{"a": [[1,2],[3,4]]}'
store one '{"a": [[1]]}'
hold_job first
ask '/v1/matmul?backend=cuda&reply=none&a_from=x&b_from=x&out=y' -X POST
ask '/v1/matmul?backend=cuda&reply=none&m=20000&b_from=one&out=zeros' -X POST -H "$raw" --data-binary "@$scratch/zeros"
expect "a column for the next job" 200
lies y cuda:1 "beside a busy GPU"
release
finish_slow first
ask '/v1/matmul?backend=cuda&reply=none&a_from=y&b_from=y&out=z' -X POST
lies z cuda:1 "both are idle"
mv "$scratch/row" "$scratch/slow"
slow_query='m=1&b_from=zeros&backend=cuda&variant=naive'
hold_job second
copied=$(metric 'transfer_bytes_total{direction="peer"}')
for turn in 1 2; do
    ask "/v1/matmul?backend=cuda&reply=none&a_from=y&b_from=y&out=z$turn" -X POST
    lies z$turn cuda:0 "the GPU that has the operands is busy, turn $turn"
    same "copied once, turn $turn" $((copied + 16)) "$(metric 'transfer_bytes_total{direction="peer"}')"
    ask "/v1/matrices/z$turn" -H 'Accept: application/json'
    expect "the right product" 200 .a '[[199,290],[435,634]]'
done
release
finish_slow second
stop

# If a GPU fails before it stores a result, the name keeps its old value.
has_failed_gpu() {
    curl -s "$url/v1/devices" | jq -e '[.devices[] | select(.state == "failed")] | length == 1' >"$scratch/failed"
}
prepare_held cuda 1 20 # short enough for the time limit
start_held --watchdog-ms 500 --max-kernel-ms 200
ask '/v1/matmul?backend=cpu&out=h' -d '{"a": [[1]], "b": [[1]]}'
expect "a result in host memory" 200
hold_job late 'out=h'
await 60 has_failed_gpu || fail "the watchdog found no hung GPU"
release
finish_slow late "its GPU has failed" 500 code device_failed
ask /v1/matrices/h -H 'Accept: application/json'
expect "its GPU has failed: the name" 200 .a '[[1]]'
stop
finish
