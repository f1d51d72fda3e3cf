#!/bin/sh
# Runs all tests that need an NVIDIA GPU: the kernel tests, a thousand repeats with equal bits,
# compute-sanitizer's tools, the timing tables, and the server with CUDA.
# usage: tests/gpu.sh [BUILD_DIRECTORY [LOG_DIRECTORY [STEP]...]], after ./dev build. Exits with 0 if all pass.
# A STEP is a printed name or a shell pattern like 'time_*'. Without any STEP all steps run.
set -u

cd "$(dirname "$0")/.." || exit 1
build=${1:-build/dev}
logs=${2:-build/gpu}
[ $# -le 2 ] && wanted='*' || wanted=$(shift 2 && printf '%s\n' "$@")
kernels=$build/tests/kernels/kernels
mkdir -p "$logs"
failures=0
names=
threads="--threads $(($(nproc) < 8 ? $(nproc) : 8))"

is_wanted() {
    printf '%s\n' "$wanted" | while read -r pattern; do
        # shellcheck disable=SC2254
        case $1 in $pattern) echo "$1" ;; esac
    done | grep -q .
}

# step NAME COMMAND...: runs a command with its output in a log, and prints the result. An exit status of 77 means that
# a tool is missing.
step() {
    name=$1
    shift
    is_wanted "$name" || return 0
    names="$names $name"
    started=$(date +%s)
    code=0
    "$@" >"$logs/$name.log" 2>&1 || code=$?
    case $code in
    0) result=ok ;;
    77) result='not here' ;;
    *)
        result="FAILED ($code)"
        failures=$((failures + 1))
        ;;
    esac
    printf '%-22s %4s s  %-12s %s\n' "$name" $(($(date +%s) - started)) "$result" "$(tail -n 1 "$logs/$name.log")"
}

sanitize() {
    tool=$1
    shift
    compute-sanitizer --tool "$tool" --error-exitcode 9 "$kernels" --backend cuda "$@"
}

# serve LOG ARGUMENT...: starts the server, and waits until it is ready.
serve() {
    stderr=$logs/$1.stderr
    shift
    "$build/server/matmuld" --port 0 --lame-duck-ms 0 "$@" 2>"$stderr" &
    server=$!
    url=
    for _ in $(seq 100); do
        url=$(sed -n 's|.*listening on \(http://[^ "]*\).*|\1|p' "$stderr")
        [ -n "$url" ] && curl -fs -o /dev/null "$url/readyz" && break
        sleep 0.1
    done
}

# together OPERATION REQUEST C: sends the request 200 times at once. Sets code to 1 unless some requests shared a
# launch and each response contains C.
together() {
    curl -sS -Z --parallel-max 64 "$url/v1/$1#[1-200]" -H 'Content-Type: application/json' -d "$2" \
        >"$logs/together" || code=1
    [ "$(grep -oF "\"c\": $3" "$logs/together" | wc -l)" = 200 ] || code=1
    grep -o '"batched": [0-9]*' "$logs/together" | sort | uniq -c
    grep -q '"batched": \([2-9]\|[1-9][0-9]\)' "$logs/together" || code=1
}

# goes VARIANT DTYPE A B PATH: multiplies A by B. Sets code to 1 unless the response reports this path.
goes() {
    reply=$(curl -sS "$url/v1/matmul" -H 'Content-Type: application/json' \
        -d "{\"a\": $3, \"b\": $4, \"variant\": \"$1\", \"dtype\": \"$2\"}")
    printf '%s\n' "$reply"
    case $reply in *"\"path\": \"$5\""*) ;; *) code=1 ;; esac
}

