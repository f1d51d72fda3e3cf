#!/bin/sh
# Tests PUT into the memory of a GPU: placed.sh BACKEND, which is cuda, or cpu for a simulated GPU. Skipped
# (status 77) if the backend has no device.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

backend=$1 raw='Content-Type: application/octet-stream'
[ "$backend" = cuda ] || MATMULD=$FAULTY
start
curl -s --max-time 30 "$url/v1/devices" | jq -e '[.devices[] | select(.backend == "cuda")] | length > 0' >"$scratch/cuda" || {
    stop
    exit 77
}
seq 1000 | awk '{ print NR == 1 }' | "$FLOAT32" encode >"$scratch/unit"
ask '/v1/matrices/unit?m=1000&n=1' -X PUT -H "$raw" --data-binary "@$scratch/unit"
used=$(metric 'staging_bytes{state="used"}')

# fill FILE ROWS COLS: writes float32 rows. All elements of row i are i.
fill() {
    seq "$2" | awk -v n="$3" '{ for (i = 0; i < n; i++) print $1 }' | "$FLOAT32" encode >"$scratch/$1"
}

# is_placed WHAT NAME FILE [SUM]: the GPU has the file's elements. SUM is the sum of a product with them.
is_placed() {
    expect "$1" 201 '.device | sub("[0-9]+$"; "")' cuda:
    ask "/v1/matrices/$2" -H 'Accept: application/octet-stream'
    checks=$((checks + 1))
    cmp -s "$scratch/got" "$scratch/$3" || fail "$1: GET has other elements"
    [ $# -eq 4 ] || return 0
    ask "/v1/matmul?a_from=$2&b_from=unit&backend=cuda" -X POST -H "Accept: application/json"
    expect "$1: its product" 200 "[.c[][0]] | add" "$4"
}

file() {
    npy_head "$2" "$3" "$4" >"$scratch/$1"
    cat "$scratch/$5" >>"$scratch/$1"
}

fill large 1200 1000
fill small 3 1000
head -c 2097152 "$scratch/large" >"$scratch/two"
head -c 2097280 "$scratch/large" >"$scratch/more"
head -c 4194304 "$scratch/large" >"$scratch/four"
for name in large small; do
    file $name.npy '<f4' False "($(($(wc -c <"$scratch/$name") / 4000)), 1000)" $name
done
ask '/v1/matrices/raw?m=1200&n=1000' -X PUT -H "$raw" -H Expect: --data-binary "@$scratch/large"
is_placed "a large raw body" raw large 720600
ask '/v1/matrices/continue?m=1200&n=1000' -X PUT -H "$raw" -H 'Expect: 100-continue' --data-binary "@$scratch/large"
is_placed "one that waits for 100" continue large 720600
for row in 'large 720600' 'small 6'; do
    name=${row% *} sum=${row#* }
    ask "/v1/matrices/$name.npy" -T "$scratch/$name.npy"
    is_placed "a $name file without a type" "$name.npy" "$name" "$sum"
    ask "/v1/matrices/$name" -X PUT -H 'Content-Type: application/x-npy' --data-binary "@$scratch/$name.npy"
    is_placed "a $name file" "$name" "$name" "$sum"
done
# The last byte, or the byte before it, fills the transfer buffer.
for name in two more four; do
    ask "/v1/matrices/$name?m=$(($(wc -c <"$scratch/$name") / 128))&n=32" -X PUT -H "$raw" --data-binary "@$scratch/$name"
    is_placed "of $(wc -c <"$scratch/$name") bytes" $name $name
done
{
    printf 'PUT /v1/matrices/slow HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %s\r\nConnection: close\r\n\r\n' \
        "$(wc -c <"$scratch/large.npy" | tr -d ' ')"
    cat "$scratch/large.npy"
} >"$scratch/requests"
talk requests 30011 || :
last_reply
is_placed "a file in pieces" slow large 720600
# Elements in another layout must be decoded before they are copied to the GPU.
file fortran.npy '<f4' True '(1000, 1200)' large
ask /v1/matrices/fortran -T "$scratch/fortran.npy"
expect "in Fortran order" 201 .shape '[1000,1200]'
ask '/v1/transpose?a_from=fortran&backend=cpu' -X POST -H 'Accept: application/octet-stream'
checks=$((checks + 1))
cmp -s "$scratch/got" "$scratch/large" || fail "in Fortran order: other elements"
ask /v1/matrices/json -X PUT -H 'Content-Type: application/json' -d '{"a": [[1,2],[3,4]]}'
expect "JSON" 201 '.device | sub("[0-9]+$"; "")' cuda:
ask '/v1/matmul?a_from=json&b_from=json' -X POST
expect "a product of a JSON matrix" 200 .c '[[7,10],[15,22]]'
ask /v1/matrices/csv -X PUT -H 'Content-Type: text/csv' --data-binary '1,2'
expect "CSV" 201 '.device | sub("[0-9]+$"; "")' cuda:
same "matrices on a GPU use no host memory" "$used" "$(metric 'staging_bytes{state="used"}')"
# An invalid byte in a bool matrix is rejected in whichever chunk it arrives, and the old value stays.
printf '\1\1' >"$scratch/bools"
head -c 4800000 /dev/zero >"$scratch/zeros"
ask '/v1/matrices/bool?m=1&n=2&dtype=bool' -X PUT -H "$raw" --data-binary "@$scratch/bools"
is_placed "two bools" bool bools
ask '/v1/matrices/zeros?m=1&n=4800000&dtype=bool' -X PUT -H "$raw" --data-binary "@$scratch/zeros"
is_placed "a large body of bools" zeros zeros
for at in 0 4000000 4799999; do
    { head -c $at /dev/zero && printf '\2' && head -c $((4799999 - at)) /dev/zero; } >"$scratch/late"
    file late.npy '|b1' False '(1, 4800000)' late
    ask '/v1/matrices/bool?m=1&n=4800000&dtype=bool' -X PUT -H "$raw" --data-binary "@$scratch/late"
    expect "a byte of 2 at $at" 400 code bad_request .field a detail 'neither 0 nor 1'
    ask /v1/matrices/bool -T "$scratch/late.npy"
    expect "a byte of 2 at $at of a file" 400 code bad_request .field a
done
ask "/v1/transpose?a_from=bool&backend=$backend&out=turned" -X POST -H 'Accept: application/octet-stream'
expect "a transposition of the old value" 200
cmp -s "$scratch/got" "$scratch/bools" || fail "a transposition has other bytes"
ask "/v1/matmul?a_from=turned&b_from=bool&backend=$backend" -X POST -H 'Accept: application/json'
expect "a product of bool matrices" 200 .c '[[1,1],[1,1]]'
ask '/v1/matrices/none?m=0&n=4' -X PUT -H "$raw" -d ''
expect "a matrix without elements" 201 .device cpu
while read -r query; do
    ask "/v1/matrices/wrong?$query" -X PUT -H "$raw" --data-binary "@$scratch/large"
    expect "a wrong length: $query" 400 code bad_request
done <<'END'
m=1200&n=999
m=1200&n=1000&dtype=float64
END
file short.npy '<f4' False '(1200, 1001)' large
ask /v1/matrices/wrong -T "$scratch/short.npy"
expect "a file that is too short" 400 code bad_request
for name in unit raw continue large.npy small.npy large small two more four slow fortran json csv bool zeros turned none; do
    ask /v1/matrices/$name -X DELETE
    expect "deleted: $name" 204
done
same "bytes stored at the end" 0 "$(metric 'store_bytes{state="stored"}')"
has_free_budget || fail "memory is still in use"
stop

# The GPU stores more bytes than the host's memory budget. Simultaneous large uploads use little host memory.
start --memory-budget 16MiB
for turn in 1 2 3; do
    uploads=
    for name in 1 2 3 4; do
        curl -s -o "$scratch/put.$name" -w '%{http_code}' --limit-rate 8M -X PUT -H "$raw" --data-binary "@$scratch/large" \
            "$url/v1/matrices/$turn$name?m=1200&n=1000" >"$scratch/put.$name.status" &
        uploads="$uploads $!"
    done
    ask /v1/matmul -d '{"a": [[1]], "b": [[2]]}'
    expect "a product beside uploads" 200 .c '[[2]]'
    # shellcheck disable=SC2086
    wait $uploads
    same "four at a time" 201201201201 "$(cat "$scratch"/put.?.status)"
done
ask /v1/matrices
expect "bytes of all uploaded matrices" 200 .bytes 57600000
# A result waits for host memory that an upload uses. Matrices on the GPU use no host memory.
head -c 4800 "$scratch/large" >"$scratch/column"
ask '/v1/matrices/column?m=1200&n=1' -X PUT -H "$raw" --data-binary "@$scratch/column"
{
    printf 'POST /v1/matmul?m=1&k=1500000&n=1&backend=cpu HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n%s\r\nContent-Length: 12000000\r\n\r\n' "$raw"
    head -c 12000000 /dev/zero
} >"$scratch/requests"
talk requests 11900000 1000 &
upload=$!
has_arrived() { [ "$(metric 'staging_bytes{state="used"}')" -ge 11000000 ]; }
await 60 has_arrived || fail "the upload did not arrive"
ask '/v1/matmul?a_from=column&b_from=column&transpose_b=1' -X POST -H 'Accept: application/octet-stream'
expect "a result that waits for memory" 200
wait "$upload" || :
last_reply
expect "the upload" 200
# An upload that breaks off leaves no memory reserved in the store or on the GPU, and the old value stays.
{
    printf 'PUT /v1/matrices/11?m=3200&n=1000 HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 12800000\r\n\r\n'
    head -c 2500000 "$scratch/large"
} >"$scratch/requests"
for turn in $(seq 22); do # the simulated GPU has memory for only 20
    talk requests 2600000 LEAVE || :
done
has_room_reserved() { [ "$(metric 'store_bytes{state="reserved"}')" != 0 ]; }
nothing_is_reserved() { [ "$(metric 'store_bytes{state="reserved"}')" = 0 ]; }
await 60 nothing_is_reserved || fail "bytes are still reserved"
ask /v1/matrices/11 -H 'Accept: application/octet-stream'
cmp -s "$scratch/got" "$scratch/large" || fail "an upload that broke off changed the old value"
ask '/v1/matrices/new?m=1200&n=1000' -X PUT -H "$raw" --data-binary "@$scratch/large"
is_placed "an upload after those that broke off" new large
# A file whose header arrives in chunks is copied too. The first packet has only 10 bytes of the file.
fill larger 3200 1000
file larger.npy '<f4' False '(3200, 1000)' larger
{
    printf 'PUT /v1/matrices/pieces HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nX-A: %s\r\n' "$(printf '%020000d' 0)"
    printf 'Content-Type: application/x-npy\r\nContent-Length: %s\r\n\r\n' "$(wc -c <"$scratch/larger.npy")"
} >"$scratch/requests"
piece=$(($(wc -c <"$scratch/requests") + 10)) most=0
cat "$scratch/larger.npy" >>"$scratch/requests"
talk requests $piece &
upload=$!
while kill -0 $upload 2>/dev/null; do
    now=$(metric 'staging_bytes{state="used"}')
    [ "$now" -le "$most" ] || most=$now
    sleep 0.1
done
wait $upload || :
last_reply
expect "a .npy file whose header arrives in chunks" 201
at_most "bytes of host memory in use" 4400000 $((most - used))
ask /v1/matrices/pieces -H 'Accept: application/octet-stream'
cmp -s "$scratch/got" "$scratch/larger" || fail "a .npy file whose header arrived in chunks: GET has other elements"
stop

# fp32_tensor may keep the halves of stored operands, and fp64_tensor their residues. Products with and without them
# must have equal bits.
variant=fp32_tensor
same_bits() {
    what=$1 query=$2 named=$3
    shift 3
    (cd "$scratch" && cat "$@") >"$scratch/both"
    post_file both "variant=$variant&$query"
    expect "$what, inline" 200
    cp "$scratch/got" "$scratch/expected"
    for turn in 1 2 3 4; do
        ask "/v1/matmul?variant=$variant&$named" -X POST -H 'Accept: application/octet-stream'
        expect "$what" 200 Matmul-Variant: $variant
        checks=$((checks + 1))
        cmp -s "$scratch/got" "$scratch/expected" || fail "$what: other bits in turn $turn"
    done
}

numbers() {
    awk -v n="$2" -v seed="$3" 'BEGIN { srand(seed); for (i = 0; i < n; i++) print 2 * rand() - 1 }' | "$FLOAT32" encode >"$scratch/$1"
}

if [ "$backend" = cuda ]; then
    start
    numbers a 60000 1
    numbers b 50000 2
    { printf nan && tail -c +5 "$scratch/a" | "$FLOAT32" decode | sed 's/^/ /'; } | "$FLOAT32" encode >"$scratch/nan"
    for row in 'a 300 200' 'b 200 250' 'nan 300 200'; do
        # shellcheck disable=SC2086
        set -- $row
        ask "/v1/matrices/$1?m=$2&n=$3" -X PUT -H "$raw" --data-binary "@$scratch/$1"
        expect "stored: $1" 201
    done
    ask '/v1/matmul?variant=fp32_tensor&a_from=a&b_from=b&reply=none' -X POST
    if [ "$status" = 200 ]; then
        same_bits "both" 'm=300&k=200&n=250' 'a_from=a&b_from=b' a b
        same_bits "the same, transposed too" 'm=200&k=300&n=200&transpose_a=1' 'a_from=a&b_from=a&transpose_a=1' a a
        same_bits "NaN, which cannot be split" 'm=300&k=200&n=250' 'a_from=nan&b_from=b' nan b
        expect "NaN is multiplied by simt" 200 Matmul-Path: 'simt*'
        ask '/v1/matrices/a?m=300&n=200' -X PUT -H "$raw" --data-binary "@$scratch/nan"
        same_bits "a replaced operand" 'm=300&k=200&n=250' 'a_from=a&b_from=b' nan b
        ask '/v1/matmul?variant=fp32_tensor&n=250&a_from=a' -X POST -H "$raw" -H 'Accept: application/octet-stream' --data-binary "@$scratch/b"
        expect "one operand stored, one in the body" 200
        cmp -s "$scratch/got" "$scratch/expected" || fail "one operand stored, one in the body: other bits"
        variant=fp64_tensor
        for row in 'c 1 300 400' 'd 2 400 250'; do
            # shellcheck disable=SC2086
            set -- $row
            ask "/v1/transpose?m=$4&n=$3&a_from=uniform($2)&out=$1&dtype=float64" -X POST -H 'Accept: application/octet-stream'
            expect "stored: $1" 200
            cp "$scratch/got" "$scratch/$1"
        done
        same_bits "float64" 'm=300&k=400&n=250&dtype=float64' 'a_from=c&b_from=d' c d
        expect "float64 by int8" 200 Matmul-Path: moduli:15
    fi
    stop
fi
[ "$backend" = cpu ] || { finish; exit; }

# The store uses at most 16 MiB of a simulated GPU of 64 MiB.
export MATMULD_FAULTY_MIB=64
start --max-device-memory 1GiB
unset MATMULD_FAULTY_MIB
head -c 8192 "$scratch/large" >"$scratch/column"
ask '/v1/matrices/column?m=2048&n=1' -X PUT -H "$raw" --data-binary "@$scratch/column"
ask '/v1/matmul?a_from=column&b_from=column&transpose_b=1&rows=:1&out=full&reply=none&backend=cuda&variant=naive' -X POST
expect "a result as large as the GPU memory for stored matrices" 507 code store_full
head -c 7680 "$scratch/large" >"$scratch/row"
ask '/v1/matrices/row?m=1&n=1920' -X PUT -H "$raw" --data-binary "@$scratch/row"
ask '/v1/matmul?a_from=column&b_from=row&out=full&reply=none&backend=cuda&variant=naive' -X POST
expect "a result that leaves 1 MB" 200
ask '/v1/matrices/raw?m=1200&n=1000' -X PUT -H "$raw" --data-binary "@$scratch/large"
expect "a large body for a full GPU" 507 code store_full
ask '/v1/matrices/raw?m=16384&n=32' -X PUT -H "$raw" --data-binary "@$scratch/two"
expect "a body of 2 MiB for a full GPU" 507 code store_full
ask '/v1/matrices/small?m=3&n=1000' -X PUT -H "$raw" --data-binary "@$scratch/small"
is_placed "a small body that fits" small small
same "bytes reserved after rejected uploads" 0 "$(metric 'store_bytes{state="reserved"}')"
stop

# An upload that is far too slow loses its memory, also on the GPU, to a new upload.
start
{
    printf 'PUT /v1/matrices/slow?m=1&n=50000000 HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 200000000\r\n\r\n'
    head -c 8000 "$scratch/large"
} >"$scratch/requests"
talk requests 1000 2000 &
upload=$!
await 60 has_room_reserved || fail "no upload began"
same "MiB of host memory used by the slow upload" 0 $(($(metric 'staging_bytes{state="used"}') / 1048576))
sleep 2
head -c 100000000 /dev/zero >"$scratch/zeros"
is_stored() {
    ask '/v1/matrices/quick?m=1&n=25000000' -X PUT -H "$raw" --data-binary "@$scratch/zeros"
    [ "$status" = 201 ]
}
await 2 is_stored || fail "a slow upload keeps its bytes"
wait "$upload" || :
last_reply
expect "the slow upload" 507 code store_full
ask /v1/matrices
expect "only the fast upload is stored" 200 '[.matrices[].name]' '["quick"]' .bytes 100000000
stop

export MATMULD_FAULTY_DEVICES=2
start
{
    printf 'PUT /v1/matrices/lost?m=1200&n=1000 HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 4800000\r\nConnection: close\r\n\r\n'
    cat "$scratch/large"
} >"$scratch/requests"
talk requests 1000000 500 &
upload=$!
await 60 has_room_reserved || fail "no upload began"
curl -s --max-time 60 -o "$scratch/lost" -d '{"a":[[1]],"b":[[1]],"variant":"loses_device"}' "$url/v1/matmul?backend=cuda" || :
wait "$upload" || :
last_reply
expect "its GPU failed" 500 code device_failed
ask '/v1/matrices/next?m=1200&n=1000' -X PUT -H "$raw" --data-binary "@$scratch/large"
is_placed "the next goes to the other GPU" next large
stop
finish
