#!/bin/sh
# Checks the Dockerfile, .dockerignore and the compose files without building an image. Run in the top folder.
set -eu

failed=0

fail() {
    echo "$*"
    failed=$((failed + 1))
}

# The two base images must have equal CUDA versions and equal distributions.
built_on=$(sed -n 's/^ARG BUILD_IMAGE=//p' Dockerfile | sed 's/-devel-/-/')
run_on=$(sed -n 's/^ARG RUN_IMAGE=//p' Dockerfile | sed 's/-base-/-/')
if [ -z "$built_on" ] || [ "$built_on" != "$run_on" ]; then
    fail "Dockerfile: the default bases are of one CUDA and distribution: $built_on, $run_on"
fi

port=$(sed -n 's/^  --port PORT .*(default: \([0-9]*\))$/\1/p' docs/operations.md)
grep -qx "EXPOSE $port" Dockerfile || fail "Dockerfile: EXPOSE is not the default port, $port"
grep -q '^MIT License$' LICENSE || fail "LICENSE is not the MIT that the label says"

# The build context must contain every file that the build reads.
for needed in CMakeLists.txt CMakePresets.json api deploy/systemd gpu server $(sed -n 's/^install(FILES \(.*\) DESTINATION.*/\1/p' CMakeLists.txt); do
    grep -qx "!$needed" .dockerignore || fail ".dockerignore leaves out $needed, which the build needs"
done
grep -qx '\*' .dockerignore || fail ".dockerignore does not begin with everything"

# Docker kills the process after stop_grace_period, so the lame duck and the drain together must be shorter.
default_s() {
    sed -n "/^  --$1 /,\$s/.*(default: \([0-9]*\)000)\$/\1/p" docs/operations.md | head -n 1
}
stop_s=$(($(default_s lame-duck-ms) + $(default_s drain-timeout-ms)))
for file in docker/compose.yaml docker/compose.cpu.yaml; do
    grace_s=$(sed -n 's/^ *stop_grace_period: \([0-9]*\)s$/\1/p' "$file")
    [ "${grace_s:-0}" -gt "$stop_s" ] || fail "$file: a grace of ${grace_s:-no} s is not longer than the lame duck and the drain of $stop_s s"
    for line in '- "127.0.0.1:' 'MATMULD_ALLOWED_HOSTS: ' 'read_only: true' 'cap_drop: \[ALL\]' no-new-privileges:true '"--healthcheck"\]'; do
        grep -q -e "$line" "$file" || fail "$file has no line with $line"
    done
done

echo "$failed failures"
[ "$failed" -eq 0 ]
