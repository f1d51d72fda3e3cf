#!/bin/sh
# ./dev bench kernels: times every variant. Writes a Markdown and a CSV file with the times and facts about
# the machine. Needs the program kernels in the build folder.
#   kernels.sh BUILD_FOLDER [OPTION…] [M K N]        A·B, m×k by k×n (1024 1024 1024)
#   kernels.sh BUILD_FOLDER --transpose [M N]        the shape of A (4096 4096)
bench=kernels
# shellcheck source=bench/lib/report.sh
. "$(dirname "$0")/lib/report.sh"

dimension_max=16777216
shapes='' dimensions=0 all=no transpose=no

options() {
    cat <<'END'
--all|all yes|a list of shapes
--transpose DTYPE|transpose name|times transpositions of this type instead
--slow|passed yes|products that take the CPU long, too
--transpose-a|passed yes|A stored transposed
--transpose-b|passed yes|B stored transposed
--repeats N|passed number 1000000|runs of each row; the median counts (20)
--seconds N|passed number 1000000|what a row may use before it is repeated no more (10)
--backend NAME|passed name|this backend's rows alone
--variant NAME|passed name|this variant's rows alone; may be given again
--dtype NAME|passed name|products of this element type (float32)
END
}

operand() {
    whole "M, K and N are numbers" "$dimension_max" "$1"
    shapes="$shapes $1"
    dimensions=$((dimensions + 1))
}

# Prints M K N of the shapes for --all: squares, flat and thin shapes, and some shapes that suit no tile.
all_shapes() {
    cat <<'END'
256 256 256
512 512 512
1024 1024 1024
2048 2048 2048
4096 4096 4096
8192 8192 8192
16384 16384 16384
4096 128 4096
128 4096 4096
16 8192 8192
1 8192 8192
1000 1000 1000
4095 4099 4097
228 240 112
END
}

# result_of M N: prints the shape of the transposed matrix as M K N. The harness ignores K.
result_of() {
    echo "$2 1 $1"
}

choose_shapes() {
    # Each shape is split into words.
    # shellcheck disable=SC2086
    case $dimensions:$all:$transpose in
    0:no:no) shapes='1024 1024 1024' ;;
    0:yes:no) shapes=$(all_shapes) ;;
    3:no:no) ;;
    0:no:[!n]*) shapes=$(result_of 4096 4096) ;;
    2:no:[!n]*) shapes=$(result_of $shapes) ;;
    *) bad_usage "takes M K N, or --all, or --transpose and two dimensions; got$command" ;;
    esac
    case $transpose:$passed in
    no:*) ;;
    *--transpose-[ab]*) bad_usage "takes either --transpose or operands stored transposed, not both" ;;
    *) passed="$passed --transpose $transpose" ;;
    esac
}

look_around() {
    # Makes CUDA number the GPUs as nvidia-smi does.
    export CUDA_DEVICE_ORDER=PCI_BUS_ID
    gpu=${CUDA_VISIBLE_DEVICES:-0}
    toolkit=$(sed -n 's/^set(CMAKE_CUDA_COMPILER_VERSION "\(.*\)")$/\1/p' \
        "$build"/CMakeFiles/*/CMakeCUDACompiler.cmake 2>/dev/null || :)
    # A value that nvidia-smi does not know becomes empty.
    IFS=', ' read -r driver sm_clock sm_clock_max memory_clock memory_clock_max power_limit <<END
$(nvidia-smi --id="${gpu%%,*}" --format=csv,noheader,nounits \
        --query-gpu=driver_version,clocks.sm,clocks.max.sm,clocks.mem,clocks.max.mem,power.limit 2>/dev/null |
        sed -n '/^[0-9]/{ s/\[[^]]*\]/ /g; p; q; }')
END
}

# Reports the highest clocks too, because the GPU may be idle at the start.
print_head() {
    print_facts 'Kernels, timed' "driver|$driver" "CUDA toolkit of the build|${toolkit:-none}" \
        "SM clock at the start|${sm_clock:+$sm_clock MHz}" "SM clock at most|${sm_clock_max:+$sm_clock_max MHz}" \
        "memory clock at the start|${memory_clock:+$memory_clock MHz}" \
        "memory clock at most|${memory_clock_max:+$memory_clock_max MHz}" "power limit|${power_limit:+$power_limit W}"
}

# watch_gpu COMMAND…: runs the command, and reports the GPU's power and clock during the run. Between short
# kernels the GPU is idle, so only samples near the highest power count.
watch_gpu() {
    nvidia-smi --id="${gpu%%,*}" --query-gpu=power.draw,clocks.sm --format=csv,noheader,nounits --loop-ms=100 \
        >"$scratch/watched" 2>/dev/null &
    watcher=$!
    trap 'kill "$watcher" 2>/dev/null || :' EXIT # traps in the pipe's subshell only
    trap 'exit 130' INT TERM
    code=0
    for _ in 1 2 3 4 5 6 7 8 9 10; do # waits for the first sample
        { [ -z "$driver" ] || [ -s "$scratch/watched" ]; } && break
        sleep 0.2
    done
    "$@" || code=$?
    kill "$watcher" 2>/dev/null || :
    wait "$watcher" 2>/dev/null || :
    trap - EXIT INT TERM
    sed -n 's/^ *\([0-9.]*\), *\([0-9]*\) *$/\1 \2/p' "$scratch/watched" | sort -rn |
        awk 'NR == 1 { most = $1 } $1 >= 0.9 * most { print $2, most }' >"$scratch/clocks"
    [ ! -s "$scratch/clocks" ] || summary "$scratch/clocks" | awk -v most="$(sed -n '1s/.* //p' "$scratch/clocks")" \
        -v count="$(grep -c . "$scratch/clocks")" '{
            printf "\nGPU, asked every 100 ms: at most %.0f W; in the %d samples of 90%% of that and more an SM clock of %d MHz (median; %d to %d)\n",
                most, count, $1, $2, $3
        }'
    return "$code"
}

run() {
    # Shapes and options are split into words.
    # shellcheck disable=SC2086
    set -- $shapes
    while [ $# -gt 0 ]; do
        passed="$passed --time $1 $2 $3"
        shift 3
    done
    look_around
    name_report
    # shellcheck disable=SC2086
    keep_report print_head driver,toolkit,sm_clock_mhz,memory_clock_mhz,power_limit_w,date,commit \
        "$driver,$toolkit,$sm_clock,$memory_clock,$power_limit,$date,$commit" watch_gpu "$build/tests/kernels/kernels" $passed
}

take_arguments "$@"
choose_shapes
run
