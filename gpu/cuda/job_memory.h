/* The device memory of jobs that are launched together. The functions acquire and release it, prepare a retry
 * if memory is short, and report the needed and the free bytes. The thread of the device's lanes calls
 * them. */
#pragma once

#include "gpu/cuda/device.h"

__BEGIN_DECLS

/* Addresses of a job's matrices in device memory. The address of a matrix that a shared launch uses in host
 * memory is undefined. The lane (workspace), a stored value (device copy) or the job (job->stored_c) owns the
 * memory. */
struct mm_cuda_placed {
    void *operands[MM_OPERANDS_MAX];
    void *c;
};

struct mm_cuda_memory {
    struct mm_cuda_placed placed[MM_BATCH_MAX]; /* for each job */
    void *check;                                /* mm_cuda_verify_bytes; used if the job is checked */
    void *figures;                              /* mm_cuda_reduce_bytes; used if the job reduces C */
};

/* Returns the device bytes that a job needs with this plan: for C, the check, the figures, the plan's
 * workspace, and operands. Operands that the job reads in host memory, or that only this device has, do not
 * count. */
size_t mm_cuda_needed_bytes(const struct mm_job *job, const struct mm_plan *plan);

/* Acquires the device memory of the jobs in the order of the lane's stream, and sets lane->scratch. C that
 * stays on the device and stored operands get device copies; all other data share the lane's workspace. Also
 * enqueues the copies of stored operands, and counts those from the host in uploaded_bytes. MM_STORE_FULL:
 * the device has no space for a C that stays. After a failure the caller waits for the stream and calls
 * mm_cuda_release_memory. */
enum mm_status mm_cuda_acquire_memory(struct mm_lane *lane, struct mm_job *const *jobs, unsigned count,
                                      const struct mm_plan *plan, struct mm_cuda_memory *memory,
                                      struct mm_error *error);

/* Releases the memory of jobs that could not begin, and sets their counts of copied bytes to 0. The workspace
 * and the device copies of stored operands are kept until memory is short. */
void mm_cuda_release_memory(struct mm_job *const *jobs, unsigned count);

/* The state of retries. The caller sets `lane` and, for a single job, `job` and `plan`; the rest starts as
 * zeros. */
struct mm_cuda_retry {
    struct mm_lane *lane;
    const struct mm_job *job; /* NULL if there are several jobs, or none */
    struct mm_plan *plan;     /* plan of `job`; a retry may change it to a plan with less workspace */
    unsigned tries;
};

/* Prepares a retry after MM_NO_DEVICE_MEMORY: frees memory (step 1) or changes the plan (step 4). Returns
 * false if neither can help. All steps against a shortage of memory are, in order:
 *  1. Free unused memory (mm_cuda_trim).
 *  2. Try each of several jobs alone, until one begins (mm_cuda_begin).
 *  3. Wait until the device is idle, and try the job alone. The worker does this if mm_cuda_begin fails with
 *     MM_NO_DEVICE_MEMORY while other lanes are busy. Then step 1 also drops device copies of stored values.
 *  4. Plan the job with less workspace. This step is last, because such a plan may be many times slower and
 *     may change the last bits of the result. */
bool mm_cuda_prepare_retry(struct mm_cuda_retry *retry);

/* Sets the errors of jobs that got no device memory: MM_NO_DEVICE_MEMORY, with the bytes that each job needs
 * and the free bytes. The memory of the jobs was released before. */
void mm_cuda_fail_job_memory(struct mm_lane *lane, struct mm_job *const *jobs, unsigned count,
                             const struct mm_plan *plan);

__END_DECLS
