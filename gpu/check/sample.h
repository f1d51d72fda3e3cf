/* Compares a sample of a product's elements with their exact values. The operands are random streams, and the
 * product is too large to compute again. gpu/check/verify.h checks the elements outside the sample.
 *
 * The caller owns each sample. Any thread may call these functions, but only one at a time for each sample.
 * They cannot fail, and take no NULL. */
#pragma once

#include "gpu/matrix/random.h"
#include "gpu/check/bounds.h"

/* A sample uses at most this many random numbers. If k is so large that a single element needs more, the
 * sample has that one element. */
#define MM_SAMPLE_NUMBERS_MAX ((size_t)1 << 24)

enum { MM_SAMPLE_SPANS_MAX = 128, MM_SAMPLE_WIDTH_MAX = 16 };

/* A span is `width` neighbouring elements of a row of C, beginning at column `col`. */
struct mm_sample_span {
    size_t row;
    size_t col;
};

struct mm_sample {
    unsigned span_count;
    unsigned width;
    struct mm_sample_span spans[MM_SAMPLE_SPANS_MAX];
    /* mm_sample_expect computes these members. For each element, `sums` and `lows` are the high and low part
     * of the exact sum (gpu/check/exact.h), and `magnitudes` is |A|·|B|. */
    double sums[MM_SAMPLE_SPANS_MAX][MM_SAMPLE_WIDTH_MAX];
    double lows[MM_SAMPLE_SPANS_MAX][MM_SAMPLE_WIDTH_MAX];
    double magnitudes[MM_SAMPLE_SPANS_MAX][MM_SAMPLE_WIDTH_MAX];
};

/* Chooses the spans of a sample. The result has rows × cols elements, each a sum of `depth` products. rows,
 * cols and depth are not 0. The sample of a small result has all elements. The sample of a large result has
 * the corners, other elements at the edges, and random elements. */
void mm_sample_place(struct mm_sample *sample, size_t rows, size_t cols, size_t depth);

/* Computes the exact values of a span. A and B are dense random streams with the seeds `streams[0]` and
 * `streams[1]`. Does not read the data of A and B. */
void mm_sample_expect(struct mm_sample *sample, unsigned span, const struct mm_product *product,
                      const uint64_t *streams);

/* Returns the largest error in a span, as a fraction of the bound. INFINITY if an element is not finite, or
 * if an integer is wrong modulo 2^32 or 2^64. */
double mm_sample_error(const struct mm_sample *sample, unsigned span, const struct mm_bounds *bounds,
                       enum mm_dtype dtype, const void *elements);

/* Returns the largest error that the sample would find if all elements of C were 0. If this error is 1 or
 * less, the bounds are too wide to show a wrong result. This happens if k exceeds about 100,000: a random sum
 * grows with the square root of k, but the bound of float32 grows with k². */
double mm_sample_zeros_error(const struct mm_sample *sample, const struct mm_bounds *bounds);
