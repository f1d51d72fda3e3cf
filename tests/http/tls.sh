#!/bin/sh
# Tests TLS: requests and replies, protocol versions and key exchanges, clients that are slow or do not speak
# TLS, a new certificate on SIGHUP, and invalid certificates. Skipped without openssl or TLS support.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

"$MATMULD" --tls-cert no-such-file --tls-key no-such-file 2>"$scratch/complaint" && fail "it serves without a certificate"
if grep 'without TLS' "$scratch/complaint"; then
    [ "$failures" -eq 0 ] || exit 1
    exit 77
fi

umask 077
make_certificate first -newkey ec -pkeyopt ec_paramgen_curve:P-256
make_certificate second -newkey rsa:2048
cp "$scratch/first.pem" "$scratch/cert"
cp "$scratch/first.key" "$scratch/key"

cat "$scratch/first.pem" "$scratch/second.pem" >"$scratch/trusted"
export CURL_CA_BUNDLE="$scratch/trusted"

serial_of() {
    openssl x509 -noout -serial -in "$1"
}

# make_dated NAME FROM UNTIL: writes a certificate of first.key that is valid only in this period.
make_dated() {
    (
        cd "$scratch"
        : >index
        printf '%s\n' '[ca]' default_ca=tls '[tls]' database=index rand_serial=yes unique_subject=no new_certs_dir=. \
            default_md=sha256 policy=names '[names]' commonName=supplied >ca.cnf
        openssl ca -config ca.cnf -batch -notext -ss_cert first.pem -keyfile first.key -cert first.pem -startdate "$2" \
            -enddate "$3" -out "$1.pem" 2>openssl.err
    ) || fail "openssl makes no certificate from $2 to $3: $(cat "$scratch/openssl.err")"
}

# end_of FILE: prints when the certificate expires, in seconds since the epoch.
end_of() {
    date -d "$(openssl x509 -noout -enddate -in "$1" | sed 's/notAfter=//')" +%s
}

# talk_tls SECONDS ARG…: sends stdin over TLS. Prints the reply until the server closes or SECONDS pass.
talk_tls() {
    seconds=$1
    shift
    timeout "$seconds" openssl s_client -quiet -connect "${url#https://}" "$@" 2>/dev/null || :
}

# served: prints the serial number of the certificate that the server uses.
served() {
    openssl s_client -connect "${url#https://}" </dev/null 2>/dev/null | openssl x509 -noout -serial 2>/dev/null || echo none
}

# shakes WHAT EXPECTED ARG…: tries a handshake, which must succeed (yes) or fail (no).
shakes() {
    what=$1 expected=$2
    shift 2
    got=no
    ! openssl s_client -connect "${url#https://}" "$@" </dev/null >"$scratch/handshake" 2>&1 ||
        ! grep -q 'BEGIN CERTIFICATE' "$scratch/handshake" || got=yes
    same "$what is taken" "$expected" "$got"
}

product='{"a":[[1,2],[3,4]],"b":[[5,6],[7,8]]}'

# --- Invalid certificates and keys

make_certificate other -newkey ec -pkeyopt ec_paramgen_curve:P-256
cat "$scratch/first.pem" "$scratch/other.pem" >"$scratch/pile"
head -c 70000 /dev/zero | tr '\0' '\n' | cat - "$scratch/first.pem" >"$scratch/long"
openssl ec -in "$scratch/first.key" -aes128 -passout pass:secret -out "$scratch/locked" 2>/dev/null
mkdir "$scratch/folder"
make_dated expired 20000101000000Z 20000102000000Z
make_dated early 20400101000000Z 20410101000000Z
while read -r cert key words; do
    runs 2 "$words" --backend cpu --port 0 --tls-cert "$scratch/$cert" --tls-key "$scratch/$key"
done <<'END'
none key the certificate */none: No such file
cert none the private key */none: No such file
cert other.key does not go with the certificate
key key no chain of 1 to 8 PEM certificates
cert cert no PEM private key
folder key it is no regular file
pile key not sorted
long key it may have 65536 bytes, and has more
cert locked no PEM private key without a password
END
for dated in 'expired it has expired: it was valid until 2000-01-02T00:00:00Z' \
    'early it is not valid yet: it will be valid from 2040-01-01T00:00:00Z'; do
    runs 0 "${dated#* }" --print-config --tls-cert "$scratch/${dated%% *}.pem" --tls-key "$scratch/key"
done

