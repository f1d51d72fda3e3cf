# What the scripts of this folder share: a server of their own on a free port, and a count of checks
# and failures. To be sourced, with MATMULD and FLOAT32 in the environment; it makes $scratch inside
# the current folder, and ends what it started however the script ends.
# shellcheck shell=sh disable=SC2034
set -eu

: "${MATMULD:?the path of matmuld}" "${FLOAT32:?the path of the program float32}"
export no_proxy='*'
unset MATMULD_HOST MATMULD_PORT MATMULD_BACKEND MATMULD_DEVICES MATMULD_THREADS MATMULD_CPU_JOBS MATMULD_QUEUE_DEPTH MATMULD_QUEUE_WAIT_MS \
    MATMULD_MEMORY_BUDGET MATMULD_MAX_BODY MATMULD_MAX_DIMENSION MATMULD_TIMEOUT_MS \
    MATMULD_DRAIN_TIMEOUT_MS MATMULD_WATCHDOG_MS MATMULD_SELF_TEST_MS MATMULD_RECEIVE_TIMEOUT_MS MATMULD_RECEIVE_RATE MATMULD_SEND_TIMEOUT_MS MATMULD_SEND_RATE MATMULD_LOG_FORMAT \
    MATMULD_CONNECTIONS_PER_ADDRESS MATMULD_API_KEY_FILE MATMULD_API_KEY MATMULD_OPEN_METRICS MATMULD_CORS_ORIGIN MATMULD_TLS_CERT MATMULD_TLS_KEY \
    MATMULD_BENCHMARK_FLOPS MATMULD_BENCHMARK_REPEATS MATMULD_NO_BENCHMARK

checks=0
failures=0
kept=0
server=
url=
scratch=$(mktemp -d "$PWD/$(basename "$0" .sh).XXXXXX")
mkdir "$scratch/exchanges"

# Where a command fails that no check is for, the script ends there, and says so.
clean_up() {
    code=$?
    case $code:$failures in
    0:* | 77:* | 130:*) ;;
    *:0)
        echo "FAILED: a command ended with $code after $checks checks; the server's log ends with:"
        tail -n 5 "$scratch/log" 2>/dev/null || :
        ;;
    esac
    [ -z "$server" ] || kill -KILL "$server" 2>/dev/null || :
    rm -rf "$scratch"
}
trap clean_up EXIT
trap 'exit 130' INT TERM HUP

fail() {
    failures=$((failures + 1))
    printf 'FAILED: %s\n' "$*"
}

# same WHAT EXPECTED GOT
same() {
    checks=$((checks + 1))
    [ "$2" = "$3" ] || fail "$1: expected '$2', got '$3'"
}

# like WHAT PATTERN GOT: a pattern of the shell.
like() {
    checks=$((checks + 1))
    # shellcheck disable=SC2254
    case $3 in
    $2) ;;
    *) fail "$1: expected $2, got '$3'" ;;
    esac
}

# at_most WHAT LIMIT GOT: whole or decimal numbers.
at_most() {
    checks=$((checks + 1))
    awk -v limit="$2" -v got="$3" 'BEGIN { exit !(got + 0 <= limit + 0) }' || fail "$1: expected at most $2, got $3"
}

# conform REQUESTS: holds the replies in $scratch/exchanges against the OpenAPI document of the server that
# was started last. Without Python that is left out.
conform() {
    checks=$((checks + 1))
    code=0
    sh "$(dirname "$0")/validate.sh" "$scratch/openapi.json" "$1" "$scratch/exchanges" || code=$?
    case $code in
    0) ;;
    77) echo "the replies were not held against the OpenAPI document" ;;
    *) fail "a reply does not conform to the OpenAPI document" ;;
    esac
}

# keep METHOD TARGET HEAD BODY: puts an exchange aside for finish to hold against the document; HEAD and
# BODY are files of curl's.
keep() {
    kept=$((kept + 1))
    printf '%s %s\n' "$1" "$2" >"$scratch/exchanges/$kept.request"
    cp "$3" "$scratch/exchanges/$kept.head"
    cp "$4" "$scratch/exchanges/$kept.body"
}

# The last word of every script: nothing checked is a failure too.
finish() {
    [ "$kept" -eq 0 ] || conform "$scratch/exchanges"
    echo "$checks checks, $failures failures"
    [ "$checks" -gt 0 ] && [ "$failures" -eq 0 ]
}

