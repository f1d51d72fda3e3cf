#!/bin/sh
# Forms as curl sends them, with .npy files written byte by byte: nothing here knows NumPy. And transposes where the golden
# cases do not reach: large ones, and the limits that go by the bytes of an element. (tests/unit/api/form.c and npy.c have
# what is refused.)
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

# file NAME DESCR ORDER SHAPE: the elements' bytes come by stdin.
file() {
    npy_head "$2" "$3" "$4" >"$scratch/$1"
    cat >>"$scratch/$1"
}

# bytes HEX…
bytes() {
    for byte in "$@"; do
        # shellcheck disable=SC2059
        printf "\\$(printf %03o "0x$byte")"
    done
}

# judge_file DESCR SHAPE TARGET ARG…: the reply is a file of this type and shape, and of the bytes of `elements`.
judge_file() {
    file expected "$1" False "($2)" <elements
    shape=$2
    shift 2
    ask "$@"
    expect "$*" 200 Content-Type: application/x-npy Matmul-Shape: "$shape" \
        Content-Length: "$(wc -c <"$scratch/expected" | tr -d ' ')"
    same "$*: the file" "$(od -An -v -tx1 "$scratch/expected")" "$(od -An -v -tx1 "$scratch/got")"
}

raw='Content-Type: application/octet-stream'
start --backend cpu
cd "$scratch"
while IFS='|' read -r name order shape numbers; do
    echo "$numbers" | "$FLOAT32" encode | file "$name" '<f4' "$order" "$shape"
done <<'END'
a|False|(2, 3)|1 2 3 4 5 6
a_fortran|True|(2, 3)|1 4 2 5 3 6
a_transposed|False|(3, 2)|1 4 2 5 3 6
b|False|(3, 2)|1 0 0 1 1 1
b_fortran|True|(3, 2)|1 0 1 0 1 1
empty|False|(3, 0)|
none|True|(0, 4)|
END
printf '2 3 ' | "$FLOAT32" encode >raw
# shellcheck disable=SC2086
while IFS='|' read -r numbers shape query arguments; do
    echo "$numbers" | "$FLOAT32" encode >elements
    judge_file '<f4' "$shape" "/v1/matmul$query" $arguments
done <<'END'
4 5 10 11|2, 2||-F a=@a -F b=@b -F variant=naive
4 5 10 11|2, 2||-F variant=naive -F b=@b -F a=@a_fortran
4 5 10 11|2, 2||-F a=@a_transposed -F b=@b -F transpose_a=true
14 32 32 77|2, 2||-F a=@a -F b=@a_fortran -F transpose_b=1
4 5 10 11|2, 2|?variant=naive&timeout_ms=30000|-F a=@a -F b=@b -F variant=naive
4 5 10 11|2, 2||-H Transfer-Encoding:chunked -F a=@a -F b=@b_fortran
|2, 0||-F a=@a -F b=@empty
0 0 0 0 0 0 0 0 0 0 0 0|3, 4||-F a=@empty -F b=@none
6|1, 1||-H Accept:application/x-npy -d {"a":[[2]],"b":[[3]]}
6|1, 1|?m=1&k=1&n=1|-H Accept:application/x-npy -H Content-Type:application/octet-stream --data-binary @raw
END

# Transposes of files. (http/numpy has every type, order and bit pattern.)
bytes 01 00 00 00 00 00 00 80 ff ff ff ff ff ff ff 7f | file turned '<i8' True '(2, 1)'
bytes 01 00 00 00 00 00 00 80 ff ff ff ff ff ff ff 7f >elements
judge_file '<i8' '1, 2' /v1/transpose -F a=@turned -F variant=shared
bytes 01 00 00 00 ff ff ff ff >elements
judge_file '<i4' '2, 1' /v1/transpose -H 'Accept: application/x-npy' -d '{"a":[[1,-1]],"dtype":"int32"}'
ask /v1/transpose -H 'Transfer-Encoding: chunked' -H 'Accept: application/json' -F a=@turned
same "a file in, JSON out" '{"c": [[-9223372036854775807,9223372036854775807]]' "$(sed 's/, "shape": .*//' got)"
ask /v1/matmul -H 'Accept: application/json' -F a=@a -F b=@b
expect "a form answered as JSON" 200 .c '[[4,5],[10,11]]'
ask /v1/matmul -H 'Accept: application/octet-stream' -F a=@a -F b=@b
same "a form answered raw" '4 5 10 11 ' "$("$FLOAT32" decode <got | tr '\n' ' ')"

