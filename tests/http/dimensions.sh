#!/bin/sh
# Every dimension of a raw product against every kind of number: what is no decimal non-negative integer
# is bad_request, what passes a limit is too_large whatever its digits, and both come before the length.
# All over one connection, with empty bodies, of which only the query can be at fault.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

# ask STATUS CODE FIELD QUERY: notes a request and what is to come of it; - stands for none or any.
asked=0
ask() {
    asked=$((asked + 1))
    printf '%s %s %s %s\n' "$1" "$2" "$3" "$4" >>"$scratch/expected"
    # The queries are written as they are sent: curl is not to make more of {}, [] and ".
    cat >>"$scratch/config" <<END
next
globoff
silent
max-time = 30
header = "Content-Type: application/octet-stream"
data-binary = ""
write-out = "%{http_code}\\n"
output = "$scratch/got.$asked"
url = "$url/v1/matmul?$4"
END
    : >"$scratch/got.$asked"
}

# with NAME VALUE: the query of an empty product, this dimension replaced.
with() {
    query=
    for dimension in m k n; do
        value=0
        [ "$dimension" != "$1" ] || value=$2
        query="$query&$dimension=$value"
    done
    case $1 in
    ld?) query="$query&$1=$2" ;;
    esac
    echo "${query#&}"
}

# each STATUS CODE VALUE…: all five dimensions; a matrix without rows has no bytes whatever its others are.
each() {
    expected_status=$1
    expected_code=$2
    shift 2
    for tried in "$@"; do
        for name in m k n lda ldb; do
            field=$name
            [ "$expected_status" != 200 ] || field=-
            ask "$expected_status" "$expected_code" $field "$(with "$name" "$tried")"
        done
    done
}

start
each 200 - 0
each 400 bad_request -0 -1 %2B1 +1 1.5 1.0 1. .5 1e3 %222%22 two 0x10 1_000 1,000 %C2%B2 -2147483648 \
    -99999999999999999999 NaN inf 1%00 %00 1%202 1%0A ''
each 200 - 2147483647
each 413 too_large 2147483648 4294967296 4294967297 9223372036854775807 9223372036854775808 18446744073709551615 \
    18446744073709551616 18446744073709551617 1000000000000000000000000000000000000000

# Each dimension is within its limit, but not what they make together; with all three the bytes of the
# operands pass 2^64.
largest=2147483647
ask 413 too_large - "m=$largest&k=$largest&n=0"
ask 413 too_large - "m=0&k=$largest&n=$largest"
ask 413 too_large - "m=$largest&k=0&n=$largest"
ask 413 too_large - "m=$largest&k=$largest&n=$largest"
ask 413 too_large - "m=$largest&k=1&n=0&lda=$largest"
ask 413 too_large - "m=0&k=$largest&n=1&ldb=$largest"
ask 413 too_large - "m=$largest&k=$largest&n=0&transpose_a=1"
# What passes a limit is told before what is malformed, in whatever order they stand.
ask 413 too_large k "m=-1&k=99999999999&n=1"
ask 413 too_large m "m=99999999999&k=-1&n=1"
ask 400 bad_request m "m=-1&k=1.5&n=1"
# With no rows there is no storage, however far apart the rows would be.
ask 200 - - "m=0&k=0&n=$largest&lda=$largest&ldb=$largest"

sed -i 1d "$scratch/config"
curl --config "$scratch/config" >"$scratch/statuses" || fail "curl: exit status $?"
index=0
while read -r expected_status expected_code field query; do
    index=$((index + 1))
    IFS= read -r got <&3 || got=none
    same "$query: status" "$expected_status" "$got"
    case $expected_status in
    200) same "$query: bytes in the body" 0 "$(wc -c <"$scratch/got.$index" | tr -d ' ')" ;;
    *)
        same "$query: code and field" "$expected_code $field" \
            "$(jq -r --arg field "$field" '"\(.code) \(if $field == "-" then "-" else .field end)"' "$scratch/got.$index" 2>&1)"
        ;;
    esac
done <"$scratch/expected" 3<"$scratch/statuses"
same "requests answered" "$asked" "$index"
stop
finish
