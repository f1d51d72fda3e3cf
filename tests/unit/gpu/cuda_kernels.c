/* What the CUDA variants would launch, as they plan it: each has a kernel for every orientation (of
 * transpositions: for either size of an element), and one for batches unless it is listed here. No GPU takes
 * part. */
#include "gpu/cuda/device.h"
#include "gpu/cuda/variants.h"
#include "tests/unit/unit.h"

/* Their blocks are 128 elements wide and high, so that small products fill none; or a product may take more
 * kernels than one; or the kernels are a library's. */
static bool goes_alone(const char *name) {
    static const char *const names[] = {"register_tiled", "vectorized", "warp_tiled", "fp32_tensor", "blas"};
    for (size_t index = 0; index < COUNT(names); index++)
        if (strcmp(name, names[index]) == 0)
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

static struct mm_layout describe(const struct mm_variant *variant, const struct mm_product *product) {
    return plan_of(variant, product).layout;
}

static struct mm_layout describe_product(const struct mm_variant *variant, unsigned orientation) {
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

static struct mm_layout describe_transposition(const struct mm_variant *variant, enum mm_dtype dtype) {
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
    for (size_t row = 0; row < MM_CUDA_VARIANT_COUNT; row++) {
        const struct mm_variant *variant = &mm_cuda_variants[row];
        const void *seen[8] = {NULL};
        unsigned count = 0;
        if (variant->plan[MM_FLOAT32] == NULL || variant->op != MM_MATMUL)
            continue;
        together += !goes_alone(variant->name);
        for (unsigned orientation = 0; orientation < 4; orientation++) {
            const struct mm_layout layout = describe_product(variant, orientation);
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

static void every_transposition_has_its_kernels(void **state) {
    unsigned rows = 0;
    for (size_t row = 0; row < MM_CUDA_VARIANT_COUNT; row++) {
        const struct mm_variant *variant = &mm_cuda_variants[row];
        const void *seen[4];
        if (variant->plan[MM_FLOAT32] == NULL || variant->op != MM_TRANSPOSE)
            continue;
        rows++;
        for (unsigned size = 0; size < 2; size++) {
            const struct mm_layout layout =
                describe_transposition(variant, size == 0 ? MM_INT32 : MM_FLOAT64);
            seen[2 * size] = layout.kernel;
            seen[2 * size + 1] = layout.batch_kernel;
            assert_true(layout.reads_once);
        }
        expect_all_different(seen, 4);
    }
    assert_int_equal(rows, 4);
}

RUN_TESTS(every_orientation_has_its_kernels, every_transposition_has_its_kernels, simt_tells_its_parts)