ask_server() {
    serve server --backend cuda
    code=0
    if curl -fsS "$url/v1/variants" | jq -e 'any(.variants[]; .name == "fp32_tensor" and .available)'; then
        goes fp32_tensor float32 '[[0.5,0.25],[3,4]]' '[[5,6],[7,8]]' certified
        goes fp32_tensor float32 '[[1e6,1.2345678e-3]]' '[[0],[1]]' repaired:1
        goes fp32_tensor float32 '[[1,2],[3,"NaN"]]' '[[5,6],[7,8]]' simt
        goes fp64_tensor float64 '[[0.5,0.25],[3,4]]' '[[5,6],[7,8]]' moduli:15
        goes fp64_tensor float64 '[[1e200,1e-200]]' '[[0],[1]]' native
        goes fp64_tensor float64 '[[1,2],[3,"NaN"]]' '[[5,6],[7,8]]' native
    fi
    reply=$(curl -sS -X POST "$url/v1/matmul?m=512&k=512&n=512&a_from=uniform(1)&b_from=uniform(2)&reply=none&variant=tiled_racy&verify=1")
    printf '%s\n' "$reply"
    case $reply in *'"variant": "tiled_racy"'*'"passed": false'*) ;; *) code=1 ;; esac # tiled_racy is wrong on purpose
    together matmul '{"a": [[1,2],[3,4]], "b": [[5,6],[7,8]], "variant": "tiled_16"}' '[[19,22],[43,50]]'
    together transpose '{"a": [[1,2],[3,4]], "dtype": "int64", "variant": "padded"}' '[[1,3],[2,4]]'
    kill "$server" && wait "$server" || code=1
    return $code
}

# same_on_all QUERY [CURL_ARGUMENT...]: computes a product on one GPU and on all GPUs. Sets code to 1 unless all GPUs
# computed it, with equal bits and by the same path.
same_on_all() {
    query=$1
    shift
    for devices in 1 all; do
        curl -sS -X POST -H 'Accept: application/octet-stream' -D "$logs/devices.$devices.head" -o "$logs/devices.$devices" \
            "$@" "$url/v1/matmul?$query&devices=$devices" || code=1
        grep -i '^matmul-path\|^matmul-verify.*passed,' "$logs/devices.$devices.head" | sed 's/residual.*passed,/passed,/; s/relative.*//' \
            >"$logs/devices.$devices.facts"
    done
    if grep -qi "^matmul-devices: $gpus" "$logs/devices.all.head" && cmp "$logs/devices.1" "$logs/devices.all" &&
        cmp "$logs/devices.1.facts" "$logs/devices.all.facts"; then
        echo "equal: $query"
    else
        echo "other bits, path or devices: $query"
        code=1
    fi
}

# same_in_parts: stores a product on one GPU and in parts on all GPUs, and uses the parts as operands. Sets code to 1
# if bits differ, or if not all GPUs have a part.
same_in_parts() {
    for devices in 1 all; do
        curl -sSf -X POST -o "$logs/parts.cols" "$url/v1/matmul?m=5000&k=2048&n=7001&$generated&out=parts&cols=3:8&devices=$devices" || code=1
        curl -sS "$url/v1/matrices" | jq -r '.matrices[0].device' | tee "$logs/parts.devices"
        curl -sS -H 'Accept: application/octet-stream' -o "$logs/parts.part.$devices" "$url/v1/matrices/parts?rows=1:4999&cols=7:7000" || code=1
        for by in 1 all; do
            curl -sS -X POST -H 'Accept: application/octet-stream' -o "$logs/parts.$by.$devices" \
                "$url/v1/matmul?a_from=parts&b_from=parts&transpose_b=true&devices=$by" || code=1
        done
    done
    if cmp "$logs/parts.part.1" "$logs/parts.part.all" && cmp "$logs/parts.1.1" "$logs/parts.1.all" &&
        cmp "$logs/parts.1.1" "$logs/parts.all.all" && [ "$(tr , '\n' <"$logs/parts.devices" | sort -u | wc -l)" -eq "$gpus" ]; then
        echo "equal: in parts"
    else
        echo "other bits or devices: in parts"
        code=1
    fi
}

ask_devices() {
    serve devices --backend cuda
    code=0
    gpus=$(curl -fsS "$url/v1/devices" | jq '[.devices[] | select(.backend == "cuda")] | length')
    curl -fsS "$url/v1/devices" | jq -c '[.devices[].peers]'
    generated='a_from=uniform(1)&b_from=uniform(2)'
    for type in float32 'float32&variant=simt' 'float32&variant=tf32' 'float32&variant=tiled_32' bfloat16 float16 \
        float8_e4m3fn int8 int32 'float64&variant=tensor'; do
        [ "$gpus" -lt 2 ] || same_on_all "m=5000&k=2048&n=7001&$generated&verify=1&dtype=$type"
    done
    # An infinity in the last row is in one share only, but the slow path must compute all shares.
    { seq $((2048 * 512 - 1)) | awk '{ print sin($1) }' && echo inf; } | tests/http/float32.py encode >"$logs/infinite"
    [ "$gpus" -lt 2 ] || same_on_all 'm=2048&k=512&n=2048&b_from=uniform(2)&variant=fp32_tensor' \
        -H 'Content-Type: application/octet-stream' --data-binary "@$logs/infinite"
    [ "$gpus" -lt 2 ] || same_in_parts
    kill "$server" && wait "$server" || code=1
    [ "$gpus" -gt 1 ] || code=77
    return $code
}

