#!/bin/sh
# Runs the cases of a golden folder (README.md there says how they are written) against one server, and
# after each a small product on the same connection, which stays open unless the reply says otherwise.
# Usage: golden.sh FOLDER [CASE…]
# shellcheck source=tests/http/server.sh
. "$(dirname "$0")/server.sh"

here=$(cd "$(dirname "$0")" && pwd)
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

# One option of curl a line; curl's own headers go, so that the case's are all there are.
write_curl_config() {
    {
        read -r method target version
        printf 'url = "%s"\nrequest-target = "%s"\n' "$url" "$target"
        case $method in
        HEAD) echo head ;;
        *) printf 'request = "%s"\n' "$method" ;;
        esac
        case $version in
        '') echo http1.1 ;;
        HTTP/1.0) echo http1.0 ;;
        *) fail "$name: the first line ends in '$version'" ;;
        esac
        lines=$(cat)
        for default in Accept Content-Type Expect User-Agent; do
            printf '%s\n' "$lines" | grep -qi "^$default:" || printf 'header = "%s:"\n' "$default"
        done
        printf '%s\n' "$lines" | sed -n 's/["\\]/\\&/g; s/..*/header = "&"/p'
        if grep -q '^$' "$1"; then
            write_body "$1" "$scratch/body"
            printf 'data-binary = "@%s"\n' "$scratch/body"
        fi
        printf 'max-time = 60\ndump-header = "%s"\noutput = "%s"\n' "$scratch/head" "$scratch/got"
    } >"$scratch/config" <<END
$(head_of "$1")
END
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
}

check_body() {
    body_of "$1" >"$scratch/expected"
    IFS= read -r first <"$scratch/expected" || first=
    case $first in
    '') ;;
    %f32)
        same "$name: numbers" "$(sed 1d "$scratch/expected" | "$FLOAT32" encode | "$FLOAT32" decode | tr '\n' ' ')" \
            "$("$FLOAT32" decode <"$scratch/got" | tr '\n' ' ')"
        ;;
    %empty) same "$name: bytes in the body" 0 "$(wc -c <"$scratch/got" | tr -d ' ')" ;;
    *)
        same "$name: body" "" "$(jq -r -n --slurpfile expected "$scratch/expected" --slurpfile got "$scratch/got" \
            -f "$here/compare.jq" 2>&1)"
        ;;
    esac
}

# What the contract promises of every reply, whatever the case says.
check_promises() {
    like "$name: X-Request-Id" '[A-Za-z0-9._-]*' "$(header X-Request-Id "$scratch/head")"
    case $got_status in
    [45]*)
        same "$name: Content-Type" application/problem+json "$(header Content-Type "$scratch/head")"
        # A reply to HEAD has no body.
        if [ -s "$scratch/got" ] || [ "$method" != HEAD ]; then
            same "$name: promises" "" "$(jq -r --arg id "$(header X-Request-Id "$scratch/head")" \
                --arg status "$got_status" -f "$here/problem.jq" "$scratch/got" 2>&1)"
        fi
        ;;
    200)
        case $target in
        /v1/matmul*) check_product ;;
        esac
        ;;
    esac
}

check_product() {
    ms='[0-9]*'
    like "$name: Server-Timing" \
        "receive;dur=$ms, decode;dur=$ms, queue;dur=$ms, upload;dur=$ms, kernel;dur=$ms, download;dur=$ms, encode;dur=$ms, total;dur=$ms" \
        "$(header Server-Timing "$scratch/head")"
    like "$name: Matmul-Shape" '[0-9]*, [0-9]*' "$(header Matmul-Shape "$scratch/head")"
    for what in Dtype Variant Backend Device; do
        like "$name: Matmul-$what" '?*' "$(header "Matmul-$what" "$scratch/head")"
    done
    [ "$(header Content-Type "$scratch/head")" = application/json ] || return 0
    same "$name: promises" "" "$(jq -r --arg shape "$(header Matmul-Shape "$scratch/head")" \
        --arg dtype "$(header Matmul-Dtype "$scratch/head")" --arg variant "$(header Matmul-Variant "$scratch/head")" \
        --arg backend "$(header Matmul-Backend "$scratch/head")" --arg device "$(header Matmul-Device "$scratch/head")" \
        --arg timing "$(header Server-Timing "$scratch/head")" -f "$here/product.jq" "$scratch/got" 2>&1)"
}

# No error ends the process, and none spoils the connection that it leaves open.
check_next() {
    same "$name: the next product" '[[6]]' "$(jq -c .c "$scratch/next" 2>&1)"
    case $(header Connection "$scratch/head") in
    [Cc]lose) same "$name: connections made by the next request" 1 "$connects" ;;
    *) same "$name: connections made by the next request" 0 "$connects" ;;
    esac
}

run_case() {
    request=$folder/$1.request
    reply=$folder/$1.reply
    name=$(basename "$folder")/$1
    if [ ! -f "$request" ] || [ ! -f "$reply" ]; then
        fail "$name: a case is two files, $1.request and $1.reply"
        return
    fi
    before=$failures
    write_curl_config "$request"
    read -r method target _ <"$request"
    exchange
    check_head "$reply"
    check_body "$reply"
    check_promises
    check_next
    if [ "$failures" -gt "$before" ]; then
        echo "--- $name: the reply"
        cat "$scratch/head"
        [ "$(header Content-Type "$scratch/head")" = application/octet-stream ] || head -c 2000 "$scratch/got"
        echo
        echo "---"
    fi
    cases=$((cases + 1))
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
echo "$cases cases"
[ "$cases" -gt 0 ] || fail "$folder has no case"
finish
