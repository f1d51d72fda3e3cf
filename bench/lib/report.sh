# Reads the options of a bench, and prints the head of its report. Source this file. The bench must define a
# function `options`, and end with `take_arguments "$@"`.
# shellcheck shell=sh disable=SC2034
set -eu

: "${bench:?its name}"
folder=build/bench passed=

say() {
    echo "bench $bench: $*" >&2
}

bad_usage() {
    say "$*"
    echo "it takes:" >&2
    list_options | awk -F '|' '{ printf "  %-18s %s\n", $1, $3 }' >&2
    exit 2
}

# `options` prints a row for each option: OPTION VALUE|VARIABLE KIND LIMITS|HELP. The variable `passed`
# collects options for the harness. Kinds: yes (no value), number MAX (from 1), numbers MAX (with commas),
# name, text, one WORD…, some WORD… (with commas).
list_options() {
    options
    common_options
    echo "--into FOLDER|folder text|where the report goes (build/bench)"
}

common_options() {
    :
}

# whole WHAT MAX TEXT: rejects anything except a number from 1 to MAX. The number has at most eight digits,
# because longer numbers overflow in some shells.
whole() {
    case $3 in
    '' | *[!0-9]* | ?????????*) ;;
    *) [ "$3" -lt 1 ] || [ "$3" -gt "$2" ] || return 0 ;;
    esac
    bad_usage "$1 from 1 to $2, got '$3'"
}

# read_option OPTION VALUE: sets the option's variable, and `taken`, the number of words used.
read_option() {
    option=$1 value=$2 words=$2 taken=2
    row=$(list_options | awk -F '[ |]' -v option="$1" '$1 == option')
    [ -n "$row" ] || bad_usage "does not take '$1'"
    row=${row#*|}
    # shellcheck disable=SC2086
    set -- ${row%%|*}
    variable=$1 kind=$2
    shift 2
    case $kind in numbers | some) words=$(echo "$value" | tr ',' ' ') ;; esac
    case $kind in
    yes) words=yes value='' taken=1 ;;
    number) whole "$option takes a number" "$1" "$value" ;;
    numbers)
        for word in ${words:-none}; do
            whole "$option takes numbers with commas" "$1" "$word"
        done
        ;;
    name) case $value in '' | *[!a-z0-9_]*) bad_usage "$option takes a name, got '$value'" ;; esac ;;
    text) [ -n "$value" ] || bad_usage "$option takes a value" ;;
    one | some)
        for word in ${words:-none}; do
            case " $* " in *" $word "*) ;; *) bad_usage "$option takes $kind of: $*; got '$value'" ;; esac
        done
        ;;
    esac
    case $variable in
    passed) passed="$passed $option${value:+ $value}" ;;
    *) eval "$variable=\$words" ;;
    esac
}

# operand WORD: handles a word that is no option. Scripts with operands replace this function.
operand() {
    bad_usage "does not take '$1'"
}

# take_arguments BUILD_FOLDER ARGUMENT…: sets build, command, and the variables of options.
take_arguments() {
    build=$1
    shift
    command=${*:+ $*}
    while [ $# -gt 0 ]; do
        taken=1
        case $1 in
        -*) read_option "$1" "${2:-}" ;;
        *) operand "$1" ;;
        esac
        shift "$taken"
    done
}

# summary FILE: prints the median, the least and the largest number in the file.
summary() {
    [ ! -s "$1" ] || sed '/failed/d' "$1" | sort -g | awk '
        { value[NR] = $1 }
        END { if (NR > 0) print (NR % 2 ? value[(NR + 1) / 2] : (value[NR / 2] + value[NR / 2 + 1]) / 2), value[1], value[NR] }'
}

# Sets `date` and `commit`. Sets `report` to the path of the report without .md or .csv.
name_report() {
    date=$(date -u +%Y-%m-%dT%H:%M:%SZ)
    commit=$(git describe --always --dirty 2>/dev/null || :)
    report=$folder/$bench-$(echo "$date" | tr -d ':')
    mkdir -p "$folder"
}

# Sets `machine` to the processor's name, and `gpu` to the first GPU's name and driver, or to "".
name_machine() {
    machine=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
    gpu=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -n 1 || :)
}

# print_facts TITLE [NAME|VALUE…]: prints a heading and a list.
print_facts() {
    echo "# $1"
    echo
    shift
    for fact in "date|$date" "command|\`./dev bench $bench$command\`" "commit|$commit" "build|$build" \
        "processors|$(nproc)" "$@"; do
        value=${fact#*|}
        echo "- ${fact%%|*}: ${value:-not known}"
    done
}

# keep_report HEAD COLUMNS VALUES COMMAND…: runs HEAD and COMMAND. Prints the output of both, and writes it to
# $report.md. COMMAND gets the path of $report.csv, and COLUMNS and VALUES are added to each row of the CSV
# file. Returns the status of COMMAND.
keep_report() {
    head=$1 columns=$2 values=$3
    shift 3
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    {
        code=0
        "$head"
        "$@" --csv "$scratch/csv" || code=$?
        echo "$code" >"$scratch/code"
    } | tee "$report.md"
    if [ -s "$scratch/csv" ]; then
        awk -v columns="$columns" -v values="$values" '{ print $0 "," (NR == 1 ? columns : values) }' "$scratch/csv" >"$report.csv"
        say "this is in $report.md, and the figures in $report.csv"
    else
        rm "$report.md"
    fi
    return "$(cat "$scratch/code")"
}
