# What the scripts of this folder share: a server of their own on a free port, and a count of checks
# and failures. To be sourced, with MATMULD in the environment; it makes $scratch inside
# the current folder, and ends what it started however the script ends.
# shellcheck shell=sh disable=SC2034
set -eu

: "${MATMULD:?the path of matmuld}"
export no_proxy='*'
# A test sets the options that it needs: none comes from outside.
for variable in $(env | sed -n 's/^\(MATMULD_[A-Z0-9_]*\)=.*/\1/p'); do
    unset "$variable"
done

# Where python3 is a script, as with pyenv, it starts slowly: the interpreter that it runs comes first. ./dev test has seen to it.
[ "$(head -c 2 "$(command -v python3)")" != '#!' ] ||
    PATH=$(python3 -c 'import os, sys; print(os.path.dirname(sys.executable))'):$PATH

here=$(cd "$(dirname "$0")/../http" && pwd)
FLOAT32=$here/float32.py TALK=$here/talk.py
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
    [ "$code" -eq 0 ] || judge_replies
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

# python_with MODULE: a python3 that has it: the one on PATH, or the system's, which has what its packages brought.
python_with() {
    for python in python3 /usr/bin/python3; do
        ! "$python" -c "import $1" 2>/dev/null || { echo "$python" && return; }
    done
    return 1
}

# make_venv NAME: installs tests/http/NAME/requirements.txt from PyPI into build/NAME, as $venv; if that fails, says why.
# Tests that need the same one wait for the first.
make_venv() {
    venv=$here/../../build/$1
    wanted=$here/$1/requirements.txt
    mkdir -p "$here/../../build"
    exec 9>"$venv.lock"
    flock 9
    ! cmp -s "$wanted" "$venv/installed" || { exec 9>&- && return 0; }
    install_venv "$1" && code=0 || code=1
    exec 9>&-
    return "$code"
}

install_venv() {
    rm -rf "$venv"
    { python3 -m venv "$venv" &&
        "$venv/bin/pip" install --quiet --no-compile --disable-pip-version-check --retries 1 --timeout 10 -r "$wanted" &&
        cp "$wanted" "$venv/installed"; } >"$scratch/pip" 2>&1 && return
    tail -n 1 "$scratch/pip"
    echo "$1 cannot be installed from PyPI here"
    return 1
}

# find_numpy: sets python to one that has NumPy: ours from PyPI, which has ml_dtypes too, or what python_with finds.
find_numpy() {
    if make_venv numpy; then
        python=$venv/bin/python3
    else
        python=$(python_with numpy)
    fi
}

# Under a sanitizer nothing is held against the OpenAPI document: the replies are the same.
sanitizer=${ASAN_OPTIONS:-}${TSAN_OPTIONS:-}

# conform DOCUMENT [REQUESTS EXCHANGES]…: by validate.py.
conform() {
    [ -z "$sanitizer" ] || return 0
    checks=$((checks + 1))
    if python=$(python_with jsonschema); then
        "$python" "$here/validate.py" "$@" || fail "it does not conform to the OpenAPI document"
    else
        echo "nothing was held against the OpenAPI document: there is no python3 with jsonschema"
    fi
}

# keep METHOD TARGET: keeps the exchange in $scratch/head and $scratch/got for put_aside. Large matrices are left
# out: a schema says no more of them than of small ones, and takes seconds.
keep() {
    [ -z "$sanitizer" ] && [ "$(wc -c <"$scratch/got")" -lt 1000000 ] || return 0
    kept=$((kept + 1))
    printf '%s %s\n' "$1" "$2" >"$scratch/exchanges/$kept.request"
    cp "$scratch/head" "$scratch/exchanges/$kept.head"
    cp "$scratch/got" "$scratch/exchanges/$kept.body"
}

# Each server has a document of its own, so its exchanges are put aside with that when it ends. finish judges them together,
# since the validator takes longer to start than to judge.
put_aside() {
    [ -e "$scratch/exchanges/$kept.head" ] || return 0
    cp "$scratch/openapi.json" "$scratch/exchanges"
    mv "$scratch/exchanges" "$scratch/exchanges.$kept"
    mkdir "$scratch/exchanges"
}