# benchmark REQUEST: prints the rows as a table, and gets them as JSON. Sets code to 1 if a row is wrong.
benchmark() {
    curl -sS --fail-with-body --max-time 300 "$url/v1/benchmark" -H 'Accept: text/plain' -d "$1" || code=1
    curl -fsS --max-time 300 "$url/v1/benchmark" -d "$1" -o "$logs/benchmark.json" || code=1
    wrong=$(jq -c '.rows[] | select(.error.code != "unsupported") | select(.error != null or .max_error == null or .max_error > 1 or .kernel_ms.median <= 0
        or (.variant != "tf32" and .relative_error != null and .relative_error > 1e-5))' "$logs/benchmark.json") || code=1
    [ -z "$wrong" ] || {
        echo "wrong: $wrong"
        code=1
    }
    rows=$(jq '.rows | length' "$logs/benchmark.json")
    expected=$(printf '%s' "$1" | jq '.variants | length')
    [ "$rows" = "$expected" ] || {
        echo "$rows rows, but $expected variants were named"
        code=1
    }
}

# Compares all variants of this GPU with the CPU's plain loop.
ask_benchmark() {
    serve benchmark
    code=0
    # available OP: prints the variants of this GPU that support float32.
    available() {
        curl -fsS "$url/v1/variants" | jq -c --arg op "$1" '[.variants[] | select(.op == $op and .available and .backend == "cuda") |
            select((.wrong_on_purpose | not) and (.dtypes | index("float32"))) | "cuda:" + .name]'
    }
    products=$(available matmul)
    transpositions=$(available transpose)
    [ "$(printf '%s' "$products" | jq length)" -ge 15 ] || {
        echo "of the products' variants only these are here: $products"
        code=1
    }
    for edge in 256 1024; do
        benchmark "{\"m\": $edge, \"k\": $edge, \"n\": $edge, \"variants\": $(printf '%s' "$products" | jq -c '. + ["cpu:naive", "cpu:blas"]')}"
    done
    benchmark "{\"m\": 1000, \"k\": 20000, \"n\": 777, \"variants\": $products, \"repeats\": 3}"
    benchmark "{\"m\": 1024, \"k\": 1024, \"n\": 1024, \"transpose_b\": true, \"variants\": $products}"
    for dtype in float32 int64; do
        benchmark "{\"op\": \"transpose\", \"m\": 4096, \"n\": 4097, \"dtype\": \"$dtype\", \"variants\": $transpositions}"
    done
    kill "$server" && wait "$server" || code=1
    return $code
}

# measure_accuracy [OPTION…]: fails if a variant that promises the type's accuracy has an inexact row.
measure_accuracy() {
    sh bench/accuracy.sh "$build" --backend cuda "$@" --into "$logs/bench" 2>"$logs/accuracy.stderr" \
        >"$logs/accuracy.rows" || return
    cat "$logs/accuracy.rows"
    ! grep '[*][*]no[*][*]' "$logs/accuracy.rows" | grep '^| [^|]* | \(simt\|fp32_tensor\|fp64_tensor\) |'
}

