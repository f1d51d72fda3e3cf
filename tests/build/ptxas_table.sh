#!/bin/sh
# Writes or checks gpu/cuda/compiled.h, a table of what ptxas reported for each kernel. list_kernels prints
# the address of each kernel, and nm gives the name at this address, which ptxas uses in its reports.
#
#   ptxas_table.sh write REPORTS LIST_KERNELS VERSION     in the top folder; VERSION is nvcc's version
#   ptxas_table.sh check REPORTS LIST_KERNELS VERSION     skipped (77) if another version of nvcc wrote the table
#
# The check compares only architectures that are both in the table and in the build.
set -eu

table=gpu/cuda/compiled.h
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# read_reports REPORTS: prints for each kernel: name, compute capability, registers and bytes of memory.
read_reports() {
    find "$1" -name '*.txt' -exec cat {} + | awk '
        /Compiling entry function/ { split($0, quoted, "\047"); kernel = quoted[2]; capability = quoted[4] }
        /Function properties for / { described = $NF }
        /bytes stack frame/ && described == kernel { stack = $1; stores = $5; loads = $9 }
        /Used [0-9]+ registers/ {
            static = 0
            for (word = 2; word <= NF; word++)
                if ($word ~ /^smem/)
                    static = $(word - 2)
            gsub(/[^0-9]/, "", capability)
            print kernel, capability, $5, static, stack, stores, loads
        }'
}

# print_rows REPORTS LIST_KERNELS: prints a row for each kernel and architecture. In nm's output the names of
# local functions have an additional L, which ptxas omits.
print_rows() {
    read_reports "$1" >"$scratch/reports"
    nm "$2" | sed 's/\(_GLOBAL__N__[0-9a-z_]*\)L\([0-9]\)/\1\2/' >"$scratch/symbols"
    "$2" >"$scratch/kernels"
    awk 'FILENAME ~ /reports$/ { is_reported[$1]; used[$1, $2] = $3 "|" $4 "|" $5 "|" $6 "|" $7; next }
        FILENAME ~ /symbols$/ { if ($3 in is_reported) name[$1] = $3; next }
        !($1 in name) { print "no report of the kernel of " $2 | "cat >&2"; exit 1 }
        !((name[$1], $3) in used) { next }
        $2 == "MM_CUDA_ROW_naive" { is_built[$3] }
        $3 in is_built {
            split(used[name[$1], $3], of, "|")
            printf "    {%s, %s, %s, %s, %s, %s, {%s, %s, %s, %s, %s, 0}},\n", $2, $3, $4, $5, of[4], of[5], $6, of[1], of[2], $7, of[3]
        }' "$scratch/reports" "$scratch/symbols" "$scratch/kernels" >"$scratch/rows"
}

write() {
    print_rows "$1" "$2"
    cat >"$table" <<END
/* Registers and memory of the CUDA kernels, as reported by ptxas of nvcc $3 for the smallest product
 * without transposes. Written by \`cmake --build --preset dev --target compiled\` and checked by the test
 * build/ptxas_table, so do not edit it. Each row is a struct mm_compiled (gpu/plan/variant.h). */
#pragma once

/* clang-format off */
const struct mm_compiled mm_cuda_compiled[] = {
$(cat "$scratch/rows")
    {0},
};
END
}

check() {
    if ! grep -q "ptxas of nvcc $3 " "$table"; then
        echo "$table is by another nvcc than $3: skipped"
        exit 77
    fi
    print_rows "$1" "$2"
    if [ ! -s "$scratch/rows" ]; then
        echo "this build is for other architectures than $table: skipped"
        exit 77
    fi
    awk 'NR == FNR { is_built[$2]; next } $1 ~ /^\{MM_CUDA_ROW_/ && $2 in is_built' "$scratch/rows" "$table" |
        diff -u - "$scratch/rows" || {
        echo "^ $table (-) and this build (+): cmake --build --preset dev --target compiled"
        exit 1
    }
    echo "$(wc -l <"$scratch/rows") kernels"
}

"$@"
