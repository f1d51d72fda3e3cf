/* The CUDA variant table. It computes nothing; the rows are in variants.h. */
#include "gpu/cuda/variants.h"

/* clang-format off */
const struct mm_variant mm_cuda_variants[MM_CUDA_VARIANT_COUNT] = {
#define X(row, row_tile, row_tiles, row_multiple_of, row_missing, row_needs, row_summary, ...)               \
    [MM_CUDA_ROW_##row] = {                                                                                  \
        .name = #row, .summary = row_summary, .needs = row_needs, .op = MM_MATMUL,                           \
        .tile = row_tile, .tiles = row_tiles, .multiple_of = row_multiple_of, .missing = row_missing,        \
        .plan = {__VA_ARGS__},                                                                               \
    },
    MM_CUDA_VARIANTS(X)
#undef X
    [MM_CUDA_ROW_auto] = {
        .name = "auto", .summary = "the one of our own kernels that suits the shape", .op = MM_MATMUL,
        .choose = {[MM_FLOAT32] = mm_cuda_choose},
    },
#define X(row, row_tile, row_summary, ...)                                                                   \
    [MM_CUDA_ROW_transpose_##row] = {                                                                        \
        .name = #row, .summary = row_summary, .op = MM_TRANSPOSE, .tile = row_tile,                          \
        .plan = {__VA_ARGS__},                                                                               \
    },
    MM_CUDA_TRANSPOSES(X)
#undef X
    [MM_CUDA_ROW_transpose_auto] = {
        .name = "auto", .summary = "the one of the others that suits the shape", .op = MM_TRANSPOSE,
        .choose = {MM_EVERY_DTYPE(mm_cuda_choose_transpose)},
    },
};
/* clang-format on */
