/* Kernels that do what no kernel of ours may, in products of one row; of more rows they are `naive`. They
 * plan rows of the CUDA backend's table. */
#ifndef TESTS_HTTP_FAULTY_CUDA_H
#define TESTS_HTTP_FAULTY_CUDA_H

#include "gpu/variant.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Writes past all memory: the context is lost. */
enum mm_status mm_faulty_out_of_bounds(const struct mm_product *product, struct mm_plan *plan,
                                       struct mm_error *error);

/* Stops itself: likewise. */
enum mm_status mm_faulty_trap(const struct mm_product *product, struct mm_plan *plan, struct mm_error *error);

/* Never ends. */
enum mm_status mm_faulty_hang(const struct mm_product *product, struct mm_plan *plan, struct mm_error *error);

/* Has more threads a block than any device takes: it is refused, and nothing else happens. */
enum mm_status mm_faulty_launch(const struct mm_product *product, struct mm_plan *plan,
                                struct mm_error *error);

#ifdef __cplusplus
}
#endif
#endif
