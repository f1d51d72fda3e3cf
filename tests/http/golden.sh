#!/bin/sh
# Runs the cases of a golden folder (README.md there says how they are written) against one server, and
# after each a small product on the same connection, which stays open unless the reply says otherwise.
# Usage: golden.sh FOLDER [CASE…]
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

folder=$1
shift

# The lines before the first empty one, and those after it.
head_of() {
    sed '/^$/,$d' "$1"
}

body_of() {
    sed '1,/^$/d' "$1"
}

# write_body REQUEST FILE: the body's bytes, as its first line says.
write_body() {
    body_of "$1" >"$scratch/text"
    IFS= read -r first <"$scratch/text" || :
    case $first in
    %f32) sed 1d "$scratch/text" | "$FLOAT32" encode >"$2" ;;
    %hex) sed 1d "$scratch/text" | write_hex >"$2" ;;
    %repeat) sed 1d "$scratch/text" | write_repeated >"$2" ;;
    %empty) : >"$2" ;;
    %*) fail "$name: the body begins with '$first', which means nothing" ;;
    # printf drops the final newline, and only that.
    *) awk 'NR > 1 { printf "\n" } { printf "%s", $0 }' "$scratch/text" >"$2" ;;
    esac
}

write_hex() {
    tr -s " " "\n" | while IFS= read -r byte && [ -n "$byte" ]; do
        # shellcheck disable=SC2059
        printf "\\$(printf %03o "0x$byte")"
    done
}

write_repeated() {
    while IFS= read -r line; do
        awk -v count="${line%% *}" -v text="${line#* }" 'BEGIN { while (count-- > 0) printf "%s", text }' </dev/null
    done
}

# One option of curl a line. The headers that curl adds by itself go, unless the case has them.
write_curl_config() {
    {
        head_of "$1" | awk -v url="$url" -v scratch="$scratch" -f "$here/curl_config.awk"
        if grep -q "^\$" "$1"; then
            write_body "$1" "$scratch/body"
            printf "data-binary = \"@%s\"\n" "$scratch/body"
        fi
    } >"$scratch/config"
}

# The case, then a small product; where the case left its connection open, over the same.
exchange() {
    : >"$scratch/got"
    : >"$scratch/head"
    : >"$scratch/next"
    connects=$(curl -s --config "$scratch/config" --next -s --max-time 60 -o "$scratch/next" -w '%{num_connects}' \
        -H 'Content-Type: application/json' -d '{"a":[[2]],"b":[[3]]}' "$url/v1/matmul") || :
    # What curl writes there for HEAD is the head.
    [ "$method" != HEAD ] || : >"$scratch/got"
    # Interim replies (100 Continue) come first; the last head counts.
    tr -d '\r' <"$scratch/head" | awk '/^HTTP\// { head = "" } { head = head $0 "\n" } END { printf "%s", head }' \
        >"$scratch/last"
    mv "$scratch/last" "$scratch/head"
    read -r _ got_status _ <"$scratch/head" || got_status=none
}

check_head() {
    like "$name: status" "$(sed -n 1p "$1")" "$got_status"
    head_of "$1" | sed 1d >"$scratch/headers"
    while IFS= read -r line; do
        case $line in
        !*) same "$name: header ${line#!}" "" "$(header "${line#!}" "$scratch/head")" ;;
        *) like "$name: header ${line%%:*}" "${line#*: }" "$(header "${line%%:*}" "$scratch/head")" ;;
        esac
    done <"$scratch/headers"
    like "$name: X-Request-Id" '[A-Za-z0-9._-]*' "$(header X-Request-Id "$scratch/head")"
}

# Sets kind, by which reply.jq judges the body. (The headers of each kind are in the OpenAPI document.)
set_kind() {
    case "$got_status $target" in
    [45]*) kind=problem ;;
    "200 /v1/matmul"*) kind=product ;;
    "200 /v1/transpose"*) kind=transposition ;;
    *) kind=other ;;
    esac
}

check_json() {
    same "$name: body" "" "$(jq -n -r -f "$here/reply.jq" --arg kind $kind --arg status "$got_status" \
        --rawfile head "$scratch/head" --slurpfile expected "$1" --slurpfile got "$scratch/got" 2>&1)"
}

check_body() {
    body_of "$1" >"$scratch/expected"
    first=
    IFS= read -r first <"$scratch/expected" || :
    case $first in
    %f32)
        same "$name: numbers" "$(sed 1d "$scratch/expected" | "$FLOAT32" encode | "$FLOAT32" decode | tr '\n' ' ')" \
            "$(head -c 1000 "$scratch/got" | "$FLOAT32" decode | tr '\n' ' ')"
        ;;
    %hex)
        same "$name: bytes" "$(sed 1d "$scratch/expected" | tr -s '\n' ' ')" \
            "$(od -An -v -tx1 "$scratch/got" | tr -s ' \n' ' ' | sed 's/^ //')"
        ;;
    %empty) same "$name: bytes in the body" 0 "$(wc -c <"$scratch/got" | tr -d ' ')" ;;
    *)
        case $type:$method in
        *:HEAD) ;;
        *json:*) check_json "$scratch/expected" ;;
        *) [ -z "$first" ] || fail "$name: expected JSON, got '$type'" ;;
        esac
        ;;
    esac
}

# No error ends the process, and none spoils the connection that it leaves open.
check_next() {
    like "$name: the next product" '*"c":\[\[6\]\]*' "$(tr -d ' ' <"$scratch/next")"
    case $(header Connection "$scratch/head") in
    [Cc]lose) same "$name: connections made by the next request" 1 "$connects" ;;
    *) same "$name: connections made by the next request" 0 "$connects" ;;
    esac
}

run_case() {
    request=$folder/$1.request
    reply=$folder/$1.reply
    name=$(basename "$folder")/$1
    cases=$((cases + 1))
    if [ ! -f "$request" ] || [ ! -f "$reply" ]; then
        fail "$name: a case is two files, $1.request and $1.reply"
        return
    fi
    before=$failures
    read -r method target _ <"$request"
    write_curl_config "$request"
    exchange
    type=$(header Content-Type "$scratch/head")
    check_head "$reply"
    set_kind
    check_body "$reply"
    check_next
    if [ "$failures" -gt "$before" ]; then
        echo "--- $name: the reply"
        cat "$scratch/head"
        [ "$type" = application/octet-stream ] || head -c 2000 "$scratch/got"
        printf '\n---\n'
    fi
    mv "$scratch/head" "$scratch/exchanges/$1.head"
    mv "$scratch/got" "$scratch/exchanges/$1.body"
}

# The names of the cases, also of those of which a file is missing.
all_cases() {
    find "$folder" -name '*.request' -o -name '*.reply' | sed 's|.*/||; s|\.[a-z]*$||' | sort -u
}

cases=0
options=
[ ! -f "$folder/options" ] || options=$(cat "$folder/options")
# shellcheck disable=SC2086
start $options
# The names are words to be split.
# shellcheck disable=SC2046
[ $# -gt 0 ] || set -- $(all_cases)
for one in "$@"; do
    run_case "$one"
done
stop
conform "$scratch/openapi.json" "$folder" "$scratch/exchanges"
echo "$cases cases"
[ "$cases" -gt 0 ] || fail "$folder has no case"
finish
