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

# check NAME COMMAND ARG…: runs one part, whose exit status 77 says that its tool is not here.
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

# Each of our files once, though several targets compile it: within one run clang-tidy carries what it knows of a
# file's va_list over to the next, and is mistaken.
list_sources() {
    jq --arg top "$PWD/" '[.[] | select(.file | ltrimstr($top) | test("^(gpu|api|server|bench|tests)/"))] |
        unique_by(.file)' \
        build/cpu-only/compile_commands.json >"$database/compile_commands.json"
}

# What it says of a file is shown at once, and only where there is something.
tidy() {
    # It is the inner shell that expands.
    # shellcheck disable=SC2016
    jq -j '.[].file + "\u0000"' "$database/compile_commands.json" |
        xargs -0 -n 1 -P "$jobs" sh -c 'found=$(clang-tidy --quiet -p "$1" "$2" 2>&1) || { echo "$found"; exit 1; }' \
            tidy "$database"
}

# Not its style checks, which ask for other things from version to version. Its own -j leaves one process busy long after
# the others, so each folder has a run.
# The folders are words to be split.
# shellcheck disable=SC2086
check_cpp() {
    printf '%s\n' $folders | xargs -n 1 -P "$jobs" cppcheck --quiet --std=c11 --enable=warning,performance,portability \
        --inline-suppr --suppressions-list=tests/cppcheck.supp --error-exitcode=1 -D_GNU_SOURCE -I .
}

# Its versions differ in details, so 14 alone judges.
# The folders are words to be split.
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
