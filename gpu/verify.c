/* The check of a product on the host: plain loops over A, B and C as they are stored, row by row. */
#include "gpu/verify.h"

#include <assert.h>
#include <string.h>

enum { VECTORS = MM_VERIFY_VECTORS, SUMS = MM_VERIFY_SUMS };

#define SEEDS_SEED UINT64_C(0x766572696679)

uint64_t mm_verify_seed(void) {
    static size_t checks;
    return mm_random_bits(SEEDS_SEED, __atomic_fetch_add(&checks, 1, __ATOMIC_RELAXED));
}

size_t mm_verify_bytes(const struct mm_product *product) {
    return SUMS * (product->n + product->k + product->m) * sizeof(double);
}

/* x, and a vector of ones for the sums of absolute values. */
static void make_vectors(double *x, size_t length, uint64_t seed) {
    for (size_t index = 0; index < length; index++) {
        const uint64_t bits = mm_random_bits(seed, index);
        for (unsigned v = 0; v < VECTORS; v++)
            x[v * length + index] = (bits >> v & 1) != 0 ? -1.0 : 1.0;
        x[VECTORS * length + index] = 1.0;
    }
}

/* A row's sums by the vectors, of as many elements each. */
static void sum_row(const float *row, size_t length, const double *vectors, double sums[SUMS]) {
    memset(sums, 0, SUMS * sizeof sums[0]);
    for (size_t index = 0; index < length; index++) {
        const double element = (double)row[index];
        for (unsigned v = 0; v < VECTORS; v++)
            sums[v] += element * vectors[v * length + index];
        sums[VECTORS] += fabs(element) * vectors[VECTORS * length + index];
    }
}

/* Adds a stored row of a transposed operand, times its elements of the vectors, to the sums of all lines. */
static void add_row(const float *row, size_t lines, const double factors[SUMS], double *sums) {
    for (unsigned v = 0; v < VECTORS; v++)
        for (size_t line = 0; line < lines; line++)
            sums[v * lines + line] += (double)row[line] * factors[v];
    for (size_t line = 0; line < lines; line++)
        sums[VECTORS * lines + line] += fabs((double)row[line]) * factors[VECTORS];
}

/* op(X) by the vectors: the sums of each of its lines. */
static void multiply(const struct mm_matrix *x, bool transpose, const double *vectors, double *sums) {
    const float *data = x->data;
    const size_t lines = transpose ? x->cols : x->rows;
    if (transpose || x->cols == 0)
        memset(sums, 0, SUMS * lines * sizeof *sums);
    if (x->rows == 0 || x->cols == 0)
        return; /* it may have no storage then */
    for (size_t row = 0; row < x->rows; row++) {
        double own[SUMS];
        if (transpose) {
            for (unsigned v = 0; v < SUMS; v++)
                own[v] = vectors[v * x->rows + row];
            add_row(data + row * x->ld, lines, own, sums);
        } else {
            sum_row(data + row * x->ld, x->cols, vectors, own);
            for (unsigned v = 0; v < SUMS; v++)
                sums[v * lines + row] = own[v];
        }
    }
}

void mm_verify(const struct mm_product *product, uint64_t seed, void *memory,
               struct mm_verification *verification) {
    const struct mm_verify_bounds bounds = mm_verify_bounds_of(product);
    const float *c = product->c.data;
    double *x = memory;
    double *b_by_x = x + SUMS * product->n;
    double *a_by_that = b_by_x + SUMS * product->k;
    assert(product->m > 0 && product->n > 0);
    make_vectors(x, product->n, seed);
    multiply(&product->b, product->transpose_b, x, b_by_x);
    multiply(&product->a, product->transpose_a, b_by_x, a_by_that);
    *verification = (struct mm_verification){.is_done = true, .seed = seed};
    for (size_t row = 0; row < product->m; row++) {
        double sums[SUMS];
        double residual = 0.0;
        sum_row(c + row * product->c.ld, product->n, x, sums);
        for (unsigned v = 0; v < VECTORS; v++)
            residual = mm_verify_larger(residual, sums[v] - a_by_that[v * product->m + row]);
        mm_verify_row(verification, &bounds, row, residual, a_by_that[VECTORS * product->m + row]);
    }
}
