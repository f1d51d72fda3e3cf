/* Shapes that servers and kernels get wrong (nothing, one row, one column, a depth of none, one off a
 * tile's edge), and elements whose products can be judged without doubt. */
#include "tests/load/product.h"

#include "bench/load/bytes.h"

#include <math.h>
#include <stdlib.h>

/* Sums of 64·k stay exact in float32 up to k = 2¹⁸. */
enum { WHOLE_MAX = 8, SMALL_MAX = 16, PADDING_MAX = 9, LARGE_ONE_IN = 1000 };

static size_t edge(struct mm_load_random *random, size_t max) {
    return 1 + mm_load_random_below(random, max);
}

/* 8, 16, 32 or 64, or one less or more: where tiles end. */
static size_t tile_edge(struct mm_load_random *random, size_t max) {
    size_t size = ((size_t)8 << mm_load_random_below(random, 4)) + mm_load_random_below(random, 3) - 1;
    return size < max ? size : max;
}

static void draw_any_shape(struct mm_load_product *product, struct mm_load_random *random,
                           const struct mm_load_shapes *shapes) {
    size_t *dimensions[] = {&product->m, &product->k, &product->n};
    bool large = shapes->large_max > shapes->edge_max && mm_load_random_below(random, LARGE_ONE_IN) == 0;
    size_t small_max = SMALL_MAX < shapes->edge_max ? SMALL_MAX : shapes->edge_max;
    unsigned kind = (unsigned)mm_load_random_below(random, 100);
    for (unsigned index = 0; index < 3; index++)
        *dimensions[index] = large       ? edge(random, shapes->large_max)
                             : kind < 75 ? edge(random, small_max)
                             : kind < 85 ? tile_edge(random, shapes->edge_max)
                                         : edge(random, shapes->edge_max);
    if (large)
        return;
    unsigned special = (unsigned)mm_load_random_below(random, 100);
    if (special < 20) /* 1×k·k×n, m×1·1×n, m×k·k×1 */
        *dimensions[special % 3] = 1;
    else if (special < 30)
        *dimensions[special % 3] = 0;
}

static void draw_shape(struct mm_load_product *product, struct mm_load_random *random,
                       const struct mm_load_shapes *shapes) {
    size_t *dimensions[] = {&product->m, &product->k, &product->n};
    draw_any_shape(product, random, shapes);
    for (unsigned index = 0; index < 3 && shapes->multiple_of > 0; index++)
        *dimensions[index] +=
            (shapes->multiple_of - *dimensions[index] % shapes->multiple_of) % shapes->multiple_of;
}

/* A number of up to 24 significant bits, between 2⁻¹⁰ and 2¹⁰ or so: many sums of these must round. */
static float draw_element(struct mm_load_random *random, bool whole) {
    if (whole)
        return (float)((int)mm_load_random_below(random, 2 * WHOLE_MAX + 1) - WHOLE_MAX);
    uint64_t bits = mm_load_random_bits(random);
    float value = ldexpf((float)(bits >> 40), (int)(bits % 20) - 34);
    return (bits & 0x100) != 0 ? -value : value;
}

static void draw_matrix(struct mm_load_matrix *matrix, struct mm_load_random *random, bool dense,
                        bool whole) {
    matrix->ld = matrix->cols;
    if (!dense && mm_load_random_chance(random, 25))
        matrix->ld += mm_load_random_below(random, PADDING_MAX + 1);
    matrix->data = mm_load_allocate(matrix->rows * matrix->ld * sizeof *matrix->data);
    for (size_t row = 0; row < matrix->rows; row++)
        for (size_t col = 0; col < matrix->ld; col++)
            matrix->data[row * matrix->ld + col] = col < matrix->cols ? draw_element(random, whole) : NAN;
}

/* The stored shape of an operand whose op() is rows × cols. Nested lists cannot say 0×3, but can say
 * its transpose. */
static void draw_storage(struct mm_load_matrix *matrix, bool *transpose, size_t rows, size_t cols,
                         struct mm_load_random *random, bool dense) {
    *transpose = mm_load_random_chance(random, 30);
    if (dense && rows == 0 && cols > 0)
        *transpose = true;
    else if (dense && cols == 0 && rows > 0)
        *transpose = false;
    matrix->rows = *transpose ? cols : rows;
    matrix->cols = *transpose ? rows : cols;
}

void mm_load_product_make(struct mm_load_product *product, struct mm_load_random *random,
                          const struct mm_load_shapes *shapes) {
    mm_load_product_free(product);
    draw_shape(product, random, shapes);
    product->whole = mm_load_random_chance(random, 70);
    draw_storage(&product->a, &product->transpose_a, product->m, product->k, random, shapes->dense);
    draw_storage(&product->b, &product->transpose_b, product->k, product->n, random, shapes->dense);
    draw_matrix(&product->a, random, shapes->dense, product->whole);
    draw_matrix(&product->b, random, shapes->dense, product->whole);
}

void mm_load_product_free(struct mm_load_product *product) {
    free(product->a.data);
    free(product->b.data);
    product->a.data = NULL;
    product->b.data = NULL;
}

/* Row `row` of the product and of the product of absolute values. Each product of two float32 is exact
 * in float64; the sums of whole numbers are too, and the others' error is 2⁻²⁹ of what is allowed. */
static void reference_row(const struct mm_load_product *product, size_t row, double *sums,
                          double *magnitudes) {
    size_t a_step = product->transpose_a ? product->a.ld : 1;
    size_t b_step = product->transpose_b ? 1 : product->b.ld;
    size_t b_col_step = product->transpose_b ? product->b.ld : 1;
    const float *a = product->a.data + row * (product->transpose_a ? 1 : product->a.ld);
    for (size_t col = 0; col < product->n; col++)
        sums[col] = magnitudes[col] = 0;
    for (size_t depth = 0; depth < product->k; depth++) {
        double factor = a[depth * a_step];
        const float *b = product->b.data + depth * b_step;
        for (size_t col = 0; col < product->n; col++) {
            double term = factor * b[col * b_col_step];
            sums[col] += term;
            magnitudes[col] += fabs(term);
        }
    }
}

/* 2(k+8)·u·|A||B| + k·2⁻¹⁴⁹ with u = 2⁻²⁴; none for whole numbers. Derived, never tuned. */
static double allowed(const struct mm_load_product *product, double magnitude) {
    if (product->whole)
        return 0;
    double k = (double)product->k;
    return 2 * (k + 8) * 0x1p-24 * magnitude + k * 0x1p-149;
}

bool mm_load_product_check(const struct mm_load_product *product, const float *c, char *problem,
                           size_t problem_bytes) {
    double *sums = mm_load_allocate(2 * product->n * sizeof *sums);
    double *magnitudes = sums + product->n;
    bool good = true;
    for (size_t row = 0; row < product->m && good; row++) {
        reference_row(product, row, sums, magnitudes);
        for (size_t col = 0; col < product->n && good; col++) {
            double got = c[row * product->n + col];
            double most = allowed(product, magnitudes[col]);
            good = fabs(got - sums[col]) <= most; /* false for NaN */
            if (!good)
                snprintf(problem, problem_bytes, "c[%zu][%zu] is %.9g, but should be %.9g ± %.3g", row, col,
                         got, sums[col], most);
        }
    }
    free(sums);
    return good;
}
