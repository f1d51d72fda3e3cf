#!/bin/sh
# Sends the raw requests in conformance/ and checks the replies. conformance/README.md describes the files.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

folder=$1
library=$(pkg-config --modversion libmicrohttpd)

# bytes_of CASE: prints the request. A line `@N TEXT` stands for N copies of the text. Line ends are ignored.
bytes_of() {
    printf '%b' "$(sed 1,2d "$1" | awk '
        /^@[0-9]+ / { count = substr($1, 2); sub(/^@[0-9]+ /, ""); while (count-- > 0) printf "%s", $0; next }
        { printf "%s", $0 }')"
}

# expected_of CASE [VERSION]: prints the outcome that the case lists for this version of libmicrohttpd.
expected_of() {
    line=$(sed -n 2p "$1")
    case ${2:-$library} in
    0.*) echo "${line%%; from 1.0: *}" ;;
    *) echo "${line##*; from 1.0: }" ;;
    esac
}

# is_refusal: succeeds if the only reply is a problem document with status 400 and Connection: close.
is_refusal() {
    last_reply
    [ "$(statuses)" = 400 ] && [ "$(code_of "$scratch/got")" = bad_request ] && [ "$(header Connection "$scratch/head")" = close ]
}

# is_library STATUS: succeeds if there is no reply, or libmicrohttpd's own error page with this status.
is_library() {
    case $library:$(statuses) in
    *: | "$library:$1" | "$library:$1 $1" | [1-9].*:[45]??) ;;
    *) return 1 ;;
    esac
}

# is_one_of OUTCOME: succeeds if the replies match. conformance/README.md lists the outcomes.
is_one_of() {
    case $1 in
    *\ or\ *) is_one_of "${1%% or *}" || is_one_of "${1#* or }" ;;
    refused) is_refusal || { [ "${library#0.}" = "$library" ] && is_library 400; } ;;
    library\ *) is_library "${1#library }" ;;
    *) [ "$(statuses)" = "$1" ] ;;
    esac
}

# Each row of the table in SECURITY.md: request, case, outcomes with libmicrohttpd 0.9 and 1.0
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
    # The server may close the connection while talk.py still sends a head that is too large.
    talk request 65536 || grep -q -e 'reset by peer' -e 'Broken pipe' "$scratch/complaint" || fail "$name: $(cat "$scratch/complaint")"
    checks=$((checks + 1))
    is_one_of "$expected" || fail "$name: expected $expected, got '$(statuses)': $(cat "$scratch/replies")"
    same "$name: the next request" 200 "$(status_of "$url/healthz")"
done
stop
finish
