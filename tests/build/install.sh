#!/bin/sh
# Checks what cmake --install writes beside the program: the example of options, the man page and the systemd unit,
# which it does not start. systemd-analyze must rate the unit's exposure 3.0 or lower.
# Usage: install.sh BUILD, a build folder.
set -eu

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
matmuld=$scratch/bin/matmuld
doc=$scratch/share/doc/matmuld
page=$scratch/share/man/man1/matmuld.1
unit=$scratch/lib/systemd/system/matmuld.service

fail() {
    echo "$*"
    exit 1
}

cmake --install "$1" --prefix "$scratch" >"$scratch/log"
"$matmuld" --help >"$scratch/help"
"$matmuld" --print-config >"$scratch/config"

# The example's names must be options. Its values are tried too, except the names of files, which are not here.
sed -n 's/^#\(MATMULD_\)/\1/p' "$doc/matmuld.env" >"$scratch/example"
[ -s "$scratch/example" ] || fail "the example has no option"
while IFS='=' read -r name _; do
    grep -q "^$(echo "${name#MATMULD_}" | tr A-Z_ a-z-) = " "$scratch/config" || fail "the example has $name, which is no option"
done <"$scratch/example"
# shellcheck disable=SC2046
env $(grep -v '=/' "$scratch/example") "$matmuld" --print-config >"$scratch/config_example" 2>"$scratch/log" ||
    fail "the example has a wrong value: $(cat "$scratch/log")"

# The man page must have the options of --help, each in a paragraph of its own.
sed -n 's/^  \([-M][^ ]*\).*/\1/p' "$scratch/help" >"$scratch/options"
sed -n '/^\.SH OPTIONS/,/^\.SH SIGNALS/{s/\\//g; s/^\.B \([^ ]*\).*/\1/p}' "$page" | diff "$scratch/options" - ||
    fail "the man page and --help differ"
! grep '@[a-z]*@' "$page" || fail "the man page lacks something"
if command -v man >/dev/null; then
    man --warnings -l "$page" 2>&1 >/dev/null | tee "$scratch/log"
    [ ! -s "$scratch/log" ] || exit 1
fi
if command -v mandoc >/dev/null; then
    mandoc -T lint -W warning "$page" || exit 1
fi

for line in "ExecStart=$matmuld" "Documentation=man:matmuld(1) file://$doc/docs/operations.md"; do
    grep -qx "$line" "$unit" || fail "the unit has no line $line"
done
stop_s=$(sed -n 's/^TimeoutStopSec=//p' "$unit")
needed_s=$(awk '/^(lame-duck|drain-timeout)-ms / { ms += $3 } END { print ms / 1000 }' "$scratch/config")
[ "$stop_s" -ge $((needed_s + 5)) ] || fail "TimeoutStopSec is $stop_s s, but a stop may take $needed_s s and a little more"

command -v systemd-analyze >/dev/null || {
    echo "systemd-analyze is not installed"
    exit 77
}
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
