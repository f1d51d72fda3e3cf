/* The memory pool of a CUDA device, and the workspaces of its lanes. Only the thread that uses the lane calls
 * these functions, unless a comment says otherwise. Pointers must not be NULL, except `error`. */
#pragma once

#include "gpu/cuda/device.h"

__BEGIN_DECLS

/* Fails with MM_NO_DEVICE_MEMORY. *error has the device's name, and the needed and free bytes. Any thread. */
enum mm_status mm_cuda_fail_memory(const struct mm_cuda_device *device, uint64_t needed_bytes,
                                   struct mm_error *error);

/* Acquires memory from the device's pool, in the order of the lane's stream, aligned to 256 bytes. `bytes`
 * may be 0. *memory is untouched on failure. After MM_NO_DEVICE_MEMORY, call mm_cuda_prepare_retry. */
enum mm_status mm_cuda_pool_acquire(struct mm_lane *lane, size_t bytes, void **memory,
                                    struct mm_error *error);

/* Frees memory of mm_cuda_pool_acquire, in the order of the lane's stream. */
void mm_cuda_pool_free(struct mm_lane *lane, void *memory);

/* Sets *memory to the lane's workspace. If the workspace has less than `bytes`, first replaces the workspace.
 * The workspace is aligned to 256 bytes, and the lane owns it. MM_NO_DEVICE_MEMORY if memory runs out. */
enum mm_status mm_cuda_workspace(struct mm_lane *lane, size_t bytes, void **memory, struct mm_error *error);

/* Frees the lane's workspace if it is larger than mm_cuda_large_bytes. No job may use the workspace. */
void mm_cuda_free_large_workspace(struct mm_lane *lane);

/* Returns how much device memory a job can need before it counts as large. A large job runs alone, and the
 * lane's workspace is freed after the job. */
static inline size_t mm_cuda_large_bytes(const struct mm_device *device) {
    return device->memory_bytes / 8;
}

/* Rounds up to a multiple of 256 bytes, so what follows in memory is aligned to 256 bytes. */
static inline size_t mm_cuda_aligned(size_t bytes) {
    enum { ALIGNMENT = 256 };
    return mm_size_round_up(bytes, ALIGNMENT);
}

/* Waits for the device, frees the workspaces of idle lanes, and frees the pool's unused memory. If no lane is
 * busy, also calls mm_cuda_drop_copies. Only the thread that runs the device's lanes calls this. */
void mm_cuda_trim(struct mm_cuda_device *device);

__END_DECLS
