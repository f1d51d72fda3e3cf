# Functions for the scripts of this folder. $scratch is a temporary folder. When a script ends for any reason,
# clean_up kills its server and removes $scratch.
# shellcheck shell=sh disable=SC2034
set -eu

: "${MATMULD:?the path of matmuld}"
export no_proxy='*'
# Removes options that the caller's environment sets for matmuld.
for variable in $(env | sed -n 's/^\(MATMULD_[A-Z0-9_]*\)=.*/\1/p'); do
    unset "$variable"
done
export MATMULD_LAME_DUCK_MS=0 # otherwise each server would take five seconds to stop

# Puts the real interpreter first on PATH, because a wrapper script for python3 starts slowly.
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

# Runs when the script ends, also after a command outside a check has failed.
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

# finish: the last line of every script. A script that made no checks fails.
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

fail() {
    failures=$((failures + 1))
    printf 'FAILED: %s\n' "$*"
}

abort() {
    cat "$1"
    fail "$2"
    exit 1
}

same() {
    checks=$((checks + 1))
    [ "$2" = "$3" ] || fail "$1: expected '$2', got '$3'"
}

# like WHAT PATTERN GOT: PATTERN is a shell pattern.
like() {
    checks=$((checks + 1))
    # shellcheck disable=SC2254
    case $3 in
    $2) ;;
    *) fail "$1: expected $2, got '$3'" ;;
    esac
}

at_most() {
    checks=$((checks + 1))
    awk -v limit="$2" -v got="$3" 'BEGIN { exit !(got + 0 <= limit + 0) }' || fail "$1: expected at most $2, got $3"
}

# expect WHAT STATUS [KEY VALUE]…: checks the last reply. KEY is one of:
#   Header:   VALUE is a shell pattern, or '' if the header must be absent
#   detail    the reply's detail must contain VALUE, in which * stands for any text
#   code      VALUE is the code of the problem, or none
#   a filter of jq that must give VALUE: text, or else JSON
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

# check_later WHAT EXPECTED CHECK: saves a check of the last reply for later, because jq takes 30 ms to start.
check_later() {
    checks=$((checks + 1))
    printf ', %s\n' "$3" >>"$scratch/checks.jq"
    { printf '%s\t%s\t' "$1" "$2" && tr '\n\t' '  ' <"$scratch/got" && echo; } >>"$scratch/checked"
}

check_replies() {
    [ -e "$scratch/checks.jq" ] || return 0
    cat "$here/expect.jq" "$scratch/checks.jq" >"$scratch/program.jq"
    jq -nrR -f "$scratch/program.jq" "$scratch/checked" >"$scratch/failed" || fail "jq cannot check the replies"
    rm "$scratch/checks.jq" "$scratch/checked"
    while read -r failure; do
        fail "$failure"
    done <"$scratch/failed"
}

# runs STATUS WORDS ARG…: runs matmuld, which must end with this status and print WORDS to stderr.
runs() {
    expected=$1 words=$2
    shift 2
    status=0
    timeout 60 "$MATMULD" "$@" >"$scratch/out" 2>"$scratch/err" || status=$?
    same "matmuld $*: exit status" "$expected" "$status"
    like "matmuld $*: stderr" "*$words*" "$(cat "$scratch/err")"
}

# await SECONDS COMMAND…: repeats the command until it succeeds. Fails after SECONDS.
await() {
    tries=$(($1 * 20))
    shift
    until "$@"; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || return 1
        sleep 0.05
    done
}

# Replies are equal with and without a sanitizer, so builds with a sanitizer skip this comparison.
sanitizer=${ASAN_OPTIONS:-}${TSAN_OPTIONS:-}

conform() {
    [ -z "$sanitizer" ] || return 0
    checks=$((checks + 1))
    if python=$(python_with jsonschema); then
        "$python" "$here/validate.py" "$@" || fail "it does not conform to the OpenAPI document"
    else
        echo "nothing was held against the OpenAPI document: there is no python3 with jsonschema"
    fi
}

