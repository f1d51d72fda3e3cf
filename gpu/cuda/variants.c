/* The CUDA variant table. The rows of most variants are in variants.h. */
#include "gpu/cuda/variants.h"

#include "gpu/cuda/compiled.h"

/* Tile edges that a request can choose. 0 ends the list. */
static const unsigned dynamic_tiles[] = {4, 8, 16, 32, 64, 96, 0};
static const unsigned tensor_tiles[] = {16, 32, 64, 128, 192, 256, 0};
static const unsigned tf32_tiles[] = {32, 64, 128, 192, 256, 0};

/* clang-format off */
const struct mm_variant mm_cuda_variants[MM_CUDA_VARIANT_COUNT] = {
#define X(row, ...) [MM_CUDA_ROW_##row] = {.name = #row, .op = MM_MATMUL, __VA_ARGS__},
    MM_CUDA_VARIANTS(X)
#undef X
    [MM_CUDA_ROW_auto] = {
        .name = "auto", .summary = "the one of our own kernels that suits the shape", .op = MM_MATMUL,
        .sources = MM_SOURCES("gpu/cuda/auto.c", "gpu/cuda/crossovers.h"), .converts = true, .choose = {MM_EVERY_DTYPE(mm_cuda_choose)},
    },
#define X(row, ...) [MM_CUDA_ROW_transpose_##row] = {.name = #row, .op = MM_TRANSPOSE, __VA_ARGS__},
    MM_CUDA_TRANSPOSES(X)
#undef X
    [MM_CUDA_ROW_transpose_auto] = {
        .name = "auto", .summary = "the one of the others that suits the shape", .op = MM_TRANSPOSE,
        .sources = MM_SOURCES("gpu/cuda/auto.c"),
        .choose = {MM_EVERY_DTYPE(mm_cuda_choose_transpose)},
    },
};
/* clang-format on */