step fill "$build/tests/kernels/fill" cuda
step measure "$build/tests/kernels/measure"
step verify "$build/tests/kernels/verify" cuda
step lesson_tiled "$build/tests/kernels/lesson_tiled"
# All variants except those with tensor cores. These have their own steps, because a sanitizer takes minutes to
# instrument their kernels.
others=$(sed -n 's/^    X(\([a-z0-9_]*\),.*/\1/p' gpu/cuda/variants.h | grep -v 'tensor$\|^tf32$\|racy' | sort -u | sed 's/^/--variant /')
# The shell must split these options into words.
# shellcheck disable=SC2086
{
    step harness "$kernels" --backend cuda --shapes small --thin 20 $threads
    step harness_large "$kernels" --backend cuda --shapes large --thin 16 $threads
    step epilogues "$kernels" --backend cuda --epilogues --thin 8 $threads
    step harness_tall "$kernels" --backend cuda --shape 8400001 2 1 --thin 128 $threads
    step same_bits "$kernels" --backend cuda $others --shapes tiny --thin 20 --repeat 1000 $threads
    step same_bits_blocks "$kernels" --backend cuda --shape 385 257 1031 --thin 160 --repeat 1000 $threads
}
step memories "$build/tests/kernels/memories"
step tiles "$build/tests/kernels/tiles"
step accumulator "$build/tests/kernels/accumulator"
bench="sh bench/kernels.sh $build --into $logs/bench"
# After a change of fp32_tensor run these steps: 'guard_*' accumulator.
step guard_search timeout 100 "$build/tests/kernels/guard" cuda
# shellcheck disable=SC2086
{
    step guard_harness timeout 100 "$kernels" --backend cuda --variant fp32_tensor --shapes small --thin 4 $threads
    step guard_time timeout 40 $bench 4096 4096 4096 --backend cuda --variant blas --variant fp32_tensor
    step guard_time_8192 timeout 40 $bench 8192 8192 8192 --backend cuda --variant blas --variant fp32_tensor
    step guard_time_short timeout 30 $bench 1024 1024 1024 --backend cuda --variant blas --variant fp32_tensor
}
# Without synccheck, which cannot follow the kernels of fp32_tensor and tensor.
for tool in memcheck initcheck racecheck; do
    step "guard_$tool" timeout 40 compute-sanitizer --tool "$tool" --error-exitcode 9 "$kernels" --backend cuda \
        --variant fp32_tensor --thin 160 --shape 131 157 77 --shape 9 5 1
done
# After a change of fp64_tensor run the steps 'moduli_*'. If k is small, `tensor` computes most of its products.
moduli='--variant fp64_tensor --dtype float64'
# shellcheck disable=SC2086
{
    step moduli_harness timeout 100 "$kernels" --backend cuda $moduli --shapes small --thin 32 $threads
    step moduli_large timeout 100 "$kernels" --backend cuda $moduli --shapes large --shape 300 1024 260 --thin 64 $threads
    step moduli_epilogues timeout 100 "$kernels" --backend cuda $moduli --epilogues --shapes epilogues --shape 129 640 131 --thin 4 $threads
    step moduli_same_bits timeout 100 "$kernels" --backend cuda $moduli --shape 300 1024 260 --thin 300 --repeat 1000 $threads
    step moduli_accuracy measure_accuracy $moduli
    for edge in 2048 4096 8192; do
        step "moduli_time_$edge" timeout 60 $bench $edge $edge $edge --backend cuda $moduli --variant tensor --variant blas
    done
    for tool in memcheck initcheck racecheck; do
        step "moduli_$tool" sanitize "$tool" $moduli --shape 131 640 77 --shape 300 1024 260 --thin 300
    done
}
# After a change of tensor or tf32 run the steps 'tensor_*'.
by_tiles() {
    variant=$1
    shift
    printf -- '--variant %s' "$variant"
    printf -- " --variant $variant/%s" "$@"
}
tensor=$(by_tiles tensor 16 32 64 128 192 256)
some_types='--dtype bfloat16 --dtype float8_e4m3fn --dtype int8 --dtype int32 --dtype float64'
# shellcheck disable=SC2086,SC2046
{
    for dtype in bfloat16 float16 float8_e4m3fn float8_e5m2 int8 uint8 int32; do
        step "tensor_$dtype" timeout 100 "$kernels" --backend cuda $tensor --dtype "$dtype" --shapes small --thin 64 $threads
    done
    step tensor_float64 timeout 100 "$kernels" --backend cuda $(by_tiles tensor 32 64 128) --dtype float64 --shapes small \
        --thin 64 $threads
    step tensor_tf32 timeout 100 "$kernels" --backend cuda $(by_tiles tf32 32 64 128 192 256) --shapes small --thin 64 $threads
    step tensor_same_bits timeout 100 "$kernels" --backend cuda $tensor $some_types --shape 64 2048 64 \
        --shape 300 1024 260 --thin 300 --repeat 1000 $threads
    # For initcheck without tile 16, which reads the whole words in which an unaligned operand begins and ends.
    for tool in memcheck racecheck; do
        step "tensor_$tool" sanitize "$tool" $tensor $some_types --shape 64 1024 64 --shape 300 1024 260 \
            --shape 129 640 131 --thin 300
    done
    step tensor_initcheck sanitize initcheck $(by_tiles tensor 32 64 128 192 256 | sed 's/--variant tensor //') $some_types \
        --shape 64 1024 64 --shape 300 1024 260 --shape 129 640 131 --thin 300
    # Smaller products did not show that a fence was missing.
    for turns in '' --transpose-a --transpose-b '--transpose-a --transpose-b'; do
        step "tensor_large$(printf %s "$turns" | sed 's/ *--transpose//g')" timeout 40 "$kernels" --backend cuda \
            --dtype float64 --variant tensor $turns --time 4096 4096 4096 --time 4096 4096 4096 --repeats 3
    done
}
# The shell must split these commands and options into words.
# shellcheck disable=SC2086
for shape in '1024 1024 1024' '228 240 112' '4096 4096 4096'; do
    step "time_${shape%% *}" $bench $shape
