/* The check of a product on the host: plain loops over A, B and C as they are stored, row by row. */
#include "gpu/check/verify.h"

#include <assert.h>
#include <string.h>

enum { VECTORS = MM_VERIFY_VECTORS, SUMS = MM_VERIFY_SUMS };

#define SEEDS_SEED UINT64_C(0x766572696679)

uint64_t mm_verify_seed(void) {
    static size_t checks;
    return mm_random_bits(SEEDS_SEED, __atomic_fetch_add(&checks, 1, __ATOMIC_RELAXED));
}

size_t mm_verify_bytes(const struct mm_product *product) {
    return (VECTORS * product->n + SUMS * (product->k + product->m)) * sizeof(double);
}

static void make_vectors(double *x, size_t length, uint64_t seed) {
    for (size_t index = 0; index < length; index++) {
        const uint64_t bits = mm_random_bits(seed, index);
        for (unsigned v = 0; v < VECTORS; v++)
            x[v * length + index] = (bits >> v & 1) != 0 ? -1.0 : 1.0;
    }
}

/* An element's term in the last of the sums: for B (norm NULL) its square, for A its size times the norm. */
static double last_term(double element, const double *norm) {
    return norm == NULL ? element * element : fabs(element) * *norm;
}

/* The sums of a row: times each vector, and the last. */
static void sum_row(const float *row, size_t length, const double *vectors, const double *norms,
                    double sums[SUMS]) {
    memset(sums, 0, SUMS * sizeof sums[0]);
    for (size_t index = 0; index < length; index++) {
        const double element = (double)row[index];
        for (unsigned v = 0; v < VECTORS; v++)
            sums[v] += element * vectors[v * length + index];
        sums[VECTORS] += last_term(element, norms == NULL ? NULL : &norms[index]);
    }
}

/* Adds a stored row of a transposed operand to the sums of all lines. `factors` has the row's element of each
 * vector, `step` apart. */
static void add_row(const float *row, size_t lines, const double *factors, size_t step, const double *norm,
                    double *sums) {
    for (unsigned v = 0; v < VECTORS; v++)
        for (size_t line = 0; line < lines; line++)
            sums[v * lines + line] += (double)row[line] * factors[v * step];
    for (size_t line = 0; line < lines; line++)
        sums[VECTORS * lines + line] += last_term((double)row[line], norm);
}

/* The sums of each row ("line") of op(X), by the vectors and the norms. */
static void multiply(const struct mm_matrix *x, bool transpose, const double *vectors, const double *norms,
                     double *sums) {
    const float *data = x->data;
    const size_t lines = transpose ? x->cols : x->rows;
    if (transpose || x->cols == 0)
        memset(sums, 0, SUMS * lines * sizeof *sums);
    if (x->rows == 0 || x->cols == 0)
        return; /* it may have no storage then */
    for (size_t row = 0; row < x->rows; row++) {
        double own[SUMS];
        if (transpose) {
            add_row(data + row * x->ld, lines, vectors + row, x->rows, norms == NULL ? NULL : &norms[row],
                    sums);
        } else {
            sum_row(data + row * x->ld, x->cols, vectors, norms, own);
            for (unsigned s = 0; s < SUMS; s++)
                sums[s * lines + row] = own[s];
        }
    }
}

void mm_verify(const struct mm_product *product, uint64_t seed, void *memory,
               struct mm_verification *verification) {
    const struct mm_verify_bounds bounds = mm_verify_bounds_of(product);
    const float *c = product->c.data;
    double *x = memory;
    double *of_b = x + VECTORS * product->n;
    double *norms = of_b + VECTORS * product->k;
    double *of_a = of_b + SUMS * product->k;
    assert(product->m > 0 && product->n > 0);
    make_vectors(x, product->n, seed);
    multiply(&product->b, product->transpose_b, x, NULL, of_b);
    for (size_t depth = 0; depth < product->k; depth++)
        norms[depth] = sqrt(norms[depth]);
    multiply(&product->a, product->transpose_a, of_b, norms, of_a);
    *verification = (struct mm_verification){.is_done = true, .seed = seed};
    for (size_t row = 0; row < product->m; row++) {
        double sums[SUMS];
        struct mm_verify_sums of_row = {0};
        sum_row(c + row * product->c.ld, product->n, x, NULL, sums);
        for (unsigned v = 0; v < VECTORS; v++)
            mm_verify_add(&of_row, sums[v], of_a[v * product->m + row]);
        mm_verify_row(verification, &bounds, row, &of_row, of_a[VECTORS * product->m + row]);
    }
}
