#!/bin/sh
# Makes each allocation fail once while the service starts or answers requests, also with TLS. malloc.py
# describes the expected replies. At the end no memory, job or descriptor may be leaked, except 2 KiB that
# GnuTLS 3.7.9 leaks.
#
#   malloc.sh start MOST
#   malloc.sh GROUP MOST [OPTION…]    OPTIONs are for the server
#
# Tests at most MOST allocations of each request, evenly spread. The variable MALLOC_MOST replaces MOST, and 0
# means all. The group tls is skipped (status 77) without openssl or TLS support.
# shellcheck source=tests/http/server.sh
. "$(dirname "$0")/../http/server.sh"
# shellcheck source=tests/faults/under.sh
. "$(dirname "$0")/under.sh"

group=$1
most=${MALLOC_MOST:-$2}
certificate=
shift 2
checks=$((checks + 1))

case $group in
start)
    MATMULD_API_KEY=0123456789abcdef fault start "$most" "$scratch/log" "$MATMULD" --port 0 --backend cpu --threads 2 \
        --log-format text || fail "a start"
    finish
    exit
    ;;
keys) export MATMULD_API_KEY=0123456789abcdef ;;
tls)
    "$MATMULD" --tls-cert no-such-file --tls-key no-such-file 2>"$scratch/complaint" && fail "it serves without a certificate"
    ! grep 'without TLS' "$scratch/complaint" || exit 77
    make_certificate own -newkey ec -pkeyopt ec_paramgen_curve:P-256
    certificate=$scratch/own.pem
    export CURL_CA_BUNDLE="$certificate"
    set -- --tls-cert "$certificate" --tls-key "$scratch/own.key"
    # Ignores a leak in gnutls_handshake. Slow unwinding is needed to see the function's name.
    echo leak:gnutls_buffer_append_data >"$scratch/lost_by_gnutls"
    export ASAN_OPTIONS="${ASAN_OPTIONS:-}:fast_unwind_on_malloc=0"
    export LSAN_OPTIONS="${LSAN_OPTIONS:-}:suppressions=$scratch/lost_by_gnutls:print_suppressions=0"
    ;;
esac
start --open-metrics --backend cpu --threads 2 --self-test-ms 0 "$@"
before=$(descriptors)
fault requests "${url##*:}" "$group" "$most" ${certificate:+"$certificate"} || fail "the group $group"
if has_ended; then
    tail -n 40 "$scratch/log"
    fail "the server has ended"
    exit 1
fi
same_descriptors "$before"
await 30 has_free_budget || fail "the budget is in use"
await 30 has_metric queue_jobs 0 || fail "jobs wait"
stop
finish
