#!/bin/sh
# What ptxas, the assembler behind nvcc, says of each kernel file: kept from the build, and judged. Every file has a report
# with a kernel in it, nothing spills registers to local memory, and nothing was warned of. A file excuses the spills of
# its kernel or function NAME by a line that says why, and then NAME must spill:
#
#     /* ptxas: spills NAME: reason */
#
#   ptxas.sh keep REPORTS COMMAND…     runs a compiler; what it says of gpu/cuda/FILE.cu goes to REPORTS/gpu/cuda/FILE.cu.txt
#   ptxas.sh judge REPORTS FILE.cu…    in the top folder
set -eu

# A report belongs to an object: it comes with it, and none is left where there is no new object. A compiler that
# is launched beside others writes to files of its own until it is done. Remarks alone are shown in the build.
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
    # The object is gpu/cuda/CMakeFiles/TARGET.dir/FILE.cu.o in the build folder. The report keeps the folders: two files of
    # one name that compile at once must not share it.
    report=$folder/$(printf '%s' "${object%.o}" | sed 's|CMakeFiles/[^/]*\.dir/||').txt
    mkdir -p "$(dirname "$report")"
    rm -f "$report"
    trap 'rm -f "$report.part"' EXIT
    trap 'exit 130' INT TERM HUP
    code=0
    "$@" 2>"$report.part" || code=$?
    grep -vE '^ptxas info +: ([0-9]+ bytes gmem|Compiling entry|Function properties|Used |Compile time)|bytes stack frame' \
        "$report.part" >&2 || :
    [ "$code" -ne 0 ] || mv "$report.part" "$report"
    return "$code"
}

# read_report REPORT: a line for each function that spills, "spill FUNCTION ARCHITECTURE WORDS", and for each thing that is
# wrong, "wrong WORDS". Two of ptxas's remarks tell that wgmma was serialized, which costs half of the speed and more.
read_report() {
    awk '
        /^ptxas (warning|error)/ || /\(C751[01]\)/ || /serialized/ { print "wrong " $0 }
        /^ptxas info +: Compiling entry function / { kernels++; split($0, quoted, "\047"); architecture = quoted[4] }
        /^ptxas info +: Used [0-9]+ registers/ { registers++ }
        /^ptxas info +: Function properties for / { functions++; described = $NF }
        /bytes stack frame, [0-9]+ bytes spill stores, [0-9]+ bytes spill loads/ {
            frames++
            if ($0 !~ /, 0 bytes spill stores, 0 bytes spill loads/)
                print "spill", described, architecture, $0
        }
        END {
            if (kernels == 0)
                print "wrong its report tells of no kernel: touch it and build again"
            if (registers != kernels || frames != functions)
                print "wrong its report does not say what each function uses"
        }' "$1"
}

# excuses FILE: the names of the kernels and functions whose spills the file excuses.
excuses() {
    sed -n 's|^/\* ptxas: spills \([A-Za-z0-9_]*\): [^ ].* \*/$|\1|p' "$1"
}

# is_excused FUNCTION FILE: the file has an excuse for the function, whose name stands in the linker's with its length
# before it, or alone where it is extern "C".
is_excused() {
    excuses "$2" | {
        while read -r excuse; do
            case $1 in "$excuse" | *[!0-9]"${#excuse}$excuse"*) exit 0 ;; esac
        done
        exit 1
    }
}

# judge_excuses FILE REPORT: an excuse without a spill is refused. It would hide one that comes later; and a kernel that is
# there to spill must do so.
judge_excuses() {
    excuses "$1" | while read -r excuse; do
        read_report "$2" | grep -qE "^spill ($excuse|[^ ]*[^0-9 ]${#excuse}${excuse}[^ ]*) " ||
            echo "$1: nothing spills in $excuse, whose spills it excuses"
    done
}

judge() {
    reports=$1
    shift
    failures=$(for file in "$@"; do
        report=$reports/$file.txt
        read_report "$report" | while read -r kind function words; do
            [ "$kind" = spill ] && is_excused "$function" "$file" || echo "$file: $kind: $function $words"
        done
        judge_excuses "$file" "$report"
    done 2>&1)
    printf '%s\n' "$failures"
    echo "$# files"
    [ $# -gt 0 ] && [ -z "$failures" ]
}

"$@"
