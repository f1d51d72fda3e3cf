/* Calls cuBLAS and cuBLASLt. The program loads the libraries at run time and works without them. This file
 * declares the libraries' functions, so the build does not need NVIDIA's headers. */
#include "gpu/cuda/device.h"
#include "gpu/cuda/variants.h"
#include "gpu/cuda/variants/blas.h"

#include <assert.h>
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>

/* Values of enums in cublas_api.h and library_types.h of CUDA 13.0. */
enum { STATUS_SUCCESS = 0, STATUS_ALLOC_FAILED = 3, STATUS_NOT_SUPPORTED = 15, OP_N = 0, OP_T = 1 };
enum { DEFAULT_MATH = 0, PEDANTIC_MATH = 2, SUMS_STAY_WIDE = 16 };
enum { COMPUTE_32F = 68, COMPUTE_32I = 72, ALGORITHM_DEFAULT = -1 };
enum { R_32F = 0, R_64F = 1, R_16F = 2, R_8I = 3, R_32I = 10, R_16BF = 14, R_8F_E4M3 = 28 };

/* PEDANTIC_MATH keeps all arithmetic in float32, without tensor cores. float64 does not need this mode,
 * because tensor cores compute in full float64. SUMS_STAY_WIDE forbids cuBLAS to round partial sums to a
 * narrow type of C. 32 MiB is the workspace that NVIDIA recommends for Hopper. float8_e5m2 is missing,
 * because cuBLASLt cannot multiply two operands of this type. */
const struct mm_blas_type mm_blas_types[MM_DTYPE_COUNT] = {
    [MM_FLOAT32] = {.results = MM_32_BITS, .math = PEDANTIC_MATH, .data_type = R_32F},
    [MM_FLOAT64] = {.results = MM_DTYPE_BIT(MM_FLOAT64), .math = DEFAULT_MATH, .data_type = R_64F},
    [MM_FLOAT16] = {.results = MM_DTYPE_BIT(MM_FLOAT16) | MM_32_BITS,
                    .math = SUMS_STAY_WIDE,
                    .data_type = R_16F,
                    .compute = COMPUTE_32F},
    [MM_BFLOAT16] = {.results = MM_DTYPE_BIT(MM_BFLOAT16) | MM_32_BITS,
                     .math = SUMS_STAY_WIDE,
                     .data_type = R_16BF,
                     .compute = COMPUTE_32F},
    [MM_FLOAT8_E4M3FN] = {.results = MM_32_BITS | MM_16_BITS,
                          .alignment = 16,
                          .workspace_bytes = 32 << 20,
                          .data_type = R_8F_E4M3,
                          .compute = COMPUTE_32F},
    [MM_INT8] = {.results = MM_DTYPE_BIT(MM_INT32),
                 .alignment = 4,
                 .math = DEFAULT_MATH,
                 .data_type = R_8I,
                 .compute = COMPUTE_32I},
    [MM_INT32] = {.data_type = R_32I}, /* only for C, not for operands */
};

/* --- the libraries' functions -------------------------------------------------------------------- */

typedef void *cublas_handle;

static struct {
    int (*create)(cublas_handle *handle);
    int (*destroy)(cublas_handle handle);
    int (*set_stream)(cublas_handle handle, cudaStream_t stream);
    int (*set_math_mode)(cublas_handle handle, int mode);
    int (*sgemm)(cublas_handle handle, int op_a, int op_b, int m, int n, int k, const float *alpha,
                 const float *a, int lda, const float *b, int ldb, const float *beta, float *c, int ldc);
    int (*dgemm)(cublas_handle handle, int op_a, int op_b, int m, int n, int k, const double *alpha,
                 const double *a, int lda, const double *b, int ldb, const double *beta, double *c, int ldc);
    int (*gemm_ex)(cublas_handle handle, int op_a, int op_b, int m, int n, int k, const void *alpha,
                   const void *a, int a_type, int lda, const void *b, int b_type, int ldb, const void *beta,
                   void *c, int c_type, int ldc, int compute, int algorithm);
    /* Functions for several products. A step is the distance between the matrices of successive products, in
     * elements. */
    int (*sgemm_strided)(cublas_handle handle, int op_a, int op_b, int m, int n, int k, const float *alpha,
                         const float *a, int lda, long long a_step, const float *b, int ldb, long long b_step,
                         const float *beta, float *c, int ldc, long long c_step, int count);
    int (*dgemm_strided)(cublas_handle handle, int op_a, int op_b, int m, int n, int k, const double *alpha,
                         const double *a, int lda, long long a_step, const double *b, int ldb,
                         long long b_step, const double *beta, double *c, int ldc, long long c_step,
                         int count);
    int (*gemm_strided_ex)(cublas_handle handle, int op_a, int op_b, int m, int n, int k, const void *alpha,
                           const void *a, int a_type, int lda, long long a_step, const void *b, int b_type,
                           int ldb, long long b_step, const void *beta, void *c, int c_type, int ldc,
                           long long c_step, int count, int compute, int algorithm);
} cublas;

