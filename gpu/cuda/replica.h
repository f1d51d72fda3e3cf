/* Stored matrices in the memory of a CUDA device: copies of what lies elsewhere, homes of what lies here
 * alone, and what variants derive from either. For the thread of the device's lanes. */
#pragma once

#include "gpu/cuda/device.h"

__BEGIN_DECLS

/* Sets *data to where a stored operand lies in the device's memory, once the lane's stream gets there. Makes
 * a copy if there is none, and adds the bytes that come from the host to *copied_bytes. *data is NULL if the
 * operand is not stored or is empty, or if there is no memory for a copy; the caller then copies it for this
 * job alone. MM_DEVICE_FAILED if only a failed device has the operand. */
enum mm_status mm_cuda_hold_replica(const struct mm_source *source, struct mm_lane *lane,
                                    size_t *copied_bytes, void **data, struct mm_error *error);

/* Enqueues the copy of a stored matrix to device memory, from the host or from the device that has it. */
cudaError_t mm_cuda_copy_stored(const struct mm_stored *value, void *to, const struct mm_lane *lane);

/* As the backend's take_home, in the order of the lane's stream. */
enum mm_status mm_cuda_take_home(size_t bytes, struct mm_lane *lane, struct mm_replica **home,
                                 struct mm_error *error);

/* Memory for what a variant derives from an operand of the lane's job (slot 0: A, 1: B), kept with the
 * operand if that is stored, and is whole at `from`. `key` tells how it is derived. *is_filled: an earlier
 * job has filled it, and the lane's stream waits for that; else the caller enqueues what does, and then calls
 * mm_cuda_note_derived. NULL: derive it for this job alone; also of the first job that asks, since many
 * operands are used once. */
void *mm_cuda_take_derived(struct mm_lane *lane, unsigned slot, const void *from, uint64_t key, size_t bytes,
                           bool *is_filled);
cudaError_t mm_cuda_note_derived(struct mm_lane *lane, unsigned slot);

/* Drops the device's copies and what was derived, of which no job under way uses one; for_good: before the
 * device is closed, also what it alone has. */
void mm_cuda_drop_replicas(struct mm_cuda_device *device, bool for_good);

__END_DECLS
