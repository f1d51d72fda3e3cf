/* The CPU's variant table, and how `auto` chooses from it. It computes nothing. */
#include "gpu/cpu/variants.h"

static const struct mm_variant *choose(const struct mm_device *device, const struct mm_product *product);
static const struct mm_variant *choose_transpose(const struct mm_device *device,
                                                 const struct mm_product *product);

/* clang-format off */
const struct mm_variant mm_cpu_variants[MM_CPU_VARIANT_COUNT] = {
#define X(row, row_tile, row_missing, row_needs, row_summary)                                                \
    [MM_CPU_ROW_##row] = {                                                                                   \
        .name = #row,                                                                                        \
        .summary = row_summary,                                                                              \
        .needs = row_needs,                                                                                  \
        .op = MM_MATMUL,                                                                                     \
        .dtypes = MM_DTYPE_BIT(MM_FLOAT32),                                                                  \
        .tile = row_tile,                                                                                    \
        .missing = row_missing,                                                                              \
        .launch = mm_cpu_##row,                                                                              \
    },
    MM_CPU_VARIANTS(X)
#undef X
    [MM_CPU_ROW_auto] = {
        .name = "auto",
        .summary = "the fastest of the others for the shape, as measured",
        .op = MM_MATMUL,
        .dtypes = MM_DTYPE_BIT(MM_FLOAT32),
        .choose = choose,
    },
#define X(row, row_tile, row_summary)                                                                        \
    [MM_CPU_ROW_transpose_##row] = {                                                                         \
        .name = #row,                                                                                        \
        .summary = row_summary,                                                                              \
        .op = MM_TRANSPOSE,                                                                                  \
        .dtypes = MM_DTYPES_MOVED,                                                                       \
        .tile = row_tile,                                                                                    \
        .launch = mm_cpu_transpose_##row,                                                                    \
    },
    MM_CPU_TRANSPOSES(X)
#undef X
    [MM_CPU_ROW_transpose_auto] = {
        .name = "auto",
        .summary = "the faster of the others for the shape, as measured",
        .op = MM_TRANSPOSE,
        .dtypes = MM_DTYPES_MOVED,
        .choose = choose_transpose,
    },
};
/* clang-format on */

/* Measured on two cores at 2.7 GHz with AVX-512, gcc 12 at -O2. A call of OpenBLAS costs 16 to 70 ns, in
 * which naive does 16 multiplications; from there on OpenBLAS wins at every shape (16³: 0.09 µs against
 * 0.9 of tiled_8 and 1.6 of naive; 512³: 1.9 ms against 15 of tiled_32 and 107 of naive). Without it, a
 * square that is mostly padding costs as much as a full one. So naive wins up to about 12³ and for
 * vectors (1×64×64: 1.7 µs against 5.6 of tiled_8), then tiled_8 (33³: 13 µs against 26 of tiled_32), and
 * tiled_32 where its padding weighs less than its reuse (128³: 0.23 ms against 0.43). */
static const struct mm_variant *choose(const struct mm_device *device, const struct mm_product *product) {
    enum { BLAS_MIN = 17, TILED_MIN = 12 * 12 * 12, TILED_EDGE_MIN = 4, TILED_32_EDGE_MIN = 64 };
    double multiplications = mm_product_flops(product) / 2.0;
    if (mm_cpu_blas_missing(device) == NULL)
        return &mm_cpu_variants[multiplications < BLAS_MIN ? MM_CPU_ROW_naive : MM_CPU_ROW_blas];
    size_t edge = product->m < product->n ? product->m : product->n;
    if (product->k < edge)
        edge = product->k;
    if (multiplications < TILED_MIN || edge < TILED_EDGE_MIN)
        return &mm_cpu_variants[MM_CPU_ROW_naive];
    return &mm_cpu_variants[edge < TILED_32_EDGE_MIN ? MM_CPU_ROW_tiled_8 : MM_CPU_ROW_tiled_32];
}

/* Measured on one core of an AMD EPYC, gcc 12 at -O2, float32: where a column of A fits the L1 cache line
 * by line, naive wins (64×64: 1.2 µs against 1.9), and for narrow matrices always (3×4096: 5 against 26 µs);
 * from 128×128 on shared does (7.4 against 9.5 µs; 512×512: 0.13 against 0.51 ms; 4096×4096: 46 against
 * 123 ms). */
static const struct mm_variant *choose_transpose(const struct mm_device *device,
                                                 const struct mm_product *product) {
    enum { SHARED_EDGE_MIN = 128 };
    (void)device;
    bool narrow = product->m < SHARED_EDGE_MIN || product->n < SHARED_EDGE_MIN;
    return &mm_cpu_variants[narrow ? MM_CPU_ROW_transpose_naive : MM_CPU_ROW_transpose_shared];
}
