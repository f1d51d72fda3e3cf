/* What the CUDA variants would launch, as they describe it: each has a kernel for every orientation (of
 * transpositions: for either size of an element), and one for batches unless it is listed here. No GPU takes
 * part. */
#include "gpu/cuda/device.h"
#include "gpu/cuda/variants.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* Their blocks are 128 elements wide and high, so that small products fill none; or a product may take more
 * kernels than one; or the kernels are a library's. */
static bool goes_alone(const char *name) {
    static const char *const names[] = {"register_tiled", "vectorized", "warp_tiled", "fp32_tensor", "blas"};
    for (size_t index = 0; index < sizeof names / sizeof names[0]; index++)
        if (strcmp(name, names[index]) == 0)
            return true;
    return false;
}

/* A library's kernels are not known here; fp32_tensor turns operands before its product. */
static bool has_own_for_each(const char *name) {
    return strcmp(name, "blas") != 0 && strcmp(name, "fp32_tensor") != 0;
}

static struct mm_cuda_layout describe(const struct mm_variant *variant, const struct mm_product *product) {
    struct mm_cuda_device device = {.head.shared_bytes_per_block_max = 227 << 10};
    struct mm_cuda_layout layout = {.kernel = NULL};
    struct mm_error error;
    (void)mm_cuda_describe(variant, product, &device, &layout, &error); /* blas may not be here */
    return layout;
}

static struct mm_cuda_layout describe_product(const struct mm_variant *variant, unsigned orientation) {
    const struct mm_product product = {.m = 32,
                                       .n = 32,
                                       .k = 32,
                                       .a = mm_matrix_dense(MM_FLOAT32, 32, 32, NULL),
                                       .b = mm_matrix_dense(MM_FLOAT32, 32, 32, NULL),
                                       .c = mm_matrix_dense(MM_FLOAT32, 32, 32, NULL),
                                       .transpose_a = (orientation & 1) != 0,
                                       .transpose_b = (orientation & 2) != 0};
    return describe(variant, &product);
}

static struct mm_cuda_layout describe_transposition(const struct mm_variant *variant, enum mm_dtype dtype) {
    const struct mm_product product = {.m = 32,
                                       .n = 32,
                                       .a = mm_matrix_dense(dtype, 32, 32, NULL),
                                       .c = mm_matrix_dense(dtype, 32, 32, NULL),
                                       .transpose_a = true};
    return describe(variant, &product);
}

static void expect_all_different(const void *const *seen, unsigned count) {
    for (unsigned index = 0; index < count; index++) {
        assert_non_null(seen[index]);
        for (unsigned other = 0; other < index; other++)
            assert_ptr_not_equal(seen[index], seen[other]);
    }
}

static void every_orientation_has_its_kernels(void **state) {
    unsigned together = 0;
    (void)state;
    for (size_t row = 0; row < MM_CUDA_VARIANT_COUNT; row++) {
        const struct mm_variant *variant = &mm_cuda_variants[row];
        const void *seen[8] = {NULL};
        unsigned count = 0;
        if (variant->launch == NULL || variant->op != MM_MATMUL)
            continue;
        together += !goes_alone(variant->name);
        for (unsigned orientation = 0; orientation < 4; orientation++) {
            const struct mm_cuda_layout layout = describe_product(variant, orientation);
            assert_false(layout.reads_once);
            if (has_own_for_each(variant->name))
                seen[count++] = layout.kernel;
            if (goes_alone(variant->name))
                assert_null(layout.batch_kernel);
            else
                seen[count++] = layout.batch_kernel;
        }
        expect_all_different(seen, count);
    }
    assert_true(together >= 12);
}

static struct mm_cuda_layout describe_simt(size_t m, size_t k, size_t n) {
    struct mm_cuda_device device = {
        .head = {.shared_bytes_per_block_max = 227 << 10, .multiprocessors = 132}};
    const struct mm_product product = {.m = m,
                                       .n = n,
                                       .k = k,
                                       .a = mm_matrix_dense(MM_FLOAT32, m, k, NULL),
                                       .b = mm_matrix_dense(MM_FLOAT32, k, n, NULL),
                                       .c = mm_matrix_dense(MM_FLOAT32, m, n, NULL)};
    struct mm_cuda_layout layout;
    struct mm_error error;
    assert_int_equal(
        mm_cuda_describe(&mm_cuda_variants[MM_CUDA_ROW_simt], &product, &device, &layout, &error), MM_OK);
    return layout;
}

