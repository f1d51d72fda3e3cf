#!/bin/sh
# Memory that runs out at each place in turn of a new connection by TLS, its handshake and a product: the product is
# right, or told to fail, or the connection ends in time; and the next connection has its product. Nothing is held of
# what failed, but for 2 KiB that GnuTLS 3.7.9 itself loses at one place. What its own libraries for numbers and ASN.1 ask
# for does not fail (failing.c). Without openssl, or where the build has no TLS, there is nothing.
#
#   malloc_tls.sh MOST    as malloc.sh has it
# shellcheck source=tests/http/server.sh
. "$(dirname "$0")/../http/server.sh"

"$MATMULD" --tls-cert no-such-file --tls-key no-such-file 2>"$scratch/complaint" && fail "it serves without a certificate"
! grep 'without TLS' "$scratch/complaint" || exit 77
# shellcheck source=tests/faults/under.sh
. "$(dirname "$0")/under.sh"

most=${MALLOC_MOST:-$1}
make_certificate own -newkey ec -pkeyopt ec_paramgen_curve:P-256
export CURL_CA_BUNDLE="$scratch/own.pem"

# connect: a product by a connection of its own; sets status, 000 where there was no reply, and code, curl's exit status.
connect() {
    code=0
    status=$(curl -s --max-time 60 -o "$scratch/got" -w '%{http_code}' -H 'Content-Type: application/json' \
        -d '{"a":[[2]],"b":[[3]],"backend":"cpu"}' "$url/v1/matmul") || code=$?
}

# outcome: what became of it: right, told, ended before the reply's end, or wrong. The code 28 is curl's of a time
# that is over.
outcome() {
    case $status:$code in
    200:0) [ "$(jq -c .c "$scratch/got")" = '[[6]]' ] && echo right || echo wrong ;;
    500:0 | 503:0) jq -e '.code and .detail' "$scratch/got" >"$scratch/told" && echo told || echo wrong ;;
    *:0 | *:28) echo wrong ;;
    *) echo ended ;;
    esac
}

next_works() {
    connect
    checks=$((checks + 1))
    [ "$(outcome)" = right ] || fail "$1: the next connection: status $status, curl's exit status $code"
}

# What gnutls_handshake takes by that function, and loses where one certain allocation fails. It takes the slow
# unwinding to see the name.
echo leak:gnutls_buffer_append_data >"$scratch/lost_by_gnutls"
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:fast_unwind_on_malloc=0"
export LSAN_OPTIONS="${LSAN_OPTIONS:-}:suppressions=$scratch/lost_by_gnutls:print_suppressions=0"

start --backend cpu --threads 2 --self-test-ms 0 --tls-cert "$scratch/own.pem" --tls-key "$scratch/own.key"
next_works "the start"
next_works "the start"
before=$(descriptors)
"$ROUTES" "$control" arm 999999 999999
connect
seen=$("$ROUTES" "$control" disarm)
seen=${seen#* }
stride=1
[ "$most" -eq 0 ] || stride=$(((seen + most - 1) / most))
echo "$seen allocations, of which one in $stride is tried"
checks=$((checks + 1))
[ "$seen" -ge 100 ] || fail "the library is not under the server"
: >"$scratch/outcomes"
for last in one all; do
    first=1
    while [ "$first" -le "$seen" ] && ! has_ended; do
        "$ROUTES" "$control" arm "$first" "$([ "$last" = one ] && echo "$first" || echo 20000)" # 100 times what there are: without memory MHD's poll tries again at once
        connect
        failed=$("$ROUTES" "$control" disarm)
        [ "${failed%% *}" -gt 0 ] || break
        what=$(outcome)
        echo "$last: $what" >>"$scratch/outcomes"
        checks=$((checks + 1))
        [ "$what" != wrong ] || fail "$last, $first: status $status, curl's exit status $code: $(cat "$scratch/got")"
        next_works "$last, $first"
        first=$((first + stride))
    done
done
sort "$scratch/outcomes" | uniq -c
if has_ended; then
    tail -n 40 "$scratch/log"
    fail "the server has ended"
    exit 1
fi
same_descriptors "$before"
await 30 has_free_budget || fail "the budget is in use"
stop
finish
