#!/bin/sh
# Checks C files with gcc's analyzer, clang-tidy, cppcheck and clang-format, and scripts with shellcheck. ./dev lint
# calls this script.
# Usage: lint.sh JOBS [--quick], in the top folder, with the presets cpu-only and analyze configured. --quick skips
# clang-tidy and gcc's analyzer, which take longest.
#
# Disabled warnings are listed in .clang-tidy, tests/.clang-tidy, and in the CMakeLists.txt of
# tests/unit and tests/kernels. Only cppcheck reads gpu/cuda/, because the other tools need CUDA's headers.
set -eu

jobs=$1
quick=${2:-}
case $quick in '' | --quick) ;; *) echo "lint: unknown argument '$quick'" >&2 && exit 2 ;; esac
folders='gpu api server bench tests'
database=build/lint
done='' skipped='' failed=''

# check NAME COMMAND ARG…: runs one check. The command exits with 77 if its tool is missing.
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

# Writes a list in which each file occurs once, although several targets may compile it.
list_sources() {
    jq --arg top "$PWD/" '[.[] | select(.file | ltrimstr($top) | test("^(gpu|api|server|bench|tests)/"))] |
        unique_by(.file)' \
        build/cpu-only/compile_commands.json >"$database/compile_commands.json"
}

# Runs clang-tidy on one file per process, because it misunderstands va_list if a run has several files.
tidy() {
    # The inner shell expands the $.
    # shellcheck disable=SC2016
    jq -j '.[].file + "\u0000"' "$database/compile_commands.json" |
        xargs -0 -n 1 -P "$jobs" sh -c 'found=$(clang-tidy --quiet -p "$1" "$2" 2>&1) || { echo "$found"; exit 1; }' \
            tidy "$database"
}

# Style checks are off, because they differ between versions. Each folder has a process, because cppcheck -j leaves
# cores idle.
# shellcheck disable=SC2086
check_cpp() {
    printf '%s\n' $folders | xargs -n 1 -P "$jobs" cppcheck --quiet --std=c11 --enable=warning,performance,portability \
        --inline-suppr --error-exitcode=1 -D_GNU_SOURCE -I .
}

# Only version 14 is used, because versions format differently.
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

[ -z "$skipped" ] || echo "lint: not checked, because the tool is not installed: $skipped"
if [ -n "$failed" ]; then
    echo "lint: these tools found the faults above: $failed"
    exit 1
fi
echo "lint: no faults in $(jq length "$database/compile_commands.json") C files, checked by: $done"