# ask TARGET ARG…: a request by curl. Sets $status (000 without a reply) and $uploaded, the bytes of the body that were sent;
# leaves the reply in $scratch/head and $scratch/got, and keeps it.
ask() {
    target=$1
    shift
    : >"$scratch/got"
    : >"$scratch/head"
    sent=$(curl -s --max-time 120 --expect100-timeout 60 -o "$scratch/got" -D "$scratch/head" \
        -w '%{http_code} %{size_upload} %{method}' "$@" "$url$target") || :
    status=${sent%% *} method=${sent##* } uploaded=${sent#* }
    uploaded=${uploaded% *}
    [ "$status" = 000 ] || keep "$method" "$target"
}

# post_file FILE QUERY HEADER…: asks for the product of $scratch/FILE, raw and without Expect, unless a header says otherwise.
post_file() {
    file=$1 query=$2
    shift 2
    case "$*" in *Content-Type:*) ;; *) set -- 'Content-Type: application/octet-stream' "$@" ;; esac
    case "$*" in *Expect:*) ;; *) set -- Expect: "$@" ;; esac
    printf 'header = "%s"\n' "$@" >"$scratch/headers"
    ask "/v1/matmul?$query" -K "$scratch/headers" --data-binary "@$scratch/$file"
}

# expect WHAT STATUS [KEY VALUE]…: what the last reply is. A key is `code` of a problem; `detail`, of which the value is a part;
# `Header:`, whose value is a pattern; else a filter of jq. What takes jq is judged by judge_replies.
expect() {
    what=$1 is_kept=no
    same "$what: status" "$2" "$status"
    shift 2
    while [ $# -gt 0 ]; do
        case $1 in
        code) judge_later same "$what: code" "$2" '.code // "none"' ;;
        detail) judge_later like "$what: detail" "*$2*" .detail ;;
        *:) like "$what: $1" "$2" "$(header "${1%:}" "$scratch/head")" ;;
        *) judge_later same "$what: $1" "$2" "$1" ;;
        esac
        shift 2
    done
}

# judge_later CHECK WHAT EXPECTED FILTER: a check of what jq's filter finds in the last reply, which is noted as a line of
# $scratch/replies.jq, and this as a line of a program that makes a line of shell: `found` and what it found.
judged=0 replies_kept=0
judge_later() {
    if [ "$is_kept" = no ]; then
        is_kept=yes replies_kept=$((replies_kept + 1))
        { tr '\n' ' ' <"$scratch/got" && echo; } >>"$scratch/replies.jq"
    fi
    judged=$((judged + 1))
    eval "check_$judged=\$1 what_$judged=\$2 expected_$judged=\$3"
    # It is jq that expands, here and below.
    # shellcheck disable=SC2016
    printf '"found %d \(try ($replies[%d] | fromjson | [%s] | map(if type == "string" then . else tojson end) | join("\n")) catch "jq says: \(.)" | @sh)",\n' \
        $judged $((replies_kept - 1)) "$4" >>"$scratch/judge.jq"
}

found() {
    eval "\$check_$1 \"\$what_$1\" \"\$expected_$1\" \"\$2\""
    judged=$((judged - 1))
}

# judge_replies: makes the checks that were put off, in one run of jq, since each takes 30 ms to start.
judge_replies() {
    [ $judged -gt 0 ] || return 0
    # shellcheck disable=SC2016
    { echo '[inputs] as $replies |' && cat "$scratch/judge.jq" && echo empty; } >"$scratch/judge"
    jq -nrR -f "$scratch/judge" "$scratch/replies.jq" >"$scratch/found" || fail "jq cannot judge the replies"
    # shellcheck disable=SC1091
    . "$scratch/found"
    [ $judged -eq 0 ] || fail "$judged checks of replies were not made"
    judged=0
}

# runs STATUS WORDS ARG…: matmuld ends by itself, with these words on stderr; stdout is in $scratch/out.
runs() {
    expected=$1 words=$2
    shift 2
    status=0
    timeout 60 "$MATMULD" "$@" >"$scratch/out" 2>"$scratch/err" || status=$?
    same "matmuld $*: exit status" "$expected" "$status"
    like "matmuld $*: stderr" "*$words*" "$(cat "$scratch/err")"
}

# talk FILE PIECE [HOW]: sends $scratch/FILE by the program talk, and leaves what comes back in $scratch/replies.
talk() {
    talked=0
    "$TALK" 127.0.0.1 "${url##*:}" "$2" ${3:+"$3"} <"$scratch/$1" >"$scratch/raw" 2>"$scratch/complaint" || talked=$?
    tr -d '\r' <"$scratch/raw" | sed 's/}HTTP/}\nHTTP/' >"$scratch/replies"
    return $talked
}

# statuses: of $scratch/replies.
statuses() {
    sed -n 's/.*HTTP\/1\.1 \([0-9]*\) .*/\1/p' "$scratch/replies" | paste -sd ' ' -
}

# last_reply: takes the last of $scratch/replies apart as ask does.
last_reply() {
    awk '/^HTTP\/1\.1/ { text = "" } { text = text $0 "\n" } END { printf "%s", text }' "$scratch/replies" >"$scratch/last"
    sed '/^$/q' "$scratch/last" >"$scratch/head"
    sed '1,/^$/d' "$scratch/last" >"$scratch/got"
    status=$(sed -n '1s/[^ ]* \([0-9]*\).*/\1/p' "$scratch/head")
}

