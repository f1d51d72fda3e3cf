/* Memory of a CUDA device: its pool, and the workspace of each lane. The thread that uses the lane calls
 * these functions; any thread may call mm_cuda_fail_memory. Of the pointers here, only `error` may be NULL.
 */
#pragma once

#include "gpu/cuda/device.h"

__BEGIN_DECLS

/* Fills in MM_NO_DEVICE_MEMORY with the needed and the free bytes, and returns it. needed_bytes is 0 if CUDA
 * did not say how many bytes it needed. Free memory may be in several blocks, so more bytes may
 * be free than needed. */
enum mm_status mm_cuda_fail_memory(const struct mm_cuda_device *device, uint64_t needed_bytes,
                                   struct mm_error *error);

/* Acquires memory from the device's pool in the order of the lane's stream, aligned to 256 bytes; `bytes` may
 * be 0. The caller owns *memory and frees it with mm_cuda_pool_free; on failure *memory is unchanged. After
 * MM_NO_DEVICE_MEMORY the caller calls mm_cuda_prepare_retry (job_memory.h). */
enum mm_status mm_cuda_pool_acquire(struct mm_lane *lane, size_t bytes, void **memory,
                                    struct mm_error *error);

/* Frees memory of mm_cuda_pool_acquire in the order of the lane's stream. */
void mm_cuda_pool_free(struct mm_lane *lane, void *memory);

/* Sets *memory to the lane's workspace, which is enlarged to at least `bytes` bytes and aligned to 256 bytes.
 * The lane owns the workspace. Fails with MM_NO_DEVICE_MEMORY if device memory runs out. */
enum mm_status mm_cuda_workspace(struct mm_lane *lane, size_t bytes, void **memory, struct mm_error *error);

/* Frees the lane's workspace if it is large (mm_cuda_large_bytes). Call this once the lane's jobs are over or
 * could not begin. */
void mm_cuda_free_large_workspace(struct mm_lane *lane);

/* The largest bytes of a normal job. A job that needs more device memory runs alone, and its workspace is
 * freed after it. */
static inline size_t mm_cuda_large_bytes(const struct mm_device *device) {
    return device->memory_bytes / 8;
}

/* Rounds bytes up to a multiple of 256, the alignment of matrices in a workspace. */
static inline size_t mm_cuda_aligned(size_t bytes) {
    enum { ALIGNMENT = 256 };
    return mm_size_round_up(bytes, ALIGNMENT);
}

/* Frees the workspaces of idle lanes. If no lane is busy, drops all device copies too, except only copies.
 * Then waits for the device, and returns the pool's unused memory to the driver. Call this on the thread of
 * the device's lanes. */
void mm_cuda_trim(struct mm_cuda_device *device);

__END_DECLS
