/* `blas`: OpenBLAS, with which the other variants are compared. OpenBLAS multiplies float32 and float64, so
 * narrower floats are converted to float32 in blocks. A build without OpenBLAS also has this variant, but
 * reports why the variant cannot run. */
#include "gpu/cpu/variants.h"

#include "gpu/queue/progress.h"

#if MATMULD_WITH_OPENBLAS
#include <assert.h>
#include <cblas.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>

const char *mm_cpu_blas_missing(const struct mm_device *device) {
    return NULL;
}

void mm_cpu_blas_limit_threads(unsigned count) {
    if (openblas_get_num_threads() > (int)count)
        openblas_set_num_threads((int)count);
}

/* Whether OpenBLAS can allocate memory for its threads. OpenBLAS 0.3.21 of Debian allocates 512 KiB for each
 * product on several threads, and ends the process if that fails. This function therefore tries a larger
 * allocation first. */
static bool has_memory(void) {
    enum { ENOUGH_BYTES = 1 << 20 };
    void *volatile memory = openblas_get_num_threads() > 1 ? malloc(ENOUGH_BYTES) : NULL;
    const bool has = memory != NULL || openblas_get_num_threads() <= 1;
    free(memory);
    return has;
}

/* OpenBLAS rejects a leading dimension of 0, which a matrix without columns has. */
static int leading_dimension(const struct mm_matrix *matrix) {
    return matrix->ld > 0 ? (int)matrix->ld : 1;
}

static enum mm_status check(const struct mm_product *product, struct mm_error *error) {
    const size_t sizes[] = {product->m, product->n, product->k, product->a.ld, product->b.ld, product->c.ld};
    for (size_t index = 0; index < sizeof sizes / sizeof *sizes; index++)
        if (sizes[index] > INT_MAX)
            return mm_fail_field(
                error, MM_UNSUPPORTED, "variant",
                "blas allows sizes and leading dimensions up to %d, but one is %zu; choose another variant",
                INT_MAX, sizes[index]);
    if (mm_product_flops(product) / 2.0 > MM_CPU_BLAS_ALONE_MAX && !has_memory())
        return mm_fail(error, MM_INTERNAL,
                       "the system is out of memory (threads of OpenBLAS); try again later");
    return MM_OK;
}

static CBLAS_TRANSPOSE flag(bool transpose) {
    return transpose ? CblasTrans : CblasNoTrans;
}

static void multiply(const struct mm_product *product) {
    const struct mm_matrix *a = &product->a, *b = &product->b, *c = &product->c;
    const int m = (int)product->m, n = (int)product->n, k = (int)product->k;
    assert(a->dtype == c->dtype);
    if (a->dtype == MM_FLOAT64)
        cblas_dgemm(CblasRowMajor, flag(product->transpose_a), flag(product->transpose_b), m, n, k, 1.0,
                    a->data, leading_dimension(a), b->data, leading_dimension(b), 0.0, c->data,
                    leading_dimension(c));
    else
        cblas_sgemm(CblasRowMajor, flag(product->transpose_a), flag(product->transpose_b), m, n, k, 1.0F,
                    a->data, leading_dimension(a), b->data, leading_dimension(b), 0.0F, c->data,
                    leading_dimension(c));
}

/* Blocks are large because each block of A is converted again for every block column of C, and each block of
 * B for every block row. */
enum { BLOCK = 1024 };

/* Computes the sums in a block of memory, and stores them in C, which has a narrower type or an epilogue. */
static enum mm_status multiply_and_store(const struct mm_product *product, struct mm_error *error) {
    void *sums = malloc((size_t)BLOCK * BLOCK * mm_dtype_bytes(product->a.dtype));
    if (sums == NULL)
        return mm_fail(error, MM_INTERNAL, "the system is out of memory (block of sums); try again later");
    for (size_t row = 0; row < product->m; row += BLOCK) {
        for (size_t col = 0; col < product->n; col += BLOCK) {
            const struct mm_product part =
                mm_product_part(product, MM_MATMUL, row, mm_size_min(BLOCK, product->m - row), col,
                                mm_size_min(BLOCK, product->n - col));
            struct mm_product block = part;
            block.c = mm_matrix_dense(product->a.dtype, block.m, block.n, sums);
            multiply(&block);
            for (size_t r = 0; r < block.m; r++)
                for (size_t c = 0; c < block.n; c++)
                    if (product->a.dtype == MM_FLOAT64)
                        mm_store_c_double(&part, r, c, ((const double *)sums)[r * block.n + c]);
                    else
                        mm_store_c_float(&part, r, c, ((const float *)sums)[r * block.n + c]);
        }
    }
    free(sums);
    return MM_OK;
}

