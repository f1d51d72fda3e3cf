/* A sample of a product's elements, and how right they are: for products too large to be computed again,
 * of operands that are random streams. It knows no device and no variant. gpu/check/projection.h sees the
 * rest. */
#ifndef MM_GPU_CHECK_SAMPLE_H
#define MM_GPU_CHECK_SAMPLE_H

#include "gpu/random.h"

/* The work of computing one sample again: numbers of the streams made, or those of a single element where
 * they are more. */
#define MM_SAMPLE_NUMBERS_MAX ((size_t)1 << 24)

enum { MM_SAMPLE_SPANS_MAX = 128, MM_SAMPLE_WIDTH_MAX = 16 };

/* Neighbouring elements of a row of C, from `col` on; all spans of a sample are equally wide. */
struct mm_sample_span {
    size_t row;
    size_t col;
};

struct mm_sample {
    unsigned span_count;
    unsigned width;
    struct mm_sample_span spans[MM_SAMPLE_SPANS_MAX];
    double sums[MM_SAMPLE_SPANS_MAX][MM_SAMPLE_WIDTH_MAX];       /* by mm_sample_expect: the product, and */
    double magnitudes[MM_SAMPLE_SPANS_MAX][MM_SAMPLE_WIDTH_MAX]; /* the product of absolute values */
};

/* Chooses spans in a result of rows × cols of which each element takes `depth` steps (none of them is 0): all
 * of it where that is within the bounds, else the corners, edges, and places at random. */
void mm_sample_place(struct mm_sample *sample, size_t rows, size_t cols, size_t depth);

/* Computes what the elements of one span must be, in float64. */
void mm_sample_expect(struct mm_sample *sample, unsigned span, const struct mm_random_product *product);

/* The largest error among these elements of the span, as a fraction of what float32 arithmetic may do:
 * 2·(k+8)·u·|A|·|B| + k·2^-149 with u = 2^-24. What is not finite is an infinite error. */
double mm_sample_error(const struct mm_sample *sample, unsigned span, size_t k, const float *elements);

/* What mm_sample_error would say of a result of zeros, over the whole sample. A random sum grows as the
 * root of k, the bound as its square: from k of about 100,000 on this is 1 or less, and a result within
 * the bound may be nonsense. */
double mm_sample_zeros_error(const struct mm_sample *sample, size_t k);

#endif
