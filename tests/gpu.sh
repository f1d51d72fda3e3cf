#!/bin/sh
# What only a machine with an NVIDIA GPU can show, in one run: the harness in full, the same bits over
# a thousand repeats, compute-sanitizer's tools, the timing tables, and the server answering by CUDA.
# usage: tests/gpu.sh [BUILD_DIRECTORY [LOG_DIRECTORY]], after ./dev build; exit 0 where all held.
set -u

cd "$(dirname "$0")/.." || exit 1
build=${1:-build/dev}
logs=${2:-build/gpu}
kernels=$build/tests/kernels/kernels
mkdir -p "$logs"
failures=0

# step NAME COMMAND...: runs it with its output in a log, and says how it went. 77 is a tool that is not here.
step() {
    name=$1
    shift
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

# The server's own answers, by the backend that it is told.
ask_server() {
    "$build/server/matmuld" --backend cuda --port 0 2>"$logs/server.stderr" &
    server=$!
    url=
    for _ in $(seq 100); do
        url=$(sed -n 's|.*listening on \(http://[^ "]*\).*|\1|p' "$logs/server.stderr")
        [ -n "$url" ] && curl -fs -o /dev/null "$url/readyz" && break
        sleep 0.1
    done
    code=0
    curl -fsS "$url/v1/devices" && echo &&
        curl -fsS "$url/v1/variants" && echo || code=1
    for variant in auto naive naive_uncoalesced tiled_8 tiled_16 tiled_32 tiled_strided_16 tiled_dynamic \
        tiled_dynamic,4 tiled_dynamic,8 tiled_dynamic,16 tiled_dynamic,32 tiled_dynamic,64 tiled_dynamic,96 \
        tiled_padded tiled_conflicted tiled_async register_tiled vectorized warp_tiled blas; do
        tile=
        case $variant in *,*) tile=", \"tile\": ${variant#*,}" ;; esac
        reply=$(curl -sS "$url/v1/matmul" -H 'Content-Type: application/json' \
            -d "{\"a\": [[1,2],[3,4]], \"b\": [[5,6],[7,8]], \"variant\": \"${variant%,*}\"$tile}")
        printf '%s\n' "$reply"
        case $variant:$reply in
        *'"c": [[19,22],[43,50]]'*'"backend": "cuda"'*) ;;
        tiled_dynamic,96:*'"code":"unsupported"'*) ;; # a device may have too little shared memory
        *) code=1 ;;
        esac
    done
    for variant in auto naive shared padded vectorized; do
        for dtype in float32 float64 int32 int64; do
            reply=$(curl -sS "$url/v1/transpose" -H 'Content-Type: application/json' \
                -d "{\"a\": [[1,2,3],[4,5,6]], \"dtype\": \"$dtype\", \"variant\": \"$variant\"}")
            printf '%s\n' "$reply"
            case $reply in *'"c": [[1,4],[2,5],[3,6]]'*'"backend": "cuda"'*) ;; *) code=1 ;; esac
        done
    done
    kill "$server" && wait "$server" || code=1
    return $code
}

step fill "$build/tests/kernels/fill" cuda
step harness "$kernels" --backend cuda --shapes small --thin 1
step harness_large "$kernels" --backend cuda --shapes large --thin 8
step harness_square "$kernels" --backend cuda --shape 4095 4099 4097 --thin 16
step same_bits "$kernels" --backend cuda --shapes tiny --thin 20 --repeat 1000
step broken "$kernels" --broken --shapes small --thin 16
step memories "$build/tests/kernels/memories"
bench="sh tests/kernels/bench.sh $build --into $logs/bench"
# The script and its options are words of their own.
# shellcheck disable=SC2086
for shape in '1024 1024 1024' '228 240 112' '4096 4096 4096'; do
    step "time_${shape%% *}" $bench $shape
done
# shellcheck disable=SC2086
step time_transposed $bench 4096 4096 4096 --backend cuda --transpose-b
# shellcheck disable=SC2086
for dtype in float32 float64; do
    step "transpose_$dtype" $bench --transpose "$dtype" 16384 16384 --backend cuda
done
step counters sh tests/kernels/counters.sh "$build"
step server ask_server
step attributes env MATMULD="$build/server/matmuld" FLOAT32="$build/tests/http/float32" sh tests/http/attributes.sh
if command -v compute-sanitizer >/dev/null; then
    for tool in memcheck racecheck initcheck synccheck; do
        step "$tool" sanitize "$tool" --shapes tiny --thin 40
    done
else
    echo "compute-sanitizer is not on PATH: its four tools were not run"
    failures=$((failures + 1))
fi
cat "$logs"/memories.log "$logs"/time_*.log "$logs"/transpose_*.log "$logs"/counters.log
[ "$failures" -eq 0 ] && echo "all held" || echo "$failures failed"
[ "$failures" -eq 0 ]
