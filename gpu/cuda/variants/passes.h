/* Passes before or after a product: copies of operands that a variant's kernel cannot use as stored, and a C
 * of zeros. The thread that uses the lane calls the functions that have a lane. */
#pragma once

#include "gpu/plan/plan.h"

#include <sys/cdefs.h>

__BEGIN_DECLS

/* A function that launches a plan's kernels (mm_plan_launch) or only loads them (mm_cuda_prepare). */
typedef enum mm_status mm_cuda_step(const struct mm_plan *plan, const struct mm_product *product,
                                    struct mm_lane *lane, struct mm_error *error);

/* Returns the number of matrices of A: 1, or as many as the stack has. */
static inline size_t mm_matrices_of_a(const struct mm_product *product) {
    return product->stack == NULL ? 1 : product->stack->a_count;
}

/* Returns the number of matrices of B: 1, or as many as the stack has. */
static inline size_t mm_matrices_of_b(const struct mm_product *product) {
    return product->stack == NULL ? 1 : product->stack->b_count;
}

/* Whether the matrix and its rows begin at multiples of 16 bytes. */
bool mm_cuda_is_aligned(const struct mm_matrix *matrix);

/* The launch_stack function of plans whose `launch` launches all products of a stack at once. `first` is 0,
 * and `count` is the stack's count. */
enum mm_status mm_cuda_launch_whole(const struct mm_plan *plan, const struct mm_product *product,
                                    size_t first, size_t count, struct mm_lane *lane, struct mm_error *error);

/* Copies an operand of `matrices` matrices, and transposes each if is_turned. *to must be dense, or its rows
 * must begin at multiples of 16 bytes. *to must be dense if is_turned and there are several matrices. */
enum mm_status mm_cuda_copy_operand(mm_cuda_step *run, const struct mm_device *device,
                                    const struct mm_matrix *from, size_t matrices, bool is_turned,
                                    const struct mm_matrix *to, struct mm_lane *lane, struct mm_error *error);

/* Enqueues zeros for all of C, the result of a product whose k is 0. */
enum mm_status mm_cuda_zero_result(const struct mm_product *product, struct mm_lane *lane,
                                   struct mm_error *error);

/* Returns the layout of the kernel that copies a matrix to rows that begin at multiples of 16 bytes. */
struct mm_layout mm_cuda_pad_layout(enum mm_dtype dtype);

__END_DECLS
