/* The memory pool of a CUDA device, and the workspaces of its lanes. Only the thread that uses the lane calls
 * these functions, unless a comment says otherwise. Only `error` may be NULL. */
#pragma once

#include "gpu/cuda/device.h"

__BEGIN_DECLS

/* Calls mm_fail_device_memory with the device's name and its free bytes. Any thread. */
enum mm_status mm_cuda_fail_memory(const struct mm_cuda_device *device, uint64_t needed_bytes,
                                   struct mm_error *error);

/* Acquires memory from the device's pool, in the order of the lane's stream, aligned to 256 bytes. `bytes`
 * may be 0. *memory is untouched on failure. After MM_NO_DEVICE_MEMORY, call mm_cuda_prepare_retry. */
enum mm_status mm_cuda_pool_acquire(struct mm_lane *lane, size_t bytes, void **memory,
                                    struct mm_error *error);

/* Frees memory of the pool, in the order of the lane's stream. */
void mm_cuda_pool_free(struct mm_lane *lane, void *memory);

/* Sets *memory to the lane's workspace of at least `bytes`, aligned to 256 bytes. The lane owns the
 * workspace. MM_NO_DEVICE_MEMORY if memory runs out. */
enum mm_status mm_cuda_workspace(struct mm_lane *lane, size_t bytes, void **memory, struct mm_error *error);

/* Frees the lane's workspace if it exceeds mm_cuda_large_bytes. Call this when no job uses the workspace. */
void mm_cuda_free_large_workspace(struct mm_lane *lane);

/* A job that needs more device memory than this runs alone, and its workspace is not kept. */
static inline size_t mm_cuda_large_bytes(const struct mm_device *device) {
    return device->memory_bytes / 8;
}

/* Rounds up to a multiple of 256 bytes, so the next block is aligned. */
static inline size_t mm_cuda_aligned(size_t bytes) {
    enum { ALIGNMENT = 256 };
    return mm_size_round_up(bytes, ALIGNMENT);
}

/* Waits for the device, and then frees the pool's unused memory and the workspaces of idle lanes. If no lane
 * is busy, also calls mm_cuda_drop_copies. Only the thread of the device's lanes calls this. */
void mm_cuda_trim(struct mm_cuda_device *device);

__END_DECLS
