#!/bin/sh
# Checks the systemd unit without starting it. systemd-analyze must rate its exposure 3.0 or lower.
# Usage: unit.sh BUILD, a build folder.
set -eu

command -v systemd-analyze >/dev/null || {
    echo "systemd-analyze is not installed"
    exit 77
}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() {
    echo "$*"
    exit 1
}

cmake --install "$1" --prefix "$scratch" >"$scratch/log"
unit=$scratch/lib/systemd/system/matmuld.service
for line in "ExecStart=$scratch/bin/matmuld" "Documentation=file://$scratch/share/doc/matmuld/README.md"; do
    grep -qx "$line" "$unit" || fail "the unit has no line $line"
done
# Old versions of systemd-analyze cannot check single files.
systemd-analyze --help | grep -q -- --offline || {
    echo "systemd-analyze is too old"
    exit 77
}
mkdir "$unit.d"
sed -n 's/^#     //p' "$unit" >"$unit.d/keys.conf"
grep -q '^Environment=MATMULD_TLS_CERT=' "$unit.d/keys.conf" || fail "the unit tells of no drop-in"
systemd-analyze --man=no verify "$unit" >"$scratch/log" 2>&1 || fail "$(cat "$scratch/log")"
! grep -E 'matmuld|Ignoring' "$scratch/log" || exit 1
systemd-analyze security --no-pager --offline=true --threshold=30 "$unit" >"$scratch/log" 2>&1 || fail "$(cat "$scratch/log")"
tail -n 1 "$scratch/log"
