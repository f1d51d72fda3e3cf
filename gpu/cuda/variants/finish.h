/* Applies the epilogue in a pass after the product. Some variants need this pass because they cannot apply
 * the epilogue when they store C: libraries cannot, and some kernels have too few registers. Functions with
 * the parameter `lane` must be called by the thread that uses the lane. */
#pragma once

#include "gpu/cuda/variants/passes.h"

__BEGIN_DECLS

/* Plans a product with an epilogue as two steps: `plan_product` plans the product without the epilogue, and
 * then a second kernel applies the epilogue. If C has another type than the sums, the workspace contains the
 * sums. */
enum mm_status mm_cuda_plan_finish(mm_variant_plan *plan_product, const struct mm_product *product,
                                   struct mm_plan *plan, struct mm_error *error);

/* Rounds m×n sums to C's type and stores them in C. If product->epilogue is set, applies it before rounding.
 * If the product is a stack, the sums of its products lie one below another. */
enum mm_status mm_cuda_finish(mm_cuda_step *run, const struct mm_plan *plan, const struct mm_product *product,
                              const struct mm_matrix *sums, struct mm_lane *lane, struct mm_error *error);

/* Returns the layout of the pass for a type of sums: MM_FLOAT32, MM_FLOAT64 or MM_INT32. */
struct mm_layout mm_cuda_finish_layout(enum mm_dtype sum);

__END_DECLS
