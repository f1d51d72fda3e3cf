/* The device memory of jobs that are launched together: acquires all of it, releases it, prepares another try
 * if there is too little, and says how much was needed and free. The thread of the device's lanes calls these
 * functions. */
#pragma once

#include "gpu/cuda/device.h"

__BEGIN_DECLS

/* Addresses of a job's matrices in device memory; undefined for a matrix that a shared launch uses in
 * host memory. The memory belongs to the lane (workspace), to stored values (device copies) or to the job
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

/* Device bytes that a job needs by this plan: C, the check, the figures, workspace, and operands, except
 * those that it reads in host memory and those that only this device has. */
size_t mm_cuda_needed_bytes(const struct mm_job *job, const struct mm_plan *plan);

/* Acquires what the jobs need by `plan`, in the order of the lane's stream: memory for C if C stays on the
 * device, device copies of stored operands, and one workspace for everything else, also lane->scratch. Stored
 * operands are copied, and count in uploaded_bytes. MM_NO_DEVICE_MEMORY; MM_STORE_FULL if C may not stay on
 * the device; MM_DEVICE_FAILED. After a failure the caller waits for the stream and calls
 * mm_cuda_release_memory. */
enum mm_status mm_cuda_acquire_memory(struct mm_lane *lane, struct mm_job *const *jobs, unsigned count,
                                      const struct mm_plan *plan, struct mm_cuda_memory *memory,
                                      struct mm_error *error);

/* Releases the memory of jobs that could not begin. The lane keeps its workspace, and stored values their
 * device copies, until memory is short. */
void mm_cuda_release_memory(struct mm_job *const *jobs, unsigned count);

/* The state of retries. Begins as zeros, with `lane` and, for one job, `job` and `plan` set. */
struct mm_cuda_retry {
    struct mm_lane *lane;
    const struct mm_job *job; /* NULL if there are several jobs, or none */
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

/* Sets the errors of jobs that found no device memory: MM_NO_DEVICE_MEMORY with the bytes that each job
 * needs, and the free bytes. The jobs hold no memory. */
void mm_cuda_fail_job_memory(struct mm_lane *lane, struct mm_job *const *jobs, unsigned count,
                             const struct mm_plan *plan);

__END_DECLS
