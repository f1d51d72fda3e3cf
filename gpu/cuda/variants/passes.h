/* What some variants do before or after the product itself: copies of operands that lie in memory as the
 * kernel does not take them, and a C of zeros. */
#pragma once

#include "gpu/plan/plan.h"

#include <sys/cdefs.h>

__BEGIN_DECLS

/* mm_plan_launch, or mm_cuda_prepare, which only loads what the other one launches. */
typedef enum mm_status mm_cuda_step(const struct mm_plan *plan, const struct mm_product *product,
                                    struct mm_lane *lane, struct mm_error *error);

/* How many matrices A, or B, has. */
static inline size_t mm_matrices_of_a(const struct mm_product *product) {
    return product->stack == NULL ? 1 : product->stack->a_count;
}

static inline size_t mm_matrices_of_b(const struct mm_product *product) {
    return product->stack == NULL ? 1 : product->stack->b_count;
}

/* Whether the matrix and its rows begin at multiples of 16 bytes. */
bool mm_cuda_is_aligned(const struct mm_matrix *matrix);

/* The launch_stack of a plan that is never cut (mm_cuda_band_rows): all products at once, by plan->launch. */
enum mm_status mm_cuda_launch_whole(const struct mm_plan *plan, const struct mm_product *product,
                                    size_t first, size_t count, struct mm_lane *lane, struct mm_error *error);

/* Copies an operand of so many matrices; rows of *to begin at multiples of 16 bytes, or it is dense. What is
 * turned is transposed by `auto`; if that is several matrices, *to is dense. */
enum mm_status mm_cuda_copy_operand(mm_cuda_step *run, const struct mm_device *device,
                                    const struct mm_matrix *from, size_t matrices, bool is_turned,
                                    const struct mm_matrix *to, struct mm_lane *lane, struct mm_error *error);

/* C of a product without depth. */
enum mm_status mm_cuda_zero_result(const struct mm_product *product, struct mm_lane *lane,
                                   struct mm_error *error);

/* The kernel that copies into rows which begin at multiples of 16 bytes. */
struct mm_layout mm_cuda_pad_layout(enum mm_dtype dtype);

__END_DECLS
