/* How another variant's launch has a product computed by `simt`, as it was enqueued or only if the device
 * itself finds that it must be. */
#ifndef MM_GPU_CUDA_SIMT_H
#define MM_GPU_CUDA_SIMT_H

#include "gpu/cuda/lane.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The layout of the main kernel that the product would be computed by on the lane's device, with the scratch
 * memory that mm_cuda_simt_enqueue needs for it. */
struct mm_cuda_layout mm_cuda_simt_layout(const struct mm_product *product, const struct mm_lane *lane);

/* Enqueues the product's kernels on the lane, or rehearses them. `scratch` is device memory of as many bytes
 * as the layout says, aligned to 256 bytes, and free for other uses once they have run; any value where those
 * are 0 or where it is a rehearsal. Where `wanted` is not NULL, each block first reads *wanted in the
 * device's memory, and returns at once, with nothing written, where it is 0. mm_cuda_judge_dimensions has
 * passed the product. */
enum mm_status mm_cuda_simt_enqueue(const struct mm_product *product, struct mm_lane *lane, void *scratch,
                                    const unsigned *wanted, struct mm_error *error);

#ifdef __cplusplus
}
#endif
#endif
