/* Stored matrices in the memory of a CUDA device: copies of matrices in host memory or on another device,
 * only copies, and data that variants derive from stored matrices. The thread of the device's lanes calls
 * these functions. */
#pragma once

#include "gpu/cuda/device.h"

__BEGIN_DECLS

/* Sets *data to the device copy of a stored operand, which is complete for later work on the lane's stream.
 * If there is no copy, enqueues one, and adds the bytes copied from the host to *copied_bytes. *data becomes
 * NULL if the operand is not stored, is empty, or finds no memory. Then the caller copies the operand for
 * this job alone. MM_DEVICE_FAILED: only a failed device has the operand. */
enum mm_status mm_cuda_acquire_operand(const struct mm_source *source, struct mm_lane *lane,
                                       size_t *copied_bytes, void **data, struct mm_error *error);

/* Enqueues the copy of a stored matrix to device memory, from the host or from the device that has it. */
cudaError_t mm_cuda_copy_stored(const struct mm_stored *value, void *to, const struct mm_lane *lane);

/* Acquires memory for a stored matrix that only this device will have, in the order of the lane's stream. The
 * caller owns *copy, and releases it or passes it to the store. MM_STORE_FULL: only copies on the device
 * would exceed mm_device_stored_bytes_max. MM_NO_DEVICE_MEMORY. MM_INTERNAL: host memory ran out. */
enum mm_status mm_cuda_acquire_copy_on(size_t bytes, struct mm_lane *lane, struct mm_device_copy **copy,
                                       struct mm_error *error);

/* Returns memory for data that a variant derives from an operand of the lane's job (slot 0: A, 1: B). The
 * memory is kept with the stored operand, which begins at `from`. Data with another `key` are not shared. If
 * *is_filled, an earlier job filled the memory, and the lane's stream waits for that job. Otherwise the
 * caller enqueues kernels that fill the memory, and then calls mm_cuda_note_derived. NULL: the caller derives
 * the data for this job alone. The first job gets NULL, because many operands are used once. */
void *mm_cuda_acquire_derived(struct mm_lane *lane, unsigned slot, const void *from, uint64_t key,
                              size_t bytes, bool *is_filled);

/* Notes that the memory of mm_cuda_acquire_derived is filled once the lane's stream has run the work enqueued
 * so far. */
cudaError_t mm_cuda_note_derived(struct mm_lane *lane, unsigned slot);

/* Drops the device's copies, except only copies, and all derived data. No running job uses any of them.
 * for_good: drops only copies too, because the device will be closed. */
void mm_cuda_drop_copies(struct mm_cuda_device *device, bool for_good);

__END_DECLS
