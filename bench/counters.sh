#!/bin/sh
# What a GPU's counters say of the rungs that differ by their reads: instructions that read global memory, the
# sectors of 32 bytes that those move, and conflicts between the banks of shared memory, beside what the kernels'
# files predict. Needs Nsight Compute (ncu) and the right to read counters.
# usage: counters.sh BUILD_FOLDER [EDGE], in the top folder; a Markdown table for products of EDGE³ (1024).
metrics='smsp__sass_inst_executed_op_global_ld.sum
l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum
smsp__sass_inst_executed_op_shared_ld.sum
l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum
l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum
lts__t_sectors_op_read.sum
gpu__time_duration.sum'
# shellcheck source=bench/lib/ncu.sh
. "$(dirname "$0")/lib/ncu.sh"
edge=${2:-1024}

# predict VARIANT: sets loads, sectors and conflicts. Reads of a warp at each element of k, for each element of C that
# it computes: `naive` asks for one word of A, the same for the whole warp (1 sector), and for 32 neighbours of B (4
# sectors); `naive_uncoalesced` the other way round, but 32 rows apart (32 sectors, and 1). A tile of T is read once for
# T uses. Passes for conflicts: none, but where `tiled_conflicted` walks a column of its tile, whose 32 words lie in
# one bank: 31 at each element of k.
predict() {
    reads=$((edge * edge * edge / 32)) loads=- sectors=- conflicts=0
    case $1 in
    naive) loads=$((2 * reads)) sectors=$((5 * reads)) ;;
    naive_uncoalesced) loads=$((2 * reads)) sectors=$((33 * reads)) ;;
    tiled_8 | tiled_16 | tiled_32) loads=$((2 * reads / ${1#tiled_})) sectors=$((8 * reads / ${1#tiled_})) ;;
    tiled_padded | tiled_conflicted) loads=$((2 * reads / 32)) sectors=$((8 * reads / 32)) ;;
    esac
    [ "$1 $transposed" != 'tiled_conflicted --transpose-b' ] || conflicts=$((31 * reads))
}

echo "| variant | B stored | reads of global memory, warps | predicted | their sectors | predicted | reads of shared memory, warps | passes over the banks | of these for conflicts | predicted | sectors read from the L2 | ms |"
echo "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
# rows STORED VARIANT…: of the first launch of each, which the matrices' filling precedes. Every kernel of a product has a
# part of a variant's name in its own, be it in its template's arguments.
rows() {
    stored=$1
    shift
    for variant in "$@"; do
        count "$variant" "$edge" --launch-count 1 --kernel-name-base demangled --kernel-name 'regex:.*(naive|tiled|vectorized).*'
        predict "$variant"
        awk -v head="| \`$variant\` | $stored" -v loads="$loads" -v sectors="$sectors" -v conflicts="$conflicts" '{
            printf "%s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %.4f |\n", head, $1, loads, $2, sectors, $3, $4, $5,
                conflicts, $6, $7 / 1e6
        }' "$scratch/counts"
    done
}

rows 'as it is' naive_uncoalesced naive tiled_8 tiled_16 tiled_32
transposed=--transpose-b
rows transposed tiled_32 tiled_padded tiled_conflicted
transposed=
rows 'as it is' tiled_async register_tiled vectorized warp_tiled
