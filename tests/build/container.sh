#!/bin/sh
# What the image and the compose files promise, as far as their text tells; docker/verify.sh builds and runs
# the image. Run in the top folder.
set -eu

failed=0

fail() {
    echo "$*"
    failed=$((failed + 1))
}

# instructions: the Dockerfile's, one a line: continuations joined, comments left out.
instructions=$(sed -e '/^[[:space:]]*#/d' Dockerfile | sed -e ':join' -e '/\\$/{N;s/[[:space:]]*\\\n[[:space:]]*/ /;b join' -e '}')
last_stage=$(printf '%s\n' "$instructions" | awk '/^FROM /{ text = "" } { text = text $0 "\n" } END { printf "%s", text }')

# of NAME: the arguments of the last stage's instruction.
of() {
    printf '%s\n' "$last_stage" | sed -n "s/^$1 //p"
}

# has WHAT PATTERN TEXT: an extended regular expression that some line matches.
has() {
    printf '%s\n' "$3" | grep -qE -e "$2" || fail "Dockerfile: $1: expected $2, got: $3"
}

base_of() {
    printf '%s\n' "$instructions" | sed -n "s/^ARG $1=//p"
}

has "the build stage's base is an argument" '^FROM \$\{BUILD_IMAGE\} AS build$' "$instructions"
has "the last stage's base is an argument" '^FROM \$\{RUN_IMAGE\}$' "$instructions"
# 13.0.3-devel-ubuntu24.04 and 13.0.3-base-ubuntu24.04 are of one CUDA and one distribution.
built_on=$(base_of BUILD_IMAGE | sed 's/-devel-/-/')
run_on=$(base_of RUN_IMAGE | sed 's/-base-/-/')
if [ -z "$built_on" ] || [ "$built_on" != "$run_on" ]; then
    fail "Dockerfile: the default bases are of one CUDA and distribution: $built_on, $run_on"
fi

has "a numeric user that is not root" '^[1-9][0-9]*:[1-9][0-9]*$' "$(of USER)"
has "the stop signal" '^SIGTERM$' "$(of STOPSIGNAL)"
has "the entry point in exec form" '^\["/[^"]*/matmuld"\]$' "$(of ENTRYPOINT)"
has "the health check in exec form" ' CMD \["/[^"]*/matmuld", "--healthcheck"\]$' "$(of HEALTHCHECK)"
has "the server reached from outside" 'MATMULD_HOST=0\.0\.0\.0' "$(of ENV)"
has "the GPUs" 'NVIDIA_VISIBLE_DEVICES=all' "$(of ENV)"
has "the parts of the driver" 'NVIDIA_DRIVER_CAPABILITIES=compute,utility' "$(of ENV)"
for label in title description licenses version revision; do
    has "the label $label" "org\.opencontainers\.image\.$label=" "$(of LABEL)"
done

# The default port is the one that is exposed, and the licence the one that the tree has.
port=$(sed -n 's/^  --port PORT .*(default: \([0-9]*\))$/\1/p' docs/operations.md)
[ "$(of EXPOSE)" = "$port" ] || fail "Dockerfile: EXPOSE is $(of EXPOSE), but the default port is $port"
grep -q '^MIT License$' LICENSE || fail "LICENSE is not the MIT that the label says"

# What the build reads, and no more, goes to the tool.
for needed in CMakeLists.txt CMakePresets.json api gpu server $(sed -n 's/^install(FILES \(.*\) DESTINATION.*/\1/p' CMakeLists.txt); do
    grep -qx "!$needed" .dockerignore || fail ".dockerignore leaves out $needed, which the build needs"
done
grep -qx '\*' .dockerignore || fail ".dockerignore does not begin with everything"

# Wrong usage of the script behind ./dev image is exit status 2, before any tool is asked.
for words in '--tool' '--tool podman' '--colour'; do
    code=0
    # shellcheck disable=SC2086
    docker/build.sh $words >/dev/null 2>&1 || code=$?
    [ "$code" -eq 2 ] || fail "docker/build.sh $words: exit status $code, expected 2"
done

if python=$(for each in python3 /usr/bin/python3; do
    ! $each -c 'import yaml' 2>/dev/null || { echo $each && break; }
done) && [ -n "$python" ]; then
    drain_s=$(sed -n 's/^  --drain-timeout-ms .*(default: \([0-9]*\)000)$/\1/p' docs/operations.md)
    "$python" tests/build/compose.py "$drain_s" docker/compose.yaml docker/compose.cpu.yaml || failed=$((failed + 1))
else
    echo "no Python here has yaml: the compose files are not looked at"
fi

echo "$failed failures"
[ "$failed" -eq 0 ]
