/* How right a whole product is, by a random projection: compares C·x with A·(B·x) (Freivalds, 1977). The
 * operands are random streams, whose elements the host generates again. A and B stand for op(A) and op(B).
 * This file knows no device and no variant.
 *
 * Elements of whole numbers count as the sums that they most likely are modulo 2^w, w being their bits.
 *
 * x has random numbers of either sign between 1/2 and 1, so a single wrong element shows, and so do swapped
 * columns. If m or k is small, one number may be small by chance. The columns are then cut into groups with a
 * projection each, down to single columns.
 *
 * gpu/check/verify.h cannot replace it. It needs the operands (12 MiB at 1024³ instead of 20 KiB), and a
 * kernel could have overwritten them. At rank 1 it also told an error wrong by more than a factor of 3 in 52
 * of 2,000 checks.
 *
 * Any thread, one at a time for each projection. The functions cannot fail; no pointer may be NULL. */
#pragma once

#include "gpu/matrix/random.h"

#include <stdbool.h>

/* The caller owns it, and reads none of its members. */
struct mm_projection {
    const struct mm_random_product *product;
    size_t group_cols; /* columns of a group; the last may have fewer */
    size_t group_count;
    double *sums;    /* A·(B·x), m × group_count */
    double *inner;   /* B·x of the current group, k */
    float *weights;  /* x, n */
    bool is_precise; /* for float64: the lost parts of `sums` and `inner` follow them in memory
                        (gpu/check/exact.h) */
    double norm;     /* the sum of the squares of `sums` */

    /* What is prepared next: a group's sums over the k rows of B come first, then those over the m rows of
     * A. `number` elements of this row are in `sum`. */
    size_t group;
    size_t row;
    size_t number;
    double sum;
    double low; /* what the sum has lost */

    /* How far the result was read. */
    size_t read;         /* elements */
    double read_sum;     /* of the group that is partly read */
    double read_low;     /* what it has lost */
    double read_squares; /* the sum of the squares of all errors */
};

/* The bytes of memory that the projection of an m×k by a k×n matrix of this type takes. None of them is 0,
 * and A, B and C fit into the address space. */
size_t mm_projection_bytes(enum mm_dtype dtype, size_t m, size_t k, size_t n);

/* Begins the projection of a product, in `memory` of mm_projection_bytes, aligned for a double. The caller
 * keeps the product and the memory until it last uses the projection. */
void mm_projection_init(struct mm_projection *projection, const struct mm_random_product *product,
                        void *memory);

/* Generates the next 100,000 elements or so. Call this until it returns false: nothing was left to do. It
 * generates k·n elements in all, and m·k for each group. */
bool mm_projection_prepare(struct mm_projection *projection);

/* Begins to read a result. mm_projection_prepare has returned false before. */
void mm_projection_begin(struct mm_projection *projection);

/* Reads the next `count` elements of C, which has this type and is dense, row by row, in parts of any size.
 */
void mm_projection_add(struct mm_projection *projection, enum mm_dtype dtype, const void *elements,
                       size_t count);

/* After the last element: ||C·x − A·B·x|| / ||A·B·x||, which estimates ||C − A·B|| / ||A·B|| (Frobenius);
 * INFINITY if an element is not finite. */
double mm_projection_error(const struct mm_projection *projection);
