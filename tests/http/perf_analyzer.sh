#!/bin/sh
# Runs perf_analyzer for a few seconds, and compares its figures with the server's. Skipped if it cannot be fetched.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"
: "${FAULTY:?the path of the faulty matmuld}" "${NVML:?the folder of the stand-in}"

analyzer=$here/../../bench/load/perf_analyzer.sh
"$analyzer" --version >"$scratch/version" 2>&1 || {
    cat "$scratch/version"
    exit 77
}
REQUESTS=200

# column NAME: prints a figure of perf_analyzer's table.
column() {
    awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) column = i } NR == 2 { print $column }' "$scratch/csv"
}

kernel_us() {
    curl -sS --max-time 30 "$url/metrics" | awk '/^matmuld_kernel_duration_seconds_sum/ { sum += $NF } END { printf "%.0f", sum * 1e6 }'
}

# analyze WHAT MODEL ARGUMENT…: perf_analyzer sends REQUESTS, which must succeed. Its mean times must be the server's.
# It starts to send before it resets its counts. A request that ends earlier is missing in its figures, or it waits for
# one more request forever. Such a run is repeated.
analyze() {
    what=$1 model=$2
    shift 2
    for _ in 1 2 3 4 5; do
        kernel=$(kernel_us)
        curl -sS --max-time 30 "$url/v2/models/$model/stats" >"$scratch/before"
        status=0
        timeout 30 "$analyzer" -m "$model" -u "${url#http://}" --request-count "$REQUESTS" -f "$scratch/csv" --verbose-csv "$@" \
            >"$scratch/report" 2>&1 || status=$?
        curl -sS --max-time 30 "$url/v2/models/$model/stats" >"$scratch/after"
        seen=$(awk '/Successful request count/ { print $NF; exit }' "$scratch/report")
        [ "$status" = 124 ] || { [ "$status" = 0 ] && [ "$seen" != "$REQUESTS" ]; } || break
    done
    [ "$status" = 0 ] || fail "$what: status $status: $(tail -n 3 "$scratch/report")"
    given="$(column 'Server Queue'), $(column 'Server Compute Input'), $(column 'Server Compute Infer'), $(column 'Server Compute Output')"
    # Its times may be a microsecond off, because it rounds.
    # shellcheck disable=SC2016
    same "$what: successes, failures, and microseconds of queue, upload, kernel and download" "$(jq -rs --argjson n "$REQUESTS" \
        --argjson given "[$given]" '
        map(.model_stats[0].inference_stats | [(.success, .fail).count, (.queue, .compute_input, .compute_infer, .compute_output).ns]) |
        [range(6) as $i | .[1][$i] - .[0][$i]] |
        .[:2] + [range(4) as $i | .[2 + $i] / $n / 1000 | if (. - $given[$i] | fabs) <= 1 then $given[$i] else . end] |
        map(tostring) | join(", ")' "$scratch/before" "$scratch/after")" "$REQUESTS, 0, $given"
    at_most "$what: microseconds of the kernel, less those of the metrics" 1 \
        "$((($(kernel_us) - kernel) / REQUESTS - $(column 'Server Compute Infer')))"
    at_most "$what: microseconds of the kernel, of the latency" "$(column 'Avg latency')" "$(column 'Server Compute Infer')"
    at_most "$what: throughput" "$(column 'Inferences/Second')" 1
}

mkdir "$scratch/data" "$scratch/bits"
python3 - "$scratch" <<'END'
import array, random, sys
for name in "AB":
    open(f"{sys.argv[1]}/data/{name}", "wb").write(array.array("f", [random.random() for _ in range(64 * 64)]).tobytes())
    open(f"{sys.argv[1]}/bits/{name}", "wb").write(bytes(random.randrange(2) for _ in range(64 * 64)))
END
floats="--input-data $scratch/data --shape A:64,64 --shape B:64,64"

start --backend cpu
# shellcheck disable=SC2086
{
    analyze "a closed loop" matmul $floats --concurrency-range 4
    analyze "a closed loop, asynchronous" matmul $floats --concurrency-range 4 --async
    analyze "a constant rate" matmul.naive.FP32 $floats --request-rate-range 100
    analyze "random arrivals" matmul $floats --request-rate-range 100 --request-distribution poisson --async
    analyze "JSON" matmul.FP32 --shape A:1,64,64 --shape B:1,64,64 --input-tensor-format json --output-tensor-format json
    analyze "BOOL" matmul.BOOL --input-data "$scratch/bits" --shape A:64,64 --shape B:64,64
    for type in FP64 FP16 BF16 INT8 UINT8 INT32 INT64; do
        analyze "$type, random bytes" "matmul.$type" --shape A:3,17,64 --shape B:64,33
    done
}
checks=$((checks + 1))
! "$analyzer" -m matmul -u "${url#http://}" --shape A:1,2 --shape B:3,1 --request-count 5 >"$scratch/report" 2>&1 || fail "bad shapes"
like "bad shapes" '*a is 1×2 and b is 3×1*' "$(cat "$scratch/report")"
stop

# perf_analyzer reads the GPU's figures from /metrics, here those of a stand-in for NVIDIA's library.
MATMULD=$FAULTY
export LD_LIBRARY_PATH="$NVML" MATMULD_FAULTY_NVML="$scratch/nvml.hold"
start
# shellcheck disable=SC2086
analyze "a GPU's metrics" matmul $floats --collect-metrics --metrics-url "${url#http://}/metrics" --metrics-interval 100
like "utilization, power, and memory" '*:0.37; *:612.345; *:100000000000; *:150754820096;' \
    "$(column 'Avg GPU Utilization') $(column 'Avg GPU Power Usage') $(column 'Max GPU Memory Usage') $(column 'Total GPU Memory')"
stop
finish
