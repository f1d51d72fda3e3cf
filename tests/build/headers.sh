#!/bin/sh
# Compiles each public header alone as C11, without warnings. Headers with __BEGIN_DECLS must also compile as
# C++17, because CUDA sources include them.
# Usage: headers.sh C-COMPILER, in the top folder.
set -eu

c_compiler=$1
cxx_compiler=${CXX:-$(command -v c++ || command -v g++ || command -v clang++)}
library_flags=$(pkg-config --cflags libmicrohttpd jansson zlib)

failed=0
checked=0
for header in gpu/*.h gpu/[!c]*/*.h gpu/cpu/*.h gpu/check/*.h api/*.h api/*/*.h server/*.h server/*/*.h; do
    [ -f "$header" ] || continue
    checked=$((checked + 1))
    # Including the header twice checks its include guard.
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