/* Structs of cuBLASLt, and values of its enums, from cublasLt.h of CUDA 13.0. */
struct lt_operation {
    uint64_t opaque[32];
};

struct lt_layout {
    uint64_t opaque[8];
};

struct lt_preference {
    uint64_t opaque[8];
};

struct lt_choice {
    uint64_t algorithm[8];
    size_t workspace_bytes;
    int status;
    float waves;
    int reserved[4];
};

enum { OPERATION_TRANSPOSES_FIRST = 3, LAYOUT_COUNT = 5, LAYOUT_STEP = 6 };
enum { PREFER_WORKSPACE_BYTES = 1, PREFER_ALIGNMENT = 5 };

static struct {
    int (*init_operation)(struct lt_operation *operation, size_t bytes, int compute, int factor_type);
    int (*set_operation)(struct lt_operation *operation, int attribute, const void *value, size_t bytes);
    int (*init_layout)(struct lt_layout *layout, size_t bytes, int type, uint64_t rows, uint64_t cols,
                       int64_t ld);
    int (*set_layout)(struct lt_layout *layout, int attribute, const void *value, size_t bytes);
    int (*init_preference)(struct lt_preference *preference, size_t bytes);
    int (*set_preference)(struct lt_preference *preference, int attribute, const void *value, size_t bytes);
    int (*choose)(cublas_handle handle, const struct lt_operation *operation, const struct lt_layout *a,
                  const struct lt_layout *b, const struct lt_layout *c, const struct lt_layout *d,
                  const struct lt_preference *preference, int count, struct lt_choice *choices, int *found);
    int (*multiply)(cublas_handle handle, const struct lt_operation *operation, const void *alpha,
                    const void *a, const struct lt_layout *a_layout, const void *b,
                    const struct lt_layout *b_layout, const void *beta, const void *c,
                    const struct lt_layout *c_layout, void *d, const struct lt_layout *d_layout,
                    const uint64_t *algorithm, void *workspace, size_t workspace_bytes, cudaStream_t stream);
} lt;

struct symbol {
    const char *name;
    void *function; /* address of the function pointer to set */
};

static bool find_symbols(void *library, const struct symbol *symbols, size_t count) {
    for (size_t index = 0; index < count; index++) {
        void *symbol = dlsym(library, symbols[index].name);
        if (symbol == NULL)
            return false;
        memcpy(symbols[index].function, &symbol, sizeof symbol);
    }
    return true;
}

static const char *missing_because = "libcublas.so.13 or .12 was not found";
static const char *lt_missing_because = "the libcublas that was found lacks cuBLASLt's functions for float8";

