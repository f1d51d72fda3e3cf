#!/bin/sh
# Tests failures of a real GPU: a launch that fails, out of memory, a lost context, and a kernel that never
# ends. tests/http/faulty/cuda.cu has the failing variants. Skipped (status 77) without a GPU.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

MATMULD=${FAULTY_CUDA:?the path of the matmuld with faulty kernels}
: "${HOLD:?the path of the program hold}"
times=1000
edge=4096 large_edge=8192

code=0
"$HOLD" 0 </dev/null >"$scratch/held" 2>&1 || code=$?
if [ "$code" -eq 77 ]; then
    echo "no GPU is here"
    exit 77
fi
same "free GPU memory is printed" 0 "$code"

# product VARIANT [MEMBER]: multiplies 2 by 3. MEMBER is an additional JSON member.
product() {
    ask /v1/matmul -d "{\"a\":[[2]],\"b\":[[3]],\"variant\":\"$1\"${2:-}}"
}

next_is_served() {
    product auto
    expect "after $1" 200 '.c[0][0] // .detail' 6 .backend cuda
}

free_bytes() {
    metric 'device_memory_bytes{device="cuda:0",state="free"}'
}

start --backend cuda --devices 0
next_is_served "the start"
product launch_fails
expect "a launch that fails" 500 code internal
next_is_served "a launch that fails"

# Products with k = 0 need device memory only for C, so a large C runs out of memory.
cat >"$scratch/empty_sum" <<END
url = "$url/v1/matmul?m=$edge&k=0&n=$edge"
request = POST
header = "Content-Type: application/octet-stream"
header = "Content-Length: 0"
write-out = "%{http_code}\n"
max-time = 60
silent
END
sed "s/$edge/$large_edge/g" "$scratch/empty_sum" >"$scratch/large_sum"
before=$(free_bytes)
mkfifo "$scratch/keep"
"$HOLD" 24 <"$scratch/keep" >"$scratch/held" &
holder=$!
exec 9>"$scratch/keep"
await 30 grep -q free "$scratch/held" || fail "the program hold did not allocate the memory"
began=$(now_ms)
seq "$times" | xargs -P 8 -I{} curl -K "$scratch/large_sum" -o "$scratch/refused.{}" >"$scratch/statuses"
echo "$times refusals in $(($(now_ms) - began)) ms, with $(cat "$scratch/held")"
same "out of memory: only status 507" "$times 507" "$(sort "$scratch/statuses" | uniq -c | awk '{ print $1, $2 }')"
same "out of memory: with needed and free bytes" "$times" \
    "$(cat "$scratch"/refused.* | jq --argjson bytes $((large_edge * large_edge * 4)) \
        'select(.code == "no_device_memory" and .needed_bytes >= $bytes and .free_bytes < .needed_bytes) | 1' | wc -l)"
product auto
same "out of memory: a small product" 200 "$status"
exec 9>&-
wait "$holder" || fail "hold ended with $?"
is_free_again() {
    [ "$(free_bytes)" = "$before" ]
}
await 15 is_free_again || :
after=$(free_bytes)
echo "device memory free before: $before, after: $after"
same "device memory is free again" "$before" "$after"
for _ in $(seq 50); do
    curl -K "$scratch/empty_sum" -o "$scratch/sum"
done >"$scratch/statuses"
same "large products after memory is free again" "50 200" "$(sort "$scratch/statuses" | uniq -c | awk '{ print $1, $2 }')"
same "the size of the last reply" $((edge * edge * 4)) "$(wc -c <"$scratch/sum" | tr -d ' ')"
stop

# store NAME…: stores matrices on the GPU that has the most free memory.
store() {
    for name in "$@"; do
        ask "/v1/matrices/$name" -X PUT -H 'Content-Type: application/json' -d '{"a": [[1,2],[3,4]]}'
        expect "stored: $name" 201
    done
}

# lost VARIANT: the variant loses the CUDA context, and with it the matrices stored on the GPU.
lost() {
    start --backend cuda --devices 0
    next_is_served "the start"
    store x
    product "$1"
    expect "$1" 500 code device_failed
    ask /v1/matrices/x
    expect "$1: what the GPU had" 500 code device_failed
    since=$(now_ms)
    ask /readyz
    took=$(($(now_ms) - since))
    if [ "$status" != 000 ]; then # 000 means that the server has already ended
        expect "$1: /readyz" 503 code not_ready Retry-After: '[1-9]*'
        at_most "$1: /readyz: milliseconds" 100 $took
    fi
    gives_up "$1"
    echo "$1: ended with 70"
}
lost out_of_bounds
lost traps

start --backend cuda --devices 0 --watchdog-ms 1000
next_is_served "a context that was lost"
product hangs
expect "a kernel that never ends" 503 code not_ready
gives_up "a kernel that never ends"
echo "a kernel that never ends: ended with 70"
start --backend cuda --devices 0
next_is_served "a kernel that never ended"
stop

# If one of two GPUs hangs, the other GPU continues. A lost CUDA context affects both.
start --backend cuda --watchdog-ms 1000
devices=$(curl -s "$url/v1/devices" | jq '[.devices[] | select(.backend == "cuda")] | length')
if [ "$devices" -ge 2 ]; then
    what="one of $devices GPUs hangs"
    for name in $(seq "$devices"); do store "$name"; done
    product hangs ',"timeout_ms":1500'
    expect "$what" 504 code timeout
    same "$what: /readyz" 200 "$(status_of "$url/readyz")"
    for _ in $(seq 20); do
        next_is_served "$what"
    done
    for name in $(seq "$devices"); do
        echo "GET $(status_of "$url/v1/matrices/$name?reduce=sum")"
        echo "POST $(status_of -X POST "$url/v1/matmul?a_from=$name&b_from=$name&reply=none")"
    done | sort | uniq -c | awk '{ print $2, $3, $1 }' >"$scratch/statuses"
    same "$what: what each had" "GET 200 $((devices - 1)) GET 500 1 POST 200 $((devices - 1)) POST 500 1" \
        "$(paste -sd ' ' "$scratch/statuses")"
    same "$what: states" "failed ready" \
        "$(curl -s "$url/v1/devices" | jq -r '[.devices[] | select(.backend == "cuda") | .state] | sort | unique | join(" ")')"
    head -c $((2 * 2048 * 2048 * 4)) /dev/zero >"$scratch/zeros"
    same "$what: large products" 200 "$(curl -s --max-time 30 -o /dev/null -w '%{http_code}' -H 'Content-Type: application/octet-stream' \
        --data-binary @"$scratch/zeros" "$url/v1/matmul?m=2048&k=2048&n=2048")"
    stop
    start --backend cuda
    product out_of_bounds
    expect "the context of one of $devices GPUs is lost" 500 code device_failed
    gives_up "the context of one of $devices GPUs is lost"
    echo "the context of one of $devices GPUs is lost: ended with 70"
else
    echo "there is one GPU alone here: what becomes of two is not shown"
    stop
fi
finish
