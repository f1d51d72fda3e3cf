/* Copies of stored matrices in device memory, and data that variants derive from the copies. Only the thread
 * that runs the device's lanes calls these functions. Other threads may call mm_cuda_acquire_copy_on. */
#pragma once

#include "gpu/cuda/device.h"

/* Sets *data to the device copy of an operand of the job, for later work on the lane's stream. If the copy
 * does not have all elements that the job reads, enqueues the copying, and adds the bytes that are copied
 * from the host to the job's outcome.uploaded_bytes. But if lane->bands.in_panels, panels.c copies B. Clears
 * that member if the device has elements of B, or no memory for a copy. Sets *data to NULL if the operand is
 * not stored, is empty, or gets no memory. Then the caller must copy the operand for this job.
 * MM_DEVICE_FAILED if the operand is only on a device that has failed. */
enum mm_status mm_cuda_acquire_operand(struct mm_job *job, unsigned index, struct mm_lane *lane, void **data,
                                       struct mm_error *error);

/* Enqueues the copying of some bytes of a stored matrix to `to`, from host memory or from devices. The
 * bytes begin at the byte `first` of the matrix. */
cudaError_t mm_cuda_copy_stored(const struct mm_stored *value, size_t first, size_t bytes, void *to,
                                const struct mm_lane *lane);

/* Enqueues the copying of a block of a stored matrix, which is only on devices. `from` is the block as if the
 * data of only_copy had the whole value. */
cudaError_t mm_cuda_copy_stored_part(const struct mm_stored *value, const struct mm_matrix *to,
                                     const struct mm_matrix *from, const struct mm_lane *lane);

/* Acquires device memory, in the order of the lane's stream, for a stored matrix that will be only on this
 * device. The caller owns *copy, and releases *copy or passes *copy to the store. MM_STORE_FULL if all
 * matrices that are only on this device would exceed mm_device_stored_bytes_max. MM_NO_DEVICE_MEMORY if
 * device memory runs out. MM_INTERNAL if host memory runs out. Any thread that has a lane of its own may call
 * this. */
enum mm_status mm_cuda_acquire_copy_on(size_t bytes, struct mm_lane *lane, struct mm_device_copy **copy,
                                       struct mm_error *error);

/* Returns memory for data that a variant derives from operand A (slot 0) or B (slot 1) of the lane's job. In
 * tiles and in panels the memory belongs to the panel, and all launches that use the panel get it. Else this
 * is for an operand that is stored, and its device copy is at `from`. The memory is kept for later jobs that
 * pass an equal `key`. If *is_filled, an earlier job filled the memory, and the lane's stream waits for that
 * job. Otherwise the caller enqueues kernels that fill the memory, and then calls mm_cuda_note_derived.
 * Returns NULL if memory is short. Also returns NULL to the first job that uses the operand, because many
 * operands are used only once. */
void *mm_cuda_acquire_derived(struct mm_lane *lane, unsigned slot, const void *from, uint64_t key,
                              size_t bytes, bool *is_filled);

/* Call this after enqueueing the kernels that fill the memory of mm_cuda_acquire_derived. */
cudaError_t mm_cuda_note_derived(struct mm_lane *lane, unsigned slot);

/* Notes that the device copy has all elements of B that the lane's job reads, when the work that is enqueued
 * on the lane's stream so far has run. */
cudaError_t mm_cuda_note_copied(const struct mm_lane *lane);

/* Drops all derived data and all copies, but keeps matrices that are only on this device. If for_good, drops
 * these matrices too, because the device is being closed. Running jobs must not use the dropped memory. */
void mm_cuda_drop_copies(struct mm_cuda_device *device, bool for_good);
