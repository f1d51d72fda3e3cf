#!/bin/sh
# ./dev bench crossovers makes its table as it says, from made-up figures. It says nothing of how fast anything is.
# Usage: crossovers_check.sh, in the top folder.
set -eu

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0

# has LINE: the table has it.
has() {
    grep -qxF -- "$1" "$scratch/table" || {
        echo "the table has no line '$1'"
        failed=$((failed + 1))
    }
}

{
    echo op,dtype,m,k,n,variant,status,median_ms,device
    for wide in 512 1024 2048 4096; do
        echo "matmul,float32,512,1024,$wide,simt,ok,0.5,\"Card 1\""
    done
    # Faster, slower, and faster from there on.
    echo 'matmul,float32,512,1024,512,fp32_tensor,ok,0.1,"Card 1"'
    echo 'matmul,float32,512,1024,1024,fp32_tensor,ok,0.6,"Card 1"'
    echo 'matmul,float32,512,1024,2048,fp32_tensor,ok,0.4,"Card 1"'
    echo 'matmul,float32,512,1024,4096,fp32_tensor,ok,0.3,"Card 1"'
    # Never, and of one nothing is known.
    echo 'matmul,float32,512,2048,512,fp32_tensor,ok,0.6,"Card 1"'
    echo 'matmul,float32,512,2048,512,simt,ok,0.5,"Card 1"'
    echo 'matmul,float32,512,4096,512,fp32_tensor,failed,,"Card 1"'
    echo 'matmul,float32,512,4096,512,simt,ok,0.5,"Card 1"'
    for edge in 96 128 160 192 224 256 320; do
        for variant in tiled_16 tiled_async; do
            echo "matmul,float32,$edge,$edge,$edge,$variant,ok,0.010,\"Card 1\""
        done
    done
    for edge in 96 128; do
        echo "matmul,float32,$edge,$edge,$edge,simt,ok,0.011,\"Card 1\""
    done
    for edge in 160 192 224 256 320; do
        echo "matmul,float32,$edge,$edge,$edge,simt,ok,0.009,\"Card 1\""
    done
} >"$scratch/csv"
sh tests/kernels/crossovers.sh --table "$scratch/csv" >"$scratch/table"
has 'enum { MM_CUDA_SIMT_EDGE = 160 };'
has '    {512, 1536, 1537},' # up to what was timed before, and to half of the way to the next depth
has '    {512, 3072, 0},'
has '    {512, MM_CUDA_ANY, 0},'
has '    {MM_CUDA_ANY, 96, 0},'
has '    {32, 96, 0},'
has '    {512, 47, 0},'
has '/* Where one kernel becomes faster than another, measured on one Card 1. Written by'
[ "$(grep -c '^    {' "$scratch/table")" = 143 ] || failed=$((failed + 1))
echo "$failed failures"
[ "$failed" -eq 0 ]
