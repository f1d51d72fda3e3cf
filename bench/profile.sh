#!/bin/sh
# What bounds fp32_tensor and simt, by a GPU's counters: of each kernel of a product its time and clock, and how busy
# the parts of the chip were that it could wait for. Needs Nsight Compute (ncu) and the right to read counters.
# usage: profile.sh BUILD_FOLDER [EDGE], in the top folder; a Markdown table for products of EDGE³ (4096).
set -eu

kernels=$1/tests/kernels/kernels
edge=${2:-4096}
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

command -v ncu >/dev/null || {
    echo "profile: Nsight Compute (ncu) is not here"
    exit 77
}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# count VARIANT: the counters of its second product's kernels, a line each: number, kernel, metric, value. The caches are
# left as they are, since one pass finds there what the one before it wrote.
count() {
    ncu --csv --print-units base --cache-control none --clock-control none --kernel-name-base function \
        --kernel-name 'regex:^(scan|split_rest|product|repair|mm_simt_tiles|simt_sum)$' \
        --metrics "$(printf '%s' "$metrics" | tr '\n' ,)" "$kernels" --backend cuda --time "$edge" "$edge" "$edge" \
        --variant "$1" --repeats 1 >"$scratch/ncu" 2>&1 || {
        cat "$scratch/ncu" >&2
        return 1
    }
    # All fields are quoted; the fifth is the kernel with its template's and its own parameters, the last three are a
    # metric's name, unit and value, which has commas.
    awk -F '","' '/^"[0-9]/ {
        name = $5
        sub(/[(].*/, "", name)
        sub(/^(void )?(<unnamed>::)?/, "", name)
        sub(/<.*/, "", name)
        gsub(/[",]/, "", $NF)
        print substr($1, 2), name, $(NF - 2), $NF
    }' "$scratch/ncu"
}

echo "| variant | kernel | ms | SM clock, GHz | multiprocessors at work | tensor cores | float32 pipes | issue slots | shared memory | L2 | DRAM |"
echo "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
for variant in fp32_tensor simt; do
    count "$variant" >"$scratch/counts"
    awk -v variant="$variant" -v metrics="$metrics" '
        { kernel[$1] = $2; value[$1, $3] = $4; if (!($1 in seen)) { seen[$1] = ++launches; number[launches] = $1 } }
        function of(launch, i) {
            if (value[launch, name[i]] !~ /^[0-9]/) {
                print "profile: ncu does not give " name[i] " of " kernel[launch] > "/dev/stderr"
                exit 1
            }
            return value[launch, name[i]]
        }
        END {
            split(metrics, name, "\n")
            if (launches == 0) {
                print "profile: ncu tells nothing of " variant > "/dev/stderr"
                exit 1
            }
            # Those of the last product: from the last launch of the first kernel on.
            for (i = launches; i > 1 && kernel[number[i]] != kernel[number[1]]; i--)
                ;
            for (; i <= launches; i++) {
                launch = number[i]
                printf "| `%s` | `%s` | %.4f | %.2f | %.1f%%", variant, kernel[launch], of(launch, 1) / 1e6, of(launch, 2) / 1e9,
                    100 * of(launch, 3) / of(launch, 4)
                for (j = 5; j <= 10; j++)
                    printf " | %.1f%%", of(launch, j)
                print " |"
            }
        }' "$scratch/counts"
done
