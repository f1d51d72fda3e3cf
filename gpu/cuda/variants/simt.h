/* Lets another variant compute a product with `simt`: always, or only if a kernel has set a flag on the
 * device. Call these functions only on the thread that uses the struct mm_lane. */
#pragma once

#include "gpu/cuda/lane.h"

#include <sys/cdefs.h>

__BEGIN_DECLS

/* Loads the kernels of a plan of mm_cuda_simt (gpu/cuda/variants.h), so the first launch does not have to. */
enum mm_status mm_cuda_simt_prepare(const struct mm_plan *plan, const struct mm_product *product,
                                    struct mm_lane *lane, struct mm_error *error);

/* Enqueues the kernels of a plan of mm_cuda_simt. `workspace` is device memory of plan->workspace_bytes
 * bytes, aligned to 256 bytes, which must stay valid until the kernels have run. `workspace` may be NULL if
 * workspace_bytes is 0. `run_flag` points to device memory: if *run_flag is 0, the kernels store nothing. If
 * `run_flag` is NULL, the kernels always run. */
enum mm_status mm_cuda_simt_enqueue(const struct mm_plan *plan, const struct mm_product *product,
                                    struct mm_lane *lane, void *workspace, const unsigned *run_flag,
                                    struct mm_error *error);

__END_DECLS
