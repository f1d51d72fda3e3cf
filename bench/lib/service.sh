# Functions for the benches of the service. They start servers on free ports, measure them alternately, and
# print medians in a table. Source this file.
# shellcheck shell=sh disable=SC2034 source=bench/lib/report.sh
. "$(dirname "$0")/lib/report.sh"

: "${known_rows:?the names of its rows}"

export no_proxy='*' LC_ALL=C
export MATMULD_LAME_DUCK_MS=0 # otherwise each server would take five seconds to stop
load=bench/load
rounds=5 seconds=2 quick=no alone=no
servers='' scratch=''

common_options() {
    cat <<END
--rows LIST|rows some $known_rows|these alone: $known_rows
--rounds N|rounds number 1000|of each comparison ($rounds)
--seconds N|seconds number 1000|of each run of a rate ($seconds)
END
}

has_row() {
    case " ${rows:?} " in *" $1 "*) return 0 ;; esac
    return 1
}

end_servers() {
    for pid in $servers; do
        stop "$pid"
    done
}

# await PATTERN: waits up to two minutes for a line in $log. If the line does not come, returns false and sets
# `why`.
await() {
    tries=6000
    until grep -q "$1" "$log"; do
        tries=$((tries - 1))
        if [ "$tries" -eq 0 ] || ! kill -0 "$pid" 2>/dev/null; then
            why="$who did not start: $(tail -n 1 "$log" | cut -c 1-200)"
            return 1
        fi
        sleep 0.02
    done
}

# start NAME COMMAND…: starts a server that prints "listening on" and its address. Sets port, pid and log.
start() {
    who=$1 log=$scratch/$1.log
    shift
    : >"$log"
    "$@" >>"$log" 2>&1 &
    pid=$!
    servers="$servers $pid"
    await 'listening on .*[0-9]$' && port=$(sed -n 's/.*listening on \(.*:\)*\([0-9]*\)$/\2/p' "$log" | head -n 1)
}

# ended PID: waits until a server has ended, and sets `code` to its status.
ended() {
    code=0
    wait "$1" 2>/dev/null || code=$?
    servers=$(echo "$servers" | sed "s/ $1\$//; s/ $1 / /")
}

stop() {
    kill "$1" 2>/dev/null || :
    ended "$1"
}

