# What counters.sh and profile.sh share: a GPU's counters, read by Nsight Compute. To be sourced with the script's
# arguments, and `metrics`, words, set.
# shellcheck shell=sh disable=SC2034
set -eu

: "${metrics:?the counters}"
kernels=$1/tests/kernels/kernels
command -v ncu >/dev/null || {
    echo "Nsight Compute (ncu) is not here"
    exit 77
}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# count VARIANT EDGE OPTION…: puts into $scratch/counts a line for each kernel that ncu, with these options, sees in the
# harness's products of EDGE³: its counters in the order of `metrics`, and its name without template and parameters. B is
# transposed if `transposed` is the harness's option for it.
transposed=
count() {
    variant=$1 edge=$2
    shift 2
    # One word or none.
    # shellcheck disable=SC2086
    ncu --csv --print-units base --clock-control none --metrics "$(echo $metrics | tr ' ' ,)" "$@" "$kernels" \
        --backend cuda --time "$edge" "$edge" "$edge" --variant "$variant" --repeats 1 $transposed >"$scratch/ncu" 2>&1 || {
        cat "$scratch/ncu" >&2
        return 1
    }
    # All fields are quoted; the first is the launch's number, the fifth the kernel, the last three are a metric's
    # name, unit and value, which has commas.
    awk -F '","' -v metrics="$metrics" '
        /^"[0-9]/ {
            if (!($1 in kernel))
                launch[++launches] = $1
            kernel[$1] = $5
            gsub(/[",]/, "", $NF)
            value[$1, $(NF - 2)] = $NF
        }
        END {
            count = split(metrics, metric, " ")
            for (i = 1; i <= launches; i++) {
                name = kernel[launch[i]]
                sub(/[(].*/, "", name)
                sub(/^(void )?(<unnamed>::)?/, "", name)
                sub(/<.*/, "", name)
                line = ""
                for (j = 1; j <= count; j++) {
                    if (value[launch[i], metric[j]] !~ /^[0-9]/) {
                        print "ncu does not give " metric[j] " of " name > "/dev/stderr"
                        exit 1
                    }
                    line = line value[launch[i], metric[j]] " "
                }
                print line name
            }
            exit launches == 0
        }' "$scratch/ncu" >"$scratch/counts" || {
        echo "ncu does not tell all of $variant" >&2
        return 1
    }
}
