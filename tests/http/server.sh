# What the scripts of this folder share: checks, requests and servers. A script sources this file with MATMULD, the path of
# matmuld, in the environment. $scratch is a folder inside the current one for the script's files. When the script ends, however
# it ends, clean_up kills the server and removes $scratch.
# shellcheck shell=sh disable=SC2034
set -eu

: "${MATMULD:?the path of matmuld}"
export no_proxy='*'
# A test sets the options that it needs. None comes from outside.
for variable in $(env | sed -n 's/^\(MATMULD_[A-Z0-9_]*\)=.*/\1/p'); do
    unset "$variable"
done

# If python3 is a script, as with pyenv, it starts slowly. The interpreter that it runs then comes first on PATH.
[ "$(head -c 2 "$(command -v python3)")" != '#!' ] ||
    PATH=$(python3 -c 'import os, sys; print(os.path.dirname(sys.executable))'):$PATH

here=$(cd "$(dirname "$0")/../http" && pwd)
FLOAT32=$here/float32.py TALK=$here/talk.py
checks=0
failures=0
server=
url=
scratch=$(mktemp -d "$PWD/$(basename "$0" .sh).XXXXXX")

# shellcheck source=tests/http/jobs.sh
. "$here/jobs.sh"

# A command that fails outside a check ends the script, and clean_up reports it.
clean_up() {
    code=$?
    check_replies
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

# finish: the last line of every script. A script without checks fails.
finish() {
    check_replies
    set --
    for folder in "$scratch"/kept.*; do
        [ ! -e "$folder/1.head" ] || set -- "$@" "$folder/openapi.json" "$folder"
    done
    [ $# -eq 0 ] || conform "$@"
    echo "$checks checks, $failures failures"
    [ "$checks" -gt 0 ] && [ "$failures" -eq 0 ]
}

# --- checks

fail() {
    failures=$((failures + 1))
    printf 'FAILED: %s\n' "$*"
}

# abort FILE WORDS: shows the file, fails with the words, and ends the script.
abort() {
    cat "$1"
    fail "$2"
    exit 1
}

# same WHAT EXPECTED GOT
same() {
    checks=$((checks + 1))
    [ "$2" = "$3" ] || fail "$1: expected '$2', got '$3'"
}

# like WHAT PATTERN GOT: the pattern is the shell's.
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

# expect WHAT STATUS [KEY VALUE]…: checks the last reply. A key is one of:
#   Header:   the value is a pattern of the shell; '' if the header is absent
#   detail    the reply's detail contains the value, in which * stands for any text
#   code      the value is the problem's code, or none
#   a filter of jq, which finds the value: text as it is, anything else as JSON
expect() {
    what=$1
    same "$what: status" "$2" "$status"
    shift 2
    while [ $# -gt 0 ]; do
        case $1 in
        *:) like "$what: $1" "$2" "$(header "${1%:}" "$scratch/head")" ;;
        detail) check_later "$what: $1" "$2" 'like(.detail)' ;;
        *) check_later "$what: $1" "$2" "same($1)" ;;
        esac
        shift 2
    done
}

# check_later WHAT EXPECTED CHECK: puts off a check of the last reply's JSON, because jq takes up to 30 ms to start. CHECK is a
# call of expect.jq. WHAT and EXPECTED are one line, without tabs.
check_later() {
    checks=$((checks + 1))
    printf ', %s\n' "$3" >>"$scratch/checks.jq"
    { printf '%s\t%s\t' "$1" "$2" && tr '\n\t' '  ' <"$scratch/got" && echo; } >>"$scratch/checked"
}

# check_replies: makes the checks that were put off, in one run of jq.
check_replies() {
    [ -e "$scratch/checks.jq" ] || return 0
    cat "$here/expect.jq" "$scratch/checks.jq" >"$scratch/program.jq"
    jq -nrR -f "$scratch/program.jq" "$scratch/checked" >"$scratch/failed" || fail "jq cannot check the replies"
    rm "$scratch/checks.jq" "$scratch/checked"
    while read -r failure; do
        fail "$failure"
    done <"$scratch/failed"
}

# runs STATUS WORDS ARG…: matmuld ends by itself with this status, and stderr contains the words. stdout is in $scratch/out.
runs() {
    expected=$1 words=$2
    shift 2
    status=0
    timeout 60 "$MATMULD" "$@" >"$scratch/out" 2>"$scratch/err" || status=$?
    same "matmuld $*: exit status" "$expected" "$status"
    like "matmuld $*: stderr" "*$words*" "$(cat "$scratch/err")"
}

