/* What `auto` picks on a GPU of 132 multiprocessors, on either side of each crossover of a made-up table. */
#include "gpu/backend.h"
#include "gpu/cuda/variants.h"
#include "tests/unit/unit.h"

/* The rows without their kernels: the choice is one of names. */
const struct mm_variant mm_cuda_variants[MM_CUDA_VARIANT_COUNT] = {
#define X(row, ...) [MM_CUDA_ROW_##row] = {.name = #row},
    MM_CUDA_VARIANTS(X)
#undef X
#define X(row, ...) [MM_CUDA_ROW_transpose_##row] = {.name = #row},
        MM_CUDA_TRANSPOSES(X)
#undef X
};

static bool has_async = true;

const char *mm_cuda_async_missing(const struct mm_device *device) {
    return has_async ? NULL : "not here";
}

static bool has_tensor_cores = true;

const char *mm_cuda_fp32_tensor_missing(const struct mm_device *device) {
    return has_tensor_cores ? NULL : "not here";
}

static bool has_blas = true;

const char *mm_cuda_blas_missing(const struct mm_device *device) {
    return has_blas ? NULL : "not here";
}

static const struct mm_device device = {.multiprocessors = 132};

static void expect(const struct mm_product *product, const char *name) {
    const struct mm_variant *chosen = mm_cuda_choose(&device, product);
    if (strcmp(chosen->name, name) != 0)
        fail_msg("%zux%zux%zu%s%s: %s, not %s", product->m, product->k, product->n,
                 product->transpose_b ? ", B transposed" : "",
                 product->allow_vendor ? ", the vendor allowed" : "", chosen->name, name);
}

static void expect_product(size_t m, size_t k, size_t n, bool turned, const char *name) {
    const struct mm_product product = {.m = m, .n = n, .k = k, .transpose_b = turned};
    expect(&product, name);
}

static void expect_allowed(size_t m, size_t k, size_t n, const char *name) {
    const struct mm_product product = {.m = m, .n = n, .k = k, .allow_vendor = true};
    expect(&product, name);
}

static void small_products_go_to_tiles(void **state) {
    expect_product(4, 4, 4, false, "tiled_16");
    expect_product(149, 150, 150, false, "tiled_async");
    expect_product(150, 150, 150, false, "simt");
    expect_product(31, 512, 31, false, "tiled_16");
    expect_product(31, 513, 31, false, "simt");
    expect_product(100, 127, 100, false, "tiled_16");
    expect_product(100, 128, 100, true, "tiled_16");
    expect_product(352, 8, 353, false, "tiled_16"); /* 132 blocks of 32, and 144 */
    has_async = false;
    expect_product(149, 150, 150, false, "tiled_16");
    has_async = true;
}

/* The first entry that is wide and deep enough decides, whichever edge is the narrow one. */
static void large_ones_go_to_the_tensor_cores(void **state) {
    expect_product(64, 640, 1000000, false, "simt"); /* never */
    expect_product(64, 641, 4096, false, "simt");
    expect_product(64, 641, 4097, false, "fp32_tensor");
    expect_product(4097, 1000000, 1, true, "fp32_tensor");
    expect_product(65, 640, 2048, false, "simt");
    expect_product(65, 640, 2049, false, "fp32_tensor");
    expect_product(512, 641, 512, false, "simt");
    expect_product(512, 641, 513, false, "fp32_tensor");
    expect_product(513, 640, 2999, false, "simt");
    expect_product(513, 640, 3000, false, "fp32_tensor");
    expect_product(513, 641, 513, false, "fp32_tensor");
    expect_product(0x7fffffff, 0x7fffffff, 0x7fffffff, false, "fp32_tensor");
    expect_product((size_t)1 << 31, 641, (size_t)1 << 31, false, "fp32_tensor"); /* the plan refuses it */
    has_tensor_cores = false;
    expect_product(4096, 4096, 4096, false, "simt");
    has_tensor_cores = true;
}

/* Without leave there is none of it, as the rows above show where the library was there throughout. */
static void the_vendor_is_for_what_fills_the_chip_where_it_is_allowed(void **state) {
    expect_allowed(4096, 4096, 4096, "fp32_tensor");
    expect_allowed(4, 4, 4, "tiled_16");
    has_tensor_cores = false;
    expect_allowed(4096, 4096, 4096, "blas");
    expect_allowed(1471, 512, 1471, "blas");
    expect_allowed(1470, 512, 1471, "simt"); /* 16,383 elements for each multiprocessor */
    expect_allowed(1471, 511, 1471, "simt");
    expect_allowed(512, 512, 4224, "blas");
    expect_allowed(511, 512, 4300, "simt");
    has_blas = false;
    expect_allowed(4096, 4096, 4096, "simt");
    has_blas = has_tensor_cores = true;
}

static void expect_transposition(enum mm_dtype dtype, size_t m, size_t n, const char *name) {
    struct mm_product product = {.m = m, .n = n, .transpose_a = true};
    product.a = mm_matrix_dense(dtype, n, m, NULL);
    product.c = mm_matrix_dense(dtype, m, n, NULL);
    const struct mm_variant *chosen = mm_cuda_choose_transpose(&device, &product);
    if (strcmp(chosen->name, name) != 0)
        fail_msg("%zux%zu, %s: %s, not %s", m, n, mm_dtype_name(dtype), chosen->name, name);
}

static void transpositions_cross_where_measured(void **state) {
    expect_transposition(MM_FLOAT32, 1408, 1408, "padded"); /* 484 tiles of 64 */
    expect_transposition(MM_FLOAT32, 1412, 1412, "vectorized");
    expect_transposition(MM_FLOAT32, 1412, 1413, "padded"); /* C's rows end in the middle of 16 bytes */
    expect_transposition(MM_FLOAT32, 1413, 1412, "padded"); /* A's do */
    expect_transposition(MM_FLOAT32, 28, 1000000, "padded");
    expect_transposition(MM_FLOAT64, 4096, 4096, "padded");
    expect_transposition(MM_INT32, 4096, 4096, "vectorized");
}

RUN_TESTS(small_products_go_to_tiles, large_ones_go_to_the_tensor_cores,
          the_vendor_is_for_what_fills_the_chip_where_it_is_allowed, transpositions_cross_where_measured)
