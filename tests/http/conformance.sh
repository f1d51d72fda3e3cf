#!/bin/sh
# Requests as raw bytes, one a file of conformance/, each with the section of the RFC that it comes from and
# what is to come back: conformance/README.md has the form. That nothing smuggled was answered shows in the
# count of replies.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

folder=$1
library=$(pkg-config --modversion libmicrohttpd)

# bytes_of CASE: the request. A line `@N TEXT` stands for N times the text; line ends count for nothing.
bytes_of() {
    printf '%b' "$(sed 1,2d "$1" | awk '
        /^@[0-9]+ / { count = substr($1, 2); sub(/^@[0-9]+ /, ""); while (count-- > 0) printf "%s", $0; next }
        { printf "%s", $0 }')"
}

# expected_of CASE [VERSION]: what is to come back with this version of libmicrohttpd.
expected_of() {
    line=$(sed -n 2p "$1")
    case ${2:-$library} in
    0.*) echo "${line%%; from 1.0: *}" ;;
    *) echo "${line##*; from 1.0: }" ;;
    esac
}

# is_refusal: one reply, in the contract's form, and the last on its connection.
is_refusal() {
    last_reply
    [ "$(statuses)" = 400 ] && [ "$(code_of "$scratch/got")" = bad_request ] && [ "$(header Connection "$scratch/head")" = close ]
}

# is_library STATUS: that status, or nothing at all. 0.9.75 writes the head of some of its own pages twice; from 1.0 on
# the versions differ in the status.
is_library() {
    case $library:$(statuses) in
    *: | "$library:$1" | "$library:$1 $1" | [1-9].*:[45]??) ;;
    *) return 1 ;;
    esac
}

# is_one_of OUTCOME: README.md has the words.
is_one_of() {
    case $1 in
    *\ or\ *) is_one_of "${1%% or *}" || is_one_of "${1#* or }" ;;
    refused) is_refusal || { [ "${library#0.}" = "$library" ] && is_library 400; } ;;
    library\ *) is_library "${1#library }" ;;
    *) [ "$(statuses)" = "$1" ] ;;
    esac
}

# A row of SECURITY.md's table: what is sent, the name of its case, the outcome by 0.9, that from 1.0 on.
# shellcheck disable=SC2016
sed -n 's/^|.*| `\([a-z_]*\)` | \(.*\) |$/\1 \2/p' "$folder/../../../SECURITY.md" >"$scratch/rows"
while read -r name outcomes; do
    file=$folder/$name.http
    same "SECURITY.md: $name" "$(expected_of "$file" 0.9) | $(expected_of "$file" 1.0)" "$outcomes"
done <"$scratch/rows"
[ -s "$scratch/rows" ] || fail "SECURITY.md has no table of cases"

start --allowed-hosts a
for file in "$folder"/*.http; do
    name=$(basename "$file" .http)
    expected=$(expected_of "$file")
    like "$name: its first line" 'RFC [0-9]*, *' "$(sed -n 1p "$file")"
    bytes_of "$file" >"$scratch/request"
    # The end may come while talk still sends, if a head is too large.
    talk request 65536 || grep -q -e 'reset by peer' -e 'Broken pipe' "$scratch/complaint" || fail "$name: $(cat "$scratch/complaint")"
    checks=$((checks + 1))
    is_one_of "$expected" || fail "$name: expected $expected, got '$(statuses)': $(cat "$scratch/replies")"
    same "$name: the next request" 200 "$(status_of "$url/healthz")"
done
stop
finish
