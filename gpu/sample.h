/* A sample of a result's elements, and how right they are: for results that are too large to be read and
 * computed again in whole, of operands that are random streams (gpu/random.h), so that the host can tell any
 * element of them. It knows no device and no variant. */
#ifndef MM_GPU_SAMPLE_H
#define MM_GPU_SAMPLE_H

#include "gpu/matrix.h"

#ifdef __cplusplus
extern "C" {
#endif

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

/* Chooses spans in a result of rows × cols (neither is 0) of which each element takes `depth` steps: all of
 * it where that is within the bounds, else the corners, edges, and places at random. */
void mm_sample_place(struct mm_sample *sample, size_t rows, size_t cols, size_t depth);

/* The operands of a product A·B: dense matrices of float32, each the beginning of a stream. */
struct mm_sample_product {
    uint64_t a_seed;
    uint64_t b_seed;
    size_t k; /* columns of A */
    size_t n; /* columns of B */
};

/* Computes what the elements of one span must be, in float64. */
void mm_sample_expect(struct mm_sample *sample, unsigned span, const struct mm_sample_product *product);

/* The largest error among these elements of the span, as a fraction of what float32 arithmetic may do:
 * 2·(k+8)·u·|A|·|B| + k·2^-149 with u = 2^-24. What is not finite is an infinite error. */
double mm_sample_error(const struct mm_sample *sample, unsigned span, size_t k, const float *elements);

/* What mm_sample_error would say of a result of zeros, over the whole sample. The sum of k random terms of
 * either sign grows as the root of k, and the bound as its square: where this comes to 1 or less, which it
 * does for k of about 100,000 and more, a result within the bound may still be nonsense. */
double mm_sample_zeros_error(const struct mm_sample *sample, size_t k);

/* How many of these elements of the span are not, bit for bit, those of the transpose of a dense matrix of
 * `lines` × `cols` (C is cols × lines) that lies in a stream from its beginning on; an element of 8 bytes is
 * two numbers of the stream. */
unsigned mm_sample_misplaced(const struct mm_sample *sample, unsigned span, uint64_t seed, size_t cols,
                             enum mm_dtype dtype, const void *elements);

#ifdef __cplusplus
}
#endif
#endif
