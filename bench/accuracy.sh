#!/bin/sh
# ./dev bench accuracy: measures the errors of every variant on each family of input data. Writes a Markdown
# and a CSV file. The last line counts errors above their bounds. The bench then still succeeds.
# Usage: accuracy.sh BUILD_FOLDER ARGUMENT…, in the top folder. Needs BUILD_FOLDER's program `kernels`.
bench=accuracy
# shellcheck source=bench/lib/report.sh
. "$(dirname "$0")/lib/report.sh"
dry=no

options() {
    cat <<'END'
--variant NAME|passed name|this variant's rows alone; may be given again
--backend NAME|passed name|on this backend (CUDA where there is a device, else the CPU)
--dtype NAME|passed name|of products of this element type (float32)
--family NAME|passed name|on this data alone; may be given again (tests/kernels/data.c lists the names)
--depths K,K...|passed numbers 16777216|for these k (64,1024,4096,16384,131072)
--edge N|passed number 1024|and a C of N×N (256, on the CPU 64)
--dry|dry yes|small products that say little, to see that all works
END
}

# The threads compute exact results for comparison. For a large product, one core needs ten seconds.
threads_max=16

print_head() {
    print_facts 'How exact the variants are' "machine|$machine" "GPU|${gpu:-none}"
}

run() {
    threads=$(nproc)
    [ "$threads" -le "$threads_max" ] || threads=$threads_max
    [ "$dry" = no ] || passed="$passed --depths 65,1024 --edge 17"
    name_machine
    name_report
    # $passed is split into options.
    # shellcheck disable=SC2086
    keep_report print_head machine,gpu,date,commit "\"$machine\",\"$gpu\",$date,$commit" \
        "$build/tests/kernels/kernels" --accuracy --threads "$threads" $passed
}

take_arguments "$@"
run
