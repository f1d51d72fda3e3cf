/* Stored matrices in the memory of a CUDA device: copies of elements that lie elsewhere, only copies, and
 * what variants derive from either. The thread of the device's lanes calls these functions. */
#pragma once

#include "gpu/cuda/device.h"

__BEGIN_DECLS

/* Sets *data to the device's copy of a stored operand, which is complete once the lane's stream gets there.
 * Makes the copy if there is none, and adds the bytes that come from the host to *copied_bytes. *data is NULL
 * if the operand is not stored or is empty, or if there is no memory for a copy; the caller then copies the
 * operand for this job alone. MM_DEVICE_FAILED if only a failed device has the operand. */
enum mm_status mm_cuda_acquire_operand(const struct mm_source *source, struct mm_lane *lane,
                                       size_t *copied_bytes, void **data, struct mm_error *error);

/* Enqueues the copy of a stored matrix to device memory, from the host or from the device that has it. */
cudaError_t mm_cuda_copy_stored(const struct mm_stored *value, void *to, const struct mm_lane *lane);

/* Memory for a stored matrix that the device alone will have, in the order of the lane's stream: *copy is the
 * caller's, who releases it or passes it to the store. MM_STORE_FULL if the device would have more than
 * mm_device_stored_bytes_max of such; MM_NO_DEVICE_MEMORY; MM_INTERNAL if host memory runs out. */
enum mm_status mm_cuda_acquire_copy_on(size_t bytes, struct mm_lane *lane, struct mm_device_copy **copy,
                                       struct mm_error *error);

/* Memory for what a variant derives from an operand of the lane's job (slot 0: A, 1: B). The memory is kept
 * with the stored operand, all of which lies at `from`. `key` names the derivation. If *is_filled, an earlier
 * job has filled the memory, and the lane's stream waits for that. Else the caller enqueues the kernels that
 * fill the memory, and then calls mm_cuda_note_derived. NULL: derive it for this job alone. The first job
 * that asks gets NULL too, because many operands are used once. */
void *mm_cuda_acquire_derived(struct mm_lane *lane, unsigned slot, const void *from, uint64_t key,
                              size_t bytes, bool *is_filled);
cudaError_t mm_cuda_note_derived(struct mm_lane *lane, unsigned slot);

/* Drops the device's copies, except only copies, and what was derived. No job under way uses any of them.
 * for_good: the device will be closed, so only copies are dropped too. */
void mm_cuda_drop_copies(struct mm_cuda_device *device, bool for_good);

__END_DECLS