# keep METHOD TARGET: saves the last reply. `finish` compares all saved replies with the OpenAPI document in
# one run, because validate.py is slow to start. Large replies are skipped, because they would take seconds.
keep() {
    [ -z "$sanitizer" ] && [ "$(wc -c <"$scratch/got")" -lt 1000000 ] || return 0
    kept_count=$((kept_count + 1))
    printf '%s %s\n' "$1" "$2" >"$kept/$kept_count.request"
    cp "$scratch/head" "$kept/$kept_count.head"
    cp "$scratch/got" "$kept/$kept_count.body"
}

# ask TARGET ARG…: sends a request with curl. Sets $status (000 without a reply) and $uploaded, the number of
# body bytes sent. Writes the reply to $scratch/head and $scratch/got, and saves it with `keep`.
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

# post_file FILE QUERY HEADER…: posts $scratch/FILE as the raw operands of a product.
post_file() {
    file=$1 query=$2
    shift 2
    case "$*" in *Content-Type:*) ;; *) set -- 'Content-Type: application/octet-stream' "$@" ;; esac
    case "$*" in *Expect:*) ;; *) set -- Expect: "$@" ;; esac
    printf 'header = "%s"\n' "$@" >"$scratch/headers"
    ask "/v1/matmul?$query" -K "$scratch/headers" --data-binary "@$scratch/$file"
}

# talk FILE PIECE [HOW]: sends $scratch/FILE with talk.py. Writes the replies to $scratch/replies.
talk() {
    talked=0
    "$TALK" 127.0.0.1 "${url##*:}" "$2" ${3:+"$3"} <"$scratch/$1" >"$scratch/raw" 2>"$scratch/complaint" || talked=$?
    tr -d '\r' <"$scratch/raw" | sed 's/}HTTP/}\nHTTP/' >"$scratch/replies"
    return $talked
}

statuses() {
    sed -n 's/.*HTTP\/1\.1 \([0-9]*\) .*/\1/p' "$scratch/replies" | paste -sd ' ' -
}

# last_reply: makes the last reply in $scratch/replies the one that `expect` checks.
last_reply() {
    awk '/^HTTP\/1\.1/ { text = "" } { text = text $0 "\n" } END { printf "%s", text }' "$scratch/replies" >"$scratch/last"
    sed '/^$/q' "$scratch/last" >"$scratch/head"
    sed '1,/^$/d' "$scratch/last" >"$scratch/got"
    status=$(sed -n '1s/[^ ]* \([0-9]*\).*/\1/p' "$scratch/head")
}

status_of() {
    curl -s -o /dev/null --max-time 60 -w '%{http_code}' "$@" || :
}

# code_of FILE: prints the code of a problem document.
code_of() {
    jq -r '.code // "none"' "$1" 2>/dev/null || echo "no JSON"
}

# header NAME FILE: prints a line for each header of this name.
header() {
    sed -n "s/^$1:[[:space:]]*\(.*[^[:space:]]\)[[:space:]]*\$/\1/Ip" "$2"
}

# npy_head DESCR ORDER SHAPE: prints the header of a .npy file of version 1.0, padded to 128 bytes.
npy_head() {
    printf '\223NUMPY\001\000v\000%-117s\n' "{'descr': '$1', 'fortran_order': $2, 'shape': $3, }"
}

# start ARG…: starts a server on a free port, and returns when it is ready.
start() {
    launch --port 0 "$@"
    await_ready
}

start_with_key() {
    export MATMULD_API_KEY="$1"
    shift
    start "$@"
    unset MATMULD_API_KEY
}

