/* A random product, its operands as they are stored, and the judgement of a result. It knows nothing of
 * how matrices travel. */
#ifndef MM_LOAD_PRODUCT_H
#define MM_LOAD_PRODUCT_H

#include "bench/load/random.h"

#include <stdio.h>

/* Row r of an operand starts at data + r·ld. The gaps of rows hold NaN, which must go nowhere. */
struct mm_load_matrix {
    size_t rows;
    size_t cols;
    size_t ld;
    float *data;
};

/* C = op(A)·op(B): op(A) is m×k, op(B) is k×n; a and b are as stored. Starts as {0}. */
struct mm_load_product {
    size_t m;
    size_t k;
    size_t n;
    bool transpose_a;
    bool transpose_b;
    bool whole; /* of small whole numbers, so that the result has one right value in any order of sums */
    struct mm_load_matrix a;
    struct mm_load_matrix b;
};

struct mm_load_shapes {
    size_t edge_max;    /* of the usual shapes */
    size_t large_max;   /* of one in a thousand; not more than edge_max: never */
    size_t multiple_of; /* each dimension; 0: of anything */
    bool dense;         /* ld is the columns, and what is stored has columns only where it has rows: JSON */
};

/* Draws shape, storage and elements; what the product held before is freed. */
void mm_load_product_make(struct mm_load_product *product, struct mm_load_random *random,
                          const struct mm_load_shapes *shapes);

void mm_load_product_free(struct mm_load_product *product);

/* Judges the dense m×n result against a reference in float64, which is exact for whole numbers. The
 * first wrong element is said in `problem`. */
bool mm_load_product_check(const struct mm_load_product *product, const float *c, char *problem,
                           size_t problem_bytes);

#endif
