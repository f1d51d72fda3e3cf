/* The progress of a product, which is computed part by part. A part is a block of C, or several whole
 * products of a stack. Between two parts other work gets its turn, and the product can be cancelled. The host
 * sizes a part by the time of the one before, a GPU by its plan (gpu/cuda/run.c). Plain data, for one thread
 * at a time. */
#pragma once

#include "gpu/check/reduce.h"
#include "gpu/plan/variant.h"

/* What a part should take at most on the host. It is less than a task's slice, because sizes are rounded. */
#define MM_PART_NS UINT64_C(40000000)

/* All 0: nothing is done. */
struct mm_progress {
    /* The current part begins at (row, col) of C of product `item` of the stack. All products before `item`
     * are complete, and so are the rows above `row`, and the part's rows left of `col`. */
    size_t item;
    size_t row;
    size_t col;
    size_t items; /* products of the current part; 1, unless the part has all rows and columns of C */
    size_t rows;
    size_t cols;
    size_t checked; /* products whose check is over */

    /* On the host. */
    size_t generated;      /* elements of generated operands, of A and then of B */
    uint64_t generated_ns; /* time spent on generating them */
    uint64_t spent_ns;     /* time spent on all parts so far */
    double element_ns;     /* time of an element of C in the last part; 0: there was no part */
    struct mm_reduction_progress reduced;
};

/* The product that computes `rows` × `cols` elements of C from (row, col) on: views of the given product. */
struct mm_product mm_product_part(const struct mm_product *product, enum mm_op op, size_t row, size_t rows,
                                  size_t col, size_t cols);

/* The next part on the host, if a part is left. The device's forecast gives the size of the first part.
 * Without a forecast, or if the variant's `cut` is 0, the part is all of C. */
struct mm_product mm_progress_next(struct mm_progress *progress, const struct mm_device *device,
                                   const struct mm_variant *ran, const struct mm_product *product);

/* Ends the current part, which took so long; on a GPU it is only enqueued by then. Whether a part is left. */
bool mm_progress_end(struct mm_progress *progress, const struct mm_product *product, uint64_t took_ns);
