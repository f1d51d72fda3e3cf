#!/bin/sh
# What bounds fp32_tensor and simt, by a GPU's counters: of each kernel of a product its time and clock, and how busy
# the parts of the chip were that it could wait for. Needs Nsight Compute (ncu) and the right to read counters.
# usage: profile.sh BUILD_FOLDER [EDGE], in the top folder; a Markdown table for products of EDGE³ (4096).
# In the order of the table's columns.
metrics='gpu__time_duration.sum
sm__cycles_elapsed.avg.per_second
sm__cycles_active.avg
sm__cycles_elapsed.max
sm__pipe_shared_cycles_active.avg.pct_of_peak_sustained_elapsed
sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_elapsed
smsp__issue_active.avg.pct_of_peak_sustained_elapsed
l1tex__data_pipe_lsu_wavefronts_mem_shared.avg.pct_of_peak_sustained_elapsed
lts__t_sectors.avg.pct_of_peak_sustained_elapsed
dram__throughput.avg.pct_of_peak_sustained_elapsed'
# shellcheck source=bench/lib/ncu.sh
. "$(dirname "$0")/lib/ncu.sh"
edge=${2:-4096}

echo "| variant | kernel | ms | SM clock, GHz | multiprocessors at work | tensor cores | float32 pipes | issue slots | shared memory | L2 | DRAM |"
echo "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
# The caches are left as they are, since one pass finds there what the one before it wrote. The kernels of the last
# product count: from the last launch of the first kernel on.
for variant in fp32_tensor simt; do
    count "--time $edge $edge $edge --variant $variant" --cache-control none --kernel-name-base function \
        --kernel-name 'regex:^(scan|split_rest|product|repair|mm_simt_tiles|simt_sum)$'
    awk -v variant="$variant" '
        NR == 1 { first = $NF }
        $NF == first { rows = "" }
        {
            row = sprintf("| `%s` | `%s` | %.4f | %.2f | %.1f%%", variant, $NF, $1 / 1e6, $2 / 1e9, 100 * $3 / $4)
            for (i = 5; i <= 10; i++)
                row = row sprintf(" | %.1f%%", $i)
            rows = rows row " |\n"
        }
        END { printf "%s", rows }' "$scratch/counts"
done
