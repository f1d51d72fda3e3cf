#!/bin/sh
# Tests deploy/haproxy/haproxy.cfg with two replicas: the affinity of clients, and what a restart and a kill of a
# replica cost under load, which is printed. FLEET_S is the seconds of each load. Checks deploy/nginx/ by nginx -t.
# Ends with status 77 without HAProxy.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"
: "${STEADY:?the path of steady}"
PATH=$PATH:/usr/sbin
deploy=$here/../../deploy

if command -v nginx >/dev/null; then
    checks=$((checks + 1))
    printf 'pid nginx.pid; error_log stderr; events {} http { access_log off; include %s; }\n' \
        "$deploy/nginx/matmuld.conf" >"$scratch/nginx.conf"
    nginx -t -q -p "$scratch" -c "$scratch/nginx.conf" || fail "nginx -t"
else
    echo "there is no nginx: deploy/nginx is not checked"
fi
command -v haproxy >/dev/null || {
    echo "there is no haproxy"
    [ "$failures" -eq 0 ] && exit 77 || exit 1
}
checks=$((checks + 1))
haproxy -c -q -f "$deploy/haproxy/haproxy.cfg" || fail "haproxy -c"

pid1='' pid2='' port1=0 port2=0 balancer=''
# shellcheck disable=SC2086
trap 'code=$?; set +e; kill -KILL $pid1 $pid2 $balancer 2>/dev/null; (exit $code); clean_up' EXIT

# replica NUMBER: starts replica 1 or 2, on the port that it had before, and waits until it is ready. On a busy machine
# products take longer, and the server would reject requests that wait too long.
replica() {
    front=$url
    eval "port=\$port$1"
    launch --backend cpu --threads 2 --port "${port:?}" --queue-wait-ms 900000 --lame-duck-ms 2000
    await_ready
    eval "pid$1=$server port$1=${url##*:}"
    server='' url=$front
    mv "$scratch/log" "$scratch/log.$1"
}

# balance: starts HAProxy in front of the replicas. Python binds its sockets to free ports.
balance() {
    # shellcheck disable=SC2016
    sed -e "s/127\.0\.0\.1:8081/127.0.0.1:$port1/; s/127\.0\.0\.1:8082/127.0.0.1:$port2/" -e '/^ *\(user\|group\) /d' \
        -e 's/bind 127\.0\.0\.1:8080/bind "fd@${FRONT}"/; s/bind 127\.0\.0\.1:8404/bind "fd@${STATISTICS}"/' \
        "$deploy/haproxy/haproxy.cfg" >"$scratch/haproxy.cfg"
    python3 - "$scratch" >"$scratch/haproxy.log" 2>&1 <<'PYTHON' &
import os, socket, sys
for name in "FRONT", "STATISTICS":
    listener = socket.create_server(("127.0.0.1", 0))
    with open(f"{sys.argv[1]}/{name}", "w") as file:
        print(listener.getsockname()[1], file=file)
    os.environ[name] = str(listener.detach())
    os.set_inheritable(int(os.environ[name]), True)
os.execvp("haproxy", ["haproxy", "-db", "-f", sys.argv[1] + "/haproxy.cfg"])
PYTHON
    balancer=$!
    await 20 test -s "$scratch/STATISTICS" || abort "$scratch/haproxy.log" "HAProxy does not start"
    url=http://127.0.0.1:$(cat "$scratch/FRONT") statistics=http://127.0.0.1:$(cat "$scratch/STATISTICS")
    await_up 1
    await_up 2
}

# await_up NUMBER: waits until HAProxy sends requests to a replica.
await_up() {
    await 20 is_up "$1" || abort "$scratch/haproxy.log" "HAProxy does not see that replica $1 is ready"
}

is_up() {
    curl -s --max-time 5 "$statistics/;csv" | grep -q "^balanced,replica$1,.*,UP,"
}

# load NAME SHAPE: eight clients send products.
load() {
    "$STEADY" --port "${url##*:}" --connections 8 --shape "$2" --seconds "$seconds" --warm 0 --refusals \
        >"$scratch/$1" 2>"$scratch/$1.trouble" || :
}

