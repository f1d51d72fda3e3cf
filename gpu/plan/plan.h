/* A plan: how one device computes one product. mm_plan_make and then the variant's `plan` fill it in, from
 * the product's shape, type and flags and from constants of the device. Plain data that owns nothing. */
#pragma once

#include "gpu/plan/variant.h"

/* How a kernel lies over C: a grid of blocks, columns of C along x and rows along y. */
struct mm_layout {
    const void *kernel;       /* NULL: the variant is no kernel of ours (the CPU, a library, a plain copy) */
    const void *batch_kernel; /* computes several products in one launch; NULL: there is none */
    unsigned block_rows;      /* elements of C that one block computes */
    unsigned block_cols;
    unsigned threads_x; /* threads of a block */
    unsigned threads_y;
    unsigned split_depth; /* k is cut into parts of this length; 0: k is not cut */
    bool reads_once;      /* the kernel reads each element of the operands once */
    bool follows; /* the kernel itself waits for the kernel before it in the stream, so it may start early */
    size_t dynamic_shared_bytes; /* up to what the device gives a block, also past 48 KiB */
};

struct mm_plan {
    const struct mm_device *device;
    const struct mm_variant *variant; /* the row that runs, never `auto` */
    bool is_frugal;                   /* device memory is short: use as little workspace as possible */

    /* Enqueues the product on the lane. NULL on the host, where variant->launch computes the product. */
    enum mm_status (*launch)(const struct mm_plan *plan, const struct mm_product *product,
                             struct mm_lane *lane, struct mm_error *error);
    /* Enqueues `count` products of a stack, from `first` on, as one launch. NULL: `launch` enqueues one after
     * another. */
    enum mm_status (*launch_stack)(const struct mm_plan *plan, const struct mm_product *product, size_t first,
                                   size_t count, struct mm_lane *lane, struct mm_error *error);
    /* Loads what a first launch would load, so no job's kernel time includes loading. NULL: there is only
     * layout.kernel, or nothing, to load. The product's data may be NULL. */
    enum mm_status (*prepare)(const struct mm_plan *plan, const struct mm_product *product,
                              struct mm_lane *lane, struct mm_error *error);

    struct mm_layout layout;
    unsigned splits;        /* k is cut into so many parts, which run side by side; 0 and 1: k is not cut */
    size_t workspace_bytes; /* device memory that the launch needs beside the matrices */
};

/* Plans a non-empty product by a row that is not missing on the device; the row may be `auto`. *plan is
 * undefined on failure: MM_UNSUPPORTED if the row does not do this shape. Any thread; asks no device. */
enum mm_status mm_plan_make(const struct mm_device *device, const struct mm_variant *variant,
                            const struct mm_product *product, bool is_frugal, struct mm_plan *plan,
                            struct mm_error *error);

/* Plans the smallest product that the variant takes with this tile (0: any tile). *dtype is the first element
 * type for which that is possible. A transposition is planned for a matrix that is not already transposed in
 * memory. MM_UNSUPPORTED if there is no such product, and for `auto`. */
enum mm_status mm_plan_smallest(const struct mm_device *device, const struct mm_variant *variant,
                                unsigned tile, struct mm_plan *plan, enum mm_dtype *dtype,
                                struct mm_error *error);

/* Runs a product by its plan: on the host computes it on the calling thread (`lane` is NULL), else enqueues
 * it on the lane. Every launch goes through this function, also launches for a part of C. */
enum mm_status mm_plan_launch(const struct mm_plan *plan, const struct mm_product *product,
                              struct mm_lane *lane, struct mm_error *error);

/* Runs `count` products of a stack, from `first` on, by the plan, as mm_plan_launch runs all. */
enum mm_status mm_plan_launch_some(const struct mm_plan *plan, const struct mm_product *product, size_t first,
                                   size_t count, struct mm_lane *lane, struct mm_error *error);
