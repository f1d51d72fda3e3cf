#!/bin/sh
# Tests the metrics of GPUs with a stand-in for NVIDIA's management library.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

: "${FAULTY:?the path of the faulty matmuld}" "${NVML:?the folder of the stand-in}"
export MATMULD_FAULTY_DEVICES=2

gpu_samples() {
    curl -s --max-time 5 "$url/metrics" | sed -n 's/^nv_gpu_\(.*\){gpu_uuid="GPU-00000000-0000-0000-0000-00000000000\(.\)"}/\2 \1/p'
}

has_samples() {
    [ "$(gpu_samples)" = "$1" ]
}

figures='0 utilization 0.37
0 memory_used_bytes 100000000000
1 memory_used_bytes 100000000000
0 memory_total_bytes 150754820096
1 memory_total_bytes 150754820096
0 power_usage 612.345'

MATMULD=$FAULTY
start
same "without NVML" '' "$(gpu_samples)"
same "without NVML: the type" 1 "$(curl -s "$url/metrics" | grep -c '^# TYPE nv_gpu_utilization gauge$')"
same "the depth of the queue" 0 "$(curl -s "$url/metrics" | sed -n 's/^nv_inference_pending_request_count //p')"
stop

export LD_LIBRARY_PATH="$NVML" MATMULD_FAULTY_NVML="$scratch/nvml.hold"
start
await 10 has_samples "$figures" || same "with NVML" "$figures" "$(gpu_samples)"
checks=$((checks + 1))

# If NVML hangs, a scrape and products do not wait for it, and old figures disappear.
: >"$scratch/nvml.hold"
await 20 has_samples '' || fail "NVML hangs, but the figures stay"
same "a product while NVML hangs" 200 "$(status_of --max-time 5 -d '{"a":[[1]],"b":[[1]]}' "$url/v1/matmul")"
rm "$scratch/nvml.hold"
await 10 has_samples "$figures" || fail "the figures do not come back"
stop
start --backend cpu
sleep 1
same "without a GPU" '' "$(gpu_samples)"
stop
finish
