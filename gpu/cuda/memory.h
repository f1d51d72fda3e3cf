/* Memory of a CUDA device: from its pool, and the workspace that each lane keeps. What a job needs is
 * acquired in one place, job_memory.h. For the thread that uses the lane; mm_cuda_fail_memory for any thread.
 * Only `error` may be NULL.
 */
#pragma once

#include "gpu/cuda/device.h"

__BEGIN_DECLS

/* The one message that device memory is short: fills in MM_NO_DEVICE_MEMORY with needed and free bytes, and
 * returns it. If so much seems to be free, one byte more is said to be needed. */
enum mm_status mm_cuda_fail_memory(const struct mm_cuda_device *device, uint64_t needed_bytes,
                                   struct mm_error *error);

/* Memory from the device's pool, in the order of the lane's stream, aligned to 256 bytes; bytes may be 0.
 * *memory is untouched on failure. After MM_NO_DEVICE_MEMORY callers call mm_cuda_prepare_retry
 * (job_memory.h). The caller owns it until mm_cuda_pool_free. */
enum mm_status mm_cuda_pool_acquire(struct mm_lane *lane, size_t bytes, void **memory,
                                    struct mm_error *error);
void mm_cuda_pool_free(struct mm_lane *lane, void *memory);

/* The lane's workspace of at least so many bytes, aligned to 256; MM_NO_DEVICE_MEMORY as
 * mm_cuda_pool_acquire. */
enum mm_status mm_cuda_workspace(struct mm_lane *lane, size_t bytes, void **memory, struct mm_error *error);

/* Once the lane's jobs are over, or could not begin: gives a large workspace back. */
void mm_cuda_leave_workspace(struct mm_lane *lane);

/* A job that takes more of the device's memory is large: it runs alone, and leaves nothing taken. */
static inline size_t mm_cuda_large_bytes(const struct mm_device *device) {
    return device->memory_bytes / 8;
}

/* The bytes of a block whose neighbour begins at a multiple of 256 bytes. */
static inline size_t mm_cuda_aligned(size_t bytes) {
    enum { ALIGNMENT = 256 };
    return mm_size_round_up(bytes, ALIGNMENT);
}

/* Returns the pool's unused memory and idle lanes' workspaces to the device, after waiting for its work. If
 * no lane is busy, drops all copies of stored values as well. On the thread of the device's lanes. */
void mm_cuda_trim(struct mm_cuda_device *device);

__END_DECLS
