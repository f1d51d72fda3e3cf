#!/bin/sh
# Requests as raw bytes, one a file of conformance/, each with the section of the RFC that it comes from and
# what is to come back: conformance/README.md has the form. That nothing smuggled was answered shows in the
# count of replies.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

: "${TALK:?the path of the program talk}"
folder=$1
library=$(pkg-config --modversion libmicrohttpd)

# bytes_of CASE: the request. A line `@N TEXT` stands for N times the text; line ends count for nothing.
bytes_of() {
    printf '%b' "$(sed 1,2d "$1" | awk '
        /^@[0-9]+ / { count = substr($1, 2); sub(/^@[0-9]+ /, ""); while (count-- > 0) printf "%s", $0; next }
        { printf "%s", $0 }')"
}

# expected_of CASE: what is to come back with this version of libmicrohttpd.
expected_of() {
    line=$(sed -n 2p "$1")
    case $library in
    0.*) echo "${line%%; from 1.0: *}" ;;
    *) echo "${line##*; from 1.0: }" ;;
    esac
}

# talk CASE: its replies to $scratch/replies; fails where the server does not close. That may come while talk
# still sends, where a head is too large for it.
talk() {
    address=${url#http://}
    bytes_of "$1" | "$TALK" "${address%:*}" "${address##*:}" 65536 >"$scratch/raw" 2>"$scratch/complaint" ||
        grep -q -e 'reset by peer' -e 'Broken pipe' "$scratch/complaint" || fail "$name: $(cat "$scratch/complaint")"
    tr -d '\r' <"$scratch/raw" >"$scratch/replies"
}

statuses() {
    sed -n 's/.*HTTP\/1\.1 \([0-9]*\) .*/\1/p' "$scratch/replies" | tr '\n' ' ' | sed 's/ $//'
}

# check_refusal: one reply, in the contract's form, and the last on its connection.
check_refusal() {
    same "$name: statuses" 400 "$(statuses)"
    sed '1,/^$/d' "$scratch/replies" >"$scratch/problem"
    same "$name: code" bad_request "$(code_of "$scratch/problem")"
    same "$name: Connection" close "$(header Connection "$scratch/replies")"
}

# check_library STATUS: nothing but that status, or nothing at all. 0.9.75 writes the head of some of its own
# pages twice.
check_library() {
    got=$(statuses)
    case $got in
    "" | "$1" | "$1 $1") same "$name" "$got" "$got" ;;
    *) fail "$name: expected $1 or nothing, got '$got'" ;;
    esac
}

start
for file in "$folder"/*.http; do
    name=$(basename "$file" .http)
    expected=$(expected_of "$file")
    like "$name: its first line" 'RFC [0-9]*, *' "$(sed -n 1p "$file")"
    talk "$file"
    case $expected in
    refused) check_refusal ;;
    library\ *) check_library "${expected#library }" ;;
    *) same "$name: statuses" "$expected" "$(statuses)" ;;
    esac
    same "$name: the next request" 200 "$(status_of "$url/healthz")"
done
stop
finish
