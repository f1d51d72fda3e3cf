#!/bin/sh
# Builds a release on a system without cmocka. The program must be optimised, without assertions, and
# hardened: PIE, RELRO, no executable stack, stack protector, fortified buffers.
# Usage: release.sh C_COMPILER, in the top folder.
set -eu

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0
program=$scratch/build/server/matmuld

# wants WHAT TEXT OPTION: fails with WHAT unless readelf OPTION prints the text.
wants() {
    readelf --wide "$3" "$program" | grep -q -- "$2" || {
        echo "it $1"
        failures=$((failures + 1))
    }
}

# This pkg-config finds no cmocka.
# shellcheck disable=SC2016
printf '#!/bin/sh\ncase "$*" in *cmocka*) exit 1 ;; esac\nexec pkg-config "$@"\n' >"$scratch/pkg-config"
chmod +x "$scratch/pkg-config"
if ! cmake --preset release -B "$scratch/build" -DCMAKE_C_COMPILER="$1" -DPKG_CONFIG_EXECUTABLE="$scratch/pkg-config" \
    -DMATMULD_CUDA=OFF >"$scratch/log" 2>&1 ||
    ! cmake --build "$scratch/build" --parallel 2 >>"$scratch/log" 2>&1 ||
    ! "$program" --version; then
    tail -n 30 "$scratch/log"
    exit 1
fi
wants 'is not position-independent' 'Type: *DYN' --file-header
wants 'has no read-only relocations' GNU_RELRO --program-headers
wants 'does not bind all at the start' '(FLAGS).*BIND_NOW' --dynamic
wants 'has an executable stack' 'GNU_STACK.* RW ' --program-headers
wants 'does not guard its stack' __stack_chk_fail --dyn-syms
wants 'does not check the sizes of buffers' '__memcpy_chk\|__snprintf_chk\|__vsnprintf_chk' --dyn-syms
[ "$failures" -eq 0 ]
