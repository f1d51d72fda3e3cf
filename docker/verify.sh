#!/bin/sh
# Checks what the README says about the image. Builds the image with buildah, without a registry or daemon,
# and starts it without a container engine. Needs root, buildah, mmdebstrap, jq, curl, iproute2 and
# util-linux.
#
#   docker/verify.sh [--base ROOTFS.tar] [--cuda]
#
# --base   root file system for both base images (default: a minimal Debian 12, made with mmdebstrap)
# --cuda   also builds the CUDA backend, with /usr/local/cuda of this machine, for two architectures
set -eu
cd "$(dirname "$0")/.."

limit_bytes=60000000 # maximum size that the image may add to its base image
base='' cuda=no
while [ $# -gt 0 ]; do
    case $1 in
    --base) base=${2:?--base takes the archive of a root file system} && shift ;;
    --cuda) cuda=yes ;;
    *) echo "usage: docker/verify.sh [--base ROOTFS.tar] [--cuda]" >&2 && exit 2 ;;
    esac
    shift
done
for tool in buildah mmdebstrap jq curl ip unshare nsenter; do
    command -v "$tool" >/dev/null || { echo "docker/verify.sh: $tool is not installed" >&2 && exit 1; }
done
[ "$(id -u)" -eq 0 ] || { echo "docker/verify.sh: this takes root" >&2 && exit 1; }

holder='' container='' base_container='' url=http://127.0.0.1:8080
scratch=$(mktemp -d)
clean_up() {
    [ -z "$holder" ] || kill -KILL "$holder" 2>/dev/null || :
    for mounted in "$container" "$base_container"; do
        [ -z "$mounted" ] || buildah rm "$mounted" >/dev/null 2>&1 || :
    done
    rm -rf "$scratch"
}
trap clean_up EXIT
trap 'exit 130' INT TERM HUP
# shellcheck source=docker/checks.sh
. docker/checks.sh

# Keeps buildah's images in $scratch. The driver vfs works on any kernel.
cat >"$scratch/storage.conf" <<END
[storage]
driver = "vfs"
graphroot = "$scratch/images"
runroot = "$scratch/run"
END
export CONTAINERS_STORAGE_CONF="$scratch/storage.conf" BUILDAH_ISOLATION=chroot

same() {
    check "$1: $2" [ "$2" = "$3" ]
    [ "$2" = "$3" ] || echo "        got: $3"
}

make_base() {
    if [ -z "$base" ]; then
        base=$scratch/base.tar
        echo "mmdebstrap makes a minimal Debian 12" >&2
        mmdebstrap --quiet --variant=minbase bookworm "$base"
    fi
    base_container=$(buildah from scratch)
    buildah add --quiet "$base_container" "$base" / >/dev/null
    buildah commit --quiet --format docker "$base_container" localhost/matmuld-base >/dev/null
}

build() {
    set -- --build-arg BUILD_IMAGE=localhost/matmuld-base --build-arg RUN_IMAGE=localhost/matmuld-base \
        --pull-never --quiet
    if [ $cuda = yes ]; then
        set -- "$@" --volume /usr/local/cuda:/usr/local/cuda:ro --build-arg MATMULD_CUDA=ON \
            --build-arg CUDA_ARCHITECTURES='80-real;90a-real'
    fi
    docker/build.sh --tool buildah --tag localhost/matmuld -- "$@"
}

bytes_of() {
    du -sb "$1" | cut -f 1
}

# said JQ: prints a value of the image's configuration. JQ is a filter of jq.
said() {
    buildah inspect --type image localhost/matmuld | jq -r ".Docker.config$1"
}

check_configuration() {
    same "user" 10001:10001 "$(said .User)"
    same "entry point" '["/usr/local/bin/matmuld"]' "$(said '.Entrypoint | tojson')"
    same "health check" '["CMD","/usr/local/bin/matmuld","--healthcheck"]' "$(said '.Healthcheck.Test | tojson')"
    same "stop signal" SIGTERM "$(said .StopSignal)"
    same "port" 8080/tcp "$(said '.ExposedPorts | keys[]')"
    for variable in MATMULD_HOST=0.0.0.0 NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility; do
        same "environment" "$variable" "$(said '.Env[]' | grep "^${variable%%=*}=")"
    done
    same "label title" matmuld "$(said '.Labels["org.opencontainers.image.title"]')"
    same "label licenses" MIT "$(said '.Labels["org.opencontainers.image.licenses"]')"
    same "label revision" "$(git rev-parse HEAD)" \
        "$(said '.Labels["org.opencontainers.image.revision"]' | sed 's/-modified$//')"
    same "label version" "$(sed -n 's/^project(matmuld VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)" \
        "$(said '.Labels["org.opencontainers.image.version"]')"
}

