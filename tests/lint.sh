#!/bin/sh
# Looks for mistakes in the code without running it: by gcc's analyzer, clang-tidy and cppcheck in C, by shellcheck in
# scripts; and holds the C sources against clang-format. ./dev lint is the way to call this.
# Usage: lint.sh JOBS [--quick], in the top folder, with the presets cpu-only and analyze configured. Quick is without
# clang-tidy and gcc's analyzer, which take longer than all the others.
#
# What is not asked for, and why, is in .clang-tidy and tests/.clang-tidy, in tests/cppcheck.supp, and for gcc in the
# CMakeLists.txt of tests/unit and tests/kernels. Of gpu/cuda/ cppcheck alone looks at the C files: the others would
# need CUDA's headers.
set -eu

jobs=$1
quick=${2:-}
case $quick in '' | --quick) ;; *) echo "lint: does not take '$quick'" >&2 && exit 2 ;; esac
folders='gpu api server bench tests'
database=build/lint
done='' skipped='' failed=''

# check NAME COMMAND ARG…: runs one part. Exit status 77: its tool is missing.
check() {
    name=$1
    shift
    code=0
    "$@" || code=$?
    case $code in
    0) done="$done${done:+, }$name" ;;
    77) skipped="$skipped${skipped:+, }$name" ;;
    *) failed="$failed${failed:+, }$name" ;;
    esac
}

analyzer() {
    cmake --build --preset analyze --parallel "$jobs" -- -k 0 >"$database/analyze.log" 2>&1 && return
    cat "$database/analyze.log"
    return 1
}

# Each of our files once, although several targets compile it, because clang-tidy makes mistakes about va_list across
# files of one run.
list_sources() {
    jq --arg top "$PWD/" '[.[] | select(.file | ltrimstr($top) | test("^(gpu|api|server|bench|tests)/"))] |
        unique_by(.file)' \
        build/cpu-only/compile_commands.json >"$database/compile_commands.json"
}

# Prints the messages of a file at once.
tidy() {
    # The inner shell expands the $.
    # shellcheck disable=SC2016
    jq -j '.[].file + "\u0000"' "$database/compile_commands.json" |
        xargs -0 -n 1 -P "$jobs" sh -c 'found=$(clang-tidy --quiet -p "$1" "$2" 2>&1) || { echo "$found"; exit 1; }' \
            tidy "$database"
}

# Without style checks, which differ between versions. Each folder has its own run, because cppcheck's -j leaves cores
# idle.
# shellcheck disable=SC2086
check_cpp() {
    printf '%s\n' $folders | xargs -n 1 -P "$jobs" cppcheck --quiet --std=c11 --enable=warning,performance,portability \
        --inline-suppr --suppressions-list=tests/cppcheck.supp --error-exitcode=1 -D_GNU_SOURCE -I .
}

# Only version 14 decides, because versions differ in details.
# shellcheck disable=SC2086
check_format() {
    for clang_format in clang-format-14 clang-format; do
        case $("$clang_format" --version 2>/dev/null || :) in
        *"version 14."*)
            find $folders -type f \( -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' \) \
                -exec "$clang_format" --dry-run --Werror {} +
            return
            ;;
        esac
    done
    return 77
}

# Every shell script of the project.
check_shell() {
    command -v shellcheck >/dev/null || return 77
    find . \( -name '.?*' ! -name .ci -o -path ./build \) -prune -o \
        -type f \( -path ./dev -o -path './.ci/*' -o -name '*.sh' \) -print0 | xargs -0 -n 8 -P "$jobs" shellcheck -x
}

mkdir -p "$database"
list_sources
if [ "$quick" != --quick ]; then
    check "gcc's analyzer" analyzer
    check clang-tidy tidy
fi
check cppcheck check_cpp
check clang-format check_format
check shellcheck check_shell

[ -z "$skipped" ] || echo "lint: not checked, since the tool is not here: $skipped"
if [ -n "$failed" ]; then
    echo "lint: see above what was found by: $failed"
    exit 1
fi
echo "lint: nothing was found in $(jq length "$database/compile_commands.json") C files by: $done"
