# The rows `gpus` and `shared` of gpu.sh, which need two GPUs. gpu.sh defines the functions that its other rows use
# too, like store_square and by_request.
# shellcheck shell=sh disable=SC2034,SC2154

# bench_gpus KIND EDGE CONNECTIONS TARGET: equal load on one GPU and on all GPUs.
bench_gpus() {
    edge=$(edge_of "$2") gpus=gpus_$1_$2
    write_request "/v1/matmul?$(path_of "$1" "$edge")&reply=none"
    for _ in $(seq "$rounds"); do
        for at in one all; do
            eval "port_of=\$$at"
            by_request "${gpus}_$at" "$port_of" rate --connections "$3" --threads "$(client_threads "$3")" --seconds "$seconds"
        done
        drop_logs
    done
    row_ratio "$edge, $1, $3 connections, reply=none, by $count_of_gpus GPUs; beside: by one" "$4" "${gpus}_all.rate" \
        "${gpus}_one.rate" /s
}

# needs_two WHAT: returns false if there are not two GPUs.
needs_two() {
    count_of_gpus=$(curl -s --max-time 5 "http://127.0.0.1:$service/v1/devices" | grep -o '"multiprocessors"' | wc -l)
    [ "$count_of_gpus" -lt 2 ] || return 0
    row_left_out "$1" '' 'needs two'
    return 1
}

# Compares all GPUs with one GPU. Starts a second service, which uses only one.
bench_all_gpus() {
    needs_two 'by several GPUs' || return 0
    all=$service
    CUDA_VISIBLE_DEVICES=0 start_matmuld one_gpu --backend "$backend" || return 0
    one=$port one_pid=$pid
    for service in "$one" "$all"; do
        for edge in $(edge_of 1024) $(edge_of 4096); do
            store_square "w$edge" "$edge" 'uniform(1)'
        done
    done
    bench_gpus generated 1024 64 ''
    bench_gpus generated 4096 32 '≥ 1.95'
    bench_gpus stored 1024 64 ''
    bench_gpus stored 4096 32 ''
    stop "$one_pid"
}

# ask QUERY: keeps the milliseconds of a request as $1, without returned elements.
ask() {
    keep "$1" "$(curl -sf --max-time 60 -X POST -o /dev/null -w '%{time_total}' "http://127.0.0.1:$service/v1/matmul?$2&reply=none" |
        awk '{ print $1 * 1e3 }')"
}

# store_halves NAME EDGE FROM DTYPE: as store_square, but each GPU has some rows.
store_halves() {
    curl -sf --max-time 60 -o /dev/null -X POST \
        "http://127.0.0.1:$service/v1/matmul?m=$2&n=$2&k=$2&a_from=$3&b_from=identity()&out=$1&devices=all&reply=none&dtype=$4"
}

# bench_shared EDGE DTYPE TARGET FIRST_TARGET HALVES_TARGET: one product, by one GPU and by all GPUs. All GPUs have
# copies of the operands, except the first time. Then one GPU has both operands, or each GPU has some rows of both.
bench_shared() {
    edge=$(edge_of "$1") shared=shared_$1_$2
    what="$edge, stored $2, reply=none, by one GPU; beside: by all"
    for place in halves square; do
        for round in warm $(seq "$rounds"); do
            for name in a b; do
                "store_$place" "$name" "$edge" 'uniform(1)' "$2"
            done
            ask "${shared}_$place" 'a_from=a&b_from=b&devices=all'
            [ "$round" != warm ] || rm "$scratch/values/${shared}_$place"
        done
    done
    for _ in warm $(seq "$rounds"); do
        ask "${shared}_all" 'a_from=a&b_from=b&devices=all'
        ask "${shared}_one" 'a_from=a&b_from=b&devices=1'
    done
    drop_logs
    row_ratio "$what" "$3" "${shared}_one" "${shared}_all" ms
    row_ratio "$what, when one has the operands" "$4" "${shared}_one" "${shared}_square" ms
    row_ratio "$what, when each has some rows" "$5" "${shared}_one" "${shared}_halves" ms
}

# Compares products of bench_shared with cuBLASMp, for each layout of its operands. The lines of one GPU come first.
bench_cublasmp() {
    edge=$(edge_of 16384) code=0
    timeout 300 "$python" "$load/peers/cublasmp.py" --edge "$edge" --gpus "$count_of_gpus" \
        >"$scratch/cublasmp" 2>"$scratch/cublasmp.why" || code=$?
    grep "^$edge " "$scratch/cublasmp" | while read -r _ type count layout ms _; do
        by_all="cublasmp_${type}_${count}_$layout"
        for _ in $(seq "$rounds"); do
            keep "$by_all" "$ms"
        done
        [ "$count" -gt 1 ] || continue
        row_ratio "$edge, stored $type, by all; beside: cuBLASMp, $layout" '' "shared_16384_${type}_all" "$by_all" ms
        row_ratio "$edge, $type, cuBLASMp by one; beside: by all, $layout" '' "cublasmp_${type}_1_rows" "$by_all" ms
    done
    [ "$code" -eq 0 ] || row_left_out "$edge, cuBLASMp" '' "status $code: $(grep -m 1 "^cublasmp.py" "$scratch/cublasmp.why" | cut -c 1-150)"
}

# Computes single products on all GPUs.
bench_one_product() {
    needs_two shared || return 0
    all=$service
    start_matmuld large --backend "$backend" --max-device-memory 40GiB || return 0
    service=$port large_pid=$pid
    bench_shared 4096 float32 '' '' ''
    bench_shared 16384 float32 '' '≥ 1.6' '≥ 1.75'
    bench_shared 16384 bfloat16 '' '' ''
    bench_shared 32768 float32 '≥ 1.9' '' ''
    service=$all
    stop "$large_pid"
    [ "$alone" = yes ] || ! find_python torch || bench_cublasmp
}
