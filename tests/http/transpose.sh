#!/bin/sh
# POST /v1/transpose from outside, where the golden cases do not reach: .npy files written byte by byte, numbers
# that jq cannot hold, large matrices, and the limits that go by the bytes of an element.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

# header_of NAME DESCR ORDER SHAPE: a version 1.0 header, padded with spaces to 64 bytes or a multiple.
header_of() {
    dict="{'descr': '$2', 'fortran_order': $3, 'shape': $4, }"
    bytes=$(((${#dict} + 11 + 63) / 64 * 64))
    {
        # shellcheck disable=SC2059
        printf "\\223NUMPY\\001\\000\\$(printf %03o $((bytes - 10)))\\000"
        printf '%-*s\n' $((bytes - 11)) "$dict"
    } >"$scratch/$1"
}

# file NAME DESCR ORDER SHAPE BYTE…: the elements in hexadecimal.
file() {
    header_of "$1" "$2" "$3" "$4"
    name=$1
    shift 4
    for byte in "$@"; do
        # shellcheck disable=SC2059
        printf "\\$(printf %03o "0x$byte")"
    done >>"$scratch/$name"
}

# post ARG…: sets $status, and leaves the reply in $scratch/reply and its head in $scratch/head.
post() {
    status=$(curl -s --max-time 60 -o "$scratch/reply" -D "$scratch/crlf" -w '%{http_code}' "$@" "$url/v1/transpose${query:-}") || :
    tr -d '\r' <"$scratch/crlf" >"$scratch/head"
    keep POST /v1/transpose "$scratch/head" "$scratch/reply"
}

# transposed WHAT DESCR SHAPE BYTES ARG…: the reply is a file of this type, shape and bytes.
transposed() {
    what=$1 descr=$2 shape=$3 expected=$4
    shift 4
    post "$@"
    same "$what: status" 200 "$status"
    same "$what: Content-Type" application/x-npy "$(header Content-Type "$scratch/head")"
    same "$what: Matmul-Shape" "$shape" "$(header Matmul-Shape "$scratch/head")"
    like "$what: header" "?NUMPY*{'descr': '$descr', 'fortran_order': False, 'shape': ($shape), } *" \
        "$(head -c 128 "$scratch/reply" | tr -d '\000\001')"
    same "$what: bytes" "$expected" "$(tail -c +129 "$scratch/reply" | od -An -v -tx1 | tr -s ' \n' ' ' | sed 's/^ //; s/ $//')"
}

# numbers WHAT EXPECTED BODY: the text of `c`, to the digit.
numbers() {
    post -d "$3"
    same "$1" "$2" "$(sed 's/^{"c": //; s/, "shape": .*//' "$scratch/reply")"
}

start --backend cpu
# Files of every type. 01 00 80 7f and its kind are signalling NaNs.
file f4 '<f4' False '(2, 3)' 01 00 80 7f 02 00 00 00 03 00 00 80 04 00 00 00 05 ff ff ff 06 00 00 00
file f4_fortran '<f4' True '(2, 3)' 01 00 80 7f 04 00 00 00 02 00 00 00 05 ff ff ff 03 00 00 80 06 00 00 00
f4='01 00 80 7f 04 00 00 00 02 00 00 00 05 ff ff ff 03 00 00 80 06 00 00 00'
file i4 '<i4' False '(2, 2)' 01 00 00 00 ff ff ff 7f 00 00 00 80 04 00 00 00
file f8 '<f8' False '(2, 1)' 01 00 00 00 00 00 f0 7f 9a 99 99 99 99 99 b9 3f
file i8 '<i8' False '(2, 2)' 01 00 00 00 00 00 00 80 ff ff ff ff ff ff ff 7f 03 00 00 00 00 00 00 00 04 00 00 00 00 00 00 00
file i8_fortran '<i8' True '(2, 2)' 01 00 00 00 00 00 00 80 03 00 00 00 00 00 00 00 ff ff ff ff ff ff ff 7f 04 00 00 00 00 00 00 00
i8='01 00 00 00 00 00 00 80 03 00 00 00 00 00 00 00 ff ff ff ff ff ff ff 7f 04 00 00 00 00 00 00 00'
for variant in naive shared auto; do
    transposed "<f4 by $variant" '<f4' '3, 2' "$f4" -F "a=@$scratch/f4" -F variant=$variant
    transposed "<f4 in Fortran order by $variant" '<f4' '3, 2' "$f4" -F variant=$variant -F "a=@$scratch/f4_fortran"
    [ "$variant" = auto ] || same "<f4 in Fortran order by $variant: its name" "$variant" "$(header Matmul-Variant "$scratch/head")"
    transposed "<i4 by $variant" '<i4' '2, 2' '01 00 00 00 00 00 00 80 ff ff ff 7f 04 00 00 00' -F "a=@$scratch/i4" -F variant=$variant
    transposed "<f8 by $variant" '<f8' '1, 2' '01 00 00 00 00 00 f0 7f 9a 99 99 99 99 99 b9 3f' -F variant=$variant -F "a=@$scratch/f8"
    transposed "<i8 by $variant" '<i8' '2, 2' "$i8" -F "a=@$scratch/i8" -F variant=$variant -F dtype=int64
    transposed "<i8 in Fortran order by $variant" '<i8' '2, 2' "$i8" -F variant=$variant -F "a=@$scratch/i8_fortran"
done
header_of none '<i8' True '(0, 3)'
transposed "no rows" '<i8' '3, 0' '' -F "a=@$scratch/none"
transposed "JSON in, a file out" '<i4' '2, 1' '01 00 00 00 ff ff ff ff' -H 'Accept: application/x-npy' -d '{"a":[[1,-1]],"dtype":"int32"}'
transposed "chunked" '<f4' '3, 2' "$f4" -H 'Transfer-Encoding: chunked' -F "a=@$scratch/f4"
post -H 'Accept: application/json' -F "a=@$scratch/i8"
same "a file in, JSON out" '{"c": [[-9223372036854775807,3],[9223372036854775807,4]]' "$(sed 's/, "shape": .*//' "$scratch/reply")"

refusal "a part b" 400 bad_request "'b' is no parameter here; there are: variant, backend, dtype, timeout_ms" -F "a=@$scratch/f4" -F "b=@$scratch/f4"
refusal "no a" 400 bad_request "no part named a" -F variant=naive
refusal "transpose_a" 400 bad_request "'transpose_a' is no parameter here" -F "a=@$scratch/f4" -F transpose_a=true
refusal "another dtype" 400 bad_request "dtype is 'float32', but a is a file of int32" -F "a=@$scratch/i4" -F dtype=float32
file f2 '<f2' False '(1, 1)' 00 3c
refusal "float16" 422 unsupported "'float16', but there is only: float32, float64, int32, int64" -F "a=@$scratch/f2"
for descr in '>i4' '<u4' '<i2' '|b1' '<c8'; do
    file other "$descr" False '(1, 1)' 01 00 00 00
    refusal "$descr" 400 bad_request "of type '$descr', but must be little-endian numbers of 4 or 8 bytes" -F "a=@$scratch/other"
done
file short '<i8' False '(1, 1)' 01 00 00 00
refusal "half an element" 400 bad_request "takes 8 bytes, but 4 bytes follow" -F "a=@$scratch/short"
# A product takes no file of integers, as before.
status=$(curl -s --max-time 60 -o "$scratch/reply" -w '%{http_code}' -F "a=@$scratch/i4" -F "b=@$scratch/i4" "$url/v1/matmul") || :
same "a product of integers: status" 400 "$status"
like "a product of integers" "*floating-point numbers, as '<f4' is" "$(jq -r .detail "$scratch/reply")"

# To the digit.
numbers "int64" '[[9223372036854775807,9007199254740993],[-9223372036854775808,-1]]' \
    '{"dtype":"int64","a":[[9223372036854775807,-9223372036854775808],[9007199254740993,-1]]}'
numbers "int32" '[[2147483647],[-2147483648],[100]]' '{"a":[[2147483647,-2147483648,1e2]],"dtype":"int32"}'
numbers "float64" '[[0.1],[0.30000000000000004],[-0.0],[1e+23],[4.94065645841247e-324],[-1.7976931348623157e+308]]' \
    '{"dtype":"float64","a":[[0.1,0.30000000000000004,-0,1e23,5e-324,-1.7976931348623158e308]]}'
numbers "float32" '[[0.1],[16777216],["NaN"]]' '{"a":[[0.1,16777217,"NaN"]]}'

# 300×1000 int64 there and back, as JSON and raw.
"$FLOAT32" random 600000 7 >"$scratch/large"
query='?m=300&n=1000&dtype=int64'
post -H 'Content-Type: application/octet-stream' -H 'Accept: application/json' --data-binary "@$scratch/large"
same "a large one to JSON: shape" '[1000,300]' "$(jq -c .shape "$scratch/reply")"
same "a large one: the rate is of 2mn elements" yes "$(jq -r 'if ((.gigabytes_per_second * .timing.kernel_ms / 1e3 * 1e9 / (2 * 300 * 1000 * 8)) - 1 | fabs) < 1e-3 then "yes" else . end' "$scratch/reply")"
query=
sed 's/^{"c"/{"a"/; s/, "shape": .*/, "dtype": "int64"}/' "$scratch/reply" >"$scratch/back.json"
post -H 'Content-Type: application/json' -H 'Accept: application/octet-stream' --data-binary "@$scratch/back.json"
checks=$((checks + 1))
cmp -s "$scratch/reply" "$scratch/large" || fail "a large one by JSON and back is not itself"
stop

# Limits by the bytes of an element: 32 and 64 of them in A, and as many in C.
start --backend cpu --max-body 256 --max-dimension 64
head -c 256 "$scratch/large" >"$scratch/256"
head -c 260 "$scratch/large" >"$scratch/260"
query='?m=1&n=64'
post -H 'Content-Type: application/octet-stream' --data-binary "@$scratch/256"
same "64 of float32" 200 "$status"
query='?m=1&n=32&dtype=float64'
post -H 'Content-Type: application/octet-stream' --data-binary "@$scratch/256"
same "32 of float64" 200 "$status"
query='?m=1&n=33&dtype=float64'
refusal "33 of float64" 413 too_large "the body of these dimensions is 264 bytes, but the limit is 256" \
    -H 'Content-Type: application/octet-stream' --data-binary "@$scratch/256"
query='?m=1&n=65'
refusal "a dimension past the limit" 413 too_large "n is 65, but the limit is 64" \
    -H 'Content-Type: application/octet-stream' --data-binary "@$scratch/256"
refusal "a body past the limit" 413 too_large "the limit is 256" \
    -H 'Content-Type: application/octet-stream' --data-binary "@$scratch/260"
stop
finish