# Refused by more than the form alone.
# shellcheck disable=SC2086
while IFS='|' read -r wanted code detail target arguments; do
    ask "/v1/$target" $arguments
    expect "$target $arguments" "$wanted" code "$code" detail "$detail"
done <<'END'
400|bad_request|given twice|matmul?variant=naive|-F a=@a -F b=@b -F variant=blas
400|bad_request|m is given|matmul?m=2|-F a=@a -F b=@b
422|bad_shape|a is 2×3 and b is 2×3|matmul|-F a=@a_fortran -F b=@a_fortran
422|bad_shape|transposed a is 3×2 and b is 3×2|matmul|-F a=@a_fortran -F b=@b_fortran -F transpose_a=1
END

# A form larger than what comes at once, as clients write it, and with a blank behind the last boundary, for which it is
# decoded when it is whole. And a byte is missing.
count=150000
"$FLOAT32" fill $count 2 | file row '<f4' False "(1, $count)"
"$FLOAT32" fill $count 3 | file column '<f4' True "($count, 1)"
type='Content-Type: multipart/form-data; boundary=B'
for last in '--B--' '--B-- '; do
    {
        printf -- '--B\r\nContent-Disposition: form-data; name="a"\r\n\r\n'
        cat row
        printf '\r\n--B\r\nContent-Disposition: form-data; name="b"\r\n\r\n'
        cat column
        printf '\r\n%s\r\n' "$last"
    } >form
    for framing in 'X-A: b' 'Transfer-Encoding: chunked'; do
        echo $((6 * count)) | "$FLOAT32" encode >elements
        judge_file '<f4' '1, 1' /v1/matmul -H "$type" -H "$framing" --data-binary @form
    done
    sed '$ s/--B--/--B-/' form >form_cut
    ask /v1/matmul -H "$type" --data-binary @form_cut
    expect "a form that is cut" 400 code bad_request detail "final boundary"
done

# 300×1000 int64 there and back, as JSON and raw.
head -c 2400000 /dev/urandom >large
ask '/v1/transpose?m=300&n=1000&dtype=int64' -H "$raw" -H 'Accept: application/json' --data-binary @large
expect "a large one to JSON" 200 .shape '[1000,300]' \
    '(.gigabytes_per_second * .timing.kernel_ms / 1e3 * 1e9 / (2 * 300 * 1000 * 8)) - 1 | fabs < 1e-3' true
sed 's/^{"c"/{"a"/; s/, "shape": .*/, "dtype": "int64"}/' got >back.json
ask /v1/transpose -H 'Content-Type: application/json' -H 'Accept: application/octet-stream' --data-binary @back.json
checks=$((checks + 1))
cmp -s got large || fail "a large one by JSON and back is not itself"
stop

# Limits by the bytes of an element: 32 and 64 of them in A, and as many in C.
start --max-body 256 --max-dimension 64
while IFS='|' read -r wanted bytes query detail; do
    head -c "$bytes" large >body
    ask "/v1/transpose?$query" -H "$raw" --data-binary @body
    expect "$query, $bytes bytes" "$wanted"
    [ "$wanted" = 200 ] || expect "$query, $bytes bytes" "$wanted" code too_large detail "$detail"
done <<'END'
200|256|m=1&n=64|
200|256|m=1&n=32&dtype=float64|
413|256|m=1&n=33&dtype=float64|these dimensions make a body of 264 bytes, but the limit is 256 (the smaller of --max-body and fifteen sixteenths of --memory-budget)
413|256|m=1&n=65|n is 65, but the limit is 64
413|260|m=1&n=64|the limit is 256
END
stop
finish
