#!/bin/sh
# What a GPU's counters say of the rungs that differ by their reads: instructions that read global memory, the
# sectors of 32 bytes that those move, and conflicts between the banks of shared memory, beside what the kernels'
# files predict. Needs Nsight Compute (ncu) and the right to read counters.
# usage: counters.sh BUILD_FOLDER [EDGE], in the top folder; a Markdown table for products of EDGE³ (1024).
set -eu

kernels=$1/tests/kernels/kernels
edge=${2:-1024}
metrics=smsp__sass_inst_executed_op_global_ld.sum
metrics=$metrics,l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum
metrics=$metrics,smsp__sass_inst_executed_op_shared_ld.sum
metrics=$metrics,l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum
metrics=$metrics,l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum
metrics=$metrics,lts__t_sectors_op_read.sum
metrics=$metrics,gpu__time_duration.sum

command -v ncu >/dev/null || {
    echo "counters: Nsight Compute (ncu) is not here"
    exit 77
}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# count VARIANT OPTION…: the counters of its first launch, which the matrices' filling precedes, a line each: metric
# value. Every kernel of a product has a part of a variant's name in its own, be it in its template's arguments.
count() {
    variant=$1
    shift
    ncu --csv --print-units base --clock-control none --launch-count 1 --kernel-name-base demangled --kernel-name 'regex:.*(naive|tiled|vectorized).*' --metrics "$metrics" \
        "$kernels" --backend cuda --time "$edge" "$edge" "$edge" --variant "$variant" --repeats 1 "$@" >"$scratch/ncu" 2>&1 || {
        cat "$scratch/ncu" >&2
        return 1
    }
    # The last three columns are the metric's name, unit and value; a value of thousands has commas.
    sed -n 's/.*"\([a-z_0-9]*\.sum\)","\([^"]*\)","\([^"]*\)"$/\1 \3/p' "$scratch/ncu" | tr -d ,
}

# Reads of a warp at each element of k, for each element of C that it computes: `naive` asks for one word of A,
# the same for the whole warp (1 sector), and for 32 neighbours of B (4 sectors); `naive_uncoalesced` the other way
# round, but 32 rows apart (32 sectors, and 1). A tile of T is read once for T uses. Passes for conflicts: none,
# but where `tiled_conflicted` walks a column of its tile, whose 32 words lie in one bank: 31 at each element of k.
predict() {
    awk -v variant="$1" -v stored="$2" -v edge="$edge" 'BEGIN {
        warps = edge * edge / 32
        conflicts = variant == "tiled_conflicted" && stored == "transposed" ? 31 * warps * edge : 0
        if (variant == "naive")
            printf "%.0f %.0f", 2 * warps * edge, 5 * warps * edge
        else if (variant == "naive_uncoalesced")
            printf "%.0f %.0f", 2 * warps * edge, 33 * warps * edge
        else if (variant ~ /^tiled_(8|16|32)$/) {
            tile = substr(variant, 7)
            printf "%.0f %.0f", 2 * warps * edge / tile, 8 * warps * edge / tile
        } else if (variant ~ /^tiled_(padded|conflicted)$/)
            printf "%.0f %.0f", 2 * warps * edge / 32, 8 * warps * edge / 32
        else
            printf "- -"
        printf " %.0f\n", conflicts
    }'
}

echo "| variant | B stored | reads of global memory, warps | predicted | their sectors | predicted | reads of shared memory, warps | passes over the banks | of these for conflicts | predicted | sectors read from the L2 | ms |"
echo "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
row() {
    variant=$1
    stored=$2
    shift 2
    count "$variant" "$@" >"$scratch/counts"
    [ "$(grep -c . "$scratch/counts")" -eq "$(echo "$metrics" | tr , '\n' | grep -c .)" ] || {
        echo "counters: ncu does not give every counter of $variant:" >&2
        cat "$scratch/ncu" >&2
        exit 1
    }
    awk -v head="| \`$variant\` | $stored" -v predicted="$(predict "$variant" "$stored")" '
        { value[$1] = $2 }
        END {
            split(predicted, guess, " ")
            printf "%s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %.4f |\n", head,
                value["smsp__sass_inst_executed_op_global_ld.sum"], guess[1],
                value["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"], guess[2],
                value["smsp__sass_inst_executed_op_shared_ld.sum"],
                value["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"],
                value["l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"], guess[3],
                value["lts__t_sectors_op_read.sum"],
                value["gpu__time_duration.sum"] / 1e6
        }' "$scratch/counts"
}

for variant in naive_uncoalesced naive tiled_8 tiled_16 tiled_32; do
    row "$variant" "as it is"
done
for variant in tiled_32 tiled_padded tiled_conflicted; do
    row "$variant" transposed --transpose-b
done
for variant in tiled_async register_tiled vectorized warp_tiled; do
    row "$variant" "as it is"
done
