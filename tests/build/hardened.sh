#!/bin/sh
# A program is hardened as what is shipped is to be: it can be loaded anywhere, what is bound at the start cannot be
# written later, no stack is executable, and stacks and buffers are guarded.
# Usage: hardened.sh PROGRAM
set -eu

program=$1
failures=0

# wants WHAT TEXT OPTION: readelf says so.
wants() {
    readelf --wide "$3" "$program" | grep -q -- "$2" || {
        echo "$program: $1"
        failures=$((failures + 1))
    }
}

wants 'is not position-independent' 'Type: *DYN' --file-header
wants 'has no read-only relocations' GNU_RELRO --program-headers
wants 'does not bind all at the start' '(FLAGS).*BIND_NOW' --dynamic
wants 'has an executable stack' 'GNU_STACK.* RW ' --program-headers
wants 'does not guard its stack' __stack_chk_fail --dyn-syms
wants 'does not check the sizes of buffers' '__memcpy_chk\|__snprintf_chk\|__vsnprintf_chk' --dyn-syms
[ "$failures" -eq 0 ]
