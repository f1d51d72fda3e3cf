#!/bin/sh
# What ptxas said of each kernel file, as tests/build/ptxas_report.sh keeps it, is what the project wants: every file has a
# report with a kernel in it, nothing spills registers to local memory, and nothing was warned of. A file excuses
# the spills of its kernel or function NAME by a line that says why:
#
#     /* ptxas: spills NAME: reason */
#
# Usage: ptxas.sh REPORTS FILE.cu…, in the top folder.
set -eu

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# excused FILE FUNCTION: whether the file has an excuse for the function, whose name stands in the linker's with
# its length before it, or alone where it is extern "C".
excused() {
    sed -n 's|^/\* ptxas: spills \([A-Za-z0-9_]*\): [^ ].* \*/$|\1|p' "$1" >"$scratch/excuses"
    while read -r excuse; do
        case $2 in "$excuse" | *[!0-9]"${#excuse}$excuse"*) return 0 ;; esac
    done <"$scratch/excuses"
    return 1
}

# judge REPORT FILE: a line for each thing that is wrong.
judge() {
    name=$(basename "$2")
    if [ ! -s "$1" ]; then
        echo "$name: there is no report of it: touch it and build again"
        return
    fi
    # Two of ptxas's remarks tell that wgmma was serialized, which costs half of the speed and more.
    sed -n -E "s/^(ptxas (warning|error).*|.*\(C751[01]\).*|.*serialized.*)$/$name: \1/p" "$1"
    sh tests/build/ptxas_report.sh rows "$1" >"$scratch/rows"
    grep -q '|kernel|' "$scratch/rows" || echo "$name: its report tells of no kernel"
    while IFS='|' read -r _ function architecture kind registers _ _ stores loads _; do
        if [ -z "$stores$loads" ] || { [ "$kind" = kernel ] && [ -z "$registers" ]; }; then
            echo "$name: its report does not say what $function uses on $architecture"
        elif [ "$stores$loads" != 00 ] && ! excused "$2" "$function"; then
            echo "$name: $function spills on $architecture: $stores bytes stored, $loads loaded"
        fi
    done <"$scratch/rows"
}

# --- the judge itself: it must see what is wrong in made-up reports

# A file, since much of this runs at the end of a pipe.
failures=$scratch/failures
: >"$failures"

# entry NAME STORES: what ptxas says of a kernel.
entry() {
    printf '%s\n' "ptxas info    : Compiling entry function '$1' for 'sm_80'" \
        "ptxas info    : Function properties for $1" \
        "    0 bytes stack frame, $2 bytes spill stores, 0 bytes spill loads" \
        "ptxas info    : Used 32 registers, used 1 barriers, 8192 bytes smem, 504 bytes cmem[0]"
}

# finds WORDS LINE…: of the report on stdin, with the lines in the file, the judge says the words ('': nothing).
finds() {
    words=$1
    shift
    cat >"$scratch/made.txt"
    printf '%s\n' "$@" >"$scratch/made.cu"
    said=$(judge "$scratch/made.txt" "$scratch/made.cu")
    case "$words|$said" in
    '|' | ?*"|"*"$words"*) ;;
    *) echo "the judge should say '$words' of a made-up report, but says: $said" >>"$failures" ;;
    esac
}

good=_Z4goodILj8EEv10mm_product
entry $good 0 | finds '' ''
entry $good 4 | finds "made.cu: $good spills on sm_80: 4 bytes stored, 0 loaded" ''
entry $good 4 | finds '' '/* ptxas: spills good: eight more registers cost more */'
entry $good 4 | finds 'spills on sm_80' '/* ptxas: spills good:     */'
entry plain 4 | finds '' '/* ptxas: spills plain: it is extern "C" */'
entry $good 4 | finds 'spills on sm_80' '/* ptxas: spills goo: another kernel */'
entry _Z14good_and_betterv 4 | finds 'spills on sm_80' '/* ptxas: spills good: another kernel, of 14 characters */'
{ entry $good 0 && entry helper 4 | sed -e 1d -e 4d; } | finds 'helper spills' ''
{ echo "ptxas warning : Stack size cannot be told" && entry $good 0; } | finds 'Stack size' ''
{ echo "ptxas info    : (C7511) Potential Performance Loss" && entry $good 0; } | finds C7511 ''
{ echo "ptxas info    : wgmma.mma_async instructions are serialized" && entry $good 0; } | finds serialized ''
entry $good 0 | sed 4d | finds 'does not say' ''
entry $good 0 | sed 3d | finds 'does not say' ''
echo "ptxas info    : 0 bytes gmem" | finds 'no kernel' ''
finds 'no report' '' </dev/null

# --- the reports of the build

reports=$1
shift
[ $# -gt 0 ] || echo "no kernel file was named" >>"$failures"
for file in "$@"; do
    judge "$reports/$(basename "$file").txt" "$file" >>"$failures"
done

cat "$failures"
echo "$# files, $(wc -l <"$failures") failures"
[ ! -s "$failures" ]