# await SECONDS COMMAND…: repeats the command until it succeeds, and fails if it never does.
await() {
    tries=$(($1 * 20))
    shift
    until "$@"; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || return 1
        sleep 0.05
    done
}

# --- the OpenAPI document

# Replies are the same under a sanitizer, so they are not checked against the document there.
sanitizer=${ASAN_OPTIONS:-}${TSAN_OPTIONS:-}

# conform DOCUMENT [EXCHANGES]…: checks by validate.py.
conform() {
    [ -z "$sanitizer" ] || return 0
    checks=$((checks + 1))
    if python=$(python_with jsonschema); then
        "$python" "$here/validate.py" "$@" || fail "it does not conform to the OpenAPI document"
    else
        echo "nothing was held against the OpenAPI document: there is no python3 with jsonschema"
    fi
}

# keep METHOD TARGET: keeps the last reply. `finish` checks all kept ones against the document of their server in one run,
# because validate.py takes longer to start than to check them. Large matrices are left out: they would take seconds, and the
# schema says no more about them than about small ones.
keep() {
    [ -z "$sanitizer" ] && [ "$(wc -c <"$scratch/got")" -lt 1000000 ] || return 0
    kept_count=$((kept_count + 1))
    printf '%s %s\n' "$1" "$2" >"$kept/$kept_count.request"
    cp "$scratch/head" "$kept/$kept_count.head"
    cp "$scratch/got" "$kept/$kept_count.body"
}

# --- requests and replies

# ask TARGET ARG…: sends a request by curl. Sets $status (000 without a reply) and $uploaded, the bytes of the body that were
# sent. Leaves the reply in $scratch/head and $scratch/got, and keeps it.
ask() {
    target=$1
    shift
    : >"$scratch/got"
    : >"$scratch/head"
    curl -s --max-time 120 --expect100-timeout 60 -o "$scratch/got" -D "$scratch/head" \
        -w '%{http_code} %{size_upload} %{method}\n' "$@" "$url$target" >"$scratch/sent" || :
    read -r status uploaded method <"$scratch/sent" || :
    [ "$status" = 000 ] || keep "$method" "$target"
}

# post_file FILE QUERY HEADER…: asks for the product of $scratch/FILE, raw and without Expect unless a header says otherwise.
post_file() {
    file=$1 query=$2
    shift 2
    case "$*" in *Content-Type:*) ;; *) set -- 'Content-Type: application/octet-stream' "$@" ;; esac
    case "$*" in *Expect:*) ;; *) set -- Expect: "$@" ;; esac
    printf 'header = "%s"\n' "$@" >"$scratch/headers"
    ask "/v1/matmul?$query" -K "$scratch/headers" --data-binary "@$scratch/$file"
}

# talk FILE PIECE [HOW]: sends $scratch/FILE by talk.py, and leaves what comes back in $scratch/replies.
talk() {
    talked=0
    "$TALK" 127.0.0.1 "${url##*:}" "$2" ${3:+"$3"} <"$scratch/$1" >"$scratch/raw" 2>"$scratch/complaint" || talked=$?
    tr -d '\r' <"$scratch/raw" | sed 's/}HTTP/}\nHTTP/' >"$scratch/replies"
    return $talked
}

# statuses: those of $scratch/replies.
statuses() {
    sed -n 's/.*HTTP\/1\.1 \([0-9]*\) .*/\1/p' "$scratch/replies" | paste -sd ' ' -
}

# last_reply: makes the last of $scratch/replies the last reply, as `ask` leaves it.
last_reply() {
    awk '/^HTTP\/1\.1/ { text = "" } { text = text $0 "\n" } END { printf "%s", text }' "$scratch/replies" >"$scratch/last"
    sed '/^$/q' "$scratch/last" >"$scratch/head"
    sed '1,/^$/d' "$scratch/last" >"$scratch/got"
    status=$(sed -n '1s/[^ ]* \([0-9]*\).*/\1/p' "$scratch/head")
}

status_of() {
    curl -s -o /dev/null --max-time 60 -w '%{http_code}' "$@" || :
}

# code_of FILE: the code of a problem.
code_of() {
    jq -r '.code // "none"' "$1" 2>/dev/null || echo "no JSON"
}

# header NAME FILE: the header's value without the spaces around it. Nothing if the header is absent, and two lines if it
# stands there twice.
header() {
    sed -n "s/^$1:[[:space:]]*\(.*[^[:space:]]\)[[:space:]]*\$/\1/Ip" "$2"
}

# npy_head DESCR ORDER SHAPE: the head of a .npy file of version 1.0, padded with spaces to 128 bytes.
npy_head() {
    printf '\223NUMPY\001\000v\000%-117s\n' "{'descr': '$1', 'fortran_order': $2, 'shape': $3, }"
}