/* What a batch kernel is told of k is what the kernel alone does; large tiles have no batch kernel, nor have
 * vectors, nor what has so many parts that one block would take long for them. */
static void simt_tells_its_parts(void **state) {
    const struct mm_cuda_layout deep = describe_simt(256, 256, 256);
    (void)state;
    assert_non_null(deep.batch_kernel);
    assert_in_range(deep.part_depth, 1, 128);
    assert_int_not_equal(deep.scratch_bytes, 0);
    assert_int_equal(describe_simt(64, 0, 64).part_depth, 0);
    const struct mm_cuda_layout shallow = describe_simt(500, 20, 500);
    assert_non_null(shallow.batch_kernel);
    assert_in_range(shallow.part_depth, 20, 64);
    assert_int_equal(shallow.scratch_bytes, 0);
    assert_null(describe_simt(4096, 4096, 4096).batch_kernel);
    assert_null(describe_simt(1, 256, 256).batch_kernel);
    assert_null(describe_simt(64, 1024, 64).batch_kernel);
}

/* Whatever edge is missing, and however it lies. */
static void empty_products_are_described(void **state) {
    static const size_t shapes[][3] = {{0, 200, 0}, {0, 200, 5}, {5, 200, 0},
                                       {5, 0, 5},   {0, 0, 0},   {0, 1, 0}};
    struct mm_cuda_device device = {
        .head = {.shared_bytes_per_block_max = 227 << 10, .multiprocessors = 132, .compute_capability = 90}};
    (void)state;
    for (size_t row = 0; row < MM_CUDA_VARIANT_COUNT; row++) {
        const struct mm_variant *variant = &mm_cuda_variants[row];
        for (size_t shape = 0; shape < sizeof shapes / sizeof shapes[0]; shape++) {
            for (unsigned orientation = 0; orientation < 4; orientation++) {
                const size_t m = shapes[shape][0], k = shapes[shape][1], n = shapes[shape][2];
                const bool a = (orientation & 1) != 0, b = (orientation & 2) != 0;
                const struct mm_product product = {
                    .m = m,
                    .n = n,
                    .k = k,
                    .a = mm_matrix_dense(MM_FLOAT32, a ? k : m, a ? m : k, NULL),
                    .b = mm_matrix_dense(MM_FLOAT32, b ? n : k, b ? k : n, NULL),
                    .c = mm_matrix_dense(MM_FLOAT32, m, n, NULL),
                    .transpose_a = a,
                    .transpose_b = b};
                struct mm_cuda_layout layout;
                struct mm_error error;
                if (variant->launch != NULL && variant->op == MM_MATMUL)
                    (void)mm_cuda_describe(variant, &product, &device, &layout, &error);
            }
        }
    }
}

static void every_transposition_has_its_kernels(void **state) {
    unsigned rows = 0;
    (void)state;
    for (size_t row = 0; row < MM_CUDA_VARIANT_COUNT; row++) {
        const struct mm_variant *variant = &mm_cuda_variants[row];
        const void *seen[4];
        if (variant->launch == NULL || variant->op != MM_TRANSPOSE)
            continue;
        rows++;
        for (unsigned size = 0; size < 2; size++) {
            const struct mm_cuda_layout layout =
                describe_transposition(variant, size == 0 ? MM_INT32 : MM_FLOAT64);
            seen[2 * size] = layout.kernel;
            seen[2 * size + 1] = layout.batch_kernel;
            assert_true(layout.reads_once);
        }
        expect_all_different(seen, 4);
    }
    assert_int_equal(rows, 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_orientation_has_its_kernels),
                                       cmocka_unit_test(every_transposition_has_its_kernels),
                                       cmocka_unit_test(empty_products_are_described),
                                       cmocka_unit_test(simt_tells_its_parts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
