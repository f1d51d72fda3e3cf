#!/bin/sh
# ./dev bench crossovers: times fp32_tensor, simt and the tiles on a GPU over many shapes. Prints the table in
# gpu/cuda/crossovers.h, by which `auto` chooses, and keeps the times as a CSV file.
#   crossovers.sh BUILD_FOLDER ARGUMENT…  in the top folder; needs the program kernels there
#   crossovers.sh --table CSV             only prints the table for earlier times
# shellcheck disable=SC2034
bench=crossovers

narrows='32 64 128 192 256 384 512 640 768 896 1024 1536 2048'
depths='64 128 192 256 384 512 768 1024 2048 4096'
wides='64 128 256 384 512 640 768 896 1024 1536 2048 3072 4096 6144 8192 16384'
cubes='32 48 64 96 128 160 192 224 256 320'

# Prints M K N of flat products, whose C has few rows and many columns. Omits shapes for which one variant is
# clearly faster.
flat_shapes() {
    for narrow in $narrows; do
        for depth in $depths; do
            for wide in $wides; do
                work=$((narrow * depth * (wide / 64) / 1024)) # in units of 65536 multiplications, which fit any shell
                [ "$wide" -lt "$narrow" ] || [ "$work" -lt 256 ] || [ "$work" -gt 262144 ] || echo "$narrow $depth $wide"
            done
        done
    done
}

cubic_shapes() {
    for edge in $cubes; do
        echo "$edge $edge $edge"
    done
}

# Prints the table for the times in the CSV file. At the width in an entry and at all larger widths of C,
# fp32_tensor is faster than simt. The entry is 0 if there is no such width. At the edge MM_CUDA_SIMT_EDGE and
# at all larger edges, simt is at least 5% faster than the tiled variants.
table() {
    awk -F , -v narrows="$narrows" -v depths="$depths" -v wides="$wides" -v cubes="$cubes" '
        function time_of(m, k, n, variant) { return times[m, k, n, variant] + 0 }
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        $at["status"] == "ok" {
            times[$at["m"], $at["k"], $at["n"], $at["variant"]] = $at["median_ms"]
            device = $NF
        }
        function depth_up_to(of, i) { return int((of[i] + of[i + 1]) / 2) }
        function least_wide(narrow, depth,    i, wide, least) {
            least = 0
            for (i = wide_count; i >= 1; i--) {
                wide = wide_of[i]
                if (time_of(narrow, depth, wide, "fp32_tensor") == 0 || time_of(narrow, depth, wide, "simt") == 0)
                    continue
                if (time_of(narrow, depth, wide, "fp32_tensor") > time_of(narrow, depth, wide, "simt"))
                    break
                least = i == 1 ? 1 : wide_of[i - 1] + 1
            }
            return least
        }
        function best_tile(edge,    sixteen, async) {
            sixteen = time_of(edge, edge, edge, "tiled_16")
            async = time_of(edge, edge, edge, "tiled_async")
            return async > 0 && async < sixteen ? async : sixteen
        }
        END {
            wide_count = split(wides, wide_of, " ")
            gsub(/"/, "", device)
            print "/* Lengths at which one kernel becomes faster than another, measured on one " device ". `./dev bench"
            print " * crossovers` generates this file, so do not edit it. */"
            print "#pragma once"
            print ""
            print "/* clang-format off */"
            print ""
            count = split(cubes, edge_of, " ")
            edge = 2 * edge_of[count] # the real value may be larger
            for (i = count; i >= 1; i--) {
                simt = time_of(edge_of[i], edge_of[i], edge_of[i], "simt")
                if (simt == 0 || simt * 1.05 > best_tile(edge_of[i]))
                    break
                edge = edge_of[i]
            }
            print "/* simt is at least 5% faster than the tiled kernels for products of n×n matrices if n has at least this value. */"
            print "enum { MM_CUDA_SIMT_EDGE = " edge " };"
            print ""
            print "/* fp32_tensor is faster than simt if the longer side of C is at least as long as the entry. 0 means that simt is always"
            print " * faster. Each row is for shorter sides of C up to a value in mm_cuda_narrow_edges. Each column is for values of k up to"
            print " * a value in mm_cuda_depth_edges. The last row and the last column are for all larger values. */"
            narrow_count = split(narrows, narrow_of, " ")
            depth_count = split(depths, depth_of, " ")
            printf "static const unsigned mm_cuda_narrow_edges[] = {%s", narrow_of[1]
            for (i = 2; i < narrow_count; i++)
                printf ", %s", narrow_of[i]
            printf "};\nstatic const unsigned mm_cuda_depth_edges[] = {%d", depth_of[1] * 3 / 4 - 1
            for (j = 1; j < depth_count; j++)
                printf ", %d", depth_up_to(depth_of, j)
            printf "};\nstatic const unsigned mm_cuda_crossovers[][%d] = {\n", depth_count + 1
            for (i = 1; i <= narrow_count; i++) {
                printf "    {0"
                for (j = 1; j <= depth_count; j++)
                    printf ", %d", least_wide(narrow_of[i], depth_of[j])
                printf "}, /* shorter side %s */\n", i == narrow_count ? "above " narrow_of[i - 1] : "up to " narrow_of[i]
            }
            print "};"
        }' "$1"
}

if [ "$1" = --table ]; then
    table "$2"
    exit
fi

# shellcheck source=bench/lib/report.sh
. "$(dirname "$0")/lib/report.sh"

repeats=10

options() {
    echo '--repeats N|repeats number 1000|runs of each row; the median counts (10)'
}

run() {
    name_report
    passed="--backend cuda --repeats $repeats --csv $report.csv"
    for variant in tiled_16 tiled_async simt fp32_tensor; do
        passed="$passed --variant $variant"
    done
    # Without quotes, the shell splits the shapes into words. The tiled variants run only cubes.
    # shellcheck disable=SC2046,SC2086
    "$build/tests/kernels/kernels" $passed $(cubic_shapes | sed 's/^/--time /') >"$report.log"
    mv "$report.csv" "$report.cubes"
    # shellcheck disable=SC2046,SC2086
    "$build/tests/kernels/kernels" --backend cuda --repeats "$repeats" --csv "$report.csv" --variant simt \
        --variant fp32_tensor $(flat_shapes | sed 's/^/--time /') >>"$report.log"
    tail -n +2 "$report.cubes" >>"$report.csv"
    rm "$report.cubes" "$report.log"
    table "$report.csv" >"$report.h"
    say "the table is in $report.h, to become gpu/cuda/crossovers.h; the figures are in $report.csv"
}

take_arguments "$@"
run
