#!/bin/sh
# The parameter vendor, with a made-up device whose `auto` chooses the row `vendors` where that is allowed: in
# every form of request, and for `auto` alone. The CPU's `auto` does not ask for it.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

MATMULD=${FAULTY:?the path of the faulty matmuld}

# ran VARIANT TARGET ARG…: the product is answered, by that variant.
ran() {
    variant=$1
    shift
    ask "$@"
    expect "$*" 200 Matmul-Variant: "$variant"
}

product='"a":[[2]],"b":[[3]]'
start
printf '2 3 ' | "$FLOAT32" encode >"$scratch/raw"
raw="-H Content-Type:application/octet-stream --data-binary @$scratch/raw"
curl -s -o "$scratch/six.npy" -H 'Accept: application/x-npy' -d "{$product}" "$url/v1/matmul"
form="-F a=@$scratch/six.npy -F b=@$scratch/six.npy"

# shellcheck disable=SC2086
while IFS='|' read -r variant query arguments; do
    ran "$variant" "/v1/matmul$query" $arguments
done <<END
naive||-d {$product}
naive||-d {$product,"vendor":"never"}
vendors||-d {$product,"vendor":"allow"}
naive|?vendor=never|-d {$product}
vendors|?vendor=allow|-d {$product}
vendors|?m=1&k=1&n=1&vendor=allow|$raw
naive|?m=1&k=1&n=1|$raw
vendors||$form -F vendor=allow
naive||$form -F vendor=never
vendors||-d {$product,"variant":"vendors"}
naive|?vendor=allow|-d {$product,"variant":"naive"}
END

# On the CPU `auto` is the fastest whoever made it: with or without permission the same.
prepare_queued
ask '/v1/matmul?backend=cpu' -d "@$scratch/queued"
natural=$(header Matmul-Variant "$scratch/head")
for vendor in allow never; do
    ran "$natural" "/v1/matmul?backend=cpu&vendor=$vendor" -d "@$scratch/queued"
done
stop
finish
