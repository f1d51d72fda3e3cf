/* The progress of a product that is computed part by part. A part is a block of C, or several whole products
 * of a stack. Between two parts, other work gets its turn, and the product can be cancelled. On the host, a
 * part's size depends on the time of the part before, and on a GPU on the plan (gpu/cuda/run.c). */
#pragma once

#include "gpu/check/reduce.h"
#include "gpu/plan/variant.h"

/* The longest time of a part on the host. It is less than MM_TASK_SLICE_NS, because sizes are rounded. */
#define MM_PART_NS UINT64_C(40000000)

/* All members are 0 before the first part. */
struct mm_progress {
    /* The current part begins at (row, col) of C of product `item`. All products before `item`, all rows
     * above `row`, and the part's rows left of `col` are complete. */
    size_t item;
    size_t row;
    size_t col;
    size_t items; /* products in the current part; more than 1 only if they are whole */
    size_t rows;
    size_t cols;
    size_t checked; /* products whose check is complete or, on a GPU, enqueued */

    /* Only for the host. */
    size_t generated;      /* elements generated so far, of A and then of B */
    uint64_t generated_ns; /* time spent on generating operands */
    uint64_t spent_ns;     /* time spent on all parts so far */
    double element_ns;     /* time for each element of C in the last part; 0 before the first */
    struct mm_reduction_progress reduced;
};

/* Returns the product that computes rows × cols elements of C from (row, col) on, as views of `product`. */
struct mm_product mm_product_part(const struct mm_product *product, enum mm_op op, size_t row, size_t rows,
                                  size_t col, size_t cols);

/* Returns the next part on the host; there must be one. The device's forecast gives the size of the first
 * part. The part is all of C if there is no forecast, or if the variant's `cut` is 0. */
struct mm_product mm_progress_next(struct mm_progress *progress, const struct mm_device *device,
                                   const struct mm_variant *ran, const struct mm_product *product);

/* Ends the current part, which a GPU has only enqueued by now. Returns whether a part is left. */
bool mm_progress_end(struct mm_progress *progress, const struct mm_product *product, uint64_t took_ns);
