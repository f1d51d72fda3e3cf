/* Estimates the error of a whole product by a random projection: compares C·x with A·(B·x) (Freivalds,
 * 1977). The operands are random streams, so the host can generate them again. A and B mean op(A) and op(B).
 *
 * The numbers in x have a random sign and a size between 1/2 and 1. A single wrong element or two swapped
 * columns therefore change C·x. If m or k is small, one projection could be small by chance. The columns are
 * then divided into groups, and each group has its own projection.
 *
 * An integer element of C counts as the most likely sum that equals it modulo 2^32 or 2^64.
 *
 * gpu/check/verify.h cannot replace this check, because it reads the operands, which a wrong kernel could
 * overwrite. Also, for products A·B of rank 1, the estimate of verify.h was wrong by a factor above 3 in 52
 * of 2,000 checks.
 *
 * Any thread may call these functions, but only one at a time for each projection. They cannot fail, and no
 * pointer may be NULL. */
#pragma once

#include "gpu/matrix/random.h"

#include <stdbool.h>

/* The caller owns the struct, and reads none of its members. */
struct mm_projection {
    const struct mm_random_product *product;
    size_t group_cols; /* columns of a group; the last group may have fewer */
    size_t group_count;
    double *sums;   /* A·(B·x): m × group_count numbers */
    double *inner;  /* B·x of the current group: k numbers */
    float *weights; /* x: n numbers */
    /* Set for float64. Low parts (gpu/check/exact.h) then follow `sums` and `inner`. */
    bool is_precise;
    double norm; /* sum of the squares of `sums` */

    /* The sum that mm_projection_prepare computes next. In each group, `row` counts k rows of B and then m
     * rows of A. `sum` contains the first `number` elements of the row. */
    size_t group;
    size_t row;
    size_t number;
    double sum;
    double low; /* low part of `sum` (gpu/check/exact.h) */

    /* The state of mm_projection_add. `read` counts the elements of C that were read. */
    size_t read;
    double read_sum;     /* sum of the current row of C over the current group */
    double read_low;     /* low part of read_sum */
    double read_squares; /* sum of the squares of all errors */
};

/* Bytes of memory to check a product, m×k by k×n. m, k and n are not 0. */
size_t mm_projection_bytes(enum mm_dtype dtype, size_t m, size_t k, size_t n);

/* Begins a projection. `memory` has mm_projection_bytes and is aligned for a double. The caller keeps the
 * product and the memory until the last use of the projection. */
void mm_projection_init(struct mm_projection *projection, const struct mm_random_product *product,
                        void *memory);

/* Prepares the check. Each call does one step, and generates about 100,000 elements. Returns false if nothing
 * remained to do. All steps together generate k·n elements of B, and m·k elements of A for each group. */
bool mm_projection_prepare(struct mm_projection *projection);

/* Begins to read a result. Call this only after mm_projection_prepare returned false. */
void mm_projection_begin(struct mm_projection *projection);

/* Reads the next `count` elements of a dense C, row by row. */
void mm_projection_add(struct mm_projection *projection, enum mm_dtype dtype, const void *elements,
                       size_t count);

/* Returns ||C·x − A·B·x|| / ||A·B·x|| after the last element of C was read. This estimates ||C − A·B|| /
 * ||A·B|| (Frobenius norm). INFINITY if an element is not finite. */
double mm_projection_error(const struct mm_projection *projection);