# logged_ms PATTERN: prints when the service first logged the pattern, in ms since 1970.
logged_ms() {
    date -d "$(sed -n "/$1/{ s/ .*//p; q; }" "$log")" +%s%3N
}

# start_matmuld NAME OPTION…: starts the service, and waits until it can multiply. `limiter` is a command that
# runs the service with limits, or empty.
limiter=
start_matmuld() {
    name=$1
    shift
    # shellcheck disable=SC2086
    start "$name" $limiter "${build:?its folder}/server/matmuld" --port 0 --log-format text "$@" && await ' ready$'
}

start_floor() {
    name=$1 program=$2
    shift 2
    start "$name" "$build/bench/load/$program" "$@"
}

# start_sockets STREAMS BODY_BYTES REPLY_BYTES [HOST]: starts the socket loop. Sets floor_pid, and floor, its
# port or "".
start_sockets() {
    floor=
    start_floor sockets sockets "${4:-127.0.0.1}" "$1" $(($2 + 4096)) "$3" && floor=$port floor_pid=$pid
}

start_peer() {
    start "$1" "$python" "$load/peers/serve.py" --with "$2" --processes "$3"
}

# Empties the logs, because the service logs each request.
drop_logs() {
    for log in "$scratch"/*.log; do
        : >"$log"
    done
}

has_modules() {
    case $2 in
    torch) needed='aiohttp, uvloop, numpy, torch' ;;
    client) needed='numpy' ;; # our own client needs no peer
    dask) needed='dask.array, distributed' ;;
    *) needed='aiohttp, numpy' ;;
    esac
    "$1" -c "import $needed" >/dev/null 2>&1
}

# find_python LIBRARY: sets `python` to a Python that has the packages: from our virtual environment, the
# system, or a new environment with packages from PyPI. If that fails, returns false and sets `why`.
find_python() {
    for python in build/peers/bin/python3 python3 /usr/bin/python3; do
        ! has_modules "$python" "$1" || return 0
    done
    say "making a virtual environment in build/peers for the peer"
    python=build/peers/bin/python3
    if python3 -m venv --system-site-packages build/peers >"$scratch/venv" 2>&1 &&
        "$python" -m pip install --quiet --retries 1 --timeout 10 \
            -r "$load/peers/requirements.txt" >>"$scratch/venv" 2>&1 && has_modules "$python" "$1"; then
        return 0
    fi
    why="no Python with $needed: $(tail -n 1 "$scratch/venv" | cut -c 1-100)"
    return 1
}

versions_of_peer() {
    case $1 in torch) set -- aiohttp uvloop torch ;; *) set -- aiohttp numpy ;; esac
    "$python" - "$@" <<'PYTHON' 2>/dev/null || :
import importlib, platform, sys
print("Python", platform.python_version(), *(f"{name} {importlib.import_module(name).__version__}" for name in sys.argv[1:]))
PYTHON
}

# figure NAME [FILE]: prints a figure of the last run of steady.py, or of the run in FILE.
figure() {
    tr ' ' '\n' <"${2:-$scratch/figures}" | sed -n "s/^$1=//p"
}

# measure KEY FIGURES ARGUMENT…: runs steady.py, and keeps each figure as KEY.FIGURE. A failed run is kept as
# `failed`, so the rounds of different keys stay aligned.
measure() {
    key=$1 wanted=$2
    shift 2
    if ! "$load/steady.py" "$@" >"$scratch/figures" 2>"$scratch/trouble"; then
        say "$key: $(head -n 1 "$scratch/trouble" | cut -c 1-300)"
        : >"$scratch/figures"
    fi
    for wanted in $wanted; do
        keep "$key.$wanted" "$(figure "$wanted")"
    done
}

# keep KEY VALUE: keeps a value of this round. An empty value means that the run failed.
keep() {
    echo "${2:-failed}" >>"$scratch/values/$1"
}

# cpu_us PID: prints the CPU time in microseconds. The kernel counts in ticks of 10 ms.
cpu_us() {
    awk '{ printf "%.0f", ($14 + $15) * 10000 }' "/proc/$1/stat"
}

memory_kib() {
    sed -n "s/^$1:[^0-9]*\([0-9]*\) kB\$/\1/p" "/proc/$2/status"
}

# median KEY, most KEY: print the median and the largest value of all rounds.
median() {
    summary "$scratch/values/$1" | cut -d ' ' -f 1
}

most() {
    summary "$scratch/values/$1" | cut -d ' ' -f 3
}

# row WHAT TARGET MEASURED BESIDE RATIO RANGE MET: prints a row. BESIDE is the value of the other server.
# RANGE is the least and the largest ratio.
row() {
    (
        IFS='|'
        echo "$*"
    ) >>"$scratch/rows"
    print_row "$@"
}

print_row() {
    printf '| %s | %s | %s | %s | %s | %s | %s |\n' "$@"
}

print_table_head() {
    print_row what target measured 'beside it' ratio 'its rounds' met
    echo '|---|---|--:|--:|--:|--:|---|'
}

# shown VALUE UNIT: prints at least three digits, with thousands grouped.
shown() {
    [ -n "$1" ] || { echo '' && return 0; }
    awk -v value="$1" -v unit="$2" 'BEGIN {
        text = sprintf(value >= 100 || value == int(value) ? "%.0f" : value >= 10 ? "%.1f" : value >= 1 ? "%.2f" : "%.3f", value)
        while (match(text, /[0-9][0-9][0-9][0-9]($|,)/))
            text = substr(text, 1, RSTART) "," substr(text, RSTART + 1)
        print text (unit == "" ? "" : " " unit)
    }'
}

# met VALUE TARGET: prints yes, no or a dash. TARGET is "≥ N", "≤ N" or empty.
met() {
    limit=${2#* }
    case $2 in
    '≥ '*) awk -v value="$1" -v limit="${limit%% *}" 'BEGIN { print (value >= limit ? "yes" : "no") }' ;;
    '≤ '*) awk -v value="$1" -v limit="${limit%% *}" 'BEGIN { print (value <= limit ? "yes" : "no") }' ;;
    *) echo '–' ;;
    esac
}

# row_ratio WHAT TARGET KEY BESIDE UNIT: prints a row with the median of the ratio KEY / BESIDE. Rounds in
# which KEY or BESIDE failed do not count.
row_ratio() {
    above=$scratch/values/$3 below=$scratch/values/$4
    touch "$above" "$below"
    paste "$above" "$below" | awk '!/failed/ && NF == 2 && $2 > 0 { print $1 / $2 }' >"$scratch/ratios"
    if [ ! -s "$scratch/ratios" ]; then
        row "$1" "$2" "$(shown "$(median "$3")" "$5")" "$(shown "$(median "$4")" "$5")" '' '' 'not measured'
        return 0
    fi
    read -r middle least most <<END_OF_SUMMARY
$(summary "$scratch/ratios")
END_OF_SUMMARY
    row "$1" "$2" "$(shown "$(median "$3")" "$5")" "$(shown "$(median "$4")" "$5")" \
        "$(shown "$middle" '')" "$(shown "$least" '') – $(shown "$most" '')" "$(met "$middle" "$2")"
}

row_value() {
    middle=$(median "$3")
    if [ -n "$middle" ]; then
        row_is "$1" "$2" "$middle" "$4"
    else
        row_left_out "$1" "$2" 'not measured'
    fi
}

row_is() {
    row "$1" "$2" "$(shown "$3" "${4:-}")" '' '' '' "$(met "$3" "$2")"
}

# rows_of_start BACKEND [NOTE]: prints the start-up times of the service, counted from exec.
rows_of_start() {
    for _ in $(seq "$rounds"); do
        begun=$(date +%s%3N)
        start_matmuld start --backend "$1" || continue
        keep start.accepts_ms $(($(logged_ms 'listening on') - begun))
        keep start.ready_ms $(($(logged_ms ' ready$') - begun))
        stop "$pid"
    done
    row_value 'the socket accepts, after exec' '≤ 200 ms' start.accepts_ms ms
    row_value "ready, after exec${2:-}" '≤ 2000 ms' start.ready_ms ms
}

row_left_out() {
    row "$1" "$2" '' '' '' '' "$3"
}

print_head() {
    title=$1
    shift
    print_facts "$title" "machine|$machine" "memory|$(awk '/^MemTotal/ { printf "%.1f GiB", $2 / 1048576 }' /proc/meminfo)" "GPU|${gpu:-none}" "kernel|$(uname -sr)" \
        "libmicrohttpd|$(pkg-config --modversion libmicrohttpd 2>/dev/null || :)" \
        "rounds|$rounds, in turn, of $seconds s or some requests each; medians" "$@"
    echo
}

# main ARGUMENT…: runs a whole bench. Prints the output of `run` and keeps it in $folder, with a CSV file of
# the rows. `run` has its own subshell, which ends the servers.
main() {
    take_arguments "$@"
    scratch=$(mktemp -d)
    mkdir "$scratch/values"
    : >"$scratch/rows"
    trap 'rm -rf "$scratch"' EXIT
    trap 'exit 130' INT TERM HUP
    name_machine
    name_report
    echo 1 >"$scratch/code"
    (
        trap end_servers EXIT
        trap 'exit 130' INT TERM HUP
        run
        echo 0 >"$scratch/code"
    ) | tee "$report.md"
    awk -F '|' -v bench="$bench" -v same="$date\",\"$commit" '
        BEGIN { print "bench,what,target,measured,beside,ratio,rounds,met,date,commit" }
        { gsub(/[|]/, "\",\""); print "\"" bench "\",\"" $0 "\",\"" same "\"" }' "$scratch/rows" >"$report.csv"
    say "this is in $report.md, and the rows in $report.csv"
    return "$(cat "$scratch/code")"
}
