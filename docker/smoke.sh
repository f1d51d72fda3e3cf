#!/bin/sh
# Checks an image with docker or podman: starts a container with a read-only root and no capabilities,
# requests a product, and stops the container during another product. Exit status 0 if all checks passed.
#
#   docker/smoke.sh [--cpu] [IMAGE]        IMAGE: matmuld
#
# Without --cpu the container gets all GPUs, and products must run on a GPU. The variable CONTAINER_TOOL
# selects docker or podman. Needs curl.
set -eu

backend=cuda image=matmuld
while [ $# -gt 0 ]; do
    case $1 in
    --cpu) backend=cpu ;;
    -*) echo "usage: docker/smoke.sh [--cpu] [IMAGE]" >&2 && exit 2 ;;
    *) image=$1 ;;
    esac
    shift
done
tool=${CONTAINER_TOOL:-}
for candidate in docker podman; do
    [ -n "$tool" ] || ! command -v "$candidate" >/dev/null || tool=$candidate
done
for needed in "${tool:-docker}" curl; do
    command -v "$needed" >/dev/null || { echo "docker/smoke.sh: $needed is not installed" >&2 && exit 1; }
done
export no_proxy='*'

container=''
scratch=$(mktemp -d)
clean_up() {
    [ -z "$container" ] || "$tool" rm --force "$container" >/dev/null 2>&1 || :
    rm -rf "$scratch"
}
trap clean_up EXIT
trap 'exit 130' INT TERM HUP
# shellcheck source=docker/checks.sh
. "$(dirname "$0")/checks.sh"

beside() {
    "$@"
}

start() {
    set -- --detach --publish 127.0.0.1::8080 --read-only --cap-drop ALL --security-opt no-new-privileges \
        --health-interval 2s "$image" --lame-duck-ms 0
    case $backend-$tool in
    cuda-docker) set -- --gpus all "$@" ;;
    cuda-*) set -- --device nvidia.com/gpu=all "$@" ;;
    esac
    container=$("$tool" run "$@") && url=http://$("$tool" port "$container" 8080/tcp | head -n 1)
}

# await SECONDS COMMAND…: repeats the command every second until it succeeds.
await() {
    seconds=$1
    shift
    until "$@"; do
        seconds=$((seconds - 1))
        [ "$seconds" -gt 0 ] || return 1
        sleep 1
    done
}

is_ready() {
    curl -fsS --max-time 5 "$url/readyz"
}

# docker runs health checks itself. podman needs systemd timers for that, which may be missing, so podman is
# asked to run the check now.
is_healthy() {
    case $tool in
    podman) podman healthcheck run "$container" ;;
    *) "$tool" inspect --format '{{.State.Health.Status}}' "$container" | grep -x healthy ;;
    esac
}

# multiplies BACKEND EXPECTED: the reply has the right product and names the expected backend.
multiplies() {
    curl -fsS --max-time 30 -d "{\"a\": [[1,2],[3,4]], \"b\": [[5,6],[7,8]], \"backend\": \"$1\"}" \
        "$url/v1/matmul" >"$scratch/reply" 2>&1 || { cat "$scratch/reply" && return 1; }
    cat "$scratch/reply"
    tr -d ' \n' <"$scratch/reply" >"$scratch/dense"
    grep -qF '"c":[[19,22],[43,50]]' "$scratch/dense" && grep -qF "\"backend\":\"$2\"" "$scratch/dense"
}

no_write() {
    ! "$tool" exec --user 0 "$container" touch /written 2>"$scratch/refusal" && grep -q 'Read-only' "$scratch/refusal"
}

runs_as() {
    [ "$("$tool" exec "$container" id -u)" = "$1" ]
}

drained() {
    "$tool" logs "$container" 2>&1 | grep 'draining: 1 requests under way' ||
        { "$tool" logs "$container" 2>&1 | tail -n 20 && return 1; }
}

examine() {
    check "a product is right, computed on $backend" multiplies auto "$backend"
    check "and on cpu" multiplies cpu cpu
    check "healthy by its own health check" await 30 is_healthy
    check "it runs as user 10001" runs_as 10001
    check "the root is read-only" no_write
}

stop() {
    begin_slow_product
    check "it is told to stop" "$tool" stop --time 40 "$container"
    wait "$slow" || :
    check "it drained" drained
    check "the product under way was answered" grep -qx 200 "$scratch/slow"
    check "exit status 0" [ "$("$tool" inspect --format '{{.State.ExitCode}}' "$container")" = 0 ]
}

check "$tool runs $image" start
[ "$failures" -gt 0 ] || check "ready within 60 s" await 60 is_ready
if [ "$failures" -eq 0 ]; then
    examine
    stop
elif [ -n "$container" ]; then
    "$tool" logs "$container"
fi
echo "$checks checks, $failures failures"
[ "$failures" -eq 0 ]