check_size() {
    base_bytes=$(bytes_of "$(buildah mount "$base_container")")
    image_bytes=$(bytes_of "$root")
    over=$((image_bytes - base_bytes))
    echo "        base $base_bytes bytes, image $image_bytes, so $over over it; the program is" \
        "$(stat -c %s "$root/usr/local/bin/matmuld")"
    check "at most $limit_bytes bytes over its base" [ "$over" -le "$limit_bytes" ]
}

# Prints the command that gives a process the image's environment and user, and drops all privileges.
confined() {
    user=$(said .User)
    printf "/usr/bin/env -i HOME=/ %s /usr/bin/setpriv --reuid ${user%%:*} --regid ${user##*:} --clear-groups \
        --inh-caps=-all --bounding-set=-all --no-new-privs" "$(said '.Env | @sh')"
}

# start COMMAND…: runs the command in new namespaces, with the image as read-only root. Sets $process to the
# command's process. Sets $holder to a process that ends with the command's exit status.
start() {
    # shellcheck disable=SC2016
    unshare --mount --net --pid --fork --kill-child sh -euc '
        root=$1
        shift
        ip link set lo up
        mount --bind "$root" "$root"
        mount -t proc proc "$root/proc"
        mount --bind -o ro /sys "$root/sys"
        mount --bind /dev "$root/dev"
        mount -o remount,bind,ro "$root"
        exec chroot "$root" "$@"' sh "$root" "$@" 2>"$scratch/log" &
    holder=$!
    tries=100
    until process=$(cat "/proc/$holder/task/$holder/children" 2>/dev/null) && [ -n "$process" ]; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || return 1
        sleep 0.1
    done
    process=${process% }
}

# inside COMMAND…: runs a command in the container.
# beside COMMAND…: runs a command of this machine on the container's network.
inside() {
    eval "nsenter --target $process --mount --net --pid --root --wd=/ $(confined) \"\$@\""
}

beside() {
    nsenter --target "$process" --net env no_proxy='*' "$@"
}

multiplies() {
    beside curl -fsS --max-time 10 -d '{"a": [[1,2],[3,4]], "b": [[5,6],[7,8]], "variant": "blas"}' \
        "$url/v1/matmul" >"$scratch/product" && jq -e '.c == [[19,22],[43,50]]' "$scratch/product"
}

is_ready() {
    beside curl -fsS --max-time 5 "$url/readyz"
}

await_ready() {
    for _ in $(seq 300); do
        ! is_ready >/dev/null 2>&1 || return 0
        kill -0 "$process" 2>/dev/null || break
        sleep 0.1
    done
    cat "$scratch/log"
    return 1
}

no_write() {
    ! nsenter --target "$process" --mount --root --wd=/ touch /written 2>"$scratch/refusal" &&
        grep -q 'Read-only' "$scratch/refusal"
}

of_process() {
    sed -n "s/^$1:[[:space:]]*//p" "/proc/$process/status"
}

health() {
    eval "inside $(said '.Healthcheck.Test[1:] | @sh')"
}

check_run() {
    eval "start $(confined) $(said '.Entrypoint | @sh') --lame-duck-ms 0"
    check "it starts, ready within 30 s" await_ready
    same "user, group" "10001 10001" "$(of_process Uid | cut -f 1) $(of_process Gid | cut -f 1)"
    same "capabilities that are left" 0000000000000000 "$(of_process CapBnd)"
    same "no new privileges" 1 "$(of_process NoNewPrivs)"
    check "the root is read-only" no_write
    check "a product is right" multiplies
    same "which ran on" cpu "$(jq -r .backend "$scratch/product")"
    same "by" blas "$(jq -r .variant "$scratch/product")"
    if [ $cuda = yes ]; then
        check "without a driver it says so" grep -qi 'left out:.*driver' "$scratch/log"
        grep -i 'left out' "$scratch/log" | sed 's/^/        /'
    fi
    check "its health check says that it is up" health
    begin_slow_product
    kill -TERM "$process"
    sleep 0.5
    check "on SIGTERM it drains" grep -q 'draining: 1 requests under way' "$scratch/log"
    check "its health check says so to the end" health
    code=0
    wait "$holder" || code=$?
    holder=
    same "exit status" 0 "$code"
    wait "$slow" || :
    same "the product under way is answered with" 200 "$(cat "$scratch/slow")"
}

make_base
build
container=$(buildah from --pull-never localhost/matmuld)
root=$(buildah mount "$container")
check_configuration
check_size
check_run
echo "$checks checks, $failures failures"
[ "$failures" -eq 0 ]
