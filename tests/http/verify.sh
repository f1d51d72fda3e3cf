#!/bin/sh
# Tests the parameter verify: its results in JSON, headers, metrics and the log.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

good=$MATMULD
MATMULD=${FAULTY:?the path of the faulty matmuld}

# told WHAT PATTERN TARGET ARG…: sends a product. Matmul-Verify must match PATTERN, or be absent if it is
# empty.
told() {
    what=$1 pattern=$2
    shift 2
    ask "$@"
    expect "$what" 200 Matmul-Verify: "$pattern"
}

counts() {
    same "passed, failed, unjudged" "$*" "$(for result in passed failed unjudged; do
        metric "verify_total{result=\"$result\"}"
    done | paste -sd ' ' -)"
}

raw='Content-Type: application/octet-stream'
product='"a":[[2,1]],"b":[[3,4],[5,6]]'
passed='residual="0", bound="[0-9]*", passed, rows_unjudged=0, relative_error="0"'
failed='residual="1", bound="[0-9]*", passed=[?]0, rows_unjudged=0, relative_error="0.[0-9]*"'
printf '2 1 3 4 5 6 ' | "$FLOAT32" encode >"$scratch/raw"

start --backend cuda
counts 0 0 0
told "not asked for" '' /v1/matmul -d "{$product}"
told "verify as a JSON member" "$passed" /v1/matmul -d "{$product,\"verify\":true}"
expect "verify as a JSON member" 200 '.verify | [.residual + 0, .passed, .rows_unjudged, .relative_error + 0]' '[0,true,0,0]' \
    .verify.bound "$(header Matmul-Verify "$scratch/head" | sed 's/.*bound="\([^"]*\)".*/\1/' | jq .)"
told "with a raw body" "$passed" '/v1/matmul?m=1&k=2&n=2&verify=true' -H "$raw" --data-binary "@$scratch/raw"
curl -s --max-time 30 -o "$scratch/row.npy" -H 'Accept: application/x-npy' -d '{"a":[[1]],"b":[[2,1]]}' "$url/v1/matmul"
told "in a form" "$passed" /v1/matmul -F "a=@$scratch/row.npy" -F "b=@$scratch/row.npy" -F transpose_b=1 -F verify=1
counts 3 0 0

# A wrong product is returned with the information that its check failed.
for type in application/octet-stream application/x-npy application/json; do
    told "wrong, as $type" "$failed" '/v1/matmul?variant=off_by_one' -H "Accept: $type" -d "{$product,\"verify\":true}"
done
expect wrong 200 .c '[[11,15]]' '.verify | [.residual + 0, .passed, .rows_unjudged]' '[1,false,0]'
told "the next" "$passed" /v1/matmul -d "{$product,\"verify\":true}"
told "wrong, in a row that may be infinite" 'residual="0", bound="0", rows_unjudged=1' '/v1/matmul?variant=off_by_one' \
    -d '{"a":[[2,1]],"b":[[3,4],[5,"NaN"]],"verify":true}'
expect "a product without rows that can be checked" 200 \
    '.verify == {"residual": 0, "bound": 0, "passed": null, "rows_unjudged": 1, "relative_error": null}' true
counts 4 3 1
told "wrong on purpose" "$failed" '/v1/matmul?variant=racy' -d "{$product,\"verify\":true}"
counts 4 3 1 # checks of a variant that is wrong on purpose are not counted
ask /v1/matmul -H 'X-Request-Id: wrong.1' -d "{$product,\"verify\":true,\"variant\":\"off_by_one\"}"
stop
same "the log: lines of failed checks" 4 "$(grep -c '"level":"error".*failed its check' "$scratch/log")"
like "the log: the failed request" '*request wrong.1 failed its check: a residual of 1 in row 0, *a relative error of about 0.* in all; off_by_one on cuda:0, 1 by 2 by 2*' \
    "$(grep 'request wrong.1 failed' "$scratch/log")"
like "the log: the line of the failed request" '*"verify":"failed"*' "$(grep '"request_id":"wrong.1"' "$scratch/log")"
same "the log: requests that passed" 4 "$(grep -c '"verify":"passed"' "$scratch/log")"

start --backend cuda
ask /v1/matmul -d "{$product,\"verify\":true,\"variant\":\"fails\"}"
expect "a launch that fails" 500 Matmul-Verify: ''
counts 0 0 0
stop

MATMULD=$good
start --backend cpu --memory-budget 1MiB
# The check needs 40 bytes for each of the 30,000 rows of B, which count towards the memory budget.
"$FLOAT32" fill 60000 1 >"$scratch/deep"
told "a deep product" '' '/v1/matmul?m=1&k=30000&n=1' -H "$raw" --data-binary "@$scratch/deep"
ask '/v1/matmul?m=1&k=30000&n=1&verify=1' -H "$raw" --data-binary "@$scratch/deep"
expect "a deep product with a check" 413 code too_large
stop
finish
