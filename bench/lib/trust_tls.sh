# Bench of trust.sh that measures the cost of TLS. Alternates between TLS and plain HTTP. Source this file.
# shellcheck shell=sh disable=SC2154

# by_curl KEY ARG…: keeps the median time of the transfers in ms if all had the status 200.
by_curl() {
    key=$1
    shift
    curl -s --max-time 300 --cacert "$scratch/cert.pem" -o "$scratch/body" -w '%{http_code} %{time_total}\n' "$@" \
        >"$scratch/replies" || :
    sed -n 's/^200 //p' "$scratch/replies" >"$scratch/transfers"
    if grep -qv '^200 ' "$scratch/replies"; then
        keep "$key" ''
    else
        keep "$key" "$(summary "$scratch/transfers" | awk '{ print $1 * 1000 }')"
    fi
}

# by_wrk KEY URL: keeps the products per second if all succeeded.
by_wrk() {
    command -v wrk >/dev/null || return 0
    wrk -t 1 -c 64 -d "$(whole_or_dry 5s 1s)" -s "$load/wrk.lua" "$2" -- 1 json >"$scratch/wrk" || :
    if grep -q 'Non-2xx\|Socket errors' "$scratch/wrk"; then
        keep "$1" ''
    else
        keep "$1" "$(sed -n 's/^Requests\/sec: *//p' "$scratch/wrk")"
    fi
}

bench_tls() {
    (umask 077 && openssl req -x509 -nodes -days 2 -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1 -newkey ec \
        -pkeyopt ec_paramgen_curve:P-256 -keyout "$scratch/key.pem" -out "$scratch/cert.pem" >/dev/null 2>&1) ||
        { row_left_out tls '' 'openssl makes no certificate here' && return 0; }
    serve tls || return 0
    plain=http://127.0.0.1:$port
    serve tls.with --tls-cert "$scratch/cert.pem" --tls-key "$scratch/key.pem" || return 0
    times_new=$(whole_or_dry 100 3)
    head -c 8388608 /dev/zero >"$scratch/matrices"
    set -- -H 'Content-Type: application/octet-stream' -H Expect: --data-binary "@$scratch/matrices"
    for _ in $(seq "$rounds"); do
        for side in "without $plain" "with https://127.0.0.1:$port"; do
            kind=${side%% *} url=${side#* }
            by_curl "tls.$kind.new_ms" -H 'Connection: close' "$url/healthz?[1-$times_new]"
            for _ in 1 2 3 4 5; do
                by_curl "tls.$kind.large_ms" "$@" "$url/v1/matmul?m=1024&k=1024&n=1024&variant=auto"
            done
            by_wrk "tls.$kind.rate" "$url"
        done
        drop_logs
    done
    row_ratio "TLS: a new connection and its GET /healthz ($times_new by curl, one after the other); beside: without TLS" '' \
        tls.with.new_ms tls.without.new_ms ms
    row_ratio 'TLS: a raw product of 1024×1024 by curl, by a connection of its own; beside: without TLS' '' \
        tls.with.large_ms tls.without.large_ms ms
    row_ratio 'TLS: products of 1×1 in JSON by wrk, 64 connections, a second; beside: without TLS' '' \
        tls.with.rate tls.without.rate /s
}
