#!/bin/sh
# ./dev bench accuracy: how exact every variant is on each family of data, by the harness, and writes what it prints,
# headed by what the figures depend on, to a Markdown file, and the figures to a CSV file. A row that is outside of what
# is promised is told, and counted in the last line; it is no failure.
#
#   accuracy.sh BUILD_FOLDER ARGUMENT…  in the top folder, with the program kernels built there
#
# Arguments:
#   --variant NAME    this variant's rows alone; may be given again
#   --backend NAME    on this backend (CUDA where there is a device, else the CPU)
#   --family NAME     on this data alone; may be given again (tests/kernels/data.c lists the names)
#   --depths K,K...   for these k (64,1024,4096,16384,131072)
#   --edge N          and a C of N×N (256, on the CPU 64)
#   --dry             small products that say little, to see that all works
#   --into FOLDER     where accuracy-DATE.md and accuracy-DATE.csv go (build/bench)
bench=accuracy
# shellcheck source=bench/lib/report.sh
. "$(dirname "$0")/lib/report.sh"

depths_count_max=16
depth_max=16777216
edge_max=1024

# take_depths LIST
take_depths() {
    case $1 in
    '' | ,* | *, | *,,*) bad_usage "--depths takes numbers with commas, got '$1'" ;;
    esac
    count=0
    for depth in $(printf '%s\n' "$1" | tr ',' ' '); do
        whole "--depths takes numbers with commas" "$depth_max" "$depth"
        count=$((count + 1))
    done
    [ "$count" -le "$depths_count_max" ] || bad_usage "--depths takes at most $depths_count_max numbers, got $count"
}

# Sets folder, and options, the words that go on to the harness; none of them holds a space.
read_arguments() {
    dry=no sized=no options=
    while [ $# -gt 0 ]; do
        case $1 in
        --backend | --variant | --family)
            case ${2:-} in
            '' | *[!a-z0-9_]*) bad_usage "$1 takes a name, got '${2:-}'" ;;
            esac
            options="$options $1 $2" && shift
            ;;
        --depths)
            take_depths "${2:-}"
            options="$options $1 $2" sized=yes && shift
            ;;
        --edge)
            whole "$1 takes a number" "$edge_max" "${2:-}"
            options="$options $1 $2" sized=yes && shift
            ;;
        --dry) dry=yes ;;
        --into)
            take_folder "${2:-}" && shift
            ;;
        *) bad_usage "does not take '$1'" ;;
        esac
        shift
    done
    [ "$dry:$sized" != yes:yes ] || bad_usage "takes either --dry or --depths and --edge, not both"
    [ "$dry" = no ] || options="$options --depths 65,1024 --edge 17"
}

# The reference of a large product takes a core ten seconds, so all cores share it.
threads_max=16

print_head() {
    print_facts 'How exact the variants are' "machine|$machine" "GPU|${gpu:-none}"
}

run() {
    threads=$(nproc)
    [ "$threads" -le "$threads_max" ] || threads=$threads_max
    name_machine
    name_report
    # The options are words to be split.
    # shellcheck disable=SC2086
    keep_report print_head "$build/tests/kernels/kernels" --accuracy --threads "$threads" $options
}

# The harness's CSV, with what the figures depend on beside each row.
print_csv() {
    awk -v head=,machine,gpu,date,commit -v same=",\"$machine\",\"$gpu\",$date,$commit" \
        '{ print $0 (NR == 1 ? head : same) }' "$1"
}

take_arguments "$@"
run
