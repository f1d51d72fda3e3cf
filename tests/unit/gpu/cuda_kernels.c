/* Tests which kernels the CUDA variants plan. Needs no GPU. */
#include "gpu/cuda/device.h"
#include "gpu/cuda/variants.h"
#include "tests/unit/unit.h"

/* Returns whether the variant has no kernel for batches. */
static bool goes_alone(const struct mm_variant *variant) {
    static const char *const names[] = {"register_tiled", "spilling",    "vectorized",
                                        "warp_tiled",     "fp32_tensor", "fp64_tensor",
                                        "tensor",         "tf32",        "blas"};
    for (size_t index = 0; index < COUNT(names); index++)
        if (variant->op == MM_MATMUL && strcmp(variant->name, names[index]) == 0)
            return true;
    return false;
}

static const struct mm_backend backend = {.name = "made up", .plan = mm_cuda_plan};

static struct mm_error error;
static enum mm_status status;

static struct mm_plan plan_of(const struct mm_variant *variant, const struct mm_product *product) {
    const struct mm_device device = {.backend = &backend,
                                     .compute_capability = 90,
                                     .shared_bytes_per_block_max = 227 << 10,
                                     .multiprocessors = 132};
    struct mm_plan plan = {.layout.kernel = NULL};
    status = mm_plan_make(&device, variant, product, &plan, &error); /* fails if there is no cuBLAS */
    return plan;
}

