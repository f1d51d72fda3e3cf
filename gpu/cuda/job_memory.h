/* The device memory of jobs that are launched together: one function acquires all of it, one releases it,
 * one decides what to try when there is too little, and one message says how much was needed and free.
 * For the thread of the device's lanes. */
#pragma once

#include "gpu/cuda/device.h"

__BEGIN_DECLS

/* Addresses of a job's matrices in device memory; undefined of a matrix that a shared launch uses in host
 * memory. They belong to the lane (workspace), to the store (copies of stored operands) or to the job
 * (job->stored_c). */
struct mm_cuda_placed {
    void *operands[MM_OPERANDS_MAX];
    void *c;
};

struct mm_cuda_memory {
    struct mm_cuda_placed placed[MM_BATCH_MAX]; /* of each job */
    void *check;                                /* of mm_cuda_verify_bytes, if the job is checked */
    void *figures;                              /* of mm_cuda_reduce_bytes, if the job reduces C */
};

/* Device bytes that a job needs by this plan: operands that it does not use in host memory and that are not
 * stored on this device alone, C, check, figures and workspace. */
size_t mm_cuda_needed_bytes(const struct mm_job *job, const struct mm_plan *plan);

/* Acquires what the jobs need by `plan`, in the order of the lane's stream: C that stays on the device,
 * copies of stored operands, and one workspace for everything else, which includes lane->scratch. Stored
 * operands are copied, and count in uploaded_bytes. MM_NO_DEVICE_MEMORY; MM_STORE_FULL if C may not stay; or
 * the device failed. After a failure the caller waits for the stream and calls mm_cuda_release_memory. */
enum mm_status mm_cuda_acquire_memory(struct mm_lane *lane, struct mm_job *const *jobs, unsigned count,
                                      const struct mm_plan *plan, struct mm_cuda_memory *memory,
                                      struct mm_error *error);

/* Releases what jobs hold that could not begin. The lane keeps its workspace and the store its copies until
 * memory is short. */
void mm_cuda_release_memory(struct mm_job *const *jobs, unsigned count);

/* What to try when memory is short. All zeros except lane and job: nothing was tried. */
struct mm_cuda_retry {
    struct mm_lane *lane;
    const struct mm_job *job; /* NULL: several jobs, or memory of no job */
    struct mm_plan *plan;     /* of `job`; changed to one with less workspace */
    unsigned tries;
};

/* Prepares another try after MM_NO_DEVICE_MEMORY: frees memory (step 1), or changes the plan (step 4). False
 * if nothing is left to try here. The order of all steps is:
 *  1. Free what nobody uses (mm_cuda_trim), and try again.
 *  2. Try each of several jobs alone, until one begins (mm_cuda_begin does that).
 *  3. Wait until the device is idle, and try the job alone. The worker does that with each job that begin
 *     leaves with MM_NO_DEVICE_MEMORY while other lanes are busy. Step 1 then also drops copies of stored
 *     values.
 *  4. Plan the job with less workspace. This comes last because such a plan may be many times slower and give
 *     other last bits. */
bool mm_cuda_prepare_retry(struct mm_cuda_retry *retry);

/* Sets the errors of jobs that found no memory and hold none: MM_NO_DEVICE_MEMORY with the bytes that each
 * job alone needs, and the free bytes. */
void mm_cuda_fail_job_memory(struct mm_lane *lane, struct mm_job *const *jobs, unsigned count,
                             const struct mm_plan *plan);

__END_DECLS
