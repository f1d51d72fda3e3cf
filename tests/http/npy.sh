#!/bin/sh
# Forms as curl sends them, with .npy files written byte by byte: nothing here knows NumPy. (tests/unit/api/form.c and npy.c have
# what is refused.)
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

# file NAME DESCR ORDER SHAPE NUMBER…
file() {
    name=$1
    npy_head "$2" "$3" "$4" >"$scratch/$name"
    shift 4
    printf '%s ' "$@" | "$FLOAT32" encode >>"$scratch/$name"
}

# product NUMBERS SHAPE QUERY ARG…: the reply is a file of this shape and these numbers.
product() {
    numbers=$1 shape=$2 query=$3
    shift 3
    ask "/v1/matmul$query" "$@"
    expect "$query $*" 200 Content-Type: application/x-npy Content-Length: "$(wc -c <"$scratch/got" | tr -d ' ')"
    npy_head '<f4' False "($shape)" >"$scratch/expected"
    same "$query $*: header" "$(tr '\0' 0 <"$scratch/expected")" "$(head -c 128 "$scratch/got" | tr '\0' 0)"
    same "$query $*: numbers" "$numbers" "$(tail -c +129 "$scratch/got" | "$FLOAT32" decode | tr '\n' ' ')"
}

start
cd "$scratch"
file a '<f4' False '(2, 3)' 1 2 3 4 5 6
file a_fortran '<f4' True '(2, 3)' 1 4 2 5 3 6
file a_transposed '<f4' False '(3, 2)' 1 4 2 5 3 6
file b '<f4' False '(3, 2)' 1 0 0 1 1 1
file b_fortran '<f4' True '(3, 2)' 1 0 1 0 1 1
file empty '<f4' False '(3, 0)'
file none '<f4' True '(0, 4)'
printf '2 3 ' | "$FLOAT32" encode >raw
c='4 5 10 11 '
for a in a a_fortran; do
    for b in b b_fortran; do
        for variant in naive tiled_32 auto; do
            product "$c" '2, 2' '' -F "a=@$a" -F "b=@$b" -F variant=$variant -F backend=cpu
        done
    done
done
# shellcheck disable=SC2086
while IFS='|' read -r numbers shape query arguments; do
    product "$numbers" "$shape" "$query" $arguments
done <<'END'
4 5 10 11 |2, 2||-F variant=naive -F b=@b -F a=@a_fortran
4 5 10 11 |2, 2||-F a=@a_transposed -F b=@b -F transpose_a=true
14 32 32 77 |2, 2||-F a=@a -F b=@a_fortran -F transpose_b=1
4 5 10 11 |2, 2|?variant=naive&timeout_ms=30000|-F a=@a -F b=@b -F variant=naive
4 5 10 11 |2, 2||-H Transfer-Encoding:chunked -F a=@a -F b=@b_fortran
|2, 0||-F a=@a -F b=@empty
0 0 0 0 0 0 0 0 0 0 0 0 |3, 4||-F a=@empty -F b=@none
6 |1, 1||-H Accept:application/x-npy -d {"a":[[2]],"b":[[3]]}
6 |1, 1|?m=1&k=1&n=1|-H Accept:application/x-npy -H Content-Type:application/octet-stream --data-binary @raw
END
# shellcheck disable=SC2086
while IFS='|' read -r wanted code detail query arguments; do
    ask "/v1/matmul$query" $arguments
    expect "$query $arguments" "$wanted" code "$code" detail "$detail"
done <<'END'
400|bad_request|given twice|?variant=naive|-F a=@a -F b=@b -F variant=blas
400|bad_request|m is in the query|?m=2|-F a=@a -F b=@b
422|bad_shape|a is 2×3 and b is 2×3||-F a=@a_fortran -F b=@a_fortran
422|bad_shape|transposed a is 3×2 and b is 3×2||-F a=@a_fortran -F b=@b_fortran -F transpose_a=1
400|bad_request|no part named b||-F a=@a
422|unsupported|tiled_33||-F a=@a -F b=@b -F variant=tiled_33
END
for row in 'application/json [[4,5],[10,11]]' "application/octet-stream $c"; do
    ask /v1/matmul -H "Accept: ${row%% *}" -F "a=@a" -F "b=@b"
    got=$(jq -c .c got 2>/dev/null || "$FLOAT32" decode <got | tr '\n' ' ')
    same "Accept: ${row%% *}" "${row#* }" "$got"
done

# Larger than what comes at once, as clients write it, and with a blank behind the last boundary, for which it is
# decoded when it is whole. And a byte is missing.
count=150000
# shellcheck disable=SC2046
file row '<f4' False "(1, $count)" $(awk "BEGIN { for (i = 0; i < $count; i++) print i % 7 }")
# shellcheck disable=SC2046
file column '<f4' True "($count, 1)" $(awk "BEGIN { for (i = 0; i < $count; i++) print i % 5 }")
sum=$(awk "BEGIN { for (i = 0; i < $count; i++) sum += (i % 7) * (i % 5); printf \"%d\", sum }")
type='Content-Type: multipart/form-data; boundary=B'
for last in '--B--' '--B-- '; do
    {
        printf -- '--B\r\nContent-Disposition: form-data; name="a"\r\n\r\n'
        cat row
        printf '\r\n--B\r\nContent-Disposition: form-data; name="b"\r\n\r\n'
        cat column
        printf '\r\n%s\r\n' "$last"
    } >form
    product "$sum " '1, 1' '' -H "$type" --data-binary @form
    product "$sum " '1, 1' '' -H "$type" -H 'Transfer-Encoding: chunked' --data-binary @form
    sed '$ s/--B--/--B-/' form >form_cut
    ask /v1/matmul -H "$type" --data-binary @form_cut
    expect "a form that is cut" 400 code bad_request detail "final boundary"
done
stop
finish
