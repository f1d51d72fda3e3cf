#!/bin/sh
# Keeps and checks the reports of ptxas, the assembler of nvcc, for each kernel file. A report must contain a
# kernel, no warning, and no registers that spill to local memory. A file may allow the spills of its kernel or
# function NAME by this line, and then NAME must spill:
#
#     /* ptxas: spills NAME: reason */
#
#   ptxas.sh keep REPORTS COMMAND…     runs a compiler; writes the report of FILE.cu to REPORTS/gpu/cuda/FILE.cu.txt
#   ptxas.sh check REPORTS FILE.cu…    in the top folder
set -eu

# Runs the compiler and writes its messages to the report. Prints only warnings and errors.
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

# read_report REPORT: prints "spill FUNCTION ARCHITECTURE WORDS" for each function that spills, and "wrong
# WORDS" for other defects. Remarks C7510 and C7511 mean that ptxas serialized wgmma, which at least halves
# the speed.
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

# excuses FILE: prints the names whose spills the file allows.
excuses() {
    sed -n 's|^/\* ptxas: spills \([A-Za-z0-9_]*\): [^ ].* \*/$|\1|p' "$1"
}

# is_excused FUNCTION FILE: succeeds if the file allows the spills of this function. FUNCTION is the linker's
# name: either the plain name (extern "C") or a mangled one, where the name follows its length.
is_excused() {
    excuses "$2" | {
        while read -r excuse; do
            case $1 in "$excuse" | *[!0-9]"${#excuse}$excuse"*) exit 0 ;; esac
        done
        exit 1
    }
}

# check_excuses FILE REPORT: fails if a named function does not spill, because the line would hide a later
# spill.
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
