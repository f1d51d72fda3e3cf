#!/bin/sh
# Tests results that `out` leaves in parts on several simulated GPUs.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

MATMULD=$FAULTY
raw='Content-Type: application/octet-stream' binary='Accept: application/octet-stream'
export MATMULD_FAULTY_DEVICES=4
start
seq $((130 * 64 + 64 * 97)) | awk '{ print $1 % 89 / 8 - 5 }' | "$FLOAT32" encode >"$scratch/operands"
head -c $((130 * 64 * 4)) "$scratch/operands" >"$scratch/a"
tail -c $((64 * 97 * 4)) "$scratch/operands" >"$scratch/b"
ask '/v1/matrices/a?m=130&n=64' -X PUT -H "$raw" --data-binary "@$scratch/a"
ask '/v1/matrices/b?m=64&n=97' -X PUT -H "$raw" --data-binary "@$scratch/b"

# multiply QUERY: multiplies by `naive` on the simulated GPUs.
multiply() {
    ask "/v1/matmul?backend=cuda&variant=naive&$1" -X POST -H 'Accept: application/json'
}

# lies_on COUNT NAME: expects that the matrix lies in this number of parts.
lies_on() {
    ask /v1/matrices
    expect "the devices of $2" 200 ".matrices[] | select(.name == \"$2\").device | [scan(\"cuda:[0-3]\")] | length" "$1"
}

# has_bits WHAT TARGET FILE [ARGUMENT…]: the reply has the bytes of $scratch/FILE.
has_bits() {
    what=$1 target=$2 file=$3
    shift 3
    ask "$target" -H "$binary" "$@"
    expect "$what" 200
    [ -e "$scratch/$file" ] || cp "$scratch/got" "$scratch/$file"
    checks=$((checks + 1))
    cmp -s "$scratch/got" "$scratch/$file" || fail "$what: other bits"
}

# Windows over borders of parts, products with the parts as an operand, and products of products. The result of
# one device is the first, and tells the bits.
for row in 1:1 2:2 3:3 all:4; do
    devices=${row%:*} parts=${row#*:}
    multiply "a_from=a&b_from=b&out=c&devices=$devices&reply=none"
    expect "out by $devices" 200 .devices "$parts" .reproducible rows
    lies_on "$parts" c
    while read -r window; do
        has_bits "$window by $devices" "/v1/matrices/c?$window" "window.$window"
    done <<END
rows=0:130
rows=30:100&cols=5:90
cols=96:97
rows=65:66
END
    ask '/v1/matrices/c?reduce=sum,max,norm'
    [ "$devices" != 1 ] || jq -c .sum "$scratch/got" >"$scratch/sum"
    expect "figures of c by $devices" 200 .sum "$(cat "$scratch/sum")"
    for by in 'cuda&devices=1' 'cuda&devices=all' cpu; do
        has_bits "$devices: A by $by" "/v1/matmul?variant=naive&a_from=c&b_from=b&transpose_b=true&backend=$by" as_a -X POST
        has_bits "$devices: B by $by" "/v1/matmul?variant=naive&a_from=a&transpose_a=true&b_from=c&backend=$by" as_b -X POST
    done
    multiply "a_from=c&b_from=b&transpose_b=true&out=c&devices=$devices&reply=none"
    multiply "a_from=c&b_from=b&out=c&devices=$devices&reply=none"
    expect "a chain by $devices" 200 .devices "$parts"
    has_bits "a chain by $devices" /v1/matrices/c chain
    ask "/v1/matmul?backend=cuda&variant=naive&a_from=a&b_from=b&out=d&rows=30:100&verify=true&devices=$devices" -X POST -H "$binary"
    expect "with rows and verify" 200 Matmul-Verify: '*, passed,*'
    has_bits "beside a part by $devices" '/v1/matrices/d?rows=0:130' window.rows=0:130
    multiply "a_from=a&b_from=b&out=d&reply=none&verify=true&reduce=sum&devices=$devices"
    expect "with a check" 200 .verify.passed true
done

# Results whose rows are not those of the product: a vector, a stack over one B, and a stack times a vector.
for devices in 1 4; do
    while IFS='|' read -r file query windows; do
        head -c "${file#*:}" "$scratch/operands" >"$scratch/body"
        post_file body "$query&backend=cuda&variant=naive&reply=none&out=s&devices=$devices" 'Accept: application/json'
        expect "$query by $devices" 200 .devices "$devices"
        for window in $windows; do
            has_bits "$query by $devices: $window" "/v1/matrices/s?$window" "$file.$window"
        done
    done <<END
v:33536|a_shape=130,64&b_shape=64|cols=0:130 cols=20:120
m:33536|a_shape=2,65,64&b_shape=64|rows=0:2 rows=0:2&cols=10:60 rows=1:2
s:58112|a_shape=2,65,64&b_shape=64,97|rows=0:65 rows=10:60 cols=9:80 rows=60:64&cols=1:2
END
done

# A device fails while it computes a part. Another device computes the part.
multiply 'a_from=a&b_from=b&out=kept&devices=1&reply=none'
ask '/v1/matmul?a_from=a&b_from=b&backend=cuda&variant=loses_device&out=c&devices=4&reply=none' -X POST -H 'Accept: application/json'
expect "a device that fails" 200 .devices 3
lies_on 4 c
has_bits "a part of a device that failed" '/v1/matrices/c?rows=0:130' window.rows=0:130

# Then a device with a part fails, so the matrix is lost.
ask /v1/matmul -d '{"a":[[1]],"b":[[1]],"backend":"cuda","variant":"loses_device"}'
for target in /v1/matrices/c '/v1/matrices/c?rows=0:1' '/v1/matmul?backend=cuda&a_from=c&b_from=b&transpose_b=true'; do
    method=GET
    case $target in *matmul*) method=POST ;; esac
    ask "$target" -X $method
    expect "$target: lost" 500 code device_failed detail 'a part of the matrix was only in the memory of cuda:*, which has failed'
