/* Estimates the error of a whole product by a random projection: compares C·x with A·(B·x) (Freivalds,
 * 1977). The operands are random streams, so the host can generate their elements again. A and B stand for
 * op(A) and op(B). This file knows no device and no variant.
 *
 * An integer element of C with w bits stands for the nearest likely sum that equals it modulo 2^w.
 *
 * The numbers in x have a random sign and a size between 1/2 and 1. A single wrong element therefore
 * shows, and so do swapped columns. If m or k is small, one projection may be small by chance. The columns
 * are then divided into groups with a projection each; a group can be a single column.
 *
 * gpu/check/verify.h cannot replace this check. It needs the operands (12 MiB at 1024³ instead of 20 KiB),
 * which a wrong kernel could overwrite. At rank 1 its estimate was wrong by more than a factor of 3 in 52
 * of 2,000 checks.
 *
 * Any thread may call these functions, one at a time for each projection. They cannot fail; no pointer may
 * be NULL. */
#pragma once

#include "gpu/matrix/random.h"

#include <stdbool.h>

/* The state of one projection. The caller owns the struct, and reads none of its members. */
struct mm_projection {
    const struct mm_random_product *product;
    size_t group_cols; /* columns of a group; the last group may have fewer */
    size_t group_count;
    double *sums;    /* A·(B·x): m × group_count numbers */
    double *inner;   /* B·x of the current group: k numbers */
    float *weights;  /* x: n numbers */
    bool is_precise; /* for float64: the low parts (gpu/check/exact.h) of `sums` and `inner` follow them in
                        memory */
    double norm;     /* the sum of the squares of `sums` */

    /* What mm_projection_prepare computes next. Each group has k sums over rows of B, and then m sums over
     * rows of A. The first `number` elements of the current row are in `sum`. */
    size_t group;
    size_t row;
    size_t number;
    double sum;
    double low; /* the low part of `sum` (gpu/check/exact.h) */

    /* The part of the result that mm_projection_add has read. */
    size_t read;         /* elements of C that were read */
    double read_sum;     /* sum over the elements of the current group that were read */
    double read_low;     /* the low part of read_sum (gpu/check/exact.h) */
    double read_squares; /* the sum of the squares of all differences */
};

/* Bytes of memory that the projection of an m×k by a k×n matrix of this type needs. m, k and n are not 0,
 * and A, B and C fit into the address space. */
size_t mm_projection_bytes(enum mm_dtype dtype, size_t m, size_t k, size_t n);

/* Begins the projection of a product. `memory` has mm_projection_bytes and is aligned for a double. The
 * caller keeps the product and the memory until the last use of the projection. */
void mm_projection_init(struct mm_projection *projection, const struct mm_random_product *product,
                        void *memory);

/* Generates about the next 100,000 elements of the operands. Call this until it returns false: then
 * nothing was left to do. All calls together generate k·n elements, and m·k elements for each group. */
bool mm_projection_prepare(struct mm_projection *projection);

/* Begins to read a result. mm_projection_prepare has returned false before. */
void mm_projection_begin(struct mm_projection *projection);

/* Reads the next `count` elements of C, which has this type and is dense. The caller passes C row by row,
 * in parts of any size. */
void mm_projection_add(struct mm_projection *projection, enum mm_dtype dtype, const void *elements,
                       size_t count);

/* Returns ||C·x − A·B·x|| / ||A·B·x|| after the last element of C was read. This estimates ||C − A·B|| /
 * ||A·B|| (Frobenius norm). INFINITY if an element is not finite. */
double mm_projection_error(const struct mm_projection *projection);
