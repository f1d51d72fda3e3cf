#!/bin/sh
# Tests alpha, beta, c, bias and activation: refused requests, the log line, and epilogue.py with a server.
# Usage: epilogue.sh BACKEND. Ends with status 77 without NumPy, or if the backend has no device.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

find_numpy || {
    echo "no python3 here has NumPy: nothing is tested"
    exit 77
}

backend=$1
start
devices=$(curl -s --max-time 30 "$url/v1/devices" | jq "[.devices[] | select(.backend == \"$backend\")] | length")
stop
[ "$devices" -gt 0 ] || exit 77

start --backend "$backend"

for matrix in '32 {"a": [[1]]}' '64 {"a": [[1]], "dtype": "float64"}'; do
    ask "/v1/matrices/${matrix%% *}" -X PUT -H 'Content-Type: application/json' -d "${matrix#* }"
    expect "stored: $matrix" 201
done

# Each row: query|members|arguments of `expect`
while IFS='|' read -r query members outcome; do
    ask "/v1/matmul?$query" -H 'Content-Type: application/json' -d "{\"a\": [[1]], \"b\": [[2]]$members}"
    # shellcheck disable=SC2086
    expect "$query $members" $outcome
done <<'END_OF_CASES'
|, "beta": 1|400 code bad_request .field beta
|, "beta": 0|200 .c [[2]]
|, "alpha": 2147483648, "dtype": "int8"|400 code bad_request .field alpha
|, "alpha": -2147483648, "dtype": "int8"|200 .c [[0]]
alpha=2|, "alpha": 3|400 code bad_request .field alpha detail twice
alpha=2|, "alpha": 2.0|200 .c [[4]]
|, "activation": "ReLU"|400 code bad_request .field activation detail gelu_tanh
|, "activation": "relu", "dtype": "int64", "alpha": -1|200 .c [[0]]
|, "c": [[1]], "bias": [1], "beta": 3, "verify": true|200 .c [[6]] .verify.passed true
c_from=32|, "c": [[1]]|400 code bad_request .field c
c_from=64||422 code unsupported .field c detail float64*float32
c_from=64|, "dtype": "float64"|200 .c [[3]]
c_from=64|, "dtype": "float64", "result_dtype": "float32"|422 code unsupported .field c
c_from=none||404 code no_such_matrix .field c_from
c_from=none|, "beta": 0|404 code no_such_matrix .field c_from
|, "c": {"from": "none"}|404 code no_such_matrix .field c.from
|, "c": {"from": "32"}|200 .c [[3]]
|, "c": [[1, 2]]|422 code bad_shape .field c detail 1×2*1×1
|, "c": 1|422 code bad_shape .field c
|, "c": [[1, 2]], "beta": 0|422 code bad_shape .field c
|, "bias": [1, 2]|422 code bad_shape .field bias
|, "bias": [[1]]|422 code bad_shape .field bias
ldc=1|, "c": [[1]]|400 code bad_request .field ldc
c=body||400 code bad_request .field c detail missing
END_OF_CASES

ask '/v1/matmul' -d '{"a": [[1]], "b": [2], "bias": [1]}'
expect "a bias of a vector" 422 code bad_shape .field bias
ask '/v1/matmul' -d '{"a": [1], "b": [2], "c": 3}'
expect "c is a number" 200 .c 5 .shape '[]'
ask '/v1/transpose' -d '{"a": [[1]], "c": [[1]]}'
expect "a transposition" 400 code bad_request .field c
ask '/v1/matmul?m=1&k=1&n=1&c=body' -X POST
expect "a body without a length" 411 code length_required
printf '\1\2\1\0\0\0\7' >"$scratch/odd"
post_file odd 'm=1&k=1&n=1&dtype=int8&c=body'
expect "a byte too much" 400 code bad_request detail 'a 1, then b 1, then c 4'

ask '/v1/matmul?alpha=2&bias_from=uniform(1)' -d '{"a": [[1]], "b": [[2]], "c": [[3]], "activation": "gelu_tanh"}'
expect "for the log" 200
await 10 has_logged '"epilogue":"alpha,beta,bias,gelu_tanh"' || fail "the log has no epilogue"

checks=$((checks + 1))
"$python" "$here/epilogue.py" "$url" || fail "epilogue.py"
stop
finish