/* libcublas is linked with libcublasLt, so dlsym also finds the functions of cuBLASLt in libcublas. */
static void find(void) {
    static const struct symbol of_cublas[] = {
        {"cublasCreate_v2", &cublas.create},
        {"cublasDestroy_v2", &cublas.destroy},
        {"cublasSetStream_v2", &cublas.set_stream},
        {"cublasSetMathMode", &cublas.set_math_mode},
        {"cublasSgemm_v2", &cublas.sgemm},
        {"cublasDgemm_v2", &cublas.dgemm},
        {"cublasGemmEx", &cublas.gemm_ex},
        {"cublasSgemmStridedBatched", &cublas.sgemm_strided},
        {"cublasDgemmStridedBatched", &cublas.dgemm_strided},
        {"cublasGemmStridedBatchedEx", &cublas.gemm_strided_ex},
    };
    static const struct symbol of_lt[] = {
        {"cublasLtMatmulDescInit_internal", &lt.init_operation},
        {"cublasLtMatmulDescSetAttribute", &lt.set_operation},
        {"cublasLtMatrixLayoutInit_internal", &lt.init_layout},
        {"cublasLtMatrixLayoutSetAttribute", &lt.set_layout},
        {"cublasLtMatmulPreferenceInit_internal", &lt.init_preference},
        {"cublasLtMatmulPreferenceSetAttribute", &lt.set_preference},
        {"cublasLtMatmulAlgoGetHeuristic", &lt.choose},
        {"cublasLtMatmul", &lt.multiply},
    };
    void *library = dlopen("libcublas.so.13", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        library = dlopen("libcublas.so.12", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return;
    if (!find_symbols(library, of_cublas, sizeof of_cublas / sizeof *of_cublas)) {
        missing_because = "the libcublas that was found lacks a function that is needed";
        dlclose(library);
        return;
    }
    missing_because = NULL; /* the library stays open until the process ends */
    if (find_symbols(library, of_lt, sizeof of_lt / sizeof *of_lt))
        lt_missing_because = NULL;
}

const char *mm_cuda_blas_missing(const struct mm_device *device) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find);
    return missing_because;
}

const char *mm_cuda_blas_float8_missing(const struct mm_device *device) {
    enum { FLOAT8_FROM = 89 };
    (void)mm_cuda_blas_missing(device);
    return device->compute_capability < FLOAT8_FROM ? "float8 needs compute capability 8.9"
                                                    : lt_missing_because;
}

static enum mm_status fail_status(const struct mm_lane *lane, int status, struct mm_error *error) {
    const cudaError_t code = status == STATUS_ALLOC_FAILED ? cudaErrorMemoryAllocation : cudaErrorUnknown;
    const enum mm_status result = mm_cuda_status(lane->device, code, "running cuBLAS", error);
    if (result != MM_INTERNAL)
        return result;
    return mm_fail(error, MM_INTERNAL, "cuBLAS failed with status %d", status);
}

enum mm_status mm_blas_prepare(struct mm_lane *lane, struct mm_error *error) {
    cublas_handle handle = NULL;
    if (lane->blas != NULL)
        return MM_OK;
    int status = cublas.create(&handle);
    if (status != STATUS_SUCCESS)
        return fail_status(lane, status, error);
    status = cublas.set_stream(handle, lane->stream);
    if (status != STATUS_SUCCESS) {
        cublas.destroy(handle);
        return fail_status(lane, status, error);
    }
    lane->blas = handle;
    return MM_OK;
}

void mm_cuda_blas_close(struct mm_lane *lane) {
    if (lane->blas != NULL)
        cublas.destroy(lane->blas);
    lane->blas = NULL;
}

/* Products that one call can compute: their matrices lie at equal distances in memory. These distances are
 * a_step, b_step and c_step, in elements. */
struct run {
    struct mm_product first;
    int64_t a_step;
    int64_t b_step;
    int64_t c_step;
    int count;
};

/* cuBLAS expects column-major matrices, so it sees our row-major matrices transposed. cuBLAS computes
 * op(B)ᵀ·op(A)ᵀ, which is Cᵀ in column-major order and C in row-major order. */
