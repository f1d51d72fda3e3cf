# What all of ./dev bench shares: the refusal of bad usage, and the head of a report. To be sourced.
# shellcheck shell=sh disable=SC2034
set -eu

: "${bench:?its name}"
folder=build/bench

say() {
    echo "bench $bench: $*" >&2
}

bad_usage() {
    say "$*"
    echo "see ./dev --help" >&2
    exit 2
}

# whole WHAT MAX TEXT: refuses what is no number from 1 to MAX; no shell overflows on eight digits.
whole() {
    case $3 in
    '' | *[!0-9]* | ?????????*) ;;
    *) [ "$3" -lt 1 ] || [ "$3" -gt "$2" ] || return 0 ;;
    esac
    bad_usage "$1 from 1 to $2, got '$3'"
}

# take_folder FOLDER: where reports go.
take_folder() {
    [ -n "$1" ] || bad_usage "--into takes a folder"
    folder=$1
}

# take_arguments BUILD_FOLDER ARGUMENT…: of a script, by its read_arguments. Sets build and command.
take_arguments() {
    build=$1
    shift
    read_arguments "$@"
    command=${*:+ $*}
}

# Sets what names a report: date and commit, and the path of its files in $folder, without their endings.
name_report() {
    date=$(date -u +%Y-%m-%dT%H:%M:%SZ)
    commit=$(git describe --always --dirty 2>/dev/null || :)
    report=$folder/$bench-$(echo "$date" | tr -d ':')
    mkdir -p "$folder"
}

# Sets machine, the processor's name, and gpu, the first GPU's name and its driver, or nothing.
name_machine() {
    machine=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
    gpu=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -n 1 || :)
}

# print_facts TITLE [NAME|VALUE…]: a heading, and what the figures depend on.
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

# keep_report HEAD COMMAND…: the harness's report, headed by what HEAD prints, as it comes, since it can take minutes;
# in $report.md, and its figures, by the caller's print_csv, in $report.csv. COMMAND is given the file for them. The
# status is the command's: that of a pipe is its last one's.
keep_report() {
    head=$1
    shift
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    {
        code=0
        "$head"
        "$@" --csv "$scratch/csv" || code=$?
        echo "$code" >"$scratch/code"
    } | tee "$report.md"
    if [ -s "$scratch/csv" ]; then
        print_csv "$scratch/csv" >"$report.csv"
        say "this is in $report.md, and the figures in $report.csv"
    else
        rm "$report.md"
    fi
    return "$(cat "$scratch/code")"
}
