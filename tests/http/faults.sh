#!/bin/sh
# Tests devices that fail. Other devices continue. A service that lost all devices ends with status 70.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

MATMULD=${FAULTY:?the path of the faulty matmuld}

# product VARIANT [FIRST [MEMBER]]: multiplies FIRST by 3. MEMBER is an additional JSON member.
product() {
    ask /v1/matmul -d "{\"a\":[[${2:-2}]],\"b\":[[3]],\"variant\":\"$1\"${3:-}}"
}

# post NAME VARIANT FIRST [MEMBER]: sends a product, and waits until the server has read its head.
under_way=0
post() {
    name=$1
    shift
    curl -s -o "$scratch/$name" --max-time 120 -d "{\"a\":[[$2]],\"b\":[[1]],\"variant\":\"$1\"${3:-}}" "$url/v1/matmul" &
    eval "posted_$name=\$!"
    under_way=$((under_way + 1))
    await 60 has_metric requests_in_flight $under_way || fail "$1 was not taken"
}

# posted WHAT NAME CODE: checks the code of the reply to that product.
posted() {
    eval "wait \$posted_$2"
    under_way=$((under_way - 1))
    same "$1: code" "$3" "$(code_of "$scratch/$2")"
}

next_is_served() {
    product auto
    expect "after $1" 200 '.c[0][0]' 6
}

# attempt COMMAND…: tries the command several times, because the service may end before a check.
attempt() {
    for _ in 1 2 3 4 5 6 7 8; do
        ! "$@" || return 0
        await 60 has_ended || :
    done
    fail "$*: no attempt succeeded"
}

start --backend cuda
product fails
expect "a launch that fails" 500 code internal
next_is_served "a launch that fails"
product needs_memory
expect "no device memory" 507 code no_device_memory .needed_bytes 12345 .free_bytes 678
next_is_served "no device memory"
stop

# The product that lost the device still runs while the test checks the service.
is_unready() {
    [ "$(status_of "$url/readyz")" != 200 ]
}
is_lost() {
    start_held --backend cuda
    : >"$scratch/hold"
    curl -s -o "$scratch/lost" --max-time 120 -d '{"a":[[7777]],"b":[[1]],"variant":"loses_device"}' "$url/v1/matmul" &
    # shellcheck disable=SC2034
    posted_lost=$! under_way=1
    await 60 is_unready || fail "the server is ready without a device"
    health=$(status_of "$url/healthz")
    state=$(curl -s "$url/v1/devices" | jq -r '.devices[0].state')
    product auto
    refusal="$status $(code_of "$scratch/got") $(header Retry-After "$scratch/head")"
    ask /readyz
    [ "$status" != 000 ]
}
attempt is_lost
expect "without a device: /readyz" 503 code not_ready Retry-After: '[1-9]*'
same "without a device: /healthz" 200 "$health"
like "without a device: a product" '503 not_ready [1-9]*' "$refusal"
same "without a device: its state" failed "$state"
posted "the job by which it is lost" lost not_ready
gives_up "without a device"
release

# If one of two devices fails, the other device continues.
export MATMULD_FAULTY_DEVICES=2
start
product loses_device
expect "one of two devices is lost" 500 code device_failed
same "one of two devices is lost: /readyz" 200 "$(status_of "$url/readyz")"
for _ in 1 2 3; do
    next_is_served "one of two devices is lost"
    expect "one of two devices is lost" 200 .backend cuda # the other GPU answers, not the CPU
done
stop
unset MATMULD_FAULTY_DEVICES

# Requests for the CPU that were accepted before the failure are still answered.
mkfifo "$scratch/body"
is_received() {
    start
    exec 3<>"$scratch/body"
    curl -s -o "$scratch/cpu" -w '%{http_code}' -X POST -T - -H 'Expect:' -H 'Content-Type: application/octet-stream' \
        "$url/v1/matmul?m=256&k=256&n=256&backend=cpu" <"$scratch/body" >"$scratch/cpu.status" 3<&- &
    slow=$!
    head -c 262144 /dev/zero >&3
    await 60 has_metric requests_in_flight 1 || fail "the CPU's product was not taken"
    product loses_device
    expect "the device is lost beside the CPU" 500 code device_failed
    sleep 0.2 # a process that did not wait for clients would end now
    head -c 262144 /dev/zero >&3
    exec 3>&-
    wait "$slow" || :
    [ "$(cat "$scratch/cpu.status")" = 200 ]
}
attempt is_received
gives_up "the device is lost beside the CPU"

# Waiting jobs fail when their device fails.
start_held --backend cuda
: >"$scratch/hold"
post first naive 7777
await 60 test -s "$scratch/hold" || fail "the first job was not begun"
post second loses_device 1
post third auto 1
await 60 has_metric queue_jobs 2 || fail "the other jobs do not wait"
release
posted "the job before" first none
same "the job before: the product" 7777 "$(jq '.c[0][0]' "$scratch/first")"
posted "the job that loses the device" second device_failed
posted "a job that waits for a device that is lost" third not_ready
gives_up "a job that waits for a device that is lost"

# The self-test finds an idle device that returns wrong results.
start --backend cuda --self-test-ms 200
product lies
expect "the last correct product" 200
gives_up "a device with wrong results"
has_logged 'the self-test of cuda:0 failed: the known product of [a-z0-9_]* by [a-z_]* is wrong' || fail "a device with wrong results: the log does not say why"

# A device that hangs counts as failed, and its jobs end.
start_held --backend cuda --max-kernel-ms 1000 --watchdog-ms 2500
: >"$scratch/hold"
post first naive 7777
product auto
expect "a job that waits for a device that hangs" 503 code not_ready Retry-After: '[1-9]*'
posted "the job in which the device hangs" first not_ready
gives_up "a device that hangs"
has_logged 'cuda:0 has been at one job for more than 2.5 s' || fail "a device that hangs: the log does not say so"

# If one of two devices hangs, the other device continues. The job on the hanging device times out.
export MATMULD_FAULTY_DEVICES=2
start_held --backend cuda --max-kernel-ms 1000 --watchdog-ms 2500
post first naive 7777 ',"timeout_ms":900'
await 60 has_logged 'has been at one job' || fail "one of two devices hangs: the log does not say so"
same "one of two devices hangs: /readyz" 200 "$(status_of "$url/readyz")"
for _ in 1 2 3; do
    next_is_served "one of two devices hangs"
done
posted "the job in which one of two devices hangs" first timeout
stop
release
unset MATMULD_FAULTY_DEVICES

# While a device opens, the service is not ready.
export MATMULD_FAULTY_HOLD="$scratch/hold"
: >"$scratch/hold.open"
launch --port 0 --backend cuda
ask /readyz
expect "while the device is opened: /readyz" 503 code not_ready
product auto
expect "while the device is opened" 503 code not_ready Retry-After: '[1-9]*'
same "while the device is opened: /healthz" 200 "$(status_of "$url/healthz")"
rm "$scratch/hold.open"
await_ready
product auto
expect "after the device is opened" 200
stop
finish