static int multiply(cublas_handle handle, const struct run *run) {
    const struct mm_product *product = &run->first;
    static const float one = 1.0f, nothing = 0.0f;
    static const double double_one = 1.0, double_nothing = 0.0;
    static const int int_one = 1, int_nothing = 0;
    const enum mm_dtype dtype = product->a.dtype;
    const int op_a = product->transpose_a ? OP_T : OP_N, op_b = product->transpose_b ? OP_T : OP_N;
    const int m = (int)product->m, n = (int)product->n, k = (int)product->k;
    const int lda = (int)product->a.ld, ldb = (int)product->b.ld, ldc = (int)product->c.ld;
    const void *a = product->a.data, *b = product->b.data;
    void *c = product->c.data;
    const int type = mm_blas_types[dtype].data_type, c_type = mm_blas_types[product->c.dtype].data_type;
    const int status = cublas.set_math_mode(handle, mm_blas_types[dtype].math);
    if (status != STATUS_SUCCESS)
        return status;
    const bool is_float = mm_dtype_is_float(dtype); /* alpha and beta have the type of the sums */
    const void *alpha = is_float ? &one : (const void *)&int_one;
    const void *beta = is_float ? &nothing : (const void *)&int_nothing;
    const int compute = mm_blas_types[dtype].compute;
    if (run->count > 1 && dtype == MM_FLOAT32)
        return cublas.sgemm_strided(handle, op_b, op_a, n, m, k, &one, b, ldb, run->b_step, a, lda,
                                    run->a_step, &nothing, c, ldc, run->c_step, run->count);
    if (run->count > 1 && dtype == MM_FLOAT64)
        return cublas.dgemm_strided(handle, op_b, op_a, n, m, k, &double_one, b, ldb, run->b_step, a, lda,
                                    run->a_step, &double_nothing, c, ldc, run->c_step, run->count);
    if (run->count > 1)
        return cublas.gemm_strided_ex(handle, op_b, op_a, n, m, k, alpha, b, type, ldb, run->b_step, a, type,
                                      lda, run->a_step, beta, c, c_type, ldc, run->c_step, run->count,
                                      compute, ALGORITHM_DEFAULT);
    if (dtype == MM_FLOAT32)
        return cublas.sgemm(handle, op_b, op_a, n, m, k, &one, b, ldb, a, lda, &nothing, c, ldc);
    if (dtype == MM_FLOAT64)
        return cublas.dgemm(handle, op_b, op_a, n, m, k, &double_one, b, ldb, a, lda, &double_nothing, c,
                            ldc);
    return cublas.gemm_ex(handle, op_b, op_a, n, m, k, alpha, b, type, ldb, a, type, lda, beta, c, c_type,
                          ldc, compute, ALGORITHM_DEFAULT);
}

/* Describes `count` matrices to cuBLASLt, as column-major matrices. The matrices lie `step` elements
 * apart. */
static int describe(const struct mm_matrix *matrix, int64_t step, int32_t count, struct lt_layout *layout) {
    int status = lt.init_layout(layout, sizeof *layout, mm_blas_types[matrix->dtype].data_type, matrix->cols,
                                matrix->rows, (int64_t)matrix->ld);
    if (status == STATUS_SUCCESS)
        status = lt.set_layout(layout, LAYOUT_COUNT, &count, sizeof count);
    if (status == STATUS_SUCCESS)
        status = lt.set_layout(layout, LAYOUT_STEP, &step, sizeof step);
    return status;
}

/* A product for cuBLASLt, which computes Cᵀ in column-major order. Its operands are B transposed, and A. */
struct lt_product {
    struct lt_operation operation;
    struct lt_layout a;
    struct lt_layout b;
    struct lt_layout c;
};

static int describe_products(const struct run *run, struct lt_product *described) {
    const struct mm_product *product = &run->first;
    const int32_t transpose = OP_T;
    struct lt_operation *operation = &described->operation;
    int status =
        lt.init_operation(operation, sizeof *operation, mm_blas_types[product->a.dtype].compute, R_32F);
    if (status == STATUS_SUCCESS)
        status = lt.set_operation(operation, OPERATION_TRANSPOSES_FIRST, &transpose, sizeof transpose);
    if (status == STATUS_SUCCESS)
        status = describe(&product->a, run->a_step, run->count, &described->a);
    if (status == STATUS_SUCCESS)
        status = describe(&product->b, run->b_step, run->count, &described->b);
    if (status == STATUS_SUCCESS)
        status = describe(&product->c, run->c_step, run->count, &described->c);
    return status;
}

