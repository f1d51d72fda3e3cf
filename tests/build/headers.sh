#!/bin/sh
# Each public header compiles alone as C11 without a warning. One with __BEGIN_DECLS, whose functions CUDA sources call or
# define, also does as C++17, with all that it includes.
# Usage: headers.sh C-COMPILER, in the top folder.
set -eu

c_compiler=$1
cxx_compiler=${CXX:-$(command -v c++ || command -v g++ || command -v clang++)}
# The compiler and the options for libraries are split into words.
library_flags=$(pkg-config --cflags libmicrohttpd jansson)

failed=0
checked=0
for header in gpu/*.h gpu/[!c]*/*.h gpu/cpu/*.h gpu/check/*.h api/*.h api/*/*.h server/*.h server/*/*.h; do
    [ -f "$header" ] || continue
    checked=$((checked + 1))
    # Includes the header twice to check its guard.
    program=$(printf '#include "%s"\n#include "%s"\n' "$header" "$header")
    # shellcheck disable=SC2086
    printf '%s\n' "$program" | "$c_compiler" -std=c11 -Wall -Wextra -Wstrict-prototypes -Wundef -Werror -I. \
        $library_flags -fsyntax-only -x c - || { echo "$header: not C11 by itself" && failed=$((failed + 1)); }
    grep -q __BEGIN_DECLS "$header" || continue
    # shellcheck disable=SC2086
    printf '%s\n' "$program" | $cxx_compiler -std=c++17 -Wall -Wextra -Wundef -Werror -I. \
        $library_flags -fsyntax-only -x c++ - || { echo "$header: not C++17 by itself" && failed=$((failed + 1)); }
done
echo "$checked headers, $failed failures"
[ "$checked" -gt 0 ] && [ "$failed" -eq 0 ]
