/* Lets another variant compute a product by `simt`: always, or only if the device sets a flag at run time.
 * Only the thread that uses the lane calls these functions. */
#pragma once

#include "gpu/cuda/lane.h"

#include <sys/cdefs.h>

__BEGIN_DECLS

/* Loads the kernels of a plan that mm_cuda_simt made (gpu/cuda/variants.h). */
enum mm_status mm_cuda_simt_prepare(const struct mm_plan *plan, const struct mm_product *product,
                                    struct mm_lane *lane, struct mm_error *error);

/* Enqueues the kernels of a plan that mm_cuda_simt made. `workspace` is device memory of
 * plan->workspace_bytes, aligned to 256 bytes. It may be reused once the kernels have run, and may be NULL if
 * plan->workspace_bytes is 0. `run_flag` points into device memory: if *run_flag is 0 when a kernel starts,
 * the kernel returns at once and stores nothing. NULL: the kernels always run. */
enum mm_status mm_cuda_simt_enqueue(const struct mm_plan *plan, const struct mm_product *product,
                                    struct mm_lane *lane, void *workspace, const unsigned *run_flag,
                                    struct mm_error *error);

__END_DECLS
