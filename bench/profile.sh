#!/bin/sh
# Prints a Markdown table of what limits each kernel of a product, by a GPU's counters: grid, time, clock, and
# how busy parts of the chip were. Needs Nsight Compute (ncu) and permission to read counters.
# Usage: profile.sh BUILD_FOLDER [VARIANT… [-- OPTION…]], in the top folder. The variants are fp32_tensor and
# simt by default, and the options are those of the harness (--time 4096 4096 4096).
metrics='launch__grid_size
launch__block_size
gpu__time_duration.sum
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
shift
variants=
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    variants="$variants $1"
    shift
done
[ $# -eq 0 ] || shift
options=${*:---time 4096 4096 4096}

echo "\`$options\`"
echo
echo "| variant | kernel | blocks | threads each | ms | SM clock, GHz | multiprocessors at work | tensor cores | float32 pipes | issue slots | shared memory | L2 | DRAM |"
echo "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
# Caches are not flushed, because a kernel reads what the previous kernel wrote. The table shows only the
# kernels of the last product. The kernel `make` fills the matrices. The kernel `wait` delays the stream until
# all kernels are enqueued.
for variant in ${variants:-fp32_tensor simt}; do
    count "$options --variant $variant" --cache-control none --kernel-name-base function
    awk -v variant="$variant" '
        $NF == "make" || $NF == "wait" { next }
        first == "" { first = $NF }
        $NF != first { others = 1 }
        $NF == first && (before != first || !others) { rows = "" }
        {
            before = $NF
            row = sprintf("| `%s` | `%s` | %d | %d | %.4f | %.2f | %.1f%%", variant, $NF, $1, $2, $3 / 1e6, $4 / 1e9, 100 * $5 / $6)
            for (i = 7; i <= 12; i++)
                row = row sprintf(" | %.1f%%", $i)
            rows = rows row " |\n"
        }
        END { printf "%s", rows }' "$scratch/counts"
done
