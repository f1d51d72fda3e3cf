/* Helper passes before a product: copies of operands that a kernel cannot use as they are stored. Call
 * functions that take a lane on the thread that uses the lane. */
#pragma once

#include "gpu/plan/plan.h"

#include <sys/cdefs.h>

__BEGIN_DECLS

/* Returns the number of matrices of A, which is 1 for a product without a stack. */
static inline size_t mm_matrices_of_a(const struct mm_product *product) {
    return product->stack == NULL ? 1 : product->stack->a_count;
}

static inline size_t mm_matrices_of_b(const struct mm_product *product) {
    return product->stack == NULL ? 1 : product->stack->b_count;
}

/* Returns whether every row of the matrix begins at a multiple of 16 bytes. */
bool mm_cuda_is_aligned(const struct mm_matrix *matrix);

/* A launch_stack function for plans that can only launch a whole stack. `first` must be 0, and `count` must
 * be the number of products in the stack. */
enum mm_status mm_cuda_launch_whole(const struct mm_plan *plan, const struct mm_product *product,
                                    size_t first, size_t count, struct mm_lane *lane, struct mm_error *error);

/* Copies the `matrices` matrices of an operand, one below another, to *to. If is_turned, transposes each
 * matrix. In this case several matrices need a dense *to. Otherwise *to must be dense or have aligned rows
 * (mm_cuda_is_aligned). `run` is mm_plan_launch, or mm_cuda_prepare, which only loads the kernels. */
enum mm_status mm_cuda_copy_operand(mm_plan_step *run, const struct mm_device *device,
                                    const struct mm_matrix *from, size_t matrices, bool is_turned,
                                    const struct mm_matrix *to, struct mm_lane *lane, struct mm_error *error);

/* Returns the layout of the kernel that copies a matrix to rows that begin at multiples of 16 bytes. */
struct mm_layout mm_cuda_pad_layout(enum mm_dtype dtype);

__END_DECLS