# counted NAME WHAT MOST: prints what became of the products. At most MOST of them may be lost.
counted() {
    tr ' ' '\n' <"$scratch/$1" | grep -E '^(ok|refused|bad|lost|max_ms)=' >"$scratch/figures" || :
    echo "$2: $(paste -sd ' ' "$scratch/figures") $(cat "$scratch/$1.trouble")"
    like "$2" 'ok=[1-9]*' "$(cat "$scratch/figures")"
    lost=$(awk -F = '/^(refused|bad|lost)=/ { sum += $2 } END { print sum + 0 }' "$scratch/figures")
    at_most "$2: products that were lost" "$3" "$lost"
}

# under_load COMMAND MOST: starts eight clients with bodies of 32 KiB, eight with 3 MiB, and eight Python clients. Runs the
# command half a second later. At most MOST of the products with 3 MiB may be lost.
under_load() {
    load small 64x64x64 &
    small=$!
    load large 16x24576x16 &
    large=$!
    ${python:-:} -B "$here/fleet.py" "$url" "$seconds" >"$scratch/client" 2>"$scratch/client.trouble" &
    client=$!
    sleep 0.5
    "$1"
    wait $small $large $client || :
    counted small "$1, 32 KiB" 0
    counted large "$1, 3 MiB" "$2"
    [ -z "$python" ] || counted client "$1, the Python client" 0
}

restart() {
    kill -TERM "$pid1"
    wait "$pid1" || fail "a restarted replica ended with status $?"
    replica 1
    await_up 1
}

crash() {
    kill -KILL "$pid1"
    wait "$pid1" 2>/dev/null || :
}

# get TEXT NAME: prints the status of a stored matrix, asked for with TEXT as Matmul-Affinity.
get() {
    status_of -H "Matmul-Affinity: $1" "$url/v1/matrices/$2"
}

find_numpy || {
    python=''
    echo "no python3 here has NumPy: the Python client is not tested"
}
replica 1
replica 2
balance
same "/metrics of a replica" 404 "$(status_of "$url/metrics")"
like "/metrics of HAProxy" '*haproxy_server_status*replica1*' "$(curl -s --max-time 5 "$statistics/metrics")"

texts='a b c d e f g h'
for text in $texts; do
    same "storing with the text $text" 201 \
        "$(status_of -H "Matmul-Affinity: $text" -X PUT -d '{"a": [[1]]}' "$url/v1/matrices/m-$text")"
done
for text in h $texts; do
    same "a matrix stored with the text $text" 200 "$(get "$text" "m-$text")"
done
mine='' others=''
for text in $texts; do
    case $(status_of "http://127.0.0.1:$port1/v1/matrices/m-$text") in 200) mine=$text ;; 404) others=$text ;; esac
done
like "texts that lead to the replicas" '?:?' "$mine:$others"

# A replica dies after it has received requests. What stores nothing is sent to the other replica, which lacks the matrix.
send() {
    status_of --data-binary "@$scratch/body" -H "Matmul-Affinity: $mine" -H "Content-Type: application/$1" \
        "$url/v1/matmul?$2" >"$scratch/status.$1.${2##*&}"
}
"$FLOAT32" fill 8192 1 >"$scratch/body"
kill -STOP "$pid1"
send octet-stream 'm=64&k=64&n=64' &
sent=$!
send octet-stream 'm=64&k=64&n=64&out=c' &
sent="$sent $!"
send json '' &
sent="$sent $!"
get "$mine" "m-$mine" >"$scratch/status.get" &
sent="$sent $!"
sleep 0.7
crash
# shellcheck disable=SC2086
wait $sent
same "a raw product" 200 "$(cat "$scratch/status.octet-stream.n=64")"
same "a raw product that is stored" 502 "$(cat "$scratch/status.octet-stream.out=c")"
same "JSON" 502 "$(cat "$scratch/status.json.")"
same "GET" 404 "$(cat "$scratch/status.get")"
replica 1
await_up 1

seconds=${FLEET_S:-4}
under_load restart 0
# HAProxy can send small bodies again. Each client has at most one large one under way when the replica dies.
seconds=${FLEET_S:-2}
under_load crash 8

same "a text of the other replica" 200 "$(get "$others" "m-$others")"
kill -KILL "$pid2"
status=$(curl -s --max-time 60 -o "$scratch/got" -w '%{http_code}' "$url/readyz") || :
same "without replicas" '503 no_replica' "$status $(code_of "$scratch/got")"
finish
