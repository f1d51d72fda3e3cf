/* blas: cuBLAS, the yardstick that our kernels stand beside. It is looked for when the program runs
 * and never required, so its few functions are declared here, by its public binary interface, rather
 * than taken from its header. */
#include "gpu/cuda/device.h"
#include "gpu/cuda/variants.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>

/* Values of cublasStatus_t, cublasOperation_t and cublasMath_t. */
enum { STATUS_SUCCESS = 0, STATUS_ALLOC_FAILED = 3, OP_N = 0, OP_T = 1, PEDANTIC_MATH = 2 };

typedef void *cublas_handle;

static struct {
    int (*create)(cublas_handle *handle);
    int (*destroy)(cublas_handle handle);
    int (*set_stream)(cublas_handle handle, cudaStream_t stream);
    int (*set_math_mode)(cublas_handle handle, int mode);
    int (*sgemm)(cublas_handle handle, int op_a, int op_b, int m, int n, int k, const float *alpha,
                 const float *a, int lda, const float *b, int ldb, const float *beta, float *c, int ldc);
} cublas;

static const char *missing_because = "libcublas.so.13 or .12 was not found";

static void find(void) {
    static const struct {
        const char *name;
        void *function; /* the member of `cublas` that it fills */
    } symbols[] = {
        {"cublasCreate_v2", &cublas.create},        {"cublasDestroy_v2", &cublas.destroy},
        {"cublasSetStream_v2", &cublas.set_stream}, {"cublasSetMathMode", &cublas.set_math_mode},
        {"cublasSgemm_v2", &cublas.sgemm},
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

/* Pedantic: float32 arithmetic throughout, no tensor cores' narrower operands. */
static enum mm_status make_handle(struct mm_lane *lane, struct mm_error *error) {
    cublas_handle handle = NULL;
    int status = cublas.create(&handle);
    if (status != STATUS_SUCCESS)
        return fail_status(lane, status, error);
    status = cublas.set_stream(handle, lane->stream);
    if (status == STATUS_SUCCESS)
        status = cublas.set_math_mode(handle, PEDANTIC_MATH);
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
    const size_t row_bytes = product->n * sizeof(float);
    const size_t pitch = product->c.ld * sizeof(float);
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

/* cuBLAS reads columns where we store rows, and so sees each matrix transposed: we ask it for
 * op(B)ᵀ·op(A)ᵀ = Cᵀ, which is C in our order, and give each operand its own flag. */
static enum mm_status launch(const struct mm_plan *plan, const struct mm_product *product,
                             struct mm_lane *lane, struct mm_error *error) {
    const float one = 1.0f;
    const float nothing = 0.0f;
    if (product->k == 0)
        return zero(product, lane, error);
    const int code = cublas.sgemm(lane->blas, product->transpose_b ? OP_T : OP_N,
                                  product->transpose_a ? OP_T : OP_N, (int)product->n, (int)product->m,
                                  (int)product->k, &one, product->b.data, (int)product->b.ld, product->a.data,
                                  (int)product->a.ld, &nothing, product->c.data, (int)product->c.ld);
    if (code != STATUS_SUCCESS)
        return fail_status(lane, code, error);
    return MM_OK;
}

enum mm_status mm_cuda_blas(const struct mm_product *product, struct mm_plan *plan, struct mm_error *error) {
    const char *missing = mm_cuda_blas_missing(plan->device);
    if (missing != NULL)
        return mm_fail(error, MM_UNSUPPORTED, "blas cannot run here: %s", missing);
    if (!fits(&product->a) || !fits(&product->b) || !fits(&product->c))
        return mm_fail(error, MM_UNSUPPORTED, "cuBLAS takes dimensions and rows up to %d elements", INT_MAX);
    plan->prepare = prepare;
    plan->launch = launch;
    return MM_OK;
}
