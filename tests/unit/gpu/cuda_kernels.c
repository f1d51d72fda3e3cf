/* What the CUDA variants would launch, as they plan it: each has a kernel for batches unless it is listed
 * here. No GPU takes part; kernels/cuda has every orientation and type. */
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

static const struct mm_backend backend = {.name = "made up", .plan = mm_cuda_plan};

static struct mm_plan plan_of(const struct mm_variant *variant, const struct mm_product *product) {
    const struct mm_device device = {
        .backend = &backend, .shared_bytes_per_block_max = 227 << 10, .multiprocessors = 132};
    struct mm_plan plan = {.layout.kernel = NULL};
    struct mm_error error;
    (void)mm_plan_make(&device, variant, product, false, &plan, &error); /* blas may not be here */
    return plan;
}

static void rows_go_together_unless_they_are_listed(void **state) {
    const struct mm_matrix none = mm_matrix_dense(MM_FLOAT32, 0, 0, NULL);
    const struct mm_matrix square = mm_matrix_dense(MM_FLOAT32, 32, 32, NULL);
    unsigned together[MM_OP_COUNT] = {0};
    for (size_t row = 0; row < MM_CUDA_VARIANT_COUNT; row++) {
        const struct mm_variant *variant = &mm_cuda_variants[row];
        const bool turns = variant->op == MM_TRANSPOSE;
        const struct mm_product product = {.m = 32,
                                           .n = 32,
                                           .k = turns ? 0 : 32,
                                           .a = square,
                                           .b = turns ? none : square,
                                           .c = square,
                                           .transpose_a = turns};
        if (variant->plan[MM_FLOAT32] == NULL)
            continue;
        const struct mm_layout layout = plan_of(variant, &product).layout;
        assert_int_equal(layout.reads_once, turns);
        assert_int_equal(layout.batch_kernel == NULL, goes_alone(variant));
        together[variant->op] += !goes_alone(variant);
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

RUN_TESTS(rows_go_together_unless_they_are_listed, simt_tells_its_parts)
