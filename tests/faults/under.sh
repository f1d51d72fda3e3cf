# Functions for the scripts of this folder, which source this file after server.sh. Sets $control, a file that
# tells failing.c which allocations fail. Replaces $MATMULD by a script that preloads failing.c.
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

# fault TASK ARG…: runs a task of malloc.py.
fault() {
    python3 "$(dirname "$0")/malloc.py" "$control" "$@"
}
