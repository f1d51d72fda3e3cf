# Reads a GPU's counters by Nsight Compute, for counters.sh and profile.sh. Set `metrics`, and then source
# this file with the script's arguments.
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

# count SUBJECT OPTION…: runs ncu while the harness times SUBJECT, which is a list of the harness's options.
# Writes a line for each kernel to $scratch/counts: the values of `metrics` and the kernel's name. For a
# counter that ncu lacks, writes $missing. If $missing is empty, fails instead.
missing=
count() {
    subject=$1
    shift
    # Without quotes, the shell splits the options into words.
    # shellcheck disable=SC2086
    timeout 120 ncu --csv --print-units base --clock-control none --metrics "$(echo $metrics | tr ' ' ,)" "$@" "$kernels" \
        --backend cuda $subject --repeats 1 >"$scratch/ncu" 2>&1 || {
        cat "$scratch/ncu" >&2
        return 1
    }
    # All fields are quoted. Field 1 is the launch's number, field 5 the kernel, and the last three are a
    # metric's name, unit and value. A value may contain commas.
    awk -F '","' -v metrics="$metrics" -v missing="$missing" '
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
                    counted = value[launch[i], metric[j]]
                    if (counted !~ /^[0-9]/) {
                        if (missing == "") {
                            print "ncu does not give " metric[j] " of " name > "/dev/stderr"
                            exit 1
                        }
                        counted = missing
                    }
                    line = line counted " "
                }
                print line name
            }
            exit launches == 0
        }' "$scratch/ncu" >"$scratch/counts" || {
        echo "ncu does not tell all of $subject" >&2
        return 1
    }
}
