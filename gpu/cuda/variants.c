/* The CUDA variant table. It computes nothing; the rows are in variants.h. */
#include "gpu/cuda/variants.h"

/* clang-format off */
const struct mm_variant mm_cuda_variants[MM_CUDA_VARIANT_COUNT] = {
#define X(row, ...) [MM_CUDA_ROW_##row] = {.name = #row, .op = MM_MATMUL, __VA_ARGS__},
    MM_CUDA_VARIANTS(X)
#undef X
    [MM_CUDA_ROW_auto] = {
        .name = "auto", .summary = "the one of our own kernels that suits the shape", .op = MM_MATMUL,
        .converts = true, .choose = {MM_EVERY_DTYPE(mm_cuda_choose)},
    },
#define X(row, ...) [MM_CUDA_ROW_transpose_##row] = {.name = #row, .op = MM_TRANSPOSE, __VA_ARGS__},
    MM_CUDA_TRANSPOSES(X)
#undef X
    [MM_CUDA_ROW_transpose_auto] = {
        .name = "auto", .summary = "the one of the others that suits the shape", .op = MM_TRANSPOSE,
        .choose = {MM_EVERY_DTYPE(mm_cuda_choose_transpose)},
    },
};
/* clang-format on */
