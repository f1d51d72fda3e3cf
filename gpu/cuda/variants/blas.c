/* blas: cuBLAS, the yardstick that our kernels stand beside. It is looked for when the program runs
 * and never required, so its few functions are declared here, by its public binary interface, rather
 * than taken from its header. */
#include "gpu/cuda/device.h"
#include "gpu/cuda/variants.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>

/* Values of cublasStatus_t, cublasOperation_t, cublasMath_t, cublasComputeType_t, cublasGemmAlgo_t and
 * cudaDataType_t (cublas_api.h and library_types.h of CUDA 13.0). */
enum { STATUS_SUCCESS = 0, STATUS_ALLOC_FAILED = 3, OP_N = 0, OP_T = 1 };
enum { DEFAULT_MATH = 0, PEDANTIC_MATH = 2, SUMS_STAY_WIDE = 16 };
enum { COMPUTE_32F = 68, COMPUTE_32I = 72, ALGORITHM_DEFAULT = -1 };
enum { R_32F = 0, R_64F = 1, R_16F = 2, R_8I = 3, R_32I = 10, R_16BF = 14 };

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
} cublas;

static const char *missing_because = "libcublas.so.13 or .12 was not found";

static void find(void) {
    static const struct {
        const char *name;
        void *function; /* the member of `cublas` that it fills */
    } symbols[] = {
        {"cublasCreate_v2", &cublas.create},        {"cublasDestroy_v2", &cublas.destroy},
        {"cublasSetStream_v2", &cublas.set_stream}, {"cublasSetMathMode", &cublas.set_math_mode},
        {"cublasSgemm_v2", &cublas.sgemm},          {"cublasDgemm_v2", &cublas.dgemm},
        {"cublasGemmEx", &cublas.gemm_ex},
    };
    void *library = dlopen("libcublas.so.13", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        library = dlopen("libcublas.so.12", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return;
    for (size_t index = 0; index < sizeof symbols / sizeof symbols[0]; index++) {
        void *symbol = dlsym(library, symbols[index].name);
        if (symbol == NULL) {
            missing_because = "the libcublas that was found lacks a function that is needed";
            dlclose(library);
            return;
        }
        memcpy(symbols[index].function, &symbol, sizeof symbol);
    }
    missing_because = NULL; /* and the library stays open as long as the process */
}

const char *mm_cuda_blas_missing(const struct mm_device *device) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find);
    return missing_because;
}

static enum mm_status fail_status(const struct mm_lane *lane, int status, struct mm_error *error) {
    const cudaError_t code = status == STATUS_ALLOC_FAILED ? cudaErrorMemoryAllocation : cudaErrorUnknown;
    const enum mm_status result = mm_cuda_status(lane->device, code, "running cuBLAS", error);
    if (result != MM_INTERNAL)
        return result;
    return mm_fail(error, MM_INTERNAL, "cuBLAS failed with status %d", status);
}

