#!/bin/sh
# Compares the predicted memory traffic of every variant (gpu/lab/traffic/traffic.h) with a GPU's counters.
# Prints Markdown tables for the product M K N, or for 1024³, 228×240 · 240×112 and a transposition of
# 4096×4096. Needs Nsight Compute (ncu) and permission to read counters. Takes some minutes.
# Usage: counters.sh BUILD_FOLDER [M K N], in the top folder.
metrics='l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum
l1tex__m_xbar2l1tex_read_sectors.sum
l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum
lts__t_sectors_srcunit_tex_op_write.sum
smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ld.sum
smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_st.sum
smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldgsts.sum
l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum
l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum
l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum
l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum
smsp__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_ldgsts.sum
gpu__time_duration.sum'
# shellcheck source=bench/lib/ncu.sh
. "$(dirname "$0")/lib/ncu.sh"
missing=-

# ncu may reject a counter that the chip or this ncu does not have.
ncu --query-metrics >"$scratch/known" 2>/dev/null || :
absent=
for metric in $metrics; do
    ! [ -s "$scratch/known" ] || grep -q "^${metric%.sum} " "$scratch/known" || absent="$absent $metric"
done
for metric in $absent; do
    metrics=$(echo "$metrics" | grep -v "^$metric\$")
    echo "- not counted here: $metric"
done

# Names of the kernels that multiply or transpose. Kernels that fill or check matrices are not counted.
products='regex:^(mm_cuda_one|mm_cuda_transpose_one|register_tiled|vectorized|warp_tiled|mm_simt_tiles|mm_simt_vector_kernel|simt_sum|scan|split_rest|product|repair|pad|mm_tensor_product|reduce)$'

# compare NAME FIGURE…: prints a row with the predicted figures beside the counters in $scratch/counts, which
# belong to the last product. The L1 cache and the copy engine count sectors separately, so the larger count
# is used.
compare() {
    awk -v name="$1" -v predicted="$2" -v metrics="$metrics" '
        BEGIN {
            count = split(metrics, metric, " ")
            for (i = 1; i <= count; i++)
                column[metric[i]] = i
        }
        function counter(prefix, suffix) {
            i = column[prefix suffix ".sum"]
            return i > 0 && $i != "-" ? $i : 0
        }
        function larger(a, b) {
            return a > b ? a : b
        }
        {
            kernel[NR] = $NF
            loads[NR] = larger(counter("l1tex__t_sectors_pipe_lsu_mem_global_op_", "ld"), counter("l1tex__m_xbar2l1tex_read_", "sectors"))
            stores[NR] = larger(counter("l1tex__t_sectors_pipe_lsu_mem_global_op_", "st"), counter("lts__t_sectors_srcunit_tex_op_", "write"))
            # The L1 cache also counts waits for other traffic as conflicts, so waits are subtracted.
            passes = "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_"
            with_waits = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_"
            conflicts = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_"
            shared_loads[NR] = counter(passes, "ld")
            shared_stores[NR] = counter(passes, "st") + counter(passes, "ldgsts")
            waits = counter(with_waits, "ld") + counter(with_waits, "st") - counter(passes, "ld") - counter(passes, "st")
            repeated[NR] = larger(counter(conflicts, "ld") + counter(conflicts, "st") - waits, 0)
            repeated[NR] += counter("smsp__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_", "ldgsts")
            time[NR] = counter("gpu__time_duration", "")
        }
        # A count without a prediction has no percentage.
        function cell(expected, counted) {
            if (expected == "")
                return sprintf(" | - | %.0f | -", counted)
            if (expected == 0)
                return sprintf(" | 0 | %.0f | %s", counted, counted == 0 ? "0.0%" : "-")
            return sprintf(" | %.0f | %.0f | %+.1f%%", expected, counted, 100 * (counted - expected) / expected)
        }
        END {
            for (period = 1; period < NR / 2; period++) {
                for (i = 0; i < period && kernel[NR - i] == kernel[NR - i - period]; i++)
                    continue
                if (i == period)
                    break
            }
            for (i = NR - period + 1; i <= NR; i++) {
                sum[1] += loads[i]
                sum[2] += stores[i]
                sum[3] += shared_loads[i]
                sum[4] += shared_stores[i]
                sum[5] += repeated[i]
                ns += time[i]
            }
            split(predicted, figure, ",")
            row = "| `" name "`"
            for (i = 1; i <= 5; i++)
                row = row cell(figure[i], sum[i])
            printf "%s | %d | %.4f |\n", row, period, ns / 1e6
        }' "$scratch/counts"
}

# table TITLE OPTIONS [VARIANTS]: prints a row for each tile of each variant, or only of these variants.
table() {
    options=$2
    printf '\n## %s\n\n' "$1"
    # shellcheck disable=SC2046,SC2086
    "$kernels" --backend cuda $options $(for variant in ${3-}; do echo "--variant $variant"; done) --repeats 1 --csv "$scratch/predicted" >"$scratch/timed" || {
        cat "$scratch/timed" >&2
        exit 1
    }
    awk -F , 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        $at["status"] == "ok" && $at["variant"] != "copy" && $at["variant"] == $at["ran"] && $at["variant"] != "blas" {
            names[++rows] = $at["variant"]
            tiles[rows] = $at["tile"]
            times[names[rows]]++
            first = at["global_load_sectors"]
            figures[rows] = $first "," $(first + 1) "," $(first + 2) "," $(first + 3) "," $(first + 4)
        }
        END {
            for (i = 1; i <= rows; i++)
                print names[i] (times[names[i]] > 1 ? "/" tiles[i] : ""), figures[i]
        }' "$scratch/predicted" >"$scratch/rows"
    echo "| variant | load sectors, predicted | counted | difference | store sectors, predicted | counted | difference | shared load passes, predicted | counted | difference | shared store passes, predicted | counted | difference | of these for conflicts, predicted | counted | difference | kernels | ms |"
    echo "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
    while read -r name predicted; do
        if count "$options --variant $name" --launch-count 14 --kernel-name-base function --kernel-name "$products" </dev/null; then
            compare "$name" "$predicted"
        else
            echo "| \`$name\` | not counted |"
        fi
    done <"$scratch/rows"
}

if [ $# -ge 4 ]; then
    table "$2×$3 · $3×$4" "--time $2 $3 $4"
    table "$2×$3 · $3×$4, B stored transposed" "--time $2 $3 $4 --transpose-b"
    exit
fi
table '1024³' '--time 1024 1024 1024'
table '1024³, B stored transposed' '--time 1024 1024 1024 --transpose-b' 'tiled_32 tiled_padded tiled_conflicted tiled_async simt tf32'
table '228×240 · 240×112' '--time 228 240 112'
table '4096×4096 transposed, float32' '--transpose float32 --time 4096 1 4096'
