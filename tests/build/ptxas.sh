#!/bin/sh
# What ptxas, the assembler behind nvcc, says of each kernel file: kept from the build, and checked. Every file has a report
# with a kernel in it, nothing spills registers to local memory, and nothing was warned of. A file excuses the spills of
# its kernel or function NAME by a line that says why, and then NAME must spill:
#
#     /* ptxas: spills NAME: reason */
#
#   ptxas.sh keep REPORTS COMMAND…     runs a compiler; what it says of gpu/cuda/FILE.cu goes to REPORTS/gpu/cuda/FILE.cu.txt
#   ptxas.sh check REPORTS FILE.cu…    in the top folder
set -eu

# A report belongs to an object, so an old one is removed first. Compilers run at once and write to their own files
# until they end. The build shows remarks only.
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
    # The object is gpu/cuda/CMakeFiles/TARGET.dir/FILE.cu.o in the build folder. The report's path keeps folders, so
    # two files of one name do not share a report.
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

# read_report REPORT: prints "spill FUNCTION ARCHITECTURE WORDS" for each function that spills, and "wrong WORDS" for
# each other defect. Two remarks mean that wgmma was serialized, which halves its speed or worse.
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

# excuses FILE: prints the kernels and functions whose spills the file excuses.
excuses() {
    sed -n 's|^/\* ptxas: spills \([A-Za-z0-9_]*\): [^ ].* \*/$|\1|p' "$1"
}

# is_excused FUNCTION FILE: the file excuses this function. The linker's name has the function's name after its length,
# or alone if it is extern "C".
is_excused() {
    excuses "$2" | {
        while read -r excuse; do
            case $1 in "$excuse" | *[!0-9]"${#excuse}$excuse"*) exit 0 ;; esac
        done
        exit 1
    }
}

# check_excuses FILE REPORT: rejects an excuse without a spill, because it would hide a later one.
check_excuses() {
    excuses "$1" | while read -r excuse; do
        read_report "$2" | grep -qE "^spill ($excuse|[^ ]*[^0-9 ]${#excuse}${excuse}[^ ]*) " ||
            echo "$1: nothing spills in $excuse, whose spills it excuses"
    done
}

check() {
    reports=$1
    shift
    failures=$(for file in "$@"; do
        report=$reports/$file.txt
        read_report "$report" | while read -r kind function words; do
            [ "$kind" = spill ] && is_excused "$function" "$file" || echo "$file: $kind: $function $words"
        done
        check_excuses "$file" "$report"
    done 2>&1)
    printf '%s\n' "$failures"
    echo "$# files"
    [ $# -gt 0 ] && [ -z "$failures" ]
}

"$@"
