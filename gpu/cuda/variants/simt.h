/* Lets another variant compute a product with `simt`: always, or only if the device sets a flag at run time.
 * Only the thread that uses the lane calls these functions. */
#pragma once

#include "gpu/cuda/lane.h"

#include <sys/cdefs.h>

__BEGIN_DECLS

/* Loads the kernels of a plan that mm_cuda_simt made (gpu/cuda/variants.h), so that launches do not wait. */
enum mm_status mm_cuda_simt_prepare(const struct mm_plan *plan, const struct mm_product *product,
                                    struct mm_lane *lane, struct mm_error *error);

/* Enqueues the kernels of a plan that mm_cuda_simt made. `workspace` has plan->workspace_bytes of device
 * memory, aligned to 256 bytes, which the kernels use until they have run; NULL is allowed for 0 bytes.
 * `run_flag` is in device memory: a kernel that reads 0 there at its start stores nothing. NULL: the kernels
 * always run. */
enum mm_status mm_cuda_simt_enqueue(const struct mm_plan *plan, const struct mm_product *product,
                                    struct mm_lane *lane, void *workspace, const unsigned *run_flag,
                                    struct mm_error *error);

__END_DECLS
