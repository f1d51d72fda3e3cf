#!/bin/sh
# Forms as curl sends them, with .npy files written byte by byte: nothing here knows NumPy.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

# file NAME DESCR ORDER SHAPE NUMBER…: a version 1.0 file, its header padded with spaces to 64 bytes or a multiple.
file() {
    dict="{'descr': '$2', 'fortran_order': $3, 'shape': $4, }"
    name=$1
    shift 4
    bytes=$(((${#dict} + 11 + 63) / 64 * 64))
    {
        # shellcheck disable=SC2059
        printf "\\223NUMPY\\001\\000\\$(printf %03o $((bytes - 10)))\\000"
        printf '%-*s\n' $((bytes - 11)) "$dict"
        printf '%s ' "$@" | "$FLOAT32" encode
    } >"$scratch/$name"
}

# post ARG…: sets $status, and leaves the reply in $scratch/reply and its head in $scratch/head.
post() {
    status=$(curl -s --max-time 60 -o "$scratch/reply" -D "$scratch/crlf" -w '%{http_code}' "$@" "$url/v1/matmul${query:-}") || :
    tr -d '\r' <"$scratch/crlf" >"$scratch/head"
}

# product WHAT NUMBERS SHAPE ARG…: the reply is a file of this shape and these numbers.
product() {
    what=$1 numbers=$2 shape=$3
    shift 3
    post "$@"
    same "$what: status" 200 "$status"
    same "$what: Content-Type" application/x-npy "$(header Content-Type "$scratch/head")"
    like "$what: header" "?NUMPY*{'descr': '<f4', 'fortran_order': False, 'shape': ($shape), } *" \
        "$(head -c 128 "$scratch/reply" | tr -d '\000\001')"
    same "$what: the header's last byte" '\n' "$(head -c 128 "$scratch/reply" | tail -c 1 | od -An -c | tr -d ' ')"
    same "$what: numbers" "$numbers" "$(tail -c +129 "$scratch/reply" | "$FLOAT32" decode | tr '\n' ' ')"
    same "$what: Content-Length" "$(wc -c <"$scratch/reply" | tr -d ' ')" "$(header Content-Length "$scratch/head")"
}

start
file a '<f4' False '(2, 3)' 1 2 3 4 5 6
file a_fortran '<f4' True '(2, 3)' 1 4 2 5 3 6
file a_transposed '<f4' False '(3, 2)' 1 4 2 5 3 6
file b '<f4' False '(3, 2)' 1 0 0 1 1 1
file b_fortran '<f4' True '(3, 2)' 1 0 1 0 1 1
c='4 5 10 11 '
for a in a a_fortran; do
    for b in b b_fortran; do
        for variant in naive tiled_32 auto; do
            product "$a·$b by $variant" "$c" '2, 2' -F "a=@$scratch/$a" -F "b=@$scratch/$b" -F variant=$variant -F backend=cpu
        done
    done
done
product "b before a" "$c" '2, 2' -F variant=naive -F "b=@$scratch/b" -F "a=@$scratch/a_fortran"
product "transpose_a" "$c" '2, 2' -F "a=@$scratch/a_transposed" -F "b=@$scratch/b" -F transpose_a=true
product "Fortran order and transpose_b" '14 32 32 77 ' '2, 2' -F "a=@$scratch/a" -F "b=@$scratch/a_fortran" -F transpose_b=1
query='?variant=naive&timeout_ms=30000'
product "parameters in the query and the form" "$c" '2, 2' -F "a=@$scratch/a" -F "b=@$scratch/b" -F variant=naive
refusal "parameters that differ" 400 bad_request "given twice" -F "a=@$scratch/a" -F "b=@$scratch/b" -F variant=blas
query='?m=2'
refusal "a dimension in the query" 400 bad_request "m goes only with" -F "a=@$scratch/a" -F "b=@$scratch/b"
query=
# The body has no length, and no part's position is known before it ends.
product "chunked" "$c" '2, 2' -H 'Transfer-Encoding: chunked' -F "a=@$scratch/a" -F "b=@$scratch/b_fortran"

# Larger than what comes at once, as clients write it, and with a blank behind the last boundary, for which it is
# decoded when it is whole. And a byte is missing.
count=150000
# shellcheck disable=SC2046
file row '<f4' False "(1, $count)" $(awk "BEGIN { for (i = 0; i < $count; i++) print i % 7 }")
# shellcheck disable=SC2046
file column '<f4' True "($count, 1)" $(awk "BEGIN { for (i = 0; i < $count; i++) print i % 5 }")
sum=$(awk "BEGIN { for (i = 0; i < $count; i++) sum += (i % 7) * (i % 5); printf \"%d\", sum }")
form_type='Content-Type: multipart/form-data; boundary=B'
for last in '--B--' '--B-- '; do
    {
        printf -- '--B\r\nContent-Disposition: form-data; name="a"\r\n\r\n'
        cat "$scratch/row"
        printf '\r\n--B\r\nContent-Disposition: form-data; name="b"\r\n\r\n'
        cat "$scratch/column"
        printf '\r\n%s\r\n' "$last"
    } >"$scratch/form"
    product "a large form that ends in '$last'" "$sum " '1, 1' -H "$form_type" --data-binary "@$scratch/form"
    product "the same, chunked" "$sum " '1, 1' -H "$form_type" -H 'Transfer-Encoding: chunked' --data-binary "@$scratch/form"
    sed '$ s/--B--/--B-/' "$scratch/form" >"$scratch/cut"
    refusal "the same, cut" 400 bad_request "final boundary" -H "$form_type" --data-binary "@$scratch/cut"
done

file empty '<f4' False '(3, 0)'
file none '<f4' True '(0, 4)'
product "no columns" '' '2, 0' -F "a=@$scratch/a" -F "b=@$scratch/empty"
product "k = 0" '0 0 0 0 0 0 0 0 0 0 0 0 ' '3, 4' -F "a=@$scratch/empty" -F "b=@$scratch/none"

post -H 'Accept: application/json' -F "a=@$scratch/a" -F "b=@$scratch/b"
same "Accept: application/json" '[[4,5],[10,11]]' "$(jq -c .c "$scratch/reply")"
post -H 'Accept: application/octet-stream' -F "a=@$scratch/a" -F "b=@$scratch/b"
same "Accept: application/octet-stream" "$c" "$("$FLOAT32" decode <"$scratch/reply" | tr '\n' ' ')"
product "JSON in, a file out" '6 ' '1, 1' -H 'Accept: application/x-npy' -d '{"a":[[2]],"b":[[3]]}'
printf '2 3 ' | "$FLOAT32" encode >"$scratch/raw"
query='?m=1&k=1&n=1'
product "raw in, a file out" '6 ' '1, 1' -H 'Accept: application/x-npy' -H 'Content-Type: application/octet-stream' \
    --data-binary "@$scratch/raw"
query=

# The shapes in an error are those that the file's owner sees.
refusal "Fortran order that does not conform" 422 bad_shape 'a is 2×3 and b is 2×3' -F "a=@$scratch/a_fortran" -F "b=@$scratch/a_fortran"
refusal "Fortran order, transposed, that does not conform" 422 bad_shape 'transposed a is 3×2 and b is 3×2' \
    -F "a=@$scratch/a_fortran" -F "b=@$scratch/b_fortran" -F transpose_a=1
refusal "no b" 400 bad_request "no part named b" -F "a=@$scratch/a"
refusal "two a" 400 bad_request "two parts named a" -F "a=@$scratch/a" -F "a=@$scratch/a" -F "b=@$scratch/b"
refusal "an unknown part" 400 bad_request "'extra'" -F "a=@$scratch/a" -F "b=@$scratch/b" -F extra=1
refusal "a dimension in the form" 400 bad_request "'lda' is no parameter here" -F "a=@$scratch/a" -F "b=@$scratch/b" -F lda=3
refusal "no file" 400 bad_request "NUMPY" -F 'a=[[1]]' -F "b=@$scratch/b"
refusal "an unknown variant" 422 unsupported "tiled_33" -F "a=@$scratch/a" -F "b=@$scratch/b" -F variant=tiled_33
file wide '<f8' False '(1, 1)' 1 1
refusal "float64" 422 unsupported "float64" -F "a=@$scratch/wide" -F "b=@$scratch/wide"
refusal "float64 and float32" 400 bad_request "both must be of one type" -F "a=@$scratch/wide" -F "b=@$scratch/b"
file big_endian '>f4' False '(1, 1)' 1
refusal "the other byte order" 400 bad_request ">f4" -F "a=@$scratch/big_endian" -F "b=@$scratch/b"
file huge '<f4' False '(4294967296, 1)' 1
refusal "a dimension past the limit" 413 too_large "4294967296" -F "a=@$scratch/huge" -F "b=@$scratch/b"
refusal "another dtype" 400 bad_request "float64" -F "a=@$scratch/a" -F "b=@$scratch/b" -F dtype=float64
refusal "no boundary" 400 bad_request "boundary" -H 'Content-Type: multipart/form-data' --data-binary "@$scratch/a"
printf -- '--B\nContent-Disposition: form-data; name="a"\n\n1\n--B--\n' >"$scratch/form"
refusal "lines that end in LF" 400 bad_request "CRLF" -H 'Content-Type: multipart/form-data; boundary=B' --data-binary "@$scratch/form"
refusal "an empty form" 400 bad_request "boundary" -H 'Content-Type: multipart/form-data; boundary=B' -d ''
stop
finish