chmod o+r "$scratch/key"
start_held --backend cpu --log-format text --tls-cert "$scratch/cert" --tls-key "$scratch/key" --receive-timeout-ms 4000
like "the address" 'https://127.0.0.1:*' "$url"
address=${url#https://}
port=${address##*:}
has_logged "the private key .* can be read by every user" || fail "no warning about a key that every user can read"
has_logged 'the certificate in force is valid until 20' || fail "the log does not say until when the certificate is valid"

multiply="import sys, matmuld; print(matmuld.Client(sys.argv[1]).matmul([[1.0]], [[3.0]]))"
if find_numpy; then
    export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$here/../../clients/python"
    same "the Python client by TLS" '[[3.]]' "$(SSL_CERT_FILE=$scratch/trusted "$python" -c "$multiply" "$url")"
    like "the Python client without that certificate" '*certificate is not trusted*' \
        "$("$python" -c "$multiply" "$url" 2>&1 | tail -n 1)"
fi
chmod o-r "$scratch/key"

has_connections() {
    [ "$(metric 'connections{state="idle"}')" -ge "$1" ]
}

# Starts slow clients, which stay connected until descriptor 5 is closed.
from=$(now_ms)
(
    "$TALK" 127.0.0.1 "$port" 1 0 </dev/null >"$scratch/silent" 2>&1
    echo $(($(now_ms) - from)) >"$scratch/silent.ms"
) &
printf '\026\003\001\002\000\001' >"$scratch/hello"
(
    "$TALK" 127.0.0.1 "$port" 1000 0 <"$scratch/hello" >"$scratch/halfway" 2>&1
    echo $(($(now_ms) - from)) >"$scratch/halfway.ms"
) &
# The server uses no CPU time while it waits for a handshake to continue.
await 30 has_connections 2 || fail "the slow connections were not taken"
spent=$(cpu_ms)
sleep 0.6
at_most "half a handshake: milliseconds of a processor's time in 600" 200 $(($(cpu_ms) - spent))
for part in head body; do
    mkfifo "$scratch/slow_$part"
    talk_tls 60 <"$scratch/slow_$part" >"$scratch/reply_$part" &
done
exec 5>"$scratch/slow_head" 6>"$scratch/slow_body"
printf 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n' >&5
printf 'POST /v1/matmul HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{' >&6

# This connection stays open while the certificate is replaced.
mkfifo "$scratch/lasting"
timeout 600 openssl s_client -quiet -connect "$address" <"$scratch/lasting" >"$scratch/lasted" 2>/dev/null &
lasting=$!
exec 4>"$scratch/lasting"
printf 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n' >&4

ask /v1/matmul -d "$product"
expect "JSON" 200 .c '[[19,22],[43,50]]'
head -c 8388608 /dev/urandom >"$scratch/matrix"
ask "/v1/transpose?m=1024&n=2048" -H 'Content-Type: application/octet-stream' -H 'Expect:' --data-binary "@$scratch/matrix"
expect "8 MiB sent and received" 200
mv "$scratch/got" "$scratch/transposed"
ask "/v1/transpose?m=2048&n=1024" -H 'Content-Type: application/octet-stream' -H 'Transfer-Encoding: chunked' -H 'Expect:' \
    --data-binary "@$scratch/transposed"
expect "in chunks" 200
checks=$((checks + 1))
cmp "$scratch/got" "$scratch/matrix" || fail "a matrix transposed twice has changed"
same "two requests: connections" '200 1 200 0' "$(curl -s -o "$scratch/got" -w '%{http_code} %{num_connects} ' "$url/healthz" \
    --next -s -o "$scratch/got" -w '%{http_code} %{num_connects}' -d "$product" "$url/v1/matmul")"
# The headers have more bytes than a TLS session may read at once.
same "200 requests of a kilobyte: replies, connections" '200 1' \
    "$(curl -s -H "X-Long: $(printf '%01000d' 0)" -o "$scratch/got" -w '%{http_code} %{num_connects}\n' "$url/healthz?[1-200]" |
        awk '$1 == 200 { replies++ } { connections += $2 } END { print replies, connections }')"

# During a body the server sends an error without libmicrohttpd.
ask "/v1/matmul?m=1" -H 'Content-Type: application/octet-stream' -H 'Expect:' --data-binary "@$scratch/matrix"
expect "a large body that is refused" 400 Connection: close Content-Length: "$(wc -c <"$scratch/got" | tr -d ' ')"

# Each row: name|whether the handshake succeeds|options of openssl s_client
while IFS='|' read -r what taken arguments; do
    # shellcheck disable=SC2086
    shakes "$what" "$taken" $arguments
done <<'END'
TLS 1.3|yes|-tls1_3
TLS 1.2|yes|-tls1_2
TLS 1.1|no|-tls1_1 -cipher DEFAULT@SECLEVEL=0
TLS 1.0|no|-tls1 -cipher DEFAULT@SECLEVEL=0
a cipher that authenticates afterwards|no|-tls1_2 -cipher ECDHE-ECDSA-AES128-SHA256
END

# A client that sends plain HTTP gets an error that says so.
same "plain HTTP: reply" 'The request is plain HTTP, but this port speaks TLS: send to https. 400' \
    "$(curl -s --max-time 10 -w '%{http_code}' "http://$address/healthz" | tr '\n' ' ')"
same "after plain HTTP: status" 200 "$(status_of "$url/healthz")"

runs 0 '' --healthcheck --port "$port" --tls-cert not-read --tls-key not-read
runs 1 '' --healthcheck --port "$port"

# A certificate without its key is rejected, so the old one stays. Then a valid certificate replaces it.
same "the certificate" "$(serial_of "$scratch/first.pem")" "$(served)"
cp "$scratch/second.pem" "$scratch/cert"
reload 'stay as they were: the private key .* does not go with'
same "after a certificate without its key" "$(serial_of "$scratch/first.pem")" "$(served)"
cp "$scratch/expired.pem" "$scratch/cert"
reload 'stay as they were: the certificate .* has expired'
same "after an expired certificate" "$(serial_of "$scratch/first.pem")" "$(served)"
same "reloads that failed" 2 "$(metric 'reload_failures_total{what="tls"}')"
same "the certificate's end" "$(end_of "$scratch/first.pem")" "$(metric tls_certificate_expiry_timestamp_seconds)"
cp "$scratch/second.pem" "$scratch/cert"
cp "$scratch/second.key" "$scratch/key"
: >"$scratch/log"
reload 'the certificate in force is valid until'
same "after a new certificate with its key" "$(serial_of "$scratch/second.pem")" "$(served)"
shakes "a key from a curve" yes -tls1_2 -cipher ECDHE-RSA-AES128-GCM-SHA256
shakes "a key sent by RSA" no -tls1_2 -cipher AES128-GCM-SHA256
printf 'GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' >&4
exec 4>&-
wait "$lasting" || :
same "an older connection: replies" 2 "$(grep -o 'HTTP/1.1 200' "$scratch/lasted" | wc -l | tr -d ' ')"

# No request is lost in a reload.
change_certificate() {
    name=second
    [ $(($1 % 2)) -eq 0 ] || name=first
    cp "$scratch/$name.pem" "$scratch/cert"
    cp "$scratch/$name.key" "$scratch/key"
}
reload_under_load 'the certificate in force is valid until' change_certificate
same "after the reloads" "$(serial_of "$scratch/second.pem")" "$(served)"

# The server has disconnected the slow clients that were started above.
is_told() {
    [ -s "$scratch/silent.ms" ] && [ -s "$scratch/halfway.ms" ]
}
await 30 is_told || fail "clients that begin no handshake are still connected"
for who in silent halfway; do
    at_most "$who: at least this many milliseconds" "$(cat "$scratch/$who.ms")" 4000
done
for part in head body; do
    await 30 grep -q '"code": *"request_timeout"' "$scratch/reply_$part" || fail "a slow $part gets no reply"
    like "a slow $part" 'HTTP/1.1 408 *' "$(cat "$scratch/reply_$part")"
done
exec 5>&- 6>&-

prepare_held cpu
hold_job draining
kill -TERM "$server"
await 60 has_logged draining || fail "the server does not drain"
release
finish_slow draining "the job under way" 200
ended "a drain"

{
    printf '\026\003\001\076\200\001\017\377\377'
    head -c 15996 /dev/zero
    for _ in 1 2 3 4 5 6 7 8 9; do
        printf '\026\003\001\076\200'
        head -c 16000 /dev/zero
    done
} >"$scratch/hello"

secret=a-key-for-the-test-of-tls
start_with_key $secret --backend cpu --host 0.0.0.0 --tls-cert "$scratch/cert" --tls-key "$scratch/key" --receive-timeout-ms 60000
for row in '401 another-key-for-tls' "200 $secret"; do
    same "with the key ${row#* }" "${row% *}" "$(status_of -H "Authorization: Bearer ${row#* }" -d "$product" "$url/v1/matmul")"
done
same "keys with TLS: warnings" 0 "$(grep -c 'no TLS: API keys' "$scratch/log")"
sed -n '2p' "$scratch/second.key" >"$scratch/line"
checks=$((checks + 1))
! grep -qF -f "$scratch/line" "$scratch/log" || fail "the private key is in the log"
from=$(now_ms)
"$TALK" 127.0.0.1 "${url##*:}" 16005 0 <"$scratch/hello" >"$scratch/hello.reply" 2>&1 || :
at_most "a handshake of 160 kB: milliseconds until it is closed" 20000 $(($(now_ms) - from))
stop

start_with_key $secret --backend cpu --host 0.0.0.0
same "keys without TLS: warnings" 1 "$(grep -c 'no TLS: API keys' "$scratch/log")"
runs 1 'what answers is not TLS' --healthcheck --port "${url##*:}" --tls-cert x --tls-key x
stop
finish
