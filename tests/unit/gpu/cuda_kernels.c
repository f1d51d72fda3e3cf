/* What the CUDA variants would launch, as they plan it: each has a kernel for every orientation (of
 * transpositions: for either size of an element), and one for batches unless it is listed here. No GPU takes
 * part. */
#include "gpu/cuda/device.h"
#include "gpu/cuda/variants.h"
#include "tests/unit/unit.h"

/* Their blocks are 128 elements wide and high, so that small products fill none; or a product may take more
 * kernels than one; or the kernels are a library's. */
static bool goes_alone(const struct mm_variant *variant) {
    static const char *const names[] = {"register_tiled", "vectorized", "warp_tiled", "fp32_tensor", "blas"};
    for (size_t index = 0; index < COUNT(names); index++)
        if (variant->op == MM_MATMUL && strcmp(variant->name, names[index]) == 0)
            return true;
    return false;
}

/* A library's kernels are not known here; fp32_tensor turns operands before its product. */
static bool has_own_for_each(const char *name) {
    return strcmp(name, "blas") != 0 && strcmp(name, "fp32_tensor") != 0;
}

static const struct mm_backend backend = {.name = "made up", .plan = mm_cuda_plan};

static struct mm_plan plan_of(const struct mm_variant *variant, const struct mm_product *product) {
    const struct mm_device device = {
        .backend = &backend, .shared_bytes_per_block_max = 227 << 10, .multiprocessors = 132};
    struct mm_plan plan = {.layout.kernel = NULL};
    struct mm_error error;
    (void)mm_plan_make(&device, variant, product, false, &plan, &error); /* blas may not be here */
    return plan;
}

static struct mm_plan plan_square(const struct mm_variant *variant, enum mm_dtype dtype, bool transpose_a,
                                  bool transpose_b) {
    const struct mm_matrix square = mm_matrix_dense(dtype, 32, 32, NULL);
    const bool has_b = variant->op == MM_MATMUL;
    const struct mm_product product = {.m = 32,
                                       .n = 32,
                                       .k = has_b ? 32 : 0,
                                       .a = square,
                                       .b = has_b ? square : (struct mm_matrix){0},
                                       .c = square,
                                       .transpose_a = transpose_a,
                                       .transpose_b = transpose_b};
    return plan_of(variant, &product);
}

static void expect_all_different(const void *const *seen, unsigned count) {
    for (unsigned index = 0; index < count; index++) {
        assert_non_null(seen[index]);
        for (unsigned other = 0; other < index; other++)
            assert_ptr_not_equal(seen[index], seen[other]);
    }
}

static void every_row_has_its_kernels(void **state) {
    unsigned together[MM_OP_COUNT] = {0};
    for (size_t row = 0; row < MM_CUDA_VARIANT_COUNT; row++) {
        const struct mm_variant *variant = &mm_cuda_variants[row];
        const bool is_product = variant->op == MM_MATMUL;
        const void *seen[8] = {NULL};
        unsigned count = 0;
        if (variant->plan[MM_FLOAT32] == NULL)
            continue;
        together[variant->op] += !goes_alone(variant);
        for (unsigned way = 0; way < (is_product ? 4 : 2); way++) {
            const struct mm_layout layout =
                is_product ? plan_square(variant, MM_FLOAT32, (way & 1) != 0, (way & 2) != 0).layout
                           : plan_square(variant, way == 0 ? MM_INT32 : MM_FLOAT64, true, false).layout;
            assert_int_equal(layout.reads_once, !is_product);
            if (has_own_for_each(variant->name))
                seen[count++] = layout.kernel;
            if (goes_alone(variant))
                assert_null(layout.batch_kernel);
            else
                seen[count++] = layout.batch_kernel;
        }
        expect_all_different(seen, count);
    }
    assert_true(together[MM_MATMUL] >= 12);
    assert_int_equal(together[MM_TRANSPOSE], 4);
}

static struct mm_plan plan_simt(size_t m, size_t k, size_t n) {
    const struct mm_product product = {.m = m,
                                       .n = n,
                                       .k = k,
                                       .a = mm_matrix_dense(MM_FLOAT32, m, k, NULL),
                                       .b = mm_matrix_dense(MM_FLOAT32, k, n, NULL),
                                       .c = mm_matrix_dense(MM_FLOAT32, m, n, NULL)};
    return plan_of(&mm_cuda_variants[MM_CUDA_ROW_simt], &product);
}

/* What a batch kernel is told of k is what the kernel alone does; large tiles have no batch kernel, nor have
 * vectors, nor what has so many parts that one block would take long for them. */
static void simt_tells_its_parts(void **state) {
    const struct mm_plan deep = plan_simt(256, 256, 256);
    assert_non_null(deep.layout.batch_kernel);
    assert_in_range(deep.layout.split_depth, 1, 128);
    assert_int_not_equal(deep.workspace_bytes, 0);
    assert_int_equal(plan_simt(64, 0, 64).layout.split_depth, 0);
    const struct mm_plan shallow = plan_simt(500, 20, 500);
    assert_non_null(shallow.layout.batch_kernel);
    assert_in_range(shallow.layout.split_depth, 20, 64);
    assert_int_equal(shallow.workspace_bytes, 0);
    assert_null(plan_simt(4096, 4096, 4096).layout.batch_kernel);
    assert_null(plan_simt(1, 256, 256).layout.batch_kernel);
    assert_null(plan_simt(64, 1024, 64).layout.batch_kernel);
}

RUN_TESTS(every_row_has_its_kernels, simt_tells_its_parts)