/* Returns the largest power of two, at most 256, that divides the address. */
static uint32_t alignment_of(const void *address) {
    enum { MOST = 256 };
    const uintptr_t bits = (uintptr_t)address | MOST;
    return (uint32_t)(bits & (~bits + 1));
}

/* Chooses the first algorithm that cuBLASLt recommends. cuBLASLt caches its recommendations, so this is
 * fast. */
static int choose(cublas_handle handle, const struct mm_product *product, const struct lt_product *described,
                  struct lt_choice *choice) {
    const uint64_t workspace_bytes = mm_blas_types[product->a.dtype].workspace_bytes;
    const uint32_t alignments[] = {alignment_of(product->b.data), alignment_of(product->a.data),
                                   alignment_of(product->c.data), alignment_of(product->c.data)};
    struct lt_preference preference;
    int found = 0;
    int status = lt.init_preference(&preference, sizeof preference);
    if (status == STATUS_SUCCESS)
        status =
            lt.set_preference(&preference, PREFER_WORKSPACE_BYTES, &workspace_bytes, sizeof workspace_bytes);
    for (int index = 0; index < 4 && status == STATUS_SUCCESS; index++)
        status = lt.set_preference(&preference, PREFER_ALIGNMENT + index, &alignments[index],
                                   sizeof alignments[index]);
    if (status == STATUS_SUCCESS)
        status = lt.choose(handle, &described->operation, &described->b, &described->a, &described->c,
                           &described->c, &preference, 1, choice, &found);
    return status == STATUS_SUCCESS && found == 0 ? STATUS_NOT_SUPPORTED : status;
}

static int multiply_lt(const struct run *run, void *workspace, const struct mm_lane *lane) {
    const struct mm_product *product = &run->first;
    static const float one = 1.0f, nothing = 0.0f;
    struct lt_product described;
    struct lt_choice choice;
    int status = describe_products(run, &described);
    if (status == STATUS_SUCCESS)
        status = choose(lane->blas, product, &described, &choice);
    if (status == STATUS_SUCCESS)
        status = lt.multiply(lane->blas, &described.operation, &one, product->b.data, &described.b,
                             product->a.data, &described.a, &nothing, product->c.data, &described.c,
                             product->c.data, &described.c, choice.algorithm, workspace,
                             mm_blas_types[product->a.dtype].workspace_bytes, lane->stream);
    return status;
}

static int64_t elements_of(const struct mm_matrix *matrix) {
    return (int64_t)(matrix->rows * matrix->ld);
}

/* Returns the products from `index` to the end of the last dimension of the stack. */
static struct run run_of(const struct mm_product *product, size_t index) {
    const struct mm_stack *stack = product->stack;
    struct run run = {.first = mm_product_item(product, index), .count = 1};
    if (stack == NULL)
        return run;
    const unsigned last = stack->rank - 1;
    run.count = (int)mm_size_min(stack->dims[last] - index % stack->dims[last], INT_MAX);
    run.a_step = elements_of(&run.first.a) * (int64_t)stack->a_steps[last];
    run.b_step = elements_of(&run.first.b) * (int64_t)stack->b_steps[last];
    run.c_step = elements_of(&run.first.c);
    return run;
}

enum mm_status mm_blas_multiply(const struct mm_product *product, void *workspace, struct mm_lane *lane,
                                struct mm_error *error) {
    const struct mm_blas_type *type = &mm_blas_types[product->a.dtype];
    assert((type->results & MM_DTYPE_BIT(product->c.dtype)) != 0);
    assert(type->alignment == 0 || (!product->transpose_a && product->transpose_b));
    int status = STATUS_SUCCESS;
    for (size_t index = 0; index < mm_product_count(product) && status == STATUS_SUCCESS;) {
        const struct run run = run_of(product, index);
        status = type->workspace_bytes > 0 ? multiply_lt(&run, workspace, lane) : multiply(lane->blas, &run);
        index += (size_t)run.count;
    }
    return status == STATUS_SUCCESS ? MM_OK : fail_status(lane, status, error);
}
