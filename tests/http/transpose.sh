#!/bin/sh
# POST /v1/transpose from outside, where the golden cases do not reach: .npy files written byte by byte, large matrices, and
# the limits that go by the bytes of an element. (tests/unit/api/form.c and npy.c have what is refused.)
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

# file NAME DESCR ORDER SHAPE BYTES: the elements in hexadecimal.
file() {
    {
        npy_head "$2" "$3" "$4"
        for byte in $5; do
            # shellcheck disable=SC2059
            printf "\\$(printf %03o "0x$byte")"
        done
    } >"$scratch/$1"
}

# transposed DESCR SHAPE BYTES ARG…: the reply is a file of this type, shape and bytes.
transposed() {
    file expected "$1" False "($2)" "$3"
    shape=$2
    shift 3
    ask /v1/transpose "$@"
    expect "$*" 200 Content-Type: application/x-npy Matmul-Shape: "$shape"
    same "$*: the file" "$(od -An -v -tx1 "$scratch/expected")" "$(od -An -v -tx1 "$scratch/got")"
}

start --backend cpu
# Files of every type: order, shape and elements of A; shape and elements of its transpose. 01 00 80 7f and its kind are
# signalling NaNs.
while IFS='|' read -r descr order shape elements shape_c elements_c; do
    file a "$descr" "$order" "$shape" "$elements"
    for variant in naive shared auto; do
        transposed "$descr" "$shape_c" "$elements_c" -F "a=@$scratch/a" -F variant=$variant
        [ "$variant" = auto ] || expect "$descr $order" 200 Matmul-Variant: "$variant"
    done
done <<'END'
<f4|False|(2, 3)|01 00 80 7f 02 00 00 00 03 00 00 80 04 00 00 00 05 ff ff ff 06 00 00 00|3, 2|01 00 80 7f 04 00 00 00 02 00 00 00 05 ff ff ff 03 00 00 80 06 00 00 00
<f4|True|(2, 3)|01 00 80 7f 04 00 00 00 02 00 00 00 05 ff ff ff 03 00 00 80 06 00 00 00|3, 2|01 00 80 7f 04 00 00 00 02 00 00 00 05 ff ff ff 03 00 00 80 06 00 00 00
<i4|False|(2, 2)|01 00 00 00 ff ff ff 7f 00 00 00 80 04 00 00 00|2, 2|01 00 00 00 00 00 00 80 ff ff ff 7f 04 00 00 00
<f8|False|(2, 1)|01 00 00 00 00 00 f0 7f 9a 99 99 99 99 99 b9 3f|1, 2|01 00 00 00 00 00 f0 7f 9a 99 99 99 99 99 b9 3f
<i8|False|(2, 2)|01 00 00 00 00 00 00 80 ff ff ff ff ff ff ff 7f 03 00 00 00 00 00 00 00 04 00 00 00 00 00 00 00|2, 2|01 00 00 00 00 00 00 80 03 00 00 00 00 00 00 00 ff ff ff ff ff ff ff 7f 04 00 00 00 00 00 00 00
<i8|True|(0, 3)||3, 0|
END
transposed '<i4' '2, 1' '01 00 00 00 ff ff ff ff' -H 'Accept: application/x-npy' -d '{"a":[[1,-1]],"dtype":"int32"}'
file a '<i8' True '(2, 1)' '01 00 00 00 00 00 00 80 ff ff ff ff ff ff ff 7f'
ask /v1/transpose -H 'Transfer-Encoding: chunked' -H 'Accept: application/json' -F "a=@$scratch/a"
same "a file in, JSON out" '{"c": [[-9223372036854775807,9223372036854775807]]' "$(sed 's/, "shape": .*//' "$scratch/got")"
ask /v1/transpose -F "a=@$scratch/a" -F dtype=float32
expect "another dtype" 400 code bad_request detail "dtype is 'float32', but the elements of a are of type int64"
ask /v1/transpose -F "a=@$scratch/a" -F "b=@$scratch/a"
expect "a part b" 400 code bad_request detail "'b' is unknown in the body, which takes: a, variant, backend, dtype, timeout_ms"
ask /v1/matmul -F "a=@$scratch/a" -F "b=@$scratch/a"
expect "a product of integers" 400 detail "floating-point numbers, as '<f4' is"

# 300×1000 int64 there and back, as JSON and raw.
"$FLOAT32" random 600000 7 >"$scratch/large"
raw='Content-Type: application/octet-stream'
ask '/v1/transpose?m=300&n=1000&dtype=int64' -H "$raw" -H 'Accept: application/json' --data-binary "@$scratch/large"
expect "a large one to JSON" 200 .shape '[1000,300]' \
    '(.gigabytes_per_second * .timing.kernel_ms / 1e3 * 1e9 / (2 * 300 * 1000 * 8)) - 1 | fabs < 1e-3' true
sed 's/^{"c"/{"a"/; s/, "shape": .*/, "dtype": "int64"}/' "$scratch/got" >"$scratch/back.json"
ask /v1/transpose -H 'Content-Type: application/json' -H 'Accept: application/octet-stream' --data-binary "@$scratch/back.json"
checks=$((checks + 1))
cmp -s "$scratch/got" "$scratch/large" || fail "a large one by JSON and back is not itself"
stop

# Limits by the bytes of an element: 32 and 64 of them in A, and as many in C.
start --backend cpu --max-body 256 --max-dimension 64
while IFS='|' read -r wanted bytes query detail; do
    head -c "$bytes" "$scratch/large" >"$scratch/body"
    ask "/v1/transpose?$query" -H "$raw" --data-binary "@$scratch/body"
    expect "$query, $bytes bytes" "$wanted"
    [ "$wanted" = 200 ] || expect "$query, $bytes bytes" "$wanted" code too_large detail "$detail"
done <<'END'
200|256|m=1&n=64|
200|256|m=1&n=32&dtype=float64|
413|256|m=1&n=33&dtype=float64|these dimensions make a body of 264 bytes, but the limit is 256 (the smaller of --max-body and --memory-budget)
413|256|m=1&n=65|n is 65, but the limit is 64
413|260|m=1&n=64|the limit is 256
END
stop
finish
