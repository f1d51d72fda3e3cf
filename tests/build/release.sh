#!/bin/sh
# What is shipped builds: optimised, without assertions, which hide what nothing else uses, and hardened; by the compiler
# that this build has, and by Clang where there is one. Hardened: it can be loaded anywhere, what is bound at the start
# cannot be written later, no stack is executable, and stacks and buffers are guarded.
# Usage: release.sh C_COMPILER, in the top folder.
set -eu

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0
program=$scratch/build/server/matmuld

clang() {
    for name in clang clang-19 clang-18 clang-14; do
        command -v "$name" && break
    done
}

# wants WHAT TEXT OPTION: readelf says so.
wants() {
    readelf --wide "$3" "$program" | grep -q -- "$2" || {
        echo "$compiler: $1"
        failures=$((failures + 1))
    }
}

for compiler in "$1" $(clang); do
    if cmake --preset release -B "$scratch/build" -DCMAKE_C_COMPILER="$compiler" -DBUILD_TESTING=OFF -DMATMULD_CUDA=OFF \
        >"$scratch/log" 2>&1 &&
        cmake --build "$scratch/build" --parallel 2 >>"$scratch/log" 2>&1 &&
        "$program" --version; then
        wants 'is not position-independent' 'Type: *DYN' --file-header
        wants 'has no read-only relocations' GNU_RELRO --program-headers
        wants 'does not bind all at the start' '(FLAGS).*BIND_NOW' --dynamic
        wants 'has an executable stack' 'GNU_STACK.* RW ' --program-headers
        wants 'does not guard its stack' __stack_chk_fail --dyn-syms
        wants 'does not check the sizes of buffers' '__memcpy_chk\|__snprintf_chk\|__vsnprintf_chk' --dyn-syms
    else
        tail -n 30 "$scratch/log"
        echo "$compiler: the release does not build"
        failures=$((failures + 1))
    fi
    rm -rf "$scratch/build"
done
[ "$failures" -eq 0 ]
