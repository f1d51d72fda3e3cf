/* Passes before or after a product. Some variants copy operands that their kernel does not take as stored, or
 * zero C. */
#pragma once

#include "gpu/plan/plan.h"

#include <sys/cdefs.h>

__BEGIN_DECLS

/* Either mm_plan_launch, or mm_cuda_prepare, which only loads the kernels. */
typedef enum mm_status mm_cuda_step(const struct mm_plan *plan, const struct mm_product *product,
                                    struct mm_lane *lane, struct mm_error *error);

/* The number of matrices of A or B. */
static inline size_t mm_matrices_of_a(const struct mm_product *product) {
    return product->stack == NULL ? 1 : product->stack->a_count;
}

static inline size_t mm_matrices_of_b(const struct mm_product *product) {
    return product->stack == NULL ? 1 : product->stack->b_count;
}

/* Whether the matrix and its rows begin at multiples of 16 bytes. */
bool mm_cuda_is_aligned(const struct mm_matrix *matrix);

/* The launch_stack of a plan that mm_cuda_band_rows never cuts: plan->launch launches all products at once.
 */
enum mm_status mm_cuda_launch_whole(const struct mm_plan *plan, const struct mm_product *product,
                                    size_t first, size_t count, struct mm_lane *lane, struct mm_error *error);

/* Copies an operand that has `matrices` matrices. *to must be dense, or its rows must begin at multiples of
 * 16 bytes. If is_turned, the variant `auto` transposes the operand; *to must then be dense if it has several
 * matrices. */
enum mm_status mm_cuda_copy_operand(mm_cuda_step *run, const struct mm_device *device,
                                    const struct mm_matrix *from, size_t matrices, bool is_turned,
                                    const struct mm_matrix *to, struct mm_lane *lane, struct mm_error *error);

/* Sets C to zeros, for a product whose k is 0. */
enum mm_status mm_cuda_zero_result(const struct mm_product *product, struct mm_lane *lane,
                                   struct mm_error *error);

/* The layout of the kernel that copies into rows which begin at multiples of 16 bytes. */
struct mm_layout mm_cuda_pad_layout(enum mm_dtype dtype);

__END_DECLS
