/* Chooses the elements of a sample, and computes their expected values. */
#include "gpu/check/sample.h"

#include "gpu/check/exact.h"
#include "gpu/matrix/matrix.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* All elements of a span share a row of A, so a wide span needs fewer random numbers for each element. But a
 * few wide spans would test only a small part of C. */
enum { SPANS_WANTED = 16, CORNERS = 4 };

#define PLACES_SEED UINT64_C(0x706c61636573)

static size_t random_below(size_t index, size_t bound) {
    return (size_t)(mm_random_bits(PLACES_SEED, index) % bound);
}

static size_t spans_within(size_t depth, size_t width) {
    return MM_SAMPLE_NUMBERS_MAX / depth / (width + 1);
}

/* Returns the place of span `index`. The first spans are at the corners. Of the other spans, one in four is
 * in the last row and one in four at the end of a row, because errors at the edges of tiles are likely. */
static struct mm_sample_span place(unsigned index, size_t rows, size_t cols, size_t width) {
    const size_t last_row = rows - 1;
    const size_t last_col = cols - width;
    const struct mm_sample_span corners[CORNERS] = {
        {last_row, last_col}, {0, 0}, {0, last_col}, {last_row, 0}};
    if (index < CORNERS)
        return corners[index];
    struct mm_sample_span span = {random_below(2 * (size_t)index, rows),
                                  random_below(2 * (size_t)index + 1, last_col + 1)};
    if (index % 4 == 0)
        span.row = last_row;
    if (index % 4 == 1)
        span.col = last_col;
    return span;
}

void mm_sample_place(struct mm_sample *sample, size_t rows, size_t cols, size_t depth) {
    size_t width = mm_size_min(cols, MM_SAMPLE_WIDTH_MAX);
    while (width > 1 && spans_within(depth, width) < SPANS_WANTED)
        width /= 2;
    size_t count = mm_size_min(spans_within(depth, width), MM_SAMPLE_SPANS_MAX);
    if (count < 1)
        count = 1;
    const size_t spans_a_row = mm_size_divide_up(cols, width);
    const bool whole = spans_a_row <= count && rows <= count / spans_a_row;
    sample->width = (unsigned)width;
    sample->span_count = (unsigned)(whole ? rows * spans_a_row : count);
    for (unsigned index = 0; index < sample->span_count; index++) {
        /* the last span of a row overlaps the previous one */
        const size_t col = mm_size_min(index % spans_a_row * width, cols - width);
        sample->spans[index] =
            whole ? (struct mm_sample_span){index / spans_a_row, col} : place(index, rows, cols, width);
    }
}

/* Returns an element of op(X). X is dense. */
static double element_of(const struct mm_matrix *x, bool is_transposed, uint64_t seed, size_t row,
                         size_t col) {
    const size_t index = is_transposed ? col * x->cols + row : row * x->cols + col;
    return mm_random_number(x->dtype, seed, index);
}

void mm_sample_expect(struct mm_sample *sample, unsigned span, const struct mm_product *product,
                      const uint64_t *streams) {
    const struct mm_sample_span *at = &sample->spans[span];
    double *sums = sample->sums[span], *lows = sample->lows[span];
    double *magnitudes = sample->magnitudes[span];
    memset(sums, 0, sizeof sample->sums[span]);
    memset(lows, 0, sizeof sample->lows[span]);
    memset(magnitudes, 0, sizeof sample->magnitudes[span]);
    for (size_t depth = 0; depth < product->k; depth++) {
        const double a = element_of(&product->a, product->transpose_a, streams[0], at->row, depth);
        for (unsigned index = 0; index < sample->width; index++) {
            const double b =
                element_of(&product->b, product->transpose_b, streams[1], depth, at->col + index);
            mm_exact_add(&sums[index], &lows[index], a * b); /* exact, because a factor has 24 bits */
            magnitudes[index] += fabs(a * b);
        }
    }
}

/* Integer sums wrap around modulo 2^w, for a type of w bits. Returns the number nearest to `near` that equals
 * the element modulo 2^w. This is the exact sum if the element is correct and `near` differs from the exact
 * sum by less than half of 2^w. Returns a float as it is. */
static double unwrap(enum mm_dtype dtype, double element, double near) {
    const double modulus = ldexp(1.0, 8 * (int)mm_dtype_bytes(dtype));
    return mm_dtype_is_float(dtype) ? element : element + modulus * rint((near - element) / modulus);
}

double mm_sample_error(const struct mm_sample *sample, unsigned span, const struct mm_bounds *bounds,
                       enum mm_dtype dtype, const void *elements) {
    double largest = 0.0;
    for (unsigned index = 0; index < sample->width; index++) {
        const double sum = sample->sums[span][index];
        const double element = unwrap(dtype, mm_dtype_get(dtype, elements, index), sum);
        if (!isfinite(element))
            return INFINITY;
        const double error = fabs((element - sum) - sample->lows[span][index]);
        const double e = bounds->relative * sample->magnitudes[span][index] + bounds->absolute;
        const double bound = e + bounds->unit * (fabs(sum) + e) + bounds->step;
        if (error > largest * bound)
            largest = error / bound;
    }
    return largest;
}

double mm_sample_zeros_error(const struct mm_sample *sample, const struct mm_bounds *bounds) {
    static const double zeros[MM_SAMPLE_WIDTH_MAX];
    double largest = 0.0;
    for (unsigned span = 0; span < sample->span_count; span++) {
        const double error = mm_sample_error(sample, span, bounds, MM_FLOAT64, zeros);
        largest = error > largest ? error : largest;
    }
    return largest;
}