done
# shellcheck disable=SC2086
step time_transposed $bench 4096 4096 4096 --backend cuda --transpose-b
# shellcheck disable=SC2086
for dtype in float32 float64; do
    step "transpose_$dtype" $bench --transpose "$dtype" 16384 16384 --backend cuda
    step "transpose_4096_$dtype" $bench --transpose "$dtype" 4096 4096 --backend cuda
done
step accuracy measure_accuracy
step counters sh bench/counters.sh "$build"
step profile sh bench/profile.sh "$build"
step server ask_server
step devices "$build/tests/kernels/devices" cuda
step devices_all ask_devices
step describe env MATMULD="$build/server/matmuld" sh tests/http/describe.sh
step benchmark ask_benchmark
step epilogue env MATMULD="$build/server/matmuld" sh tests/http/epilogue.sh cuda
step generated env MATMULD="$build/server/matmuld" sh tests/http/generated.sh cuda
step faults env MATMULD="$build/server/matmuld" FAULTY_CUDA="$build/tests/http/faulty_cuda" \
    HOLD="$build/tests/http/hold" sh tests/http/gpu_faults.sh
# The shapes are not multiples of the block size. Two variants also run whole jobs. initcheck does not see some stores
# of cuBLAS, so blas is left out.
for tool in memcheck initcheck synccheck; do
    followed=$others
    [ "$tool" != initcheck ] || followed=$(printf '%s\n' "$others" | grep -v blas)
    # The shell must split these options into words.
    # shellcheck disable=SC2086
    {
        step "$tool" sanitize "$tool" $followed --shapes tiny --thin 40 --repeat 2
        step "${tool}_blocks" sanitize "$tool" $followed --shape 131 157 77 --thin 160
    }
    step "${tool}_jobs" sanitize "$tool" --variant naive --variant simt --shapes tiny --thin 40
done
# Every third case still covers every shape, layout and flaw. initcheck is slow, so it gets smaller matrices.
for tool in memcheck initcheck synccheck racecheck; do
    [ "$tool" = initcheck ] && rows_max=1000 || rows_max=
    # An empty rows_max must not become an argument.
    # shellcheck disable=SC2086
    step "verify_$tool" compute-sanitizer --tool "$tool" --error-exitcode 9 "$build/tests/kernels/verify" cuda 3 $rows_max
done
# Racecheck is slow for blocks of 1024 threads, so it gets few cases and no whole jobs.
step racecheck sanitize racecheck --thin 200 --shape 5 70 4 --shape 33 34 31 --shape 9 5 1 --shape 32 64 32
step racecheck_blocks sanitize racecheck --thin 60 --shape 131 67 35
for name in $names; do
    case $name in guard_* | moduli_* | memories | accumulator | time_* | transpose_* | counters | profile | benchmark) cat "$logs/$name.log" ;; esac
done
[ -n "$names" ] || {
    echo "no step matches"
    exit 1
}
[ "$failures" -eq 0 ] && echo "all passed" || echo "$failures failed"
[ "$failures" -eq 0 ]
