#!/bin/sh
# Devices that fail: each failure has its reply, the next job is served where there is a device left, and
# without one the service says that it is not ready, and ends with status 70. The server is matmuld with a backend that
# fails as told.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

MATMULD=${FAULTY:?the path of the faulty matmuld}

# product VARIANT [FIRST]: one row times one column by a variant, into $scratch/got and $scratch/head; sets status.
product() {
    status=$(curl -s --max-time 30 -o "$scratch/got" -D "$scratch/head" -w '%{http_code}' \
        -H 'Content-Type: application/json' -d "{\"a\":[[${2:-2}]],\"b\":[[3]],\"variant\":\"$1\"}" "$url/v1/matmul") || :
    keep POST /v1/matmul "$scratch/head" "$scratch/got"
}

# refused WHAT STATUS CODE
refused() {
    same "$1: status" "$2" "$status"
    same "$1: code" "$3" "$(code_of "$scratch/got")"
}

# Each of these servers has a document of its own.
start_afresh() {
    conform "$scratch/exchanges"
    rm "$scratch/exchanges"/*
    kept=0
}

stop_conforming() {
    start_afresh
    stop
}

next_is_served() {
    product auto
    same "after $1: status" 200 "$status"
    same "after $1: the product" 6 "$(jq '.c[0][0]' "$scratch/got")"
}

start --backend cuda
product fails
refused "a launch that fails" 500 internal
next_is_served "a launch that fails"
product needs_memory
refused "no device memory" 507 no_device_memory
same "no device memory: needed" 12345 "$(jq .needed_bytes "$scratch/got")"
same "no device memory: free" 678 "$(jq .free_bytes "$scratch/got")"
next_is_served "no device memory"
# The job by which it is lost is still under way meanwhile.
curl -s -o "$scratch/lost" --max-time 30 -H 'Content-Type: application/json' \
    -d '{"a":[[300]],"b":[[1]],"variant":"loses_device"}' "$url/v1/matmul" &
lost=$!
sleep 0.1
same "without a device: /healthz" 200 "$(status_of "$url/healthz")"
status=$(curl -s -o "$scratch/got" -D "$scratch/head" -w '%{http_code}' "$url/readyz")
keep GET /readyz "$scratch/head" "$scratch/got"
refused "without a device: /readyz" 503 not_ready
like "without a device: /readyz: Retry-After" '[1-9]*' "$(header Retry-After "$scratch/head")"
product auto
refused "without a device: a product" 503 not_ready
like "without a device: a product: Retry-After" '[1-9]*' "$(header Retry-After "$scratch/head")"
same "without a device: its state" failed "$(curl -s "$url/v1/devices" | jq -r '.devices[0].state')"
wait "$lost"
same "the device is lost" device_failed "$(code_of "$scratch/lost")"
gives_up "without a device"
start_afresh

# One device fails, the other goes on. Without that one too there is no GPU any more, for which the CPU does not stand in.
export MATMULD_FAULTY_DEVICES=2
start
product loses_device
refused "one of two devices is lost" 500 device_failed
same "one of two devices is lost: /readyz" 200 "$(status_of "$url/readyz")"
for _ in 1 2 3; do
    next_is_served "one of two devices is lost"
    same "one of two devices is lost: what multiplies" cuda "$(jq -r .backend "$scratch/got")"
done
product loses_device
refused "both devices are lost" 500 device_failed
gives_up "both devices are lost"
start_afresh

# With one that is lost and one that is not it stops as ever.
start
product loses_device
refused "before a stop" 500 device_failed
stop_conforming
unset MATMULD_FAULTY_DEVICES

# What was accepted before, and is for the CPU, is received, computed and answered yet.
start
head -c 524288 /dev/zero >"$scratch/zeros"
curl -s -o "$scratch/got" -w '%{http_code}' --max-time 30 --limit-rate 1500k -H 'Content-Type: application/octet-stream' \
    --data-binary @"$scratch/zeros" "$url/v1/matmul?m=256&k=256&n=256&backend=cpu" >"$scratch/slow" &
slow=$!
sleep 0.1
product loses_device
refused "the device is lost beside the CPU" 500 device_failed
wait "$slow"
same "what the CPU was given before" 200 "$(cat "$scratch/slow")"
gives_up "the device is lost beside the CPU"
start_afresh

# Those who wait for a device that is lost.
start --backend cuda
product takes_time 1 # what the first request loads
curl -s -o "$scratch/first" --max-time 30 -H 'Content-Type: application/json' \
    -d '{"a":[[700]],"b":[[1]],"variant":"takes_time"}' "$url/v1/matmul" &
first=$!
sleep 0.2
curl -s -o "$scratch/second" --max-time 30 -H 'Content-Type: application/json' \
    -d '{"a":[[1]],"b":[[1]],"variant":"loses_device"}' "$url/v1/matmul" &
second=$!
sleep 0.2
product auto
refused "who waits for a device that is lost" 503 not_ready
wait "$first" "$second"
same "the job before: the product" 700 "$(jq '.c[0][0]' "$scratch/first")"
same "the job that loses the device: code" device_failed "$(code_of "$scratch/second")"
gives_up "who waits for a device that is lost"
start_afresh

# A device that is silently wrong is found when it has nothing to do.
start --backend cuda --self-test-ms 200
product lies
same "the product after which it lies" 200 "$status"
gives_up "a device that lies"
grep -q 'the self-test of cuda:0 failed: the known product by naive is wrong' "$scratch/log" || fail "a device that lies: the log does not say why"
start_afresh

# A device that is not is proved again and again, and serves.
passed() {
    curl -s "$url/metrics" | sed -n 's/^matmuld_self_tests_total{result="passed"} //p'
}
has_passed() {
    [ "$(passed)" -ge "$1" ]
}
start --self-test-ms 100
await 10 has_passed 4 || fail "two devices: no self-test was passed twice"
next_is_served "self-tests"
same "self-tests that failed" 0 "$(curl -s "$url/metrics" | sed -n 's/^matmuld_self_tests_total{result="failed"} //p')"
stop_conforming
start --self-test-ms 0
sleep 0.3
same "self-tests where none is wanted" 0 "$(passed)"
stop

# A device that hangs is given up, with those who wait for it.
in_flight() {
    [ "$(curl -s "$url/metrics" | sed -n 's/^matmuld_requests_in_flight //p')" = "$1" ]
}
start --backend cuda --watchdog-ms 2500
curl -s -o "$scratch/first" --max-time 30 -H 'Content-Type: application/json' \
    -d '{"a":[[1]],"b":[[1]],"variant":"hangs"}' "$url/v1/matmul" &
first=$!
await 2 in_flight 1 || fail "the product that hangs does not come"
product auto
refused "who waits for a device that hangs" 503 not_ready
like "who waits for a device that hangs: Retry-After" '[1-9]*' "$(header Retry-After "$scratch/head")"
wait "$first"
same "the job by which it hangs: code" not_ready "$(code_of "$scratch/first")"
gives_up "a device that hangs"
grep -q 'cuda:0 has been at one job for more than 2.5 s' "$scratch/log" || fail "a device that hangs: the log does not say so"
start_afresh

# The other of two goes on, and what ran on the first has its deadline.
export MATMULD_FAULTY_DEVICES=2
start --backend cuda --watchdog-ms 300
curl -s -o "$scratch/first" --max-time 30 -H 'Content-Type: application/json' \
    -d '{"a":[[1]],"b":[[1]],"variant":"hangs","timeout_ms":900}' "$url/v1/matmul" &
first=$!
is_given_up() {
    grep -q 'has been at one job' "$scratch/log"
}
await 10 is_given_up || fail "one of two devices hangs: it is not given up"
same "one of two devices hangs: /readyz" 200 "$(status_of "$url/readyz")"
for _ in 1 2 3; do
    next_is_served "one of two devices hangs"
done
wait "$first"
same "the job by which one of two hangs: code" timeout "$(code_of "$scratch/first")"
stop_conforming
unset MATMULD_FAULTY_DEVICES

# Before the device is open.
export MATMULD_FAULTY_OPEN_MS=2000
launch --port 0 --backend cuda
status=$(curl -s -o "$scratch/got" -D "$scratch/head" -w '%{http_code}' "$url/readyz")
refused "while the device is opened: /readyz" 503 not_ready
product auto
refused "while the device is opened: a product" 503 not_ready
like "while the device is opened: Retry-After" '[1-9]*' "$(header Retry-After "$scratch/head")"
same "while the device is opened: /healthz" 200 "$(status_of "$url/healthz")"
await 20 is_ready || fail "the device was never ready"
product auto
same "once it is open: status" 200 "$status"
curl -s -o "$scratch/openapi.json" "$url/openapi.json"
stop_conforming
finish
