/* How right a whole product is, by a random projection: C·x is compared with A·(B·x), which takes no product
 * of matrices (R. Freivalds, "Probabilistic machines can use less running time", IFIP 1977). Whatever is
 * wrong with C, wherever it lies, is in C·x, too. The operands are random streams, which the host makes again
 * as it goes, in the order in which they are stored. A and B stand for op(A) and op(B) where no more is said.
 * It knows no device and no variant.
 *
 * x has random numbers of either sign between 1/2 and 1: so a single wrong element shows whichever column it
 * is in, and so do columns that are swapped, as they would not where x were of ones of either sign alone.
 *
 * Where m or k is small, so is what C·x can say: of one row it is a single number, which may be small by
 * chance where the row is not. There the columns are cut into groups, each with a projection of its own, down
 * to groups of one column, where each element is compared. */
#ifndef MM_GPU_PROJECTION_H
#define MM_GPU_PROJECTION_H

#include "gpu/random.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

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

#ifdef __cplusplus
}
#endif
#endif