# launch ARG…: starts a server. Sets $server to its process, and $url once the server listens.
launch() {
    kept=$(mktemp -d "$scratch/kept.XXXXXX") kept_count=0
    # Empties the log, because find_url would otherwise find the address of the previous server.
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

# await_ready: waits until the server is ready, and sets $document to its OpenAPI document. Reads the log,
# because early requests to /readyz would be counted as errors in the metrics.
await_ready() {
    { await 60 says_ready && is_ready; } ||
        abort "$scratch/log" "it did not log 'ready' within a minute, or /readyz was not 200 after it"
    document=$kept/openapi.json
    curl -s --max-time 30 -o "$document" "$url/openapi.json" || fail "no /openapi.json"
}

says_ready() {
    grep -qE '(^| )ready$|"message":"ready"' "$scratch/log" || has_ended
}

is_ready() {
    [ "$(status_of "$url/readyz")" = 200 ]
}

# ends STATUS WHAT: waits for the server to end, which must give this status.
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

# ended WHAT: waits for the server to end with status 0 and without a sanitizer's report.
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

# gives_up WHAT: waits for the server to end by itself with status 70, because it lost its last device.
gives_up() {
    ends 70 "$1"
    has_logged 'ends with status 70' || fail "$1: the log does not tell of it"
}

has_logged() {
    grep -q -e "$1" "$scratch/log"
}

# reload WORDS: sends SIGHUP, and waits until the log contains WORDS.
reload() {
    kill -HUP "$server"
    await 20 has_logged "$1" || fail "the log does not say '$1'"
}

has_reloaded() {
    [ "$(grep -c -e "$1" "$scratch/log")" -gt "$2" ]
}

# reload_under_load WORDS CHANGE ARG…: lets two clients post products while the server reloads twenty times, and
# each product must be answered. The command CHANGE gets the number of the reload and changes the files. Each
# reload logs WORDS. ARGs go to curl. A client makes a new connection for each twenty products.
reload_under_load() {
    words=$1 change=$2
    shift 2
    rm -f "$scratch/reloaded"
    posting=
    for client in 1 2; do
        while [ ! -e "$scratch/reloaded" ]; do
            curl -s --max-time 60 -o /dev/null -w '%{http_code}\n' "$@" -d '{"a":[[2]],"b":[[3]]}' \
                "$url/v1/matmul#[1-20]" || echo lost
        done >"$scratch/posted.$client" &
        posting="$posting $!"
    done
    for number in $(seq 20); do
        reloads=$(grep -c -e "$words" "$scratch/log" || :)
        $change "$number"
        kill -HUP "$server"
        await 20 has_reloaded "$words" "$reloads" || fail "reload $number: the log does not say '$words'"
    done
    : >"$scratch/reloaded"
    # shellcheck disable=SC2086
    wait $posting || :
    same "products lost in reloads" '' "$(cat "$scratch"/posted.? | grep -vx 200 | sort | uniq -c)"
    at_most "products during the reloads, at least" "$(cat "$scratch"/posted.? | wc -l)" 40
}

# metric SERIES: prints a value of /metrics, or nothing if there is no such series.
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

# is_taken_beyond BYTES: succeeds if requests use more than BYTES of the memory budget.
is_taken_beyond() {
    [ "$(metric 'staging_bytes{state="used"}')" -gt "$1" ]
}

# cpu_ms: prints the server's CPU time. The kernel counts in hundredths of a second.
cpu_ms() {
    awk '{ print ($14 + $15) * 10 }' "/proc/$server/stat"
}

now_ms() {
    date +%s%3N
}

descriptors() {
    find "/proc/$server/fd" -mindepth 1 | wc -l
}

has_descriptors() {
    [ "$(descriptors)" -le "$1" ]
}

# same_descriptors BEFORE: waits until the server has only BEFORE open descriptors. More would be a leak.
same_descriptors() {
    checks=$((checks + 1))
    await 60 has_descriptors "$1" || fail "there were $1 descriptors, and there are $(descriptors)"
}

# Also tries the system's python3, because Debian packages install modules only there.
python_with() {
    for python in python3 /usr/bin/python3; do
        ! "$python" -c "import $1" 2>/dev/null || { echo "$python" && return; }
    done
    return 1
}

# make_venv NAME: installs tests/http/NAME/requirements.txt from PyPI into build/NAME, and sets $venv.
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

# find_numpy: sets $python to a python3 with NumPy. Prefers the one from PyPI, which also has ml_dtypes.
find_numpy() {
    make_venv numpy && python=$venv/bin/python3 || python=$(python_with numpy)
}

# make_certificate NAME ARG…: writes $scratch/NAME.pem and NAME.key. Skips the test without openssl.
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
