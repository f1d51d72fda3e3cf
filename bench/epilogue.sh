#!/bin/sh
# ./dev bench epilogue: compares the kernel time of products with and without a sum, a bias and relu, and PyTorch's
# (load/epilogue.py). Writes a Markdown and a CSV file. Usage: epilogue.sh BUILD_FOLDER OPTION…, in the top folder.
bench=epilogue
known_rows='1024 4096'
rows=$known_rows
# shellcheck source=bench/lib/service.sh
. "$(dirname "$0")/lib/service.sh"

options() {
    :
}

run() {
    find_python torch || { say "$why" && return 1; }
    start_matmuld matmuld --backend cuda || return 1
    print_head 'Epilogues' "PyTorch|$("$python" -c 'import torch; print(torch.__version__)')"
    for _ in $(seq "$rounds"); do
        for edge in $rows; do
            "$python" "$load/epilogue.py" "$port" "$edge" >"$scratch/figures"
            while read -r what ms; do
                keep "$what.$edge" "$ms"
            done <"$scratch/figures"
        done
    done
    print_table_head
    for edge in $rows; do
        for dtype in float32 bfloat16 float16 float64; do
            row_ratio "$edge, $dtype: beta·C + bias and relu; beside: the plain product" '≤ 1.1' \
                "all.$dtype.$edge" "plain.$dtype.$edge" ms
            row_ratio "$edge, $dtype: C; beside: PyTorch's addmm" '' "sum.$dtype.$edge" "torch-sum.$dtype.$edge" ms
            row_ratio "$edge, $dtype: bias and relu; beside: PyTorch's _addmm_activation" '' \
                "bias.$dtype.$edge" "torch-bias.$dtype.$edge" ms
        done
    done
}

main "$@"
