/* The rows of the CPU's variant table, and the launch functions. To add a variant, add its file, one row and
 * a declaration of its functions. variants.c has the rows of `auto`. */
#pragma once

#include "gpu/device/backend.h"
#include "gpu/lab/traffic/kernels.h"

/* One row for each variant that multiplies: its name, then members of struct mm_variant (gpu/plan/variant.h).
 * The first row is the reference for all backends. `naive` and the tiled variants never divide k, so
 * computing C in parts does not change a bit. OpenBLAS chooses a kernel by the shape, so the last bits can
 * depend on the parts. `blas` has a large `cut` because OpenBLAS is slow for small parts. */
#define MM_CPU_VARIANTS(X)                                                                                   \
    X(naive, .launch = {MM_EVERY_DTYPE(mm_cpu_naive)}, .traffic = mm_traffic_naive, .cut = 1,                \
      .is_row_by_row = true, .sources = MM_SOURCES("gpu/cpu/variants/naive.c"),                              \
      .summary = "triple loop over rows, columns and depth; the host's reference")                           \
    X(tiled_8, .launch = {[MM_FLOAT32] = mm_cpu_tiled_8}, .traffic = mm_traffic_tiled, .tile = 8, .cut = 8,  \
      .is_row_by_row = true, .sources = MM_SOURCES("gpu/cpu/variants/tiled.c"),                              \
      .summary = "8x8 squares of A and B copied to small arrays that stay in the L1 cache")                  \
    X(tiled_16, .launch = {MM_EVERY_DTYPE(mm_cpu_tiled_16)}, .traffic = mm_traffic_tiled, .tile = 16,        \
      .cut = 16, .is_row_by_row = true, .sources = MM_SOURCES("gpu/cpu/variants/tiled.c"),                   \
      .summary = "16x16 squares of A and B copied to small arrays that stay in the L1 cache")                \
    X(tiled_32, .launch = {MM_EVERY_DTYPE(mm_cpu_tiled_32)}, .traffic = mm_traffic_tiled, .tile = 32,        \
      .cut = 32, .is_row_by_row = true, .sources = MM_SOURCES("gpu/cpu/variants/tiled.c"),                   \
      .summary = "32x32 squares of A and B copied to small arrays that stay in the L1 cache")                \
    X(blas,                                                                                                  \
      .launch = {[MM_FLOAT32] = mm_cpu_blas,                                                                 \
                 [MM_FLOAT64] = mm_cpu_blas,                                                                 \
                 [MM_FLOAT16] = mm_cpu_blas,                                                                 \
                 [MM_BFLOAT16] = mm_cpu_blas,                                                                \
                 [MM_FLOAT8_E4M3FN] = mm_cpu_blas,                                                           \
                 [MM_FLOAT8_E5M2] = mm_cpu_blas},                                                            \
      .cut = 256, .missing = mm_cpu_blas_missing, .needs = "OpenBLAS at build time",                         \
      .sources = MM_SOURCES("gpu/cpu/variants/blas.c"), .summary = "OpenBLAS: the yardstick")

/* One row for each variant that transposes. */
#define MM_CPU_TRANSPOSES(X)                                                                                 \
    X(naive, .launch = {MM_EVERY_DTYPE(mm_cpu_transpose_naive)}, .traffic = mm_traffic_transpose_naive,      \
      .sources = MM_SOURCES("gpu/cpu/variants/transpose.c"),                                                 \
      .summary = "row by row of the result, each read a step down a column")                                 \
    X(shared, .launch = {MM_EVERY_DTYPE(mm_cpu_transpose_shared)}, .traffic = mm_traffic_transpose_shared,   \
      .tile = 32, .sources = MM_SOURCES("gpu/cpu/variants/transpose.c"),                                     \
      .summary = "through 32x32 squares copied to a small array that stays in the L1 cache")

mm_variant_launch mm_cpu_naive, mm_cpu_tiled_8, mm_cpu_tiled_16, mm_cpu_tiled_32, mm_cpu_blas;
mm_variant_launch mm_cpu_transpose_naive, mm_cpu_transpose_shared;

/* Returns why this build cannot run `blas`, or NULL if the build can. Any thread. */
const char *mm_cpu_blas_missing(const struct mm_device *device);

/* OpenBLAS uses several threads for a product with more multiplications than this. In OpenBLAS's source, this
 * number is 4·65536 for float32. */
#define MM_CPU_BLAS_ALONE_MAX 262144.0

void mm_cpu_blas_limit_threads(unsigned count);

/* Indices in the table mm_cpu_variants. */
enum {
#define X(name, ...) MM_CPU_ROW_##name,
    MM_CPU_VARIANTS(X)
#undef X
        MM_CPU_ROW_auto,
#define X(name, ...) MM_CPU_ROW_transpose_##name,
    MM_CPU_TRANSPOSES(X)
#undef X
        MM_CPU_ROW_transpose_auto,
    MM_CPU_VARIANT_COUNT
};

extern const struct mm_variant mm_cpu_variants[MM_CPU_VARIANT_COUNT];
