#!/bin/sh
# Builds the image with docker, or with buildah if there is no docker daemon. Labels the image with the
# version and the git revision of the source tree. Installs nothing.
#
#   docker/build.sh [--tool docker|buildah] [--tag TAG] [-- further arguments of the tool's build]
set -eu
cd "$(dirname "$0")/.."

bad_usage() {
    printf 'docker/build.sh: %s\n' "$*" >&2
    echo 'usage: docker/build.sh [--tool docker|buildah] [--tag TAG] [-- ARGUMENT...]' >&2
    exit 2
}

die() {
    printf 'docker/build.sh: %s\n' "$*" >&2
    exit 1
}

docker_works() {
    command -v docker >/dev/null && docker info >/dev/null 2>&1
}

choose_tool() {
    if docker_works; then
        tool=docker
    elif command -v buildah >/dev/null; then
        tool=buildah
    elif command -v docker >/dev/null; then
        die "docker is here, but 'docker info' fails (is its daemon running? may you use it?), and there is no buildah"
    else
        die "neither docker nor buildah is installed: install one of them and come again"
    fi
}

tool='' tag=matmuld
while [ $# -gt 0 ]; do
    case $1 in
    --tool | --tag)
        [ $# -ge 2 ] || bad_usage "$1 needs a value"
        if [ "$1" = --tool ]; then tool=$2; else tag=$2; fi
        shift
        ;;
    --) shift && break ;;
    *) bad_usage "there is no option '$1'; what is for the tool stands after --" ;;
    esac
    shift
done
case $tool in
'') choose_tool ;;
docker) docker_works || die "docker is not installed, or 'docker info' fails" ;;
buildah) command -v buildah >/dev/null || die "buildah is not installed" ;;
*) bad_usage "--tool takes docker or buildah; got '$tool'" ;;
esac

version=$(sed -n 's/^project(matmuld VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
revision=$(git rev-parse HEAD 2>/dev/null) || revision=unknown
[ -z "$(git status --porcelain 2>/dev/null)" ] || revision=$revision-modified

# buildah gets --format docker, because its default image format has no health check.
if [ "$tool" = docker ]; then set -- build "$@"; else set -- bud --format docker "$@"; fi
echo "docker/build.sh: $tool builds $tag: version $version, revision $revision" >&2
exec "$tool" "$@" --tag "$tag" --build-arg VERSION="$version" --build-arg REVISION="$revision" .