# await SECONDS COMMAND…: repeats the command until it succeeds; fails where it never does.
await() {
    tries=$(($1 * 20))
    shift
    until "$@"; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || return 1
        sleep 0.05
    done
}

status_of() {
    curl -s -o /dev/null --max-time 10 -w '%{http_code}' "$@" || :
}

is_ready() {
    [ "$(status_of "$url/readyz")" = 200 ]
}

# Whether a benchmark is under way. What is no benchmark would be 400, and so cannot take the place of the one that is waited for.
is_benchmarking() {
    [ "$(status_of -d '{}' "$url/v1/benchmark")" = 429 ]
}

find_url() {
    url=$(sed -n 's|.*listening on \(https*://[^ "]*\).*|\1|p' "$scratch/log")
    [ -n "$url" ] || has_ended
}

has_ended() {
    ! kill -0 "$server" 2>/dev/null
}

# launch ARG…: starts a server, sets $server, and $url once it listens.
launch() {
    # Emptied here, since the server may take its time to open it, and an old address would be found.
    : >"$scratch/log"
    "$MATMULD" "$@" 2>"$scratch/log" &
    server=$!
    url=
    await 60 find_url || :
    if [ -z "$url" ]; then
        cat "$scratch/log"
        fail "matmuld $*: it did not log 'listening on http://HOST:PORT'"
        exit 1
    fi
}

# In its log, as a line of text or of JSON.
says_ready() {
    grep -qE '(^| )ready$|"message":"ready"' "$scratch/log" || has_ended
}

# start ARG…: launches on a free port, and returns once it can multiply. The log is watched for that,
# since every look at /readyz before it is a refusal, which the metrics count.
start() {
    launch --port 0 "$@"
    if ! await 60 says_ready || ! is_ready; then
        cat "$scratch/log"
        fail "matmuld $*: it did not log 'ready' within a minute, or /readyz was not 200 after it"
        exit 1
    fi
    curl -s --max-time 30 -o "$scratch/openapi.json" "$url/openapi.json" || fail "matmuld $*: no /openapi.json"
}

# ended WHAT: waits for the server's end, which is status 0 without a sanitizer's report.
ended() {
    status=0
    wait "$server" || status=$?
    server=
    same "$1: exit status" 0 "$status"
    checks=$((checks + 1))
    if grep -E 'Sanitizer|runtime error:' "$scratch/log" >"$scratch/reports"; then
        cat "$scratch/log"
        fail "$1: a sanitizer reports"
    fi
}

stop() {
    kill -TERM "$server"
    ended "after SIGTERM"
}

# gives_up WHAT: the server has lost a device, and ends by itself with the status for that, a second after the last word
# to it at most; the thread sanitizer waits for another one before it lets a process end.
gives_up() {
    most_ms=1000
    [ -z "${TSAN_OPTIONS:-}" ] || most_ms=2000
    since=$(date +%s%N)
    status=0
    await 5 has_ended || {
        fail "$1: it does not end"
        kill -9 "$server"
    }
    wait "$server" || status=$?
    server=
    same "$1: exit status" 70 "$status"
    took_ms=$((($(date +%s%N) - since) / 1000000))
    checks=$((checks + 1))
    [ "$took_ms" -le "$most_ms" ] || fail "$1: it ended after $took_ms ms"
    grep -q 'ends with status 70' "$scratch/log" || fail "$1: the log does not tell of it"
}

# code_of FILE: the member `code` of a problem.
code_of() {
    jq -r '.code // "none"' "$1" 2>/dev/null || echo "no JSON"
}

# refusal WHAT STATUS CODE DETAIL ARG…: of what the script's own post asks for, which sets $status and leaves $scratch/reply.
refusal() {
    what=$1 expected=$2 code=$3 detail=$4
    shift 4
    post "$@"
    same "$what: status" "$expected" "$status"
    same "$what: code" "$code" "$(code_of "$scratch/reply")"
    like "$what: detail" "*$detail*" "$(jq -r .detail "$scratch/reply")"
}

# header NAME FILE: the value of a header, without the spaces around it; nothing where it is absent.
# A header that stands there twice gives two lines.
header() {
    sed -n "s/^$1:[[:space:]]*\(.*[^[:space:]]\)[[:space:]]*\$/\1/Ip" "$2"
}