static enum mm_status make_handle(struct mm_lane *lane, struct mm_error *error) {
    cublas_handle handle = NULL;
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

/* C of a product without depth, which BLAS implementations do not agree on. */
static enum mm_status zero(const struct mm_product *product, struct mm_lane *lane, struct mm_error *error) {
    const size_t row_bytes = product->n * mm_dtype_bytes(product->c.dtype);
    const size_t pitch = product->c.ld * mm_dtype_bytes(product->c.dtype);
    const cudaError_t code =
        cudaMemset2DAsync(product->c.data, pitch, 0, row_bytes, product->m, lane->stream);
    return mm_cuda_status(lane->device, code, "clearing c", error);
}

static bool fits(const struct mm_matrix *matrix) {
    return matrix->rows <= INT_MAX && matrix->ld <= INT_MAX;
}

static enum mm_status prepare(const struct mm_plan *plan, const struct mm_product *product,
                              struct mm_lane *lane, struct mm_error *error) {
    return lane->blas == NULL ? make_handle(lane, error) : MM_OK;
}

/* What cuBLAS has for operands of a type, and the types that it gives of C. float8 would need cuBLASLt.
 * Pedantic is float32 arithmetic throughout, without the tensor cores' narrower operands; their float64 is
 * float64 throughout. By default cuBLAS may round sums over a part of k to a narrow C's type before it adds
 * them up: SUMS_STAY_WIDE forbids that. */
static const struct {
    int math;
    int data_type;
    int compute; /* of cublasGemmEx, which multiplies the types that have no function of their own */
    unsigned results;
} types[MM_DTYPE_COUNT] = {
    [MM_FLOAT32] = {PEDANTIC_MATH, R_32F, 0, MM_DTYPE_BIT(MM_FLOAT32)},
    [MM_FLOAT64] = {DEFAULT_MATH, R_64F, 0, MM_DTYPE_BIT(MM_FLOAT64)},
    [MM_FLOAT16] = {SUMS_STAY_WIDE, R_16F, COMPUTE_32F, MM_DTYPE_BIT(MM_FLOAT16) | MM_DTYPE_BIT(MM_FLOAT32)},
    [MM_BFLOAT16] = {SUMS_STAY_WIDE, R_16BF, COMPUTE_32F,
                     MM_DTYPE_BIT(MM_BFLOAT16) | MM_DTYPE_BIT(MM_FLOAT32)},
    [MM_INT8] = {DEFAULT_MATH, R_8I, COMPUTE_32I, MM_DTYPE_BIT(MM_INT32)},
    [MM_INT32] = {DEFAULT_MATH, R_32I, 0, 0}, /* as C alone */
};

/* cuBLAS reads columns where we store rows, and so sees each matrix transposed: we ask it for
 * op(B)ᵀ·op(A)ᵀ = Cᵀ, which is C in our order, and give each operand its own flag. */
static int multiply(cublas_handle handle, const struct mm_product *product) {
    static const float one = 1.0f, nothing = 0.0f;
    static const double double_one = 1.0, double_nothing = 0.0;
    static const int int_one = 1, int_nothing = 0;
    const enum mm_dtype dtype = product->a.dtype;
    const int op_a = product->transpose_a ? OP_T : OP_N, op_b = product->transpose_b ? OP_T : OP_N;
    const int m = (int)product->m, n = (int)product->n, k = (int)product->k;
    const int lda = (int)product->a.ld, ldb = (int)product->b.ld, ldc = (int)product->c.ld;
    const void *a = product->a.data, *b = product->b.data;
    void *c = product->c.data;
    const int type = types[dtype].data_type, c_type = types[product->c.dtype].data_type;
    const int status = cublas.set_math_mode(handle, types[dtype].math);
    if (status != STATUS_SUCCESS)
        return status;
    if (dtype == MM_FLOAT32)
        return cublas.sgemm(handle, op_b, op_a, n, m, k, &one, b, ldb, a, lda, &nothing, c, ldc);
    if (dtype == MM_FLOAT64)
        return cublas.dgemm(handle, op_b, op_a, n, m, k, &double_one, b, ldb, a, lda, &double_nothing, c,
                            ldc);
    const bool is_float = mm_dtype_is_float(dtype); /* the factors have the type of the sums */
    return cublas.gemm_ex(handle, op_b, op_a, n, m, k, is_float ? &one : (const void *)&int_one, b, type, ldb,
                          a, type, lda, is_float ? &nothing : (const void *)&int_nothing, c, c_type, ldc,
                          types[dtype].compute, ALGORITHM_DEFAULT);
}

/* cuBLAS takes int8 in words of 4 bytes. The shape was judged by the row's `multiples`, and the matrices of a
 * job are dense and aligned; a benchmark's or a test's need not be. */
enum { WORD = 4 };

static bool has_whole_words(const struct mm_matrix *matrix) {
    return (uintptr_t)matrix->data % WORD == 0 && matrix->ld % WORD == 0;
}

static enum mm_status launch(const struct mm_plan *plan, const struct mm_product *product,
                             struct mm_lane *lane, struct mm_error *error) {
    if (product->k == 0)
        return zero(product, lane, error);
    if (product->a.dtype == MM_INT8 &&
        !(has_whole_words(&product->a) && has_whole_words(&product->b) && has_whole_words(&product->c)))
        return mm_fail(error, MM_UNSUPPORTED,
                       "cuBLAS takes int8 matrices whose address and leading dimension are multiples of %d",
                       WORD);
    const int code = multiply(lane->blas, product);
    if (code != STATUS_SUCCESS)
        return fail_status(lane, code, error);
    return MM_OK;
}

static bool has_result(const struct mm_product *product) {
    return (types[product->a.dtype].results & MM_DTYPE_BIT(product->c.dtype)) != 0;
}

static bool has_sizes(const struct mm_product *product) {
    return fits(&product->a) && fits(&product->b) && fits(&product->c);
}

bool mm_cuda_blas_takes(const struct mm_product *product) {
    return has_result(product) && has_sizes(product) &&
           mm_variant_takes(&mm_cuda_variants[MM_CUDA_ROW_blas], product);
}

enum mm_status mm_cuda_blas(const struct mm_product *product, struct mm_plan *plan, struct mm_error *error) {
    const char *missing = mm_cuda_blas_missing(plan->device);
    if (!has_result(product))
        return mm_fail_field(error, MM_UNSUPPORTED, "variant",
                             "blas does not give products of %s in %s; choose naive, tiled_16 or tiled_32",
                             mm_dtype_name(product->a.dtype), mm_dtype_name(product->c.dtype));
    if (!has_sizes(product))
        return mm_fail(error, MM_UNSUPPORTED, "cuBLAS takes dimensions and rows up to %d elements", INT_MAX);
    if (missing != NULL)
        return mm_fail(error, MM_UNSUPPORTED, "blas cannot run here: %s", missing);
    plan->prepare = prepare;
    plan->launch = launch;
    return MM_OK;
}