enum mm_status mm_cpu_blas(const struct mm_product *product, struct mm_lane *lane, struct mm_error *error) {
    enum mm_status status = check(product, error);
    if (status != MM_OK)
        return status;
    if (product->k == 0) /* the operands may have no memory */
        return mm_cpu_naive(product, lane, error);
    if (product->c.dtype != product->a.dtype || product->epilogue.is_set)
        status = multiply_and_store(product, error);
    else
        multiply(product);
    return status;
}

struct blocks {
    float a[BLOCK * BLOCK];
    float b[BLOCK * BLOCK];
    float c[BLOCK * BLOCK];
};

/* Converts rows × cols elements of a stored matrix, beginning at (row, col), to float32. */
static void widen(float *block, const struct mm_matrix *x, size_t row, size_t rows, size_t col, size_t cols) {
    switch (x->dtype) {
#define X(constant, name, type, word, sum, value, ...)                                                       \
    case constant:                                                                                           \
        for (size_t r = 0; r < rows; r++)                                                                    \
            for (size_t c = 0; c < cols; c++)                                                                \
                block[r * cols + c] = (float)value(((const type *)x->data)[(row + r) * x->ld + col + c]);    \
        break;
        MM_DTYPE_TABLE(X)
#undef X
    case MM_DTYPE_COUNT:
        break;
    }
}

static void widen_operand(float *block, const struct mm_matrix *x, bool transpose, size_t row, size_t rows,
                          size_t col, size_t cols) {
    if (transpose)
        widen(block, x, col, cols, row, rows);
    else
        widen(block, x, row, rows, col, cols);
}

static void multiply_block(const struct mm_product *product, struct blocks *blocks, size_t row, size_t rows,
                           size_t col, size_t cols) {
    for (size_t depth = 0; depth < product->k; depth += BLOCK) {
        const size_t depths = mm_size_min(BLOCK, product->k - depth);
        widen_operand(blocks->a, &product->a, product->transpose_a, row, rows, depth, depths);
        widen_operand(blocks->b, &product->b, product->transpose_b, depth, depths, col, cols);
        cblas_sgemm(CblasRowMajor, flag(product->transpose_a), flag(product->transpose_b), (int)rows,
                    (int)cols, (int)depths, 1.0F, blocks->a, (int)(product->transpose_a ? rows : depths),
                    blocks->b, (int)(product->transpose_b ? depths : cols), depth == 0 ? 0.0F : 1.0F,
                    blocks->c, (int)cols);
    }
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < cols; c++)
            mm_store_c_float(product, row + r, col + c, blocks->c[r * cols + c]);
}

enum mm_status mm_cpu_blas_narrow(const struct mm_product *product, struct mm_lane *lane,
                                  struct mm_error *error) {
    enum mm_status status = check(product, error);
    if (status != MM_OK)
        return status;
    if (product->k == 0)
        return mm_cpu_naive(product, lane, error);
    struct blocks *blocks = malloc(sizeof *blocks);
    if (blocks == NULL)
        return mm_fail(error, MM_INTERNAL,
                       "the system is out of memory (blocks of float32); try again later");
    for (size_t row = 0; row < product->m; row += BLOCK)
        for (size_t col = 0; col < product->n; col += BLOCK)
            multiply_block(product, blocks, row, mm_size_min(BLOCK, product->m - row), col,
                           mm_size_min(BLOCK, product->n - col));
    free(blocks);
    return MM_OK;
}
#else
const char *mm_cpu_blas_missing(const struct mm_device *device) {
    return "this build has no OpenBLAS";
}

void mm_cpu_blas_limit_threads(unsigned count) {
}

enum mm_status mm_cpu_blas(const struct mm_product *product, struct mm_lane *lane, struct mm_error *error) {
    return mm_fail_field(error, MM_UNSUPPORTED, "variant", "%s", mm_cpu_blas_missing(NULL));
}

enum mm_status mm_cpu_blas_narrow(const struct mm_product *product, struct mm_lane *lane,
                                  struct mm_error *error) {
    return mm_cpu_blas(product, lane, error);
}
#endif