# scaled SIDE SECONDS: the side on which the CPU's plain loop takes so long, by what it takes on this one.
# The reply's kernel time tells, the least of three: sanitizers make it long, and so does who else is here,
# but not for long.
scaled() {
    "$FLOAT32" fill $((2 * $1 * $1)) 1 >"$scratch/probe"
    milliseconds=$(for _ in 1 2 3; do
        curl -s --max-time 300 -H 'Content-Type: application/octet-stream' -H 'Accept: application/json' \
            -H 'Expect:' --data-binary @"$scratch/probe" "$url/v1/matmul?m=$1&k=$1&n=$1&backend=cpu&variant=naive"
    done | jq -s 'map(.timing.kernel_ms) | min')
    awk -v side="$1" -v s="$2" -v ms="$milliseconds" 'BEGIN { print int(side * (s * 1000 / ms) ^ (1 / 3)) }'
}

# slow_side SECONDS: a number of rows of square matrices on which it takes about so long here. What fits
# no cache is slower, so that the first guess, of a small product, serves for a better one.
slow_side() {
    scaled "$(scaled 128 0.1)" "$1"
}

# make_certificate NAME ARG…: $scratch/NAME.pem and NAME.key, for localhost and 127.0.0.1; the arguments say which kind
# of key. Without openssl the test is skipped.
make_certificate() {
    command -v openssl >/dev/null || {
        echo "there is no openssl, which makes the certificates"
        [ "$failures" -eq 0 ] && exit 77 || exit 1
    }
    certificate=$1
    shift
    (
        umask 077
        openssl req -x509 -nodes -days 2 -subj "/CN=$certificate" -addext subjectAltName=DNS:localhost,IP:127.0.0.1 \
            -keyout "$scratch/$certificate.key" -out "$scratch/$certificate.pem" "$@" 2>"$scratch/openssl.err"
    ) || {
        cat "$scratch/openssl.err"
        fail "openssl makes no certificate"
        exit 1
    }
}

# prepare_slow SIDE: the body of a product of two square matrices of ones.
prepare_slow() {
    slow_side=$1
    "$FLOAT32" fill $((2 * slow_side * slow_side)) 1 >"$scratch/slow"
    "$FLOAT32" fill $((slow_side * slow_side)) "$slow_side" >"$scratch/slow.expected"
}

# prepare_queued [MEMBER]: as $scratch/queued the JSON of a small product that is not so small that it would be
# computed at once, past the queue: ones, 21×21.
prepare_queued() {
    awk -v member="${1:-}" 'BEGIN {
        for (i = 1; i < 21; i++) row = row "1,"
        row = "[" row "1]"
        for (i = 1; i < 21; i++) rows = rows row ","
        rows = "[" rows row "]"
        printf "{%s\"a\":%s,\"b\":%s}", member, rows, rows
    }' >"$scratch/queued"
}

# post_slow NAME [QUERY]: posts it to the CPU's plain loop, and does not wait for the reply.
post_slow() {
    rm -f "$scratch/slow.$1" "$scratch/slow.$1".*
    (
        curl -sv --max-time 300 -o "$scratch/slow.$1" -D "$scratch/slow.$1.head" -w '%{http_code}' \
            -H 'Content-Type: application/octet-stream' -H 'Expect:' --data-binary "@$scratch/slow" \
            "$url/v1/matmul?m=$slow_side&k=$slow_side&n=$slow_side&backend=cpu&variant=naive&${2:-timeout_ms=300000}" \
            >"$scratch/slow.$1.status" 2>"$scratch/slow.$1.trace" || :
        : >"$scratch/slow.$1.done"
    ) &
}

is_sent() {
    grep -qs 'completely uploaded' "$scratch/slow.$1.trace"
}

# await_sent NAME: until its body is with the server, and a moment for that to make a job of it.
await_sent() {
    await 60 is_sent "$1" || fail "the slow job $1 was not taken"
    sleep 0.2
}

is_done() {
    [ -f "$scratch/slow.$1.done" ]
}

# finish_slow NAME: waits for its reply, and sets slow_status.
finish_slow() {
    await 300 is_done "$1" || fail "the slow job $1 had no reply"
    slow_status=$(cat "$scratch/slow.$1.status")
    [ "$slow_status" = 000 ] || keep POST /v1/matmul "$scratch/slow.$1.head" "$scratch/slow.$1"
}

# check_slow NAME: the reply is the product.
check_slow() {
    checks=$((checks + 1))
    cmp -s "$scratch/slow.$1" "$scratch/slow.expected" || fail "the slow job $1: the product is wrong"
}
