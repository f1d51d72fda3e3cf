/* A CUDA device, for the files of this backend. Kernel files include only lane.h. Only `error` may be NULL.
 */
#pragma once

#include "gpu/device/backend.h"
#include "gpu/cuda/lane.h"

#include <sys/cdefs.h>
#include <sys/queue.h>

__BEGIN_DECLS

/* Lanes of a device: while one uploads, another computes, and another downloads. */
enum { MM_CUDA_LANES = 3 };

struct mm_cuda_device {
    struct mm_device head;   /* first, so a pointer to it is a pointer to this */
    cudaMemPool_t pool;      /* where all device memory comes from */
    size_t pitch_bytes_max;  /* the longest row stride of a two-dimensional copy */
    bool reads_locked_pages; /* its kernels find the host's locked pages at the host's addresses */
    struct mm_lane lanes[MM_CUDA_LANES];
    struct mm_lane direct;     /* for calls that run no job: acquire, upload, download, measure */
    struct mm_cuda_gate *gate; /* of the direct lane, for measure; owned */
    LIST_HEAD(mm_cuda_device_copies, mm_cuda_device_copy) copies; /* these two are device_copy.c's */
    size_t copy_bytes;                  /* of all device copies, and of what is derived from them */
    struct mm_cuda_device *next_opened; /* failure.c's */
};

/* Makes the device the calling thread's current device, which every call of CUDA needs. Any thread. */
enum mm_status mm_cuda_use(struct mm_device *head, struct mm_error *error);

/* Adds a device to the list of open devices. If one fails, mm_cuda_status checks all of them. Any thread. */
void mm_cuda_note_opened(struct mm_cuda_device *device);

/* Removes a device from the list of open devices, if it is there. Any thread. */
void mm_cuda_note_closed(const struct mm_cuda_device *device);

/* Turns the result of a CUDA call into a status: MM_OK for cudaSuccess, else a status with a sentence, in
 * which `doing` completes "failed while". If the device repeats the error, only a new process can use it:
 * MM_DEVICE_FAILED, and this device and all others that cannot go on are marked as failed. Else MM_INTERNAL.
 * If memory ran out, MM_NO_DEVICE_MEMORY by mm_cuda_fail_memory for 0 bytes, because CUDA does not say how
 * many it needed. */
enum mm_status mm_cuda_status(struct mm_cuda_device *device, cudaError_t code, const char *doing,
                              struct mm_error *error);

/* The backend's functions; gpu/device/backend.h has their contracts. */
extern const struct mm_page_locking mm_cuda_page_locking;
enum mm_status mm_cuda_count(unsigned *count, struct mm_error *error);
enum mm_status mm_cuda_open(unsigned index, struct mm_device **device, struct mm_error *error);
void mm_cuda_close(struct mm_device *device);
void mm_cuda_begin(struct mm_device *device, unsigned lane, struct mm_job *const *jobs, unsigned count);
void mm_cuda_end(struct mm_device *device, unsigned lane, struct mm_job *const *jobs, unsigned count);
bool mm_cuda_is_over(struct mm_device *device, unsigned lane);
enum mm_status mm_cuda_plan(const struct mm_product *product, struct mm_plan *plan, struct mm_error *error);
void mm_cuda_schedule(struct mm_job *job);
size_t mm_cuda_memory_free(const struct mm_device *device);
enum mm_status mm_cuda_acquire_copy(struct mm_device *device, size_t bytes, struct mm_device_copy **copy,
                                    struct mm_error *error);
enum mm_status mm_cuda_attributes(struct mm_device *device, const struct mm_plan *plan,
                                  struct mm_attributes *attributes, struct mm_error *error);
enum mm_status mm_cuda_acquire(struct mm_device *device, size_t bytes, void **memory, struct mm_error *error);
void mm_cuda_release(struct mm_device *device, void *memory);
enum mm_status mm_cuda_upload(struct mm_device *device, void *to_device, const void *from_host, size_t bytes,
                              struct mm_error *error);
enum mm_status mm_cuda_download(struct mm_device *device, void *to_host, const void *from_device,
                                size_t bytes, struct mm_error *error);
enum mm_status mm_cuda_fill(struct mm_device *device, void *memory, enum mm_dtype dtype, size_t count,
                            uint64_t seed, struct mm_error *error);
enum mm_status mm_cuda_measure(struct mm_device *device, const struct mm_plan *plan,
                               const struct mm_product *product, uint64_t *kernel_ns, struct mm_error *error);
enum mm_status mm_cuda_probe(struct mm_device *device, const struct mm_access *accesses, size_t count,
                             struct mm_access_time *times, struct mm_memory_speed *speed,
                             struct mm_error *error);

__END_DECLS
