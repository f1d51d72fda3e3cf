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

/* A row of C reads a line of the cache from each row of A, and the next rows of C want the same lines again.
 * While they stay in the cache naive wins: 0.029 against 0.058 ms at 300×300, 5.8 against 7.4 at 2000×2000.
 * They do not where there are thousands (34 against 25 ms at 3000×3000), or where A's rows lie at multiples
 * of 1 KiB, so that their lines contend for few places (0.062 against 0.041 ms at 256×256, 129 against 31 at
 * 4096×4096, 1.2 against 0.5 at 4096×100). A short C that is wide is naive's again (0.30 against 0.55 ms at
 * 100×4096). `./dev bench kernels --transpose float32`, M N those of A turned round, medians on one core of
 * an AMD EPYC that others used too, gcc 12 at -O2, 2026-11-21. */
static const struct mm_variant *choose_transpose(const struct mm_device *device,
                                                 const struct mm_product *product) {
    enum { CONTENDING_BYTES = 1024, CONTENDING_ROWS_MIN = 64, LINES_MAX = 2500, SHORT_MAX = 127 };
    (void)device;
    const size_t row_bytes = product->a.ld * mm_dtype_bytes(product->a.dtype);
    const bool contends = row_bytes % CONTENDING_BYTES == 0 && product->n >= CONTENDING_ROWS_MIN;
    const bool overflows = product->n > LINES_MAX && product->m > SHORT_MAX;
    return &mm_cpu_variants[contends || overflows ? MM_CPU_ROW_transpose_shared : MM_CPU_ROW_transpose_naive];
}
