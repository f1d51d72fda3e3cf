/* How right a whole product is, by a random projection: compares C·x with A·(B·x) (Freivalds, 1977). The host
 * makes the operands, which are random streams, again as it goes. A and B stand for op(A) and op(B). It knows
 * no device and no variant.
 *
 * x has random numbers of either sign between 1/2 and 1, so a single wrong element shows, and so do swapped
 * columns. If m or k is small, the columns are cut into groups with a projection each, down to single
 * columns, since one number may be small by chance.
 *
 * gpu/check/verify.h cannot replace it: it needs the operands (12 MiB at 1024³ instead of 20 KiB), which a
 * kernel could have overwritten, and at rank 1 it told an error wrong by more than a factor of 3 in 52 of
 * 2,000 checks. */
#ifndef MM_GPU_CHECK_PROJECTION_H
#define MM_GPU_CHECK_PROJECTION_H

#include "gpu/random.h"

#include <stdbool.h>

/* The caller's memory, and how far the work has come; all of it this module's. */
struct mm_projection {
    struct mm_random_product product;
    size_t group_cols; /* columns of a group; the last may have fewer */
    size_t group_count;
    double *sums;   /* A·(B·x): of each row its groups' */
    double *inner;  /* B·x, of the group at hand */
    float *weights; /* x */
    double norm;    /* the sum of the squares of `sums` */

    /* What is prepared next: of this group, B's rows and then A's, as they are stored, from this number of
     * the row on. */
    size_t group;
    size_t row;
    size_t number;

    /* Of the result that is read: the next element and its group, what the group's elements before it sum up
     * to, and the sum of the squares of what is wrong. */
    size_t read_row;
    size_t read_col;
    size_t read_group;
    double read_sum;
    double read_squares;
};

/* The memory that the projection of an m×k by a k×n matrix takes. None of them is 0. False, and *bytes
 * untouched, where it passes SIZE_MAX. */
bool mm_projection_bytes(size_t m, size_t k, size_t n, size_t *bytes);

/* Begins with the projection of a product, in memory of mm_projection_bytes that is aligned for a double and
 * is the caller's, until after the last use. */
void mm_projection_init(struct mm_projection *projection, const struct mm_random_product *product,
                        void *memory);

/* A step of what comes before any result is read, of some 100,000 numbers made: false where there was nothing
 * left to do. The whole takes k·n numbers, and m·k for each group. */
bool mm_projection_prepare(struct mm_projection *projection);

/* Reads a result, once all is prepared: it begins, takes the next `count` elements of C, which is dense, row
 * by row, in pieces of any size, and once all were taken tells the error: ||C·x − A·B·x|| / ||A·B·x||, which
 * estimates ||C − A·B|| / ||A·B|| (Frobenius). INFINITY where anything is not finite. A projection may read
 * one result after the other. */
void mm_projection_begin(struct mm_projection *projection);
void mm_projection_take(struct mm_projection *projection, const float *elements, size_t count);
double mm_projection_error(const struct mm_projection *projection);

#endif
