#!/bin/sh
# Tests deploy/monitoring: promtool tests the rules. Then Prometheus scrapes a server under load, with TLS and an API key, and
# each query of the dashboard must find a number. Skipped without Prometheus, openssl or TLS support.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

: "${FAULTY:?the path of the faulty matmuld}" "${NVML:?the folder of the stand-in}"
deploy=$here/../../deploy/monitoring
prometheus='' load=''
trap 'kill $prometheus $load 2>/dev/null || :; clean_up' EXIT

# Installing Debian's package would start a service, so this function only unpacks the package, into build/prometheus.
find_prometheus() {
    ! command -v prometheus promtool >/dev/null || return 0
    unpacked=$here/../../build/prometheus
    mkdir -p "$unpacked"
    (
        cd "$unpacked"
        flock 9
        [ -x usr/bin/promtool ] || { apt-get download -qq prometheus && dpkg -x prometheus_*.deb . && rm prometheus_*.deb; }
    ) 9>"$unpacked.lock" >"$unpacked.log" 2>&1 || { echo "there is no prometheus, and $unpacked.log says why" && exit 77; }
    PATH=$unpacked/usr/bin:$PATH
}

# passes COMMAND…: the command must succeed. Prints its output if it fails.
passes() {
    checks=$((checks + 1))
    "$@" >"$scratch/output" 2>&1 || { cat "$scratch/output" && fail "$*"; }
}

# query EXPRESSION: prints the result as JSON.
query() {
    curl -s --max-time 10 --data-urlencode "query=$1" "$monitor/api/v1/query"
}

has_number() {
    query "$1" | jq -e '[.data.result[]?.value[1] | select(. != "NaN")] != []' >/dev/null
}

fires() {
    [ "$(query 'ALERTS{alertstate="firing"}' | jq -r '[.data.result[].metric.alertname] | join(" ")')" = "$1" ]
}

find_monitor() {
    monitor=$(sed -n 's/.*msg="Listening on" address=\([^ ]*\).*/http:\/\/\1/p' "$scratch/prometheus.log")
    [ -n "$monitor" ]
}

find_prometheus
cp "$deploy/matmuld.rules.yaml" "$here/monitoring/rules.test.yaml" "$scratch"
passes promtool check rules "$scratch/matmuld.rules.yaml"
passes promtool test rules "$scratch/rules.test.yaml"
sed -n 's/^ *runbook_url: docs\/operations.md#//p' "$deploy/matmuld.rules.yaml" >"$scratch/anchors"
while read -r anchor; do
    passes grep -ix "### $anchor" "$here/../../docs/operations.md"
done <"$scratch/anchors"
same "links to the runbook" "$(grep -c -e '- alert:' "$deploy/matmuld.rules.yaml")" "$(wc -l <"$scratch/anchors")"

MATMULD=$FAULTY
"$MATMULD" --tls-cert no-such-file --tls-key no-such-file 2>"$scratch/complaint" || :
if grep 'without TLS' "$scratch/complaint"; then
    [ "$failures" -eq 0 ] || exit 1
    exit 77
fi
make_certificate matmuld -newkey ec -pkeyopt ec_paramgen_curve:P-256
export CURL_CA_BUNDLE="$scratch/matmuld.pem" LD_LIBRARY_PATH="$NVML"
echo 0123456789abcdef >"$scratch/matmuld.key.only"
start_with_key 0123456789abcdef --tls-cert "$scratch/matmuld.pem" --tls-key "$scratch/matmuld.key"

while :; do
    curl -s -H 'Authorization: Bearer 0123456789abcdef' -d '{"a":[[1,2]],"b":[[3],[4]],"variant":"naive"}' \
        "$url/v1/matmul" "$url/nothing" >"$scratch/reply" || :
    sleep 0.1
done &
load=$!

sed -e 's/^    # \(scheme\|tls_config\|authorization\)/    \1/' -e "s|/etc/prometheus/matmuld.pem|$scratch/matmuld.pem|" \
    -e "s|/etc/prometheus/matmuld.key|$scratch/matmuld.key.only|" -e "s|matmuld:8080|${url#https://}|" -e 's/15s/1s/g' \
    "$deploy/prometheus.yml" >"$scratch/prometheus.yml"
passes promtool check config "$scratch/prometheus.yml"
prometheus --config.file="$scratch/prometheus.yml" --storage.tsdb.path="$scratch/data" --web.listen-address=127.0.0.1:0 \
    2>"$scratch/prometheus.log" &
prometheus=$!
await 30 find_monitor || abort "$scratch/prometheus.log" "Prometheus does not listen"

await 20 has_number 'up{job="matmuld"} == 1' || abort "$scratch/prometheus.yml" "Prometheus gets no metrics"

# Replaces the dashboard's variables.
jq -r '.panels[].targets[].expr | gsub("[$]instance"; ".*") | gsub("[$]__rate_interval"; "5s") | gsub("[$]__range"; "1m")' \
    "$deploy/grafana/dashboards/matmuld.json" >"$scratch/queries"
same "queries of the dashboard, at least" yes "$([ "$(wc -l <"$scratch/queries")" -lt 30 ] || echo yes)"
while read -r expression; do
    checks=$((checks + 1))
    await 10 has_number "$expression" || fail "no number: $expression: $(query "$expression")"
done <"$scratch/queries"

# The rules name only metrics that exist, and only the one about the certificate of two days fires.
grep -oE '\b(matmuld|process)_[a-z_]+' "$deploy/matmuld.rules.yaml" | sort -u >"$scratch/names"
while read -r name; do
    checks=$((checks + 1))
    has_number "$name" || fail "there is no $name, which a rule reads"
done <"$scratch/names"
checks=$((checks + 1))
await 10 fires MatmuldCertificateExpires || fail "other alerts: $(query ALERTS)"
same "rules that cannot be evaluated" '[]' "$(curl -s "$monitor/api/v1/rules" | jq -c '[.data.groups[].rules[] | select(.health != "ok")]')"
kill "$load"
load=''
stop
finish
