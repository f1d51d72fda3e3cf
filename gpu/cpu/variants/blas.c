/* `blas`: OpenBLAS, with which the other variants are compared. OpenBLAS multiplies float32 and float64, so
 * narrower floats are converted to float32 in blocks. A build without OpenBLAS also has this variant, but
 * reports why the variant cannot run. */
#include "gpu/cpu/variants.h"

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

/* Sets C to A·B + beta·C. The matrices are all float32 or all float64. */
static void multiply(const struct mm_product *product, float beta) {
    const struct mm_matrix *a = &product->a, *b = &product->b, *c = &product->c;
    const int m = (int)product->m, n = (int)product->n, k = (int)product->k;
    assert(a->dtype == c->dtype);
    if (a->dtype == MM_FLOAT64)
        cblas_dgemm(CblasRowMajor, flag(product->transpose_a), flag(product->transpose_b), m, n, k, 1.0,
                    a->data, leading_dimension(a), b->data, leading_dimension(b), (double)beta, c->data,
                    leading_dimension(c));
    else
        cblas_sgemm(CblasRowMajor, flag(product->transpose_a), flag(product->transpose_b), m, n, k, 1.0F,
                    a->data, leading_dimension(a), b->data, leading_dimension(b), beta, c->data,
                    leading_dimension(c));
}

/* Blocks are large because each block of A is converted again for every block column of C, and each block of
 * B for every block row. */
enum { BLOCK = 1024 };

struct blocks {
    float a[BLOCK * BLOCK]; /* a and b are not used if the operands already have the type of the sums */
    float b[BLOCK * BLOCK];
    double sums[BLOCK * BLOCK]; /* float32 or float64 */
};

/* Converts `count` columns of a matrix, from column `first` on, to float32. If `is_rows` is set, converts
 * rows instead. Returns the block as a matrix. */
static struct mm_matrix widen(float *block, const struct mm_matrix *x, bool is_rows, size_t first,
                              size_t count) {
    const size_t rows = is_rows ? count : x->rows, cols = is_rows ? x->cols : count;
    const size_t corner = is_rows ? first * x->ld : first;
#define X(constant, name, type, word, sum, value, ...)                                                       \
    case constant:                                                                                           \
        for (size_t row = 0; row < rows; row++)                                                              \
            for (size_t col = 0; col < cols; col++)                                                          \
                block[row * cols + col] = (float)value(((const type *)x->data)[corner + row * x->ld + col]); \
        break;
    MM_DTYPE_SWITCH(x->dtype, X)
#undef X
    return mm_matrix_dense(MM_FLOAT32, rows, cols, block);
}

/* Computes the sums of a block of C. */
static void multiply_block(const struct mm_product *part, struct blocks *blocks) {
    struct mm_product block = *part;
    block.c = mm_matrix_dense(mm_dtype_sum(part->a.dtype), part->m, part->n, blocks->sums);
    if (part->a.dtype == block.c.dtype) {
        multiply(&block, 0.0F);
        return;
    }
    for (size_t depth = 0; depth < part->k; depth += BLOCK) {
        block.k = mm_size_min(BLOCK, part->k - depth);
        block.a = widen(blocks->a, &part->a, part->transpose_a, depth, block.k);
        block.b = widen(blocks->b, &part->b, !part->transpose_b, depth, block.k);
        multiply(&block, depth == 0 ? 0.0F : 1.0F);
    }
}

/* Computes the sums of each block of C in other memory, because C has a narrower type or an epilogue. */
static enum mm_status multiply_in_blocks(const struct mm_product *product, struct mm_error *error) {
    struct blocks *blocks = malloc(sizeof *blocks);
    if (blocks == NULL)
        return mm_fail(error, MM_INTERNAL, "the system is out of memory (blocks of sums); try again later");
    const void *sums = blocks->sums;
    for (size_t row = 0; row < product->m; row += BLOCK) {
        for (size_t col = 0; col < product->n; col += BLOCK) {
            const struct mm_product part =
                mm_product_part(product, MM_MATMUL, row, mm_size_min(BLOCK, product->m - row), col,
                                mm_size_min(BLOCK, product->n - col));
            multiply_block(&part, blocks);
            for (size_t r = 0; r < part.m; r++)
                for (size_t c = 0; c < part.n; c++)
                    if (product->a.dtype == MM_FLOAT64)
                        mm_store_c_double(&part, r, c, ((const double *)sums)[r * part.n + c]);
                    else
                        mm_store_c_float(&part, r, c, ((const float *)sums)[r * part.n + c]);
        }
    }
    free(blocks);
    return MM_OK;
}

enum mm_status mm_cpu_blas(const struct mm_product *product, struct mm_lane *lane, struct mm_error *error) {
    const enum mm_dtype sum = mm_dtype_sum(product->a.dtype);
    const enum mm_status status = check(product, error);
    if (status != MM_OK)
        return status;
    if (product->k == 0) /* the operands may have no memory */
        return mm_cpu_naive(product, lane, error);
    if (product->a.dtype != sum || product->c.dtype != sum || product->epilogue.is_set)
        return multiply_in_blocks(product, error);
    multiply(product, 0.0F);
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
#endif
