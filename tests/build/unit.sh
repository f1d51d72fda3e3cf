#!/bin/sh
# The unit for systemd is one that systemd takes, and leaves the service little that it could do: an exposure of 3.0 at
# most, by systemd's own count. It is not started here.
# Usage: unit.sh UNIT PROGRAM, the unit as it is installed, and a program to stand where it names one.
set -eu

command -v systemd-analyze >/dev/null || {
    echo "systemd-analyze is not installed"
    exit 77
}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
sed "s|^ExecStart=.*|ExecStart=$2|; /^Documentation=/d" "$1" >"$scratch/matmuld.service"
grep -q "^ExecStart=/.*/matmuld$" "$1" || {
    echo "$1 does not start matmuld"
    exit 1
}
# A version that looks at no files by themselves says so by its usage.
systemd-analyze --help | grep -q -- --offline || {
    echo "systemd-analyze is too old"
    exit 77
}
# The drop-in that its comment tells of is one, too.
mkdir "$scratch/matmuld.service.d"
sed -n 's/^#     //p' "$1" >"$scratch/matmuld.service.d/keys.conf"
grep -q '^LoadCredential=' "$scratch/matmuld.service.d/keys.conf" || {
    echo "$1 tells of no drop-in"
    exit 1
}
systemd-analyze --man=no verify "$scratch/matmuld.service" >"$scratch/log" 2>&1 || {
    cat "$scratch/log"
    exit 1
}
if grep -E 'matmuld|Ignoring' "$scratch/log"; then
    exit 1
fi
systemd-analyze security --no-pager --offline=true --threshold=30 "$scratch/matmuld.service" >"$scratch/log" 2>&1 || {
    cat "$scratch/log"
    exit 1
}
tail -n 1 "$scratch/log"
