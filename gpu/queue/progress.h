/* The progress of a product that is computed part by part. A part is a block of C, or several whole products
 * of a stack. Between two parts, other work can run, and the product can be cancelled. On a host device, the
 * size of a part depends on the time of the previous part. Parts on a GPU are called bands. */
#pragma once

#include "gpu/check/reduce.h"
#include "gpu/plan/variant.h"

/* The longest time of a part on the host. It is less than MM_TASK_SLICE_NS, because sizes are rounded. */
#define MM_PART_NS UINT64_C(40000000)

/* The caller sets all members to 0 before the first part. */
struct mm_progress {
    /* The current part begins at row `row` and column `col` of C, in product `item` of the stack. */
    size_t item;
    size_t row;
    size_t col;
    size_t items; /* products in the current part; 1 if the part is a block of C */
    size_t rows;
    size_t cols;
    size_t checked; /* products whose check is complete; for a GPU, products whose check is enqueued */

    /* Only a host device uses these. */
    size_t generated;      /* how many elements of the operands were generated so far */
    uint64_t generated_ns; /* time spent on generating operands */
    uint64_t spent_ns;     /* time spent on all parts so far */
    double element_ns;     /* time for an element of C in the last part; 0 before the first part */
    struct mm_reduction_progress reduced;
};

/* Returns the next part for a host device. Call this only if the product is not complete. The device's
 * forecast gives the size of the first part. Without a forecast, or if the variant's `cut` is 0, the first
 * part is all of C. */
struct mm_product mm_progress_next(struct mm_progress *progress, const struct mm_device *device,
                                   const struct mm_variant *ran, const struct mm_product *product);

/* Advances to the next part. Returns false if the product has no more parts. A host device calls this when it
 * has computed a part, the CUDA backend when it has enqueued a part. */
bool mm_progress_end(struct mm_progress *progress, const struct mm_product *product, uint64_t took_ns);
