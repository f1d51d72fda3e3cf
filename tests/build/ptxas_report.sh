#!/bin/sh
# What ptxas, the assembler behind nvcc, says of each kernel: kept from the build, and read. It judges nothing;
# the test build/ptxas does.
#
#   ptxas_report.sh keep FOLDER COMMAND…   runs a compiler; what it says of OBJECT.o goes to FOLDER/OBJECT.txt
#   ptxas_report.sh rows REPORT…           a line a kernel and architecture, as read_report says
#   ptxas_report.sh table REPORT…          the same for people, in Markdown
set -eu

# Leaves out what ptxas says of every kernel, also where nothing is wrong. A spill is told with its kernel's name.
worth_a_look() {
    awk '
        /^ptxas info +: Function properties for / { described = $NF }
        /^ptxas info +: ([0-9]+ bytes gmem|Compiling entry function |Function properties for |Used |Compile time )/ { next }
        /bytes stack frame, 0 bytes spill stores, 0 bytes spill loads$/ { next }
        /bytes stack frame/ { $0 = "ptxas info    : " described ": " substr($0, 5) }
        { print }' "$1"
}

# A report belongs to an object: it comes with it, and none is left where there is no new object. A compiler that
# is launched beside others writes to files of its own until it is done.
keep() {
    folder=$1
    shift
    object=
    previous=
    for word in "$@"; do
        [ "$previous" != -o ] || object=$word
        previous=$word
    done
    [ -n "$object" ] || exec "$@"
    report=$folder/$(basename "$object" .o).txt
    mkdir -p "$folder"
    rm -f "$report"
    trap 'rm -f "$report.part"' EXIT
    trap 'exit 130' INT TERM HUP
    code=0
    "$@" 2>"$report.part" || code=$?
    worth_a_look "$report.part" >&2
    [ "$code" -ne 0 ] || mv "$report.part" "$report"
    return "$code"
}

# FILE|FUNCTION|ARCHITECTURE|KIND|REGISTERS|SHARED|STACK|STORES|LOADS|BARRIERS, with the function's name as the
# linker sees it. KIND is kernel, or function for one that kernels call: ptxas tells only of the latter's stack
# and spills. What a report does not say stays empty.
read_report() {
    awk -v file="$(basename "$1" .txt)" '
        function number_before(words) {
            return match($0, "[0-9]+ " words) ? substr($0, RSTART, RLENGTH) + 0 : ""
        }
        function begin(name, what) {
            if ((architecture, name) in kind)
                return
            order[++count] = architecture SUBSEP name
            kind[architecture, name] = what
        }
        /^ptxas info +: Compiling entry function / {
            split($0, quoted, "\047")
            kernel = quoted[2]
            architecture = quoted[4]
            begin(kernel, "kernel")
        }
        /^ptxas info +: Function properties for / {
            described = $NF
            begin(described, "function")
        }
        /bytes stack frame/ {
            stack[architecture, described] = number_before("bytes stack frame")
            stores[architecture, described] = number_before("bytes spill stores")
            loads[architecture, described] = number_before("bytes spill loads")
        }
        /^ptxas info +: Used / {
            registers[architecture, kernel] = number_before("registers")
            shared[architecture, kernel] = number_before("bytes smem") + 0
            barriers[architecture, kernel] = number_before("barriers")
        }
        END {
            for (row = 1; row <= count; row++) {
                key = order[row]
                split(key, part, SUBSEP)
                print file "|" part[2] "|" part[1] "|" kind[key] "|" registers[key] "|" shared[key] "|" \
                    stack[key] "|" stores[key] "|" loads[key] "|" barriers[key]
            }
        }' "$1"
}

rows() {
    for report in "$@"; do
        read_report "$report"
    done
}

# A build does not notice that a report was removed.
missing() {
    echo "there is no $1; touch $(basename "$1" .txt) and build again" >&2
    exit 1
}

# Names as the source has them, where there is a tool that knows; without what all kernels share.
as_in_source() {
    if command -v c++filt >/dev/null; then
        c++filt
    elif command -v cu++filt >/dev/null; then
        cu++filt
    else
        cat
    fi | sed -e 's/(anonymous namespace):://g' -e 's/|void /|/' -e 's/(mm_product)|/|/'
}

table() {
    for report in "$@"; do
        [ -s "$report" ] || missing "$report"
    done
    echo 'What ptxas says of each kernel. Shared memory that is asked for at launch is not in it.'
    echo
    echo '| file | kernel | architecture | registers | static shared bytes | stack bytes | spill store bytes | spill load bytes | barriers |'
    echo '|---|---|---|--:|--:|--:|--:|--:|--:|'
    rows "$@" | as_in_source | awk -F '|' '{
        print "| `" $1 "` | `" $2 "` | " $3 " | " $5 " | " $6 " | " $7 " | " $8 " | " $9 " | " $10 " |"
    }'
}

case ${1:-} in
keep | rows | table) "$@" ;;
*) echo "usage: ptxas_report.sh keep FOLDER COMMAND… | rows REPORT… | table REPORT…" >&2 && exit 2 ;;
esac
