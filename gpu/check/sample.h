/* A sample of a product's elements, and their errors: for products of random streams that are too large to
 * compute again. This file knows no device and no variant. gpu/check/projection.h checks all other elements.
 *
 * The caller owns every sample. Any thread, one at a time for each sample. The functions cannot fail,
 * allocate nothing and take no NULL. */
#pragma once

#include "gpu/matrix/random.h"
#include "gpu/check/bounds.h"

/* The most random numbers that computing one sample again may make; a single element of C may need more. */
#define MM_SAMPLE_NUMBERS_MAX ((size_t)1 << 24)

enum { MM_SAMPLE_SPANS_MAX = 128, MM_SAMPLE_WIDTH_MAX = 16 };

/* Neighbouring elements of a row of C, from `col` on. All spans of a sample are equally wide. */
struct mm_sample_span {
    size_t row;
    size_t col;
};

struct mm_sample {
    unsigned span_count;
    unsigned width; /* elements of each span */
    struct mm_sample_span spans[MM_SAMPLE_SPANS_MAX];
    double sums[MM_SAMPLE_SPANS_MAX][MM_SAMPLE_WIDTH_MAX];       /* by mm_sample_expect: the product */
    double lows[MM_SAMPLE_SPANS_MAX][MM_SAMPLE_WIDTH_MAX];       /* what `sums` has lost */
    double magnitudes[MM_SAMPLE_SPANS_MAX][MM_SAMPLE_WIDTH_MAX]; /* the product of absolute values */
};

/* Chooses the spans in a result of rows × cols. Each of its elements is a sum of `depth` products. None of
 * the three is 0. A small result is taken whole; of a larger one the corners, the edges, and random places.
 */
void mm_sample_place(struct mm_sample *sample, size_t rows, size_t cols, size_t depth);

/* Computes what the elements of one span must be, in twice the precision of float64. */
void mm_sample_expect(struct mm_sample *sample, unsigned span, const struct mm_random_product *product);

/* The largest error among these elements of the span, as a fraction of its bound; of whole numbers, whose
 * bound is 0, INFINITY if one is wrong modulo 2^w, w being the bits of the type. INFINITY if an element is
 * not finite. */
double mm_sample_error(const struct mm_sample *sample, unsigned span, const struct mm_bounds *bounds,
                       enum mm_dtype dtype, const void *elements);

/* The largest mm_sample_error over the whole sample if all elements were 0. A random sum grows as the root
 * of k, the bound of a float32 as its square. From k of about 100,000 on this is 1 or less, so a wrong result
 * may be within the bound too. */
double mm_sample_zeros_error(const struct mm_sample *sample, const struct mm_bounds *bounds);