# metric SERIES: its value; nothing where it is not there.
metric() {
    curl -s --max-time 60 "$url/metrics" |
        awk -v series="matmuld_$1" 'substr($0, 1, length(series) + 1) == series " " { print $NF }'
}

has_metric() {
    [ "$(metric "$1")" = "$2" ]
}

has_free_budget() {
    has_metric 'staging_bytes{state="used"}' 0
}

# Whether requests hold more bytes than that.
is_taken_beyond() {
    [ "$(metric 'staging_bytes{state="used"}')" -gt "$1" ]
}

has_logged() {
    grep -q -e "$1" "$scratch/log"
}

# reload WORDS: by SIGHUP, until the log says so.
reload() {
    kill -HUP "$server"
    await 20 has_logged "$1" || fail "the log does not say '$1'"
}

# Of the server, user and system; the kernel's ticks are a hundredth of a second.
cpu_ms() {
    awk '{ print ($14 + $15) * 10 }' "/proc/$server/stat"
}

now_ms() {
    date +%s%3N
}

# The server's, as many as are open.
descriptors() {
    find "/proc/$server/fd" -mindepth 1 | wc -l
}

has_descriptors() {
    [ "$(descriptors)" -le "$1" ]
}

# same_descriptors BEFORE: none is leaked, soon.
same_descriptors() {
    checks=$((checks + 1))
    await 60 has_descriptors "$1" || fail "there were $1 descriptors, and there are $(descriptors)"
}

