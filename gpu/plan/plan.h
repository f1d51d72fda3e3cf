/* A plan: how one device computes one product. mm_plan_make and the variant's `plan` set it from the
 * product's shape, type and flags, and from constants of the device. A plan owns nothing. */
#pragma once

#include "gpu/plan/variant.h"

/* How a kernel covers C: by a grid of blocks, with columns of C along x and rows along y. */
struct mm_layout {
    const void
        *kernel; /* NULL: the variant has no kernel of this project (the CPU, a library, a plain copy) */
    const void *batch_kernel; /* computes several products in one launch; NULL: there is none */
    unsigned block_rows;      /* elements of C that one block computes */
    unsigned block_cols;
    unsigned threads_x; /* threads of a block */
    unsigned threads_y;
    unsigned split_depth; /* k is divided into parts of this length; 0: k is not divided */
    bool reads_once;      /* the kernel reads each element of the operands once */
    bool follows; /* the kernel itself waits for the previous kernel in the stream, so it may start early */
    size_t dynamic_shared_bytes; /* dynamic shared memory of a block; may exceed 48 KiB */
};

struct mm_plan {
    const struct mm_device *device;
    const struct mm_variant *variant; /* the variant that runs, never `auto` */
    bool is_frugal; /* device memory is short: the plan uses as little workspace as possible */

    /* Enqueues the product on the lane. NULL on the host, where variant->launch computes the product. */
    enum mm_status (*launch)(const struct mm_plan *plan, const struct mm_product *product,
                             struct mm_lane *lane, struct mm_error *error);
    /* Enqueues `count` products of a stack, beginning with product `first`, as one launch. NULL: `launch`
     * enqueues them one after another. */
    enum mm_status (*launch_stack)(const struct mm_plan *plan, const struct mm_product *product, size_t first,
                                   size_t count, struct mm_lane *lane, struct mm_error *error);
    /* Loads kernels before their first launch, so no job's kernel time includes loading. NULL: only
     * layout.kernel, or nothing, must be loaded. The product's data may be NULL. */
    enum mm_status (*prepare)(const struct mm_plan *plan, const struct mm_product *product,
                              struct mm_lane *lane, struct mm_error *error);

    struct mm_layout layout;
    unsigned splits; /* k is divided into so many parts, which are computed at the same time; 0 and 1: k is
                        not divided */
    size_t workspace_bytes; /* device memory that the launch needs in addition to the matrices */
};

/* Plans a product that is not empty. The variant is not missing on the device, and may be `auto`. *plan is
 * undefined on failure. MM_UNSUPPORTED if the variant does not support the shape. Makes no call to the
 * device. Any thread. */
enum mm_status mm_plan_make(const struct mm_device *device, const struct mm_variant *variant,
                            const struct mm_product *product, bool is_frugal, struct mm_plan *plan,
                            struct mm_error *error);

/* Plans the smallest product that the variant supports with this tile (0: any tile). *dtype is the first
 * element type for which that is possible. For a transposition, A is stored row by row, so a kernel is
 * needed. MM_UNSUPPORTED if there is no such product, and for `auto`. */
enum mm_status mm_plan_smallest(const struct mm_device *device, const struct mm_variant *variant,
                                unsigned tile, struct mm_plan *plan, enum mm_dtype *dtype,
                                struct mm_error *error);

/* Runs a product by its plan. The host computes it on the calling thread (`lane` is NULL); a GPU enqueues
 * it on the lane. Every launch calls this function, also launches for a part of C. */
enum mm_status mm_plan_launch(const struct mm_plan *plan, const struct mm_product *product,
                              struct mm_lane *lane, struct mm_error *error);

/* Runs `count` products of a stack by the plan, beginning with product `first`. The host computes them on
 * the calling thread (`lane` is NULL); a GPU enqueues them on the lane. */
enum mm_status mm_plan_launch_range(const struct mm_plan *plan, const struct mm_product *product,
                                    size_t first, size_t count, struct mm_lane *lane, struct mm_error *error);
