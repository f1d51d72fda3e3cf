/* A plan: how one device computes one product. A plan depends on the product's shape, type and flags, and on
 * constants of the device. A plan owns nothing. */
#pragma once

#include "gpu/plan/variant.h"

/* The grid of a kernel. The blocks of the grid cover C, with columns along x and rows along y. */
struct mm_layout {
    /* NULL if no kernel of this project runs: on the CPU, for a library, and for a plain copy. */
    const void *kernel;
    const void *batch_kernel; /* computes several products in one launch; may be NULL */
    unsigned block_rows;      /* rows and columns of C that a block computes */
    unsigned block_cols;
    unsigned threads_x; /* threads of a block */
    unsigned threads_y;
    unsigned split_depth; /* length of the parts of k; 0: k is not divided */
    bool reads_once;      /* the kernel reads each element of the operands once */
    /* Set if the kernel itself waits for the previous kernel, so the kernel may start early. */
    bool follows;
    size_t dynamic_shared_bytes; /* dynamic shared memory of a block; may exceed 48 KiB */
};

/* Where C may be cut into shares for several devices without a change of its bits. */
struct mm_cuts {
    size_t rows; /* shares begin at multiples of `rows` and `cols`; 0 if C must not be cut */
    size_t cols;
    size_t tail_rows; /* the last share has at least so many units of `rows`; its last unit may have fewer */
    size_t tail_cols; /* and so many units of `cols` */
};

/* Enqueues a product by its plan on the lane, or loads the plan's kernels. */
typedef enum mm_status mm_plan_step(const struct mm_plan *plan, const struct mm_product *product,
                                    struct mm_lane *lane, struct mm_error *error);

struct mm_plan {
    const struct mm_device *device;
    const struct mm_variant *variant; /* never `auto` */
    bool finishes; /* `launch` applies the epilogue; otherwise a pass must follow (finish.h) */

    mm_plan_step *launch; /* NULL on the host: variant->launch computes the product there */
    /* Enqueues `count` products of a stack in one launch, beginning with product `first`. If NULL, the
     * products are enqueued one after another by `launch`. */
    enum mm_status (*launch_stack)(const struct mm_plan *plan, const struct mm_product *product, size_t first,
                                   size_t count, struct mm_lane *lane, struct mm_error *error);
    /* Loads kernels before their first launch, so no job's kernel time includes loading. NULL if the plan has
     * no kernel except layout.kernel. The product's data may be NULL. */
    mm_plan_step *prepare;

    /* Some plans apply the epilogue in a pass after the product (gpu/cuda/variants/finish.h). These functions
     * then launch and prepare the product before this pass. */
    struct {
        mm_plan_step *launch;
        mm_plan_step *prepare;
    } before_finish;
    size_t sums_offset; /* byte offset in the workspace of the sums for this pass */

    struct mm_layout layout;
    /* k is divided into this number of parts, which are computed in parallel. 0 and 1 mean that k is not
     * divided. */
    unsigned splits;
    size_t workspace_bytes; /* device memory in addition to the matrices */

    /* Memory for data that the launch derives from A and from B, if the data can be kept for other launches
     * (gpu/cuda/device_copy.h). If both are kept, the launch needs only this workspace. */
    struct {
        size_t bytes[2];
        size_t workspace_bytes;
    } kept;

    struct mm_cuts cuts; /* zeros for variants with is_row_by_row, which may be cut anywhere */
};

/* Plans a product that is not empty. The device can run `variant`, which may be `auto`. Returns
 * MM_UNSUPPORTED, with *plan undefined, if the variant does not support the shape. Makes no call to the
 * device. Any thread. */
enum mm_status mm_plan_make(const struct mm_device *device, const struct mm_variant *variant,
                            const struct mm_product *product, struct mm_plan *plan, struct mm_error *error);

/* Plans the smallest product that the variant supports with this tile, or with any tile if `tile` is 0. Sets
 * *dtype to the first element type that has such a product. A transposition is planned with transpose_a,
 * because otherwise it would be a copy without a kernel. Returns MM_UNSUPPORTED if there is no such product,
 * and for `auto`. */
enum mm_status mm_plan_smallest(const struct mm_device *device, const struct mm_variant *variant,
                                unsigned tile, struct mm_plan *plan, enum mm_dtype *dtype,
                                struct mm_error *error);

/* Runs a product or a stack by its plan. A plan for the host computes on the calling thread, and `lane` is
 * NULL. A plan for a GPU enqueues the work on the lane. */
enum mm_status mm_plan_launch(const struct mm_plan *plan, const struct mm_product *product,
                              struct mm_lane *lane, struct mm_error *error);

/* Runs `count` products of a stack, beginning with product `first`. A plan for the host computes on the
 * calling thread, and `lane` is NULL. A plan for a GPU enqueues the work on the lane. */
enum mm_status mm_plan_launch_range(const struct mm_plan *plan, const struct mm_product *product,
                                    size_t first, size_t count, struct mm_lane *lane, struct mm_error *error);
