#!/bin/sh
# Every shell script of the project satisfies shellcheck. Run in the top folder.
set -eu

if ! command -v shellcheck >/dev/null; then
    echo "shellcheck is not installed"
    exit 77
fi
find . \( -name '.?*' ! -name .ci -o -path ./build \) -prune -o \
    -type f \( -path ./dev -o -path './.ci/*' -o -name '*.sh' \) -exec shellcheck {} +
