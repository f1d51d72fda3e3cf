/* Computes a sample of a product's elements again, and their errors. This is for products of random
 * streams that are too large to compute again as a whole. gpu/check/projection.h checks all other
 * elements. This file knows no device and no variant.
 *
 * The caller owns each sample. Any thread, one at a time for each sample. The functions cannot fail,
 * allocate nothing and take no NULL. */
#pragma once

#include "gpu/matrix/random.h"
#include "gpu/check/bounds.h"

/* The most random numbers that one sample needs. A single element of C may need more. */
#define MM_SAMPLE_NUMBERS_MAX ((size_t)1 << 24)

enum { MM_SAMPLE_SPANS_MAX = 128, MM_SAMPLE_WIDTH_MAX = 16 };

/* Neighbouring elements of a row of C, beginning at column `col`. All spans of a sample have the same
 * width. */
struct mm_sample_span {
    size_t row;
    size_t col;
};

struct mm_sample {
    unsigned span_count;
    unsigned width; /* elements in each span */
    struct mm_sample_span spans[MM_SAMPLE_SPANS_MAX];
    double sums[MM_SAMPLE_SPANS_MAX]
               [MM_SAMPLE_WIDTH_MAX]; /* the exact product, computed by mm_sample_expect */
    double lows[MM_SAMPLE_SPANS_MAX][MM_SAMPLE_WIDTH_MAX]; /* the low parts of `sums` (gpu/check/exact.h) */
    double magnitudes[MM_SAMPLE_SPANS_MAX][MM_SAMPLE_WIDTH_MAX]; /* |A|·|B|, computed by mm_sample_expect */
};

/* Chooses the spans of a sample. The result has rows × cols elements, and each is a sum of `depth`
 * products. None of the three is 0. The sample has all elements of a small result. Of a large result it
 * has the corners, the edges and random places. */
void mm_sample_place(struct mm_sample *sample, size_t rows, size_t cols, size_t depth);

/* Computes the expected elements of one span, in twice the precision of float64. */
void mm_sample_expect(struct mm_sample *sample, unsigned span, const struct mm_random_product *product);

/* Returns the largest error among the elements of a span, as a fraction of its bound. Returns INFINITY if
 * an element is not finite. Integers have the bound 0: returns INFINITY if one is wrong modulo 2^w, where
 * w is the number of bits of the type. */
double mm_sample_error(const struct mm_sample *sample, unsigned span, const struct mm_bounds *bounds,
                       enum mm_dtype dtype, const void *elements);

/* Returns the largest mm_sample_error over the whole sample if all elements were 0. A random sum grows
 * with the square root of k, but the bound of float32 grows with k². From k of about 100,000 this is 1 or
 * less; a wrong result may then be within the bound. */
double mm_sample_zeros_error(const struct mm_sample *sample, const struct mm_bounds *bounds);
