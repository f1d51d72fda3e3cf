/* The epilogue as a pass after the product, for variants that cannot apply it where they store C: libraries,
 * and kernels that have no registers for it. The thread that uses the lane calls the functions that have a
 * lane. */
#pragma once

#include "gpu/cuda/variants/passes.h"

__BEGIN_DECLS

/* Plans a product with an epilogue: `plan_product`, a function of this kind, plans the product without it,
 * and a second kernel applies it. If C has a narrower type than the sums, they lie in the workspace. */
enum mm_status mm_cuda_plan_finish(mm_variant_plan *plan_product, const struct mm_product *product,
                                   struct mm_plan *plan, struct mm_error *error);

/* Runs the pass that rounds m×n sums to C, and applies product->epilogue if it is set. The sums of a stack
 * lie one product below another. */
enum mm_status mm_cuda_finish(mm_cuda_step *run, const struct mm_plan *plan, const struct mm_product *product,
                              const struct mm_matrix *sums, struct mm_lane *lane, struct mm_error *error);

/* Returns the layout of the pass, by the type of the sums: MM_FLOAT32, MM_FLOAT64 or MM_INT32. */
struct mm_layout mm_cuda_finish_layout(enum mm_dtype sum);

__END_DECLS