static void variants_share_launches_unless_listed(void **state) {
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

static struct mm_product product_of(enum mm_dtype dtype, enum mm_dtype c_dtype, size_t m, size_t k,
                                    size_t n) {
    return (struct mm_product){.m = m,
                               .n = n,
                               .k = k,
                               .a = mm_matrix_dense(dtype, m, k, NULL),
                               .b = mm_matrix_dense(dtype, k, n, NULL),
                               .c = mm_matrix_dense(c_dtype, m, n, NULL)};
}

static bool is_a_library(const struct mm_variant *variant) {
    return variant == &mm_cuda_variants[MM_CUDA_ROW_blas];
}

static void expect_kernels(const struct mm_variant *variant, enum mm_dtype dtype, enum mm_dtype c_dtype) {
    const struct mm_product product = product_of(dtype, c_dtype, 32, 32, 32);
    const struct mm_plan plan = plan_of(variant, &product);
    const bool is_given = variant->converts || c_dtype == mm_dtype_result(dtype);
    const bool has_kernels = plan.layout.kernel != NULL || plan.launch != NULL;
    if (is_a_library(variant))
        return;
    if ((status == MM_OK) != is_given || (is_given && !has_kernels))
        fail_msg("%s of %s in %s", variant->name, mm_dtype_name(dtype), mm_dtype_name(c_dtype));
    if (variant->converts)
        assert_true(plan.layout.kernel != NULL && (plan.layout.batch_kernel != NULL || goes_alone(variant)));
    if (!is_given)
        assert_non_null(strstr(error.detail, mm_dtype_name(c_dtype)));
}

static void variants_plan_their_types(void **state) {
    unsigned planned = 0;
    for (size_t row = 0; row < MM_CUDA_ROW_auto; row++) {
        const struct mm_variant *variant = &mm_cuda_variants[row];
        for (enum mm_dtype dtype = 0; dtype < MM_DTYPE_COUNT; dtype++) {
            for (enum mm_dtype c_dtype = 0; c_dtype < MM_DTYPE_COUNT; c_dtype++) {
                if (variant->plan[dtype] == NULL || (mm_dtype_results(dtype) & MM_DTYPE_BIT(c_dtype)) == 0)
                    continue;
                expect_kernels(variant, dtype, c_dtype);
                planned++;
            }
        }
    }
    assert_true(planned >= 3 * 20); /* naive, tiled_16 and tiled_32 support 20 pairs of types each */
}

static void types_share_no_kernel(void **state) {
    static const unsigned rows[] = {MM_CUDA_ROW_naive, MM_CUDA_ROW_tiled_16, MM_CUDA_ROW_tiled_32};
    const void *kernels[COUNT(rows) * (MM_DTYPE_COUNT + 1)];
    size_t count = 0;
    for (size_t row = 0; row < COUNT(rows); row++) {
        for (enum mm_dtype dtype = 0; dtype < MM_DTYPE_COUNT; dtype++) {
            const struct mm_product product = product_of(dtype, mm_dtype_result(dtype), 32, 32, 32);
            kernels[count++] = plan_of(&mm_cuda_variants[rows[row]], &product).layout.kernel;
        }
        const struct mm_product rounded = product_of(MM_FLOAT32, MM_FLOAT16, 32, 32, 32);
        kernels[count++] = plan_of(&mm_cuda_variants[rows[row]], &rounded).layout.kernel;
    }
    for (size_t index = 0; index < count; index++)
        for (size_t other = 0; other < index; other++)
            assert_ptr_not_equal(kernels[index], kernels[other]);
}

static void blas_refuses_what_cublas_lacks(void **state) {
    static const struct {
        enum mm_dtype dtype, c_dtype;
        size_t m, k, n;
        const char *refusal; /* NULL if the product is supported */
    } cases[] = {
        {MM_FLOAT32, MM_FLOAT32, 5, 6, 7, NULL},
        {MM_FLOAT32, MM_FLOAT16, 5, 6, 7, NULL},
        {MM_FLOAT64, MM_FLOAT32, 5, 6, 7, NULL},
        {MM_FLOAT16, MM_FLOAT16, 5, 6, 7, NULL},
        {MM_BFLOAT16, MM_FLOAT32, 5, 6, 7, NULL},
        {MM_FLOAT32, MM_FLOAT32, 1, 1, 0x80000000, "dimensions"},
        {MM_INT8, MM_INT32, 5, 8, 7, NULL},
        {MM_INT8, MM_INT32, 4, 0, 12, NULL},
        {MM_INT8, MM_INT32, 4, 9, 12, "k is 9, but must be a multiple of 4 if blas is to multiply int8"},
        {MM_FLOAT8_E4M3FN, MM_FLOAT32, 5, 16, 4, NULL},
        {MM_FLOAT8_E4M3FN, MM_BFLOAT16, 5, 16, 12, NULL},
        {MM_FLOAT8_E4M3FN, MM_FLOAT32, 5, 8, 4, "must be a multiple of 16 if blas is"},
        {MM_FLOAT8_E4M3FN, MM_FLOAT32, 5, 16, 6,
         "n is 6, but must be a multiple of 4 if blas is to multiply float8_e4m3fn"},
    };
    const struct mm_variant *blas = &mm_cuda_variants[MM_CUDA_ROW_blas];
    const struct mm_device hopper = {.compute_capability = 90};
    for (size_t index = 0; index < COUNT(cases); index++) {
        const struct mm_product product = product_of(cases[index].dtype, cases[index].c_dtype, cases[index].m,
                                                     cases[index].k, cases[index].n);
        const bool is_here = mm_variant_missing(blas, &hopper, cases[index].dtype) == NULL;
        const char *refusal = cases[index].refusal;
        (void)plan_of(blas, &product);
        if (mm_cuda_blas_supports(&hopper, &product) != (refusal == NULL && is_here))
            fail_msg("case %zu", index);
        if (refusal != NULL && (status != MM_UNSUPPORTED || strstr(error.detail, refusal) == NULL))
            fail_msg("case %zu: %s", index, error.detail);
        if (refusal == NULL)
            assert_int_equal(status, is_here ? MM_OK : MM_UNSUPPORTED);
    }
    assert_int_equal(mm_variant_dtypes(blas) & (MM_DTYPE_BIT(MM_FLOAT8_E5M2) | MM_DTYPE_BIT(MM_UINT8)), 0);
}

/* float8 needs a newer GPU, but other types and variants still run. */
static void blas_with_float8_needs_ada(void **state) {
    const struct mm_variant *blas = &mm_cuda_variants[MM_CUDA_ROW_blas];
    const struct mm_device ampere = {.compute_capability = 86};
    const unsigned float8 = MM_DTYPE_BIT(MM_FLOAT8_E4M3FN);
    const unsigned others = mm_cuda_blas_missing(&ampere) == NULL ? mm_variant_dtypes(blas) & ~float8 : 0;
    assert_non_null(mm_variant_missing(blas, &ampere, MM_FLOAT8_E4M3FN));
    assert_int_equal(mm_variant_dtypes(blas) & float8, float8);
    assert_int_equal(mm_variant_dtypes_on(blas, &ampere), others);
}

static struct mm_plan plan_simt(size_t m, size_t k, size_t n) {
    const struct mm_product product = product_of(MM_FLOAT32, MM_FLOAT32, m, k, n);
    return plan_of(&mm_cuda_variants[MM_CUDA_ROW_simt], &product);
}

/* Batch kernels divide k like single kernels. There is no batch kernel for large tiles, for vectors, or for
 * many parts of k. */
static void simt_reports_its_parts_of_k(void **state) {
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

RUN_TESTS(variants_share_launches_unless_listed, variants_plan_their_types, types_share_no_kernel,
          blas_refuses_what_cublas_lacks, blas_with_float8_needs_ada, simt_reports_its_parts_of_k)
