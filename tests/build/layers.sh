#!/bin/sh
# Checks that server/ may include api/ and api/ may include gpu/, but not the reverse, and that each outside
# library is used in one folder only. Run in the top folder.
set -eu

failed=0

# refuse WHAT PATTERN FOLDER…: fails if a source in the folders has a line that matches the pattern.
refuse() {
    what=$1
    pattern=$2
    shift 2
    if grep -rnE --include='*.[ch]' --include='*.cu' --include='*.cuh' -e "$pattern" "$@"; then
        echo "^ $what"
        failed=$((failed + 1))
    fi
}

include='^[[:space:]]*#[[:space:]]*include[[:space:]]*'
cuda='(cuda|cublas|nv|cooperative_groups|mma)[a-zA-Z0-9_]*(\.h|/|>)'

refuse "gpu/ includes nothing of api/ or server/" "${include}[\"<](\.\./)*(api|server)/" gpu
refuse "api/ includes nothing of server/" "${include}[\"<](\.\./)*server/" api
refuse "libmicrohttpd belongs to server/" "${include}[\"<]microhttpd" gpu api
refuse "zlib belongs to server/http/inflation.*" "${include}[\"<]zlib" gpu api server/*.[ch] server/[!h]*/ server/http/[!i]*.[ch]
refuse "GnuTLS belongs to server/auth/tls*.c" "${include}[\"<]gnutls" gpu api server/*.[ch] server/[!a]*/ server/auth/[!t]*.c
refuse "Jansson belongs to api/" "${include}[\"<]jansson" gpu server
refuse "CUDA belongs to gpu/cuda/" "${include}[\"<]$cuda" api server gpu/*.[ch] gpu/[!c]*/ gpu/cpu gpu/check

asking=$(grep -rl --include='*.[ch]' --include='*.cu' --include='*.cuh' MATMULD_WITH_CUDA gpu api server || :)
if [ "$(printf '%s\n' "$asking" | wc -w)" -ne 1 ]; then
    echo "exactly one file may use MATMULD_WITH_CUDA; got: ${asking:-none}"
    failed=$((failed + 1))
fi

# Names of kernel files must be unique, because ptxas reports name files without their folders.
twice=$(find gpu/cuda -name '*.cu' | sed 's|.*/||' | sort | uniq -d)
if [ -n "$twice" ]; then
    echo "two kernel files have one name: $twice"
    failed=$((failed + 1))
fi

shapeless=$(find gpu api server bench tests \( -name common -o -name utils -o -name 'common.*' -o -name 'utils.*' \))
if [ -n "$shapeless" ]; then
    echo "names that say nothing: $shapeless"
    failed=$((failed + 1))
fi

echo "$failed failures"
[ "$failed" -eq 0 ]