# --- the server

# start ARG…: starts a server on a free port, and returns once it can multiply.
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

# launch ARG…: starts a server. Sets $server, its process, and $kept, the folder of its replies; and $url once it listens.
launch() {
    kept=$(mktemp -d "$scratch/kept.XXXXXX") kept_count=0
    # The log is emptied because the server may be slow to open it, and find_url would find the last server's address.
    : >"$scratch/log"
    "$MATMULD" "$@" 2>"$scratch/log" &
    server=$!
    url=
    await 60 find_url || :
    [ -n "$url" ] || abort "$scratch/log" "matmuld $*: it did not log 'listening on http://HOST:PORT'"
}

find_url() {
    url=$(sed -n 's|.*listening on \(https*://[^ "]*\).*|\1|p' "$scratch/log" | sed 's/0\.0\.0\.0/127.0.0.1/')
    [ -n "$url" ] || has_ended
}

# await_ready: waits until the launched server can multiply. Sets $document, its OpenAPI document. It watches the log,
# because the metrics would count each early request for /readyz as a refusal.
await_ready() {
    { await 60 says_ready && is_ready; } ||
        abort "$scratch/log" "it did not log 'ready' within a minute, or /readyz was not 200 after it"
    document=$kept/openapi.json
    curl -s --max-time 30 -o "$document" "$url/openapi.json" || fail "no /openapi.json"
}

# The log is text or JSON.
says_ready() {
    grep -qE '(^| )ready$|"message":"ready"' "$scratch/log" || has_ended
}

is_ready() {
    [ "$(status_of "$url/readyz")" = 200 ]
}

# ends STATUS WHAT: waits until the server ends, with this status.
ends() {
    status=0
    await 60 has_ended || {
        fail "$2: it does not end"
        kill -KILL "$server"
    }
    wait "$server" || status=$?
    server=
    same "$2: exit status" "$1" "$status"
}

has_ended() {
    ! kill -0 "$server" 2>/dev/null
}

# ended WHAT: the server ends with status 0, and without a sanitizer's report.
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

has_logged() {
    grep -q -e "$1" "$scratch/log"
}

# reload WORDS: sends SIGHUP, and waits until the log has the words.
reload() {
    kill -HUP "$server"
    await 20 has_logged "$1" || fail "the log does not say '$1'"
}

# metric SERIES: its value. Nothing if there is no such series.
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

# is_taken_beyond BYTES: whether requests have reserved more than that.
is_taken_beyond() {
    [ "$(metric 'staging_bytes{state="used"}')" -gt "$1" ]
}

# cpu_ms: the server's CPU time, user and system. A tick of the kernel is a hundredth of a second.
cpu_ms() {
    awk '{ print ($14 + $15) * 10 }' "/proc/$server/stat"
}

now_ms() {
    date +%s%3N
}

# descriptors: how many the server has open.
descriptors() {
    find "/proc/$server/fd" -mindepth 1 | wc -l
}

has_descriptors() {
    [ "$(descriptors)" -le "$1" ]
}

# same_descriptors BEFORE: the server soon has no more than before, so it has leaked none.
same_descriptors() {
    checks=$((checks + 1))
    await 60 has_descriptors "$1" || fail "there were $1 descriptors, and there are $(descriptors)"
}

# --- what a test may need from the machine

# python_with MODULE: a python3 that has the module: the one on PATH, or the system's, for which its packages install modules.
python_with() {
    for python in python3 /usr/bin/python3; do
        ! "$python" -c "import $1" 2>/dev/null || { echo "$python" && return; }
    done
    return 1
}

# make_venv NAME: installs tests/http/NAME/requirements.txt from PyPI into build/NAME, and sets $venv to that. If it cannot, it
# says why. Tests that need the same one wait for the first.
make_venv() {
    venv=$here/../../build/$1 wanted=$here/$1/requirements.txt
    mkdir -p "$here/../../build"
    {
        flock 9
        cmp -s "$wanted" "$venv/installed" || install_venv "$1"
    } 9>"$venv.lock"
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

# find_numpy: sets $python to one that has NumPy: ours from PyPI, which also has ml_dtypes, or what python_with finds.
find_numpy() {
    make_venv numpy && python=$venv/bin/python3 || python=$(python_with numpy)
}

# make_certificate NAME ARG…: $scratch/NAME.pem and NAME.key, for localhost and 127.0.0.1. The arguments say which kind of key.
# Without openssl the test is skipped.
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
    ) || abort "$scratch/openssl.err" "openssl makes no certificate"
}
