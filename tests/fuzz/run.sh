#!/bin/sh
# Runs fuzz targets in parallel. An input that fails is saved in the corpus. Call this script through ./dev
# fuzz.
# Usage: run.sh JOBS [SECONDS] [TARGET], or run.sh JOBS --total SECONDS, in the top folder, with the preset
# fuzz built.
set -eu

build=build/fuzz

# Larger inputs are slower and reach no more code, because fuzz.h sets small limits.
bytes_max() {
    case $1 in
    json | multipart | request) echo 8192 ;;
    *) echo 4096 ;;
    esac
}

fuzz() {
    target=$1
    seconds=$2
    corpus=tests/fuzz/corpus/$target
    work=$build/corpus/$target
    log=$build/fuzz-$target.log
    mkdir -p "$work"
    if "$build/tests/fuzz/fuzz_$target" -max_total_time="$seconds" -max_len="$(bytes_max "$target")" -timeout=60 \
        -rss_limit_mb=2048 -dict="tests/fuzz/$target.dict" -artifact_prefix="$corpus/" "$work" "$corpus" >"$log" 2>&1; then
        sed -n "s/^#\([0-9]*\)\tDONE *cov: \([0-9]*\) .*/$target: \1 executions, \2 edges, nothing found/p" "$log"
        return 0
    fi
    echo "$target: FOUND"
    grep -E -m 2 'does not hold|runtime error|ERROR: |Test unit written' "$log" || tail -n 5 "$log"
    return 1
}

bad_usage() {
    echo "fuzz: $*; see ./dev --help" >&2
    exit 2
}

if [ "$1" = --one ]; then
    fuzz "$3" "$2"
    exit
fi

jobs=$1 seconds=10 total=no targets=$(ls tests/fuzz/corpus)
shift
[ "${1:-}" != --total ] || { total=yes && shift; }
case ${1:-} in
'' | [!0-9]*) ;;
0* | *[!0-9]* | ????????*) bad_usage "takes a number of seconds, got '$1'" ;;
*) seconds=$1 && shift ;;
esac
if [ $# -gt 0 ]; then
    printf '%s\n' "$targets" | grep -qxF -e "$*" || bad_usage "takes one of: $(echo "$targets" | tr '\n' ' '); got '$*'"
    targets=$1
fi
# JOBS targets run at once, so several rounds may be needed. Starting a round takes about a second.
if [ "$total" = yes ]; then
    rounds=$((($(echo "$targets" | wc -l) + jobs - 1) / jobs))
    seconds=$((seconds / rounds > 1 ? seconds / rounds - 1 : 1))
fi

# These options are also in the preset asan.
export ASAN_OPTIONS="${ASAN_OPTIONS:-detect_leaks=1:halt_on_error=1:detect_stack_use_after_return=1:strict_string_checks=1}"
export UBSAN_OPTIONS="${UBSAN_OPTIONS:-halt_on_error=1:print_stacktrace=1}"
if ! printf '%s\n' "$targets" | xargs -P "$jobs" -n 1 sh "$0" --one "$seconds"; then
    cat >&2 <<END
A target was broken. Mend that, and commit the input, which lies in the corpus already, with it. To see it again:
    $build/tests/fuzz/fuzz_TARGET tests/fuzz/corpus/TARGET/INPUT
The whole logs are $build/fuzz-TARGET.log.
END
    exit 1
fi
