#!/bin/sh
# Tests the parameter devices with four simulated GPUs: every bit, a GPU that fails, and a product that ends early.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

sound=$MATMULD
export MATMULD_FAULTY_DEVICES=4
start_held --backend cuda
raw='Content-Type: application/octet-stream' shape='m=130&k=64&n=97'
seq $((130 * 64 + 64 * 97)) | awk '{ print $1 % 89 / 8 - 5 }' | "$FLOAT32" encode >"$scratch/operands"
head -c $((130 * 64 * 4)) "$scratch/operands" >"$scratch/a"
tail -c $((64 * 97 * 4)) "$scratch/operands" >"$scratch/b"

# has_bits WHAT FILE: the last reply has the bytes of the file.
has_bits() {
    checks=$((checks + 1))
    cmp -s "$scratch/got" "$scratch/$2" || fail "$1: other bits"
}

ask /v1/devices
expect "the peers" 200 '[.devices[].peers]' '[[1,2],[0,2],[0,1],[]]'
post_file operands "$shape"
cp "$scratch/got" "$scratch/c"
for row in '1:' '2:2' '3:3' '4:4' 'all:4'; do
    post_file operands "$shape&devices=${row%:*}"
    expect "devices=${row%:*}" 200 Matmul-Devices: "${row#*:}"
    has_bits "devices=${row%:*}" c
    post_file operands "$shape&rows=31:129&cols=5:96&devices=${row%:*}"
    [ "$row" != '1:' ] || cp "$scratch/got" "$scratch/part"
    has_bits "a part by devices=${row%:*}" part
done
for devices in 1 4; do
    post_file operands "$shape&devices=$devices&verify=true&alpha=2&reply=none&variant=naive"
    expect "a check by $devices" 200 .verify.passed true .devices $devices .reproducible rows .variant naive
done
post_file operands "$shape&devices=auto&reply=none"
expect "devices=auto" 200 '.devices | . == 1 or . == 4' true .reproducible null

# Parts of C that are no parts of one matrix: of a stack over one B, and of a vector. One device computes them.
head -c $((131 * 64 * 4)) "$scratch/operands" >"$scratch/with_vector"
for row in 'operands a_shape=2,65,64&b_shape=64,97&rows=8:40' 'with_vector a_shape=130,64&b_shape=64&cols=10:120'; do
    for devices in 4 1; do
        post_file "${row%% *}" "${row#* }&devices=$devices"
        cp "$scratch/got" "$scratch/by$devices"
    done
    has_bits "${row#* }" by4
done

# Stored operands: each GPU copies what it lacks.
ask '/v1/matrices/a?m=130&n=64' -X PUT -H "$raw" --data-binary "@$scratch/a"
ask '/v1/matrices/b?m=64&n=97' -X PUT -H "$raw" --data-binary "@$scratch/b"
for devices in 4 3; do
    ask "/v1/matmul?a_from=a&b_from=b&devices=$devices" -X POST -H 'Accept: application/octet-stream'
    expect "stored operands" 200 Matmul-Devices: "$devices"
    has_bits "stored operands" c
done
same "bytes from peers" $((3 * 130 * 64 * 4 + 3 * 64 * 97 * 4)) "$(metric 'transfer_bytes_total{direction="peer"}')"

# Each row: status|keys and values|query|arguments of curl
small='{"a":[[2]],"b":[[3]]'
while IFS='|' read -r outcome query arguments; do
    # shellcheck disable=SC2086
    ask "/v1/matmul$query" $arguments
    # shellcheck disable=SC2086
    expect "$query $arguments" $outcome
done <<END
200 .c[0][0] 6 .devices 1||-d $small,"devices":"all"}
200 .c[0][0] 6 .devices 1||-d $small,"devices":"auto"}
200 .c[0][0] 6 .devices 1||-d $small,"devices":4}
200 .devices 1|?devices=all|-d {"a":[[[2]],[[3]]],"b":[[3]]}
422 code unsupported .field devices||-d $small,"devices":5}
422 code unsupported .field devices|?devices=5|-d $small}
400 code bad_request .field devices|?devices=0|-d $small}
400 code bad_request .field devices|?devices=many|-d $small}
400 code bad_request .field devices||-d $small,"devices":"2"}
400 code bad_request .field devices||-d $small,"devices":1.5}
200 .devices 1|?devices=2&out=c|-d $small}
200 .devices 1|?devices=auto&out=c|-d $small}
END
ask '/v1/transpose?devices=2' -d '{"a":[[1]]}'
expect "a transpose" 400 code bad_request .field devices

# A product of which device 1 holds a share for long, while the others are over.
prepare_held cuda 130 64 97
for how in deadline client; do
    : >"$scratch/hold"
    if [ $how = deadline ]; then
        post_file slow "$slow_query&devices=4&timeout_ms=300"
        expect "after the deadline" 504 code timeout
    else
        curl -s --max-time 0.3 -o /dev/null -H "$raw" --data-binary "@$scratch/slow" "$url/v1/matmul?$slow_query&devices=4" || :
    fi
    rm -f "$scratch/hold"
    await 60 has_metric queue_jobs 0 || fail "$how: shares stay in the queue"
done
hold_job shared 'devices=4'
release
await 60 is_done shared
same "a slow share" 200 "$(cat "$scratch/slow.shared.status")"
cmp -s "$scratch/slow.shared" "$scratch/slow.expected" || fail "a slow share: other bits"

same "the log of shares" 1 "$(grep -c '"code":200.*"device":[0-3],"devices":3,' "$scratch/log" | sed 's/[1-9][0-9]*/1/')"

# A GPU fails in the middle, and another GPU computes its share.
post_file operands "$shape&devices=4&variant=loses_device"
expect "a device that fails" 200 Matmul-Backend: cuda
has_bits "a device that fails" c
ask /v1/devices
expect "after a failure" 200 '[.devices[].state]' '["ready","failed","ready","ready"]'
post_file operands "$shape&devices=all"
expect "without the device" 200 Matmul-Devices: 3
has_bits "without the device" c
stop

# The CPU is one device.
unset MATMULD_FAULTY_DEVICES
MATMULD=$sound
start --backend cpu
for devices in 1 all auto; do
    post_file operands "$shape&variant=naive&devices=$devices&reply=none"
    expect "the CPU as $devices" 200 .devices 1 .reproducible rows
done
post_file operands "$shape&devices=2"
expect "two CPUs" 422 code unsupported .field devices
stop
finish
