#!/bin/sh
# The parameter verify over the whole way: taken in every form of request, told in every form of reply, counted
# and logged; with a made-up device one of whose variants is off by one, and with the CPU.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

good=$MATMULD
MATMULD=${FAULTY:?the path of the faulty matmuld}

# post TARGET ARG…: sets status and check, the header that tells of it, and leaves the reply in $scratch/got.
post() {
    target=$1
    shift
    status=$(curl -s --max-time 30 -o "$scratch/got" -D "$scratch/head" -w '%{http_code}' "$@" "$url$target") || :
    check=$(header Matmul-Verify "$scratch/head")
    keep POST "$target" "$scratch/head" "$scratch/got"
}

# told WHAT PATTERN TARGET ARG…: the product is answered, and the header is like that; an empty one is none.
told() {
    what=$1 pattern=$2
    shift 2
    post "$@"
    same "$what: status" 200 "$status"
    like "$what: Matmul-Verify" "$pattern" "$check"
}

# counted RESULT: how many products came to that, as the metrics tell.
counted() {
    curl -s --max-time 30 "$url/metrics" | sed -n "s/^matmuld_verify_total{result=\"$1\"} //p"
}

json='Content-Type: application/json'
raw='Content-Type: application/octet-stream'
product='"a":[[2,1]],"b":[[3,4],[5,6]]'
passed='residual="0", bound="[0-9]*", passed, rows_unjudged=0'
failed='residual="1", bound="[0-9]*", passed=[?]0, rows_unjudged=0'
printf '2 1 3 4 5 6 ' | "$FLOAT32" encode >"$scratch/raw"

start --backend cuda
for result in passed failed unjudged; do
    same "$result at first" 0 "$(counted $result)"
done
told "not asked for" '' /v1/matmul -H "$json" -d "{$product}"
same "not asked for: verify" null "$(jq .verify "$scratch/got")"
told "asked not to" '' /v1/matmul -H "$json" -d "{$product,\"verify\":false}"
told "as a member" "$passed" /v1/matmul -H "$json" -d "{$product,\"verify\":true}"
same "as a member: verify" '[0,true,0]' "$(jq -c '.verify | [.residual, .passed, .rows_unjudged]' "$scratch/got")"
same "the header's bound is the member's" "$(jq .verify.bound "$scratch/got")" \
    "$(printf '%s' "$check" | sed 's/.*bound="\([^"]*\)".*/\1/' | jq .)"
same "the members, in order" 'c shape dtype variant backend device gflops batched verify timing' \
    "$(jq -r 'keys_unsorted | join(" ")' "$scratch/got")"
told "in the query" "$passed" '/v1/matmul?verify=1' -H "$json" -d "{$product}"
told "with a raw body" "$passed" '/v1/matmul?m=1&k=2&n=2&verify=true' -H "$raw" --data-binary "@$scratch/raw"
same "with a raw body: C alone" 8 "$(wc -c <"$scratch/got" | tr -d ' ')"
curl -s --max-time 30 -o "$scratch/row.npy" -H "$json" -H 'Accept: application/x-npy' -d '{"a":[[1]],"b":[[2,1]]}' "$url/v1/matmul"
told "in a form" "$passed" /v1/matmul -F "a=@$scratch/row.npy" -F "b=@$scratch/row.npy" -F transpose_b=1 -F verify=1
told "in a form that it does not stand in" '' /v1/matmul -F "a=@$scratch/row.npy" -F "b=@$scratch/row.npy" -F transpose_b=1
same "passed" 4 "$(counted passed)"

# A wrong product is answered, and told to be wrong.
for type in application/octet-stream application/x-npy application/json; do
    told "wrong, as $type" "$failed" '/v1/matmul?variant=off_by_one' -H "$json" -H "Accept: $type" -d "{$product,\"verify\":true}"
done
same "wrong: the product" '[[11,15]]' "$(jq -c .c "$scratch/got")"
same "wrong: verify" '[1,false,0]' "$(jq -c '.verify | [.residual, .passed, .rows_unjudged]' "$scratch/got")"
told "wrong, and not asked for" '' '/v1/matmul?variant=off_by_one' -H "$json" -d "{$product}"
told "the next" "$passed" /v1/matmul -H "$json" -d "{$product,\"verify\":true}"
told "wrong, and not finite where it could be" 'residual="0", bound="0", rows_unjudged=1' '/v1/matmul?variant=off_by_one' -H "$json" \
    -d '{"a":[[2,1]],"b":[[3,4],[5,"NaN"]],"verify":true}'
same "nothing to judge: verify" true \
    "$(jq '.verify == {"residual": 0, "bound": 0, "passed": null, "rows_unjudged": 1}' "$scratch/got")"
same "passed" 5 "$(counted passed)"
same "failed" 3 "$(counted failed)"
same "unjudged" 1 "$(counted unjudged)"
curl -s --max-time 30 -o "$scratch/got" -H "$json" -H 'X-Request-Id: wrong.1' -d "{$product,\"verify\":true,\"variant\":\"off_by_one\"}" "$url/v1/matmul"
stop
same "the log: lines of failed checks" 4 "$(grep -c '"level":"error".*failed its check' "$scratch/log")"
like "the log: which" '*request wrong.1 failed its check: a residual of 1 in row 0, *off_by_one on cuda:0, 1 by 2 by 2*' \
    "$(grep 'request wrong.1 failed' "$scratch/log")"
like "the log: its request's line" '*"verify":"failed"*' "$(grep '"request_id":"wrong.1"' "$scratch/log")"
same "the log: requests that passed" 5 "$(grep -c '"verify":"passed"' "$scratch/log")"

# What a failed job computed nobody has seen, and nobody has checked.
start --backend cuda
post /v1/matmul -H "$json" -d "{$product,\"verify\":true,\"variant\":\"fails\"}"
same "a launch that fails: status" 500 "$status"
same "a launch that fails: Matmul-Verify" '' "$check"
same "a launch that fails: passed" 0 "$(counted passed)"
stop

# The next server has a document of its own.
conform "$scratch/exchanges"
rm "$scratch/exchanges"/*
kept=0

# By all that the CPU has, at once and in the queue, where rows lie apart too.
MATMULD=$good
start --backend cpu --memory-budget 1MiB
for variant in $(curl -s "$url/v1/variants" | jq -r '.variants[] | select(.op == "matmul" and .available).name'); do
    prepare_queued "\"variant\":\"$variant\",\"verify\":true,"
    told "$variant" 'residual="0", bound="*", passed, rows_unjudged=0' /v1/matmul -H "$json" -d "@$scratch/queued"
    told "$variant, 1x2x2" "$passed" "/v1/matmul?variant=$variant" -H "$json" -d "{$product,\"verify\":true}"
    printf '2 1 0 3 4 0 5 6 0 ' | "$FLOAT32" encode >"$scratch/apart"
    told "$variant, rows apart" "$passed" "/v1/matmul?variant=$variant&m=1&k=2&n=2&lda=3&ldb=3&verify=1" -H "$raw" \
        --data-binary "@$scratch/apart"
done

# What the check takes is within the budget: 40 bytes for each of 30,000 rows of B.
"$FLOAT32" fill 60000 1 >"$scratch/deep"
told "a deep product" '' '/v1/matmul?m=1&k=30000&n=1' -H "$raw" --data-binary "@$scratch/deep"
post '/v1/matmul?m=1&k=30000&n=1&verify=1' -H "$raw" --data-binary "@$scratch/deep"
same "a deep product that is to be checked: status" 413 "$status"
same "a deep product that is to be checked: code" too_large "$(code_of "$scratch/got")"
stop
finish
