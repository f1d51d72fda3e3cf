# What the scripts of this folder share beside tests/http/server.sh: $control, through which a server is told what
# fails, and MATMULD as a program that starts matmuld with the library under it, and under nothing else. To be sourced
# after server.sh.
# shellcheck shell=sh disable=SC2154

: "${FAILING:?the path of libfailing.so}"
control=$scratch/control
head -c 48 /dev/zero >"$control"
cat >"$scratch/matmuld" <<END
#!/bin/sh
export ASAN_OPTIONS="\${ASAN_OPTIONS:-}:verify_asan_link_order=0"
export LD_PRELOAD='$FAILING' MATMULD_TEST_FAULTS='$control'
exec '$MATMULD' "\$@"
END
chmod +x "$scratch/matmuld"
MATMULD=$scratch/matmuld

# fault TASK ARG…: malloc.py says which tasks there are.
fault() {
    python3 "$(dirname "$0")/malloc.py" "$control" "$@"
}