# The last word of every script: nothing checked is a failure too.
finish() {
    judge_replies
    put_aside
    set --
    for folder in "$scratch"/exchanges.*; do
        [ ! -d "$folder" ] || set -- "$@" "$folder/openapi.json" "$folder" "$folder"
    done
    [ $# -eq 0 ] || conform "$@"
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
    curl -s -o /dev/null --max-time 60 -w '%{http_code}' "$@" || :
}

is_ready() {
    [ "$(status_of "$url/readyz")" = 200 ]
}

# Whether a benchmark is under way. What is no benchmark would be 400, and so cannot take the place of the one that is waited for.
is_benchmarking() {
    [ "$(status_of -d '{}' "$url/v1/benchmark")" = 429 ]
}

find_url() {
    url=$(sed -n 's|.*listening on \(https*://[^ "]*\).*|\1|p' "$scratch/log" | sed 's/0\.0\.0\.0/127.0.0.1/')
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

# Until the server that was launched can multiply. The log is watched for that, since every look at /readyz before it is a
# refusal, which the metrics count.
await_ready() {
    if ! await 60 says_ready || ! is_ready; then
        cat "$scratch/log"
        fail "it did not log 'ready' within a minute, or /readyz was not 200 after it"
        exit 1
    fi
    curl -s --max-time 30 -o "$scratch/openapi.json" "$url/openapi.json" || fail "no /openapi.json"
}

# start ARG…: launches on a free port, and returns once it can multiply.
start() {
    launch --port 0 "$@"
    await_ready
}

# start_with_key KEY ARG…
start_with_key() {
    export MATMULD_API_KEY="$1"
    shift
    start "$@"
    unset MATMULD_API_KEY
}

# ends STATUS WHAT: waits for the server's end, which has this status.
ends() {
    status=0
    await 60 has_ended || {
        fail "$2: it does not end"
        kill -KILL "$server"
    }
    wait "$server" || status=$?
    server=
    same "$2: exit status" "$1" "$status"
    put_aside
}

# ended WHAT: it ends well, without a sanitizer's report.
ended() {
    ends 0 "$1"
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

# gives_up WHAT: the server has lost a device, and ends by itself with the status for that.
gives_up() {
    ends 70 "$1"
    has_logged 'ends with status 70' || fail "$1: the log does not tell of it"
}

# code_of FILE: the member `code` of a problem.
code_of() {
    jq -r '.code // "none"' "$1" 2>/dev/null || echo "no JSON"
}

# header NAME FILE: the value of a header, without the spaces around it; nothing where it is absent.
# A header that stands there twice gives two lines.
header() {
    sed -n "s/^$1:[[:space:]]*\(.*[^[:space:]]\)[[:space:]]*\$/\1/Ip" "$2"
}

# npy_head DESCR ORDER SHAPE: the head of a version 1.0 file, padded with spaces to 128 bytes.
npy_head() {
    printf '\223NUMPY\001\000v\000%-117s\n' "{'descr': '$1', 'fortran_order': $2, 'shape': $3, }"
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

# A server in which products take as long as the test wants: $FAULTY, whose backends go on with what prepare_held
# makes until `release`. Its own limits of time are far away, and none goes by the rates that it measured.
start_held() {
    sound=$MATMULD MATMULD=${FAULTY:?the path of the faulty matmuld}
    export MATMULD_FAULTY_HOLD="$scratch/hold"
    start --timeout-ms 600000 --drain-timeout-ms 600000 --max-kernel-ms 4000000000 --queue-wait-ms 4000000000 \
        --watchdog-ms 0 "$@"
    MATMULD=$sound
    unset MATMULD_FAULTY_HOLD
}

# prepare_held BACKEND [M K N]: the body of such a product, which is all zeros: by itself too long to be computed at once,
# past the queue. On cuda it is not interrupted; on cpu it is between two pieces, and others get their turn.
prepare_held() {
    slow_query="m=${2:-1}&k=${3:-20000}&n=${4:-1}&backend=$1&variant=naive"
    {
        "$FLOAT32" fill 1 7777
        "$FLOAT32" fill $((${3:-20000} * (${2:-1} + ${4:-1}) - 1)) 0
    } >"$scratch/slow"
    "$FLOAT32" fill $((${2:-1} * ${4:-1})) 0 >"$scratch/slow.expected"
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

# post_slow NAME [QUERY]: posts what prepare_held made, and does not wait for the reply.
post_slow() {
    rm -f "$scratch/slow.$1" "$scratch/slow.$1".*
    (
        curl -s --max-time 300 -o "$scratch/slow.$1" -D "$scratch/slow.$1.head" -w '%{http_code}' \
            -H 'Content-Type: application/octet-stream' -H 'Expect:' --data-binary "@$scratch/slow" \
            "$url/v1/matmul?$slow_query${2:+&$2}" >"$scratch/slow.$1.status" || :
        : >"$scratch/slow.$1.done"
    ) &
}

# hold_job NAME [QUERY]: posts it, and returns once a device has begun it, and goes on with it until `release`.
hold_job() {
    : >"$scratch/hold"
    post_slow "$@"
    await 60 test -s "$scratch/hold" || fail "the slow job $1 was not begun"
}

release() {
    rm "$scratch/hold"
}

# queue_job NAME [QUERY]: posts it behind one that is held, and returns once it waits.
queue_job() {
    post_slow "$@"
    await 60 has_metric queue_jobs 1 || fail "the slow job $1 does not wait"
}

is_done() {
    [ -f "$scratch/slow.$1.done" ]
}

# finish_slow NAME [WHAT STATUS [KEY VALUE]…]: waits for its reply, which is then the last one, and is as expected; with 200
# it is the product.
finish_slow() {
    slow=$1
    shift
    await 120 is_done "$slow" || fail "the slow job $slow had no reply"
    status=$(cat "$scratch/slow.$slow.status")
    : >"$scratch/got"
    : >"$scratch/head"
    if [ "$status" != 000 ]; then
        cp "$scratch/slow.$slow" "$scratch/got"
        cp "$scratch/slow.$slow.head" "$scratch/head"
        keep POST /v1/matmul
    fi
    [ $# -eq 0 ] || expect "$@"
    checks=$((checks + 1))
    [ "$status" != 200 ] || cmp -s "$scratch/got" "$scratch/slow.expected" || fail "the slow job $slow: the product is wrong"
}

# hold_late: a job that a device has begun is answered with 504, and goes on until `release`. Where the machine is held up,
# it begins too late, and the next one has ten times as long.
hold_late() {
    for ms in 100 1000 10000; do
        : >"$scratch/hold"
        post_slow late timeout_ms=$ms
        finish_slow late "a deadline of a running job" 504 code timeout
        [ ! -s "$scratch/hold" ] || return 0
    done
    fail "a deadline of a running job: it did not begin"
}

# post_benchmark SIDE VARIANT…: starts a benchmark of square matrices of many runs, and returns once it is under way.
post_benchmark() {
    edge=$1
    shift
    names=$(printf '"%s",' "$@")
    post_json_benchmark "{\"m\":$edge,\"k\":$edge,\"n\":$edge,\"repeats\":1000,\"variants\":[${names%,}]}"
}

# post_json_benchmark BODY: the same for any benchmark.
post_json_benchmark() {
    curl -s -o "$scratch/benchmark.got" -D "$scratch/benchmark.head" -w '%{http_code}' -d "$1" \
        "$url/v1/benchmark" >"$scratch/benchmark.status" &
    benchmark=$!
    await 60 is_benchmarking || fail "no benchmark is under way"
}

# finish_benchmark: waits for its reply, which is then the last one.
finish_benchmark() {
    wait "$benchmark" || :
    cp "$scratch/benchmark.got" "$scratch/got"
    cp "$scratch/benchmark.head" "$scratch/head"
    status=$(cat "$scratch/benchmark.status")
    keep POST /v1/benchmark
}
