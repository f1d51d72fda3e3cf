#!/bin/sh
# What is shipped builds: optimised, without assertions, which hide what nothing else uses, and hardened; by the compiler
# that this build has, and by Clang where there is one.
# Usage: release.sh C_COMPILER, in the top folder.
set -eu

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0

clang() {
    for name in clang clang-19 clang-18 clang-14; do
        command -v "$name" && break
    done
}

for compiler in "$1" $(clang); do
    if cmake --preset release -B "$scratch/build" -DCMAKE_C_COMPILER="$compiler" -DBUILD_TESTING=OFF -DMATMULD_CUDA=OFF \
        >"$scratch/log" 2>&1 &&
        cmake --build "$scratch/build" --parallel 2 >>"$scratch/log" 2>&1 &&
        "$scratch/build/server/matmuld" --version &&
        sh tests/build/hardened.sh "$scratch/build/server/matmuld"; then
        echo "$compiler: built"
    else
        tail -n 30 "$scratch/log"
        echo "$compiler: the release does not build, or is not hardened"
        failures=$((failures + 1))
    fi
    rm -rf "$scratch/build"
done
[ "$failures" -eq 0 ]