done
ask /v1/matrices/c -X DELETE
expect "a lost matrix is deleted" 204
multiply 'a_from=a&b_from=b&out=c&devices=all&reply=none'
expect "the devices that are left" 200 .devices 2
has_bits "the devices that are left" '/v1/matrices/c?rows=0:130' window.rows=0:130
stop

# Each GPU has 64 MiB, of which stored matrices get 16. The result has 30 MiB.
export MATMULD_FAULTY_DEVICES=3 MATMULD_FAULTY_MIB=64
start_held --backend cuda --max-device-memory 1GiB
large='m=2048&k=1&n=3840&variant=naive&reply=none&out=large'
head -c 23552 /dev/zero >"$scratch/both"
{ echo 7777 | "$FLOAT32" encode && head -c 8388604 /dev/zero; } >"$scratch/8MiB"
post_file both "$large"
expect "too large for one device" 507 code store_full
for time in 1 2; do
    post_file both "$large&devices=3"
    expect "a part on each device: $time" 200
    ask /v1/matrices/large -X DELETE
    expect "deleted: $time" 204
    for index in 0 1; do
        ask "/v1/matrices/in$index?m=1&n=2097152" -X PUT -H "$raw" --data-binary "@$scratch/8MiB"
        expect "8 MiB: $time" 201 .device "cuda:$index"
    done
    ask /v1/matrices/in0 -X DELETE
    # One part waits behind another product on the device of in1. After that the part finds no space.
    : >"$scratch/hold"
    curl -s -o /dev/null "$url/v1/matmul?a_from=in1&b_from=in1&transpose_b=true&variant=naive" -X POST &
    slow=$!
    await 10 test -s "$scratch/hold" || fail "the slow product was not begun"
    curl -s -o /dev/null -w '%{http_code}' -H "$raw" --data-binary "@$scratch/both" "$url/v1/matmul?$large&devices=3" >"$scratch/status" &
    curl=$!
    sleep 1 # for the other parts
    rm "$scratch/hold"
    wait "$slow" "$curl"
    same "a part without space: $time" 507 "$(cat "$scratch/status")"
    ask /v1/matrices/in1 -X DELETE
done
stop
finish
