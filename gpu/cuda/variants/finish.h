/* Applies the epilogue in a pass after the product. `simt`, `fp32_tensor` and `tensor` apply most epilogues
 * when they store C. The pass serves other variants, other activations, batches, and stacks of `simt`.
 * Functions with the parameter `lane` must be called by the thread that uses the lane. */
#pragma once

#include "gpu/cuda/variants/passes.h"

#include <assert.h>

__BEGIN_DECLS

/* m×n sums, and the matrix C for the results. Both lie in memory that the device can read, and may be the
 * same. */
struct mm_cuda_sums {
    struct mm_terms terms; /* terms.dtype is C's type */
    const void *sums;
    void *c;
    size_t sums_ld;
    size_t c_ld;
    size_t m;
    size_t n;
};

enum { MM_CUDA_SUMS_MAX = 36 };

/* The parameter of the pass. It computes all of these matrices. */
struct mm_cuda_pass {
    struct mm_cuda_sums of[MM_CUDA_SUMS_MAX];
};

/* CUDA 12.4 also runs on drivers before R530, which allow a kernel parameters of 4096 bytes. */
static_assert(sizeof(struct mm_cuda_pass) <= 4096, "a kernel's parameters may have 4 KiB");

/* Returns the sums of `product` that lie in `sums`. If the product is a stack, the sums of its products lie
 * one below another. If the product has no epilogue, the pass only rounds the sums. */
struct mm_cuda_sums mm_cuda_sums_of(const struct mm_product *product, const struct mm_matrix *sums);

/* Finishes `count` matrices of sums of the type `dtype` (mm_dtype_sum). */
enum mm_status mm_cuda_finish(const struct mm_cuda_sums *sums, unsigned count, enum mm_dtype dtype,
                              struct mm_lane *lane, struct mm_error *error);

/* Plans a product with an epilogue as two steps: `plan_product` plans the product without the epilogue, and
 * then the pass applies the epilogue. If C has another type than the sums, the workspace contains the sums.
 */
enum mm_status mm_cuda_plan_finish(mm_variant_plan *plan_product, const struct mm_product *product,
                                   struct mm_plan *plan, struct mm_error *error);

/* Returns the layout of the pass for a type of sums. */
struct mm_layout mm_cuda_finish_layout(enum mm_dtype dtype);

__END_DECLS
