/* The CPU's variant table, and the choice of `auto`. */
#include "gpu/cpu/variants.h"

static mm_variant_choose choose, choose_transpose;

/* The edges of a part are multiples of this, so a part has whole cache lines and whole tiles. */
enum { TRANSPOSE_CUT = 32 };

/* clang-format off */
const struct mm_variant mm_cpu_variants[MM_CPU_VARIANT_COUNT] = {
#define X(row, ...) [MM_CPU_ROW_##row] = {.name = #row, .op = MM_MATMUL, __VA_ARGS__},
    MM_CPU_VARIANTS(X)
#undef X
    [MM_CPU_ROW_auto] = {
        .name = "auto", .summary = "the fastest of the others for the shape, as measured",
        .op = MM_MATMUL, .sources = MM_SOURCES("gpu/cpu/variants.c"), .choose = {MM_EVERY_DTYPE(choose)},
    },
#define X(row, ...)                                                                                          \
    [MM_CPU_ROW_transpose_##row] = {.name = #row, .op = MM_TRANSPOSE, .cut = TRANSPOSE_CUT, __VA_ARGS__},
    MM_CPU_TRANSPOSES(X)
#undef X
    [MM_CPU_ROW_transpose_auto] = {
        .name = "auto", .summary = "the faster of the others for the shape, as measured",
        .op = MM_TRANSPOSE, .sources = MM_SOURCES("gpu/cpu/variants.c"), .choose = {MM_EVERY_DTYPE(choose_transpose)},
    },
};
/* clang-format on */

/* Chooses by measurements on two cores with AVX-512, gcc 12 at -O2. OpenBLAS is fastest for 17 or more
 * multiplications. Without OpenBLAS, `naive` is fastest up to about 12³ multiplications and for vectors. For
 * larger products `tiled_8` is fastest, because small tiles need less padding. If all edges are at least 64,
 * `tiled_32` is fastest. `tiled_16` replaces `tiled_8` for types that `tiled_8` does not support. */
static const struct mm_variant *choose(const struct mm_device *device, const struct mm_product *product) {
    enum { BLAS_MIN = 17, TILED_MIN = 12 * 12 * 12, TILED_EDGE_MIN = 4, TILED_32_EDGE_MIN = 64 };
    const struct mm_variant *rows = mm_cpu_variants;
    const enum mm_dtype dtype = product->a.dtype;
    const double multiplications = mm_product_flops(product) / 2.0;
    const size_t edge = mm_size_min(product->k, mm_size_min(product->m, product->n));
    if (rows[MM_CPU_ROW_blas].launch[dtype] != NULL && mm_cpu_blas_missing(device) == NULL)
        return &rows[multiplications < BLAS_MIN ? MM_CPU_ROW_naive : MM_CPU_ROW_blas];
    if (multiplications < TILED_MIN || edge < TILED_EDGE_MIN)
        return &rows[MM_CPU_ROW_naive];
    if (edge >= TILED_32_EDGE_MIN)
        return &rows[MM_CPU_ROW_tiled_32];
    return &rows[rows[MM_CPU_ROW_tiled_8].launch[dtype] != NULL ? MM_CPU_ROW_tiled_8 : MM_CPU_ROW_tiled_16];
}

/* Chooses by measurements on an AMD EPYC. A row of C reads a cache line from each row of A, and the next rows
 * of C read the same lines. `naive` is fastest while these lines stay in the cache. The cache cannot keep
 * thousands of lines, but that does not matter if C has few rows. The cache also cannot keep lines of rows
 * that begin at multiples of 1 KiB, because such rows share few cache sets. */
static const struct mm_variant *choose_transpose(const struct mm_device *device,
                                                 const struct mm_product *product) {
    enum { CONTENDING_BYTES = 1024, CONTENDING_ROWS_MIN = 64, LINES_MAX = 2500, SHORT_MAX = 127 };
    const size_t row_bytes = product->a.ld * mm_dtype_bytes(product->a.dtype);
    const bool contends = row_bytes % CONTENDING_BYTES == 0 && product->n >= CONTENDING_ROWS_MIN;
    const bool overflows = product->n > LINES_MAX && product->m > SHORT_MAX;
    return &mm_cpu_variants[contends || overflows ? MM_CPU_ROW_transpose_shared : MM_CPU_ROW_transpose_naive];
}
