/* The CPU's variant table, and how `auto` chooses from it. It computes nothing. */
#include "gpu/cpu/variants.h"

static const struct mm_variant *choose(const struct mm_device *device, const struct mm_product *product);

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
};
/* clang-format on */

static const struct mm_variant *choose(const struct mm_device *device, const struct mm_product *product) {
    (void)product;
    if (mm_cpu_blas_missing(device) == NULL)
        return &mm_cpu_variants[MM_CPU_ROW_blas];
    return &mm_cpu_variants[MM_CPU_ROW_tiled_32];
}
