/* The device memory of jobs that are launched together. Only the thread that uses the lane calls these
 * functions, except mm_cuda_needed_bytes. */
#pragma once

#include "gpu/cuda/device.h"

__BEGIN_DECLS

/* The addresses of a job's matrices in device memory. An address is undefined if a shared launch uses the
 * matrix in host memory. The lane's workspace, a device copy or job->stored_c owns the memory. */
struct mm_cuda_placed {
    void *operands[MM_OPERANDS_MAX];
    void *c;
    void *sums; /* the product's sums, if a pass after a shared launch applies the epilogue */
};

struct mm_cuda_memory {
    struct mm_cuda_placed placed[MM_BATCH_MAX];
    void *check;   /* mm_cuda_verify_bytes long; used if the job is checked */
    void *figures; /* mm_cuda_reduce_bytes long; used if the job reduces C */
};

/* Returns the device bytes that a job with a plan needs. An operand does not count if the job reads the
 * operand from host memory, or if the operand is stored only on this device. Any thread. */
size_t mm_cuda_needed_bytes(const struct mm_job *job);

/* Acquires the jobs' device memory in the order of the lane's stream, sets lane->scratch, and enqueues the
 * copying of stored operands. Adds the bytes that are copied from the host to outcome.uploaded_bytes of each
 * job. MM_STORE_FULL if the device has no space for a C that stays on the device. After a failure, the caller
 * waits for the stream and calls mm_cuda_release_memory. */
enum mm_status mm_cuda_acquire_memory(struct mm_lane *lane, struct mm_job *const *jobs, unsigned count,
                                      struct mm_cuda_memory *memory, struct mm_error *error);

/* Releases the memory of jobs that could not begin, and sets their counts of copied bytes to 0. Keeps the
 * workspace and the copies of stored operands for later jobs. */
void mm_cuda_release_memory(struct mm_job *const *jobs, unsigned count);

/* The state of retries. The caller sets `lane` and `tries`, which begins at 0. For a single job, the caller
 * also sets `job`. */
struct mm_cuda_retry {
    struct mm_lane *lane;
    const struct mm_job *job; /* NULL if there are several jobs, or none */
    struct mm_tiling tiling;  /* rows is 0 until a retry chooses tiles */
    unsigned tries;
};

/* Whether the job needs more memory than job->device_bytes_max. Any thread. */
bool mm_cuda_exceeds_share(const struct mm_job *job);

/* Chooses tiles if mm_cuda_exceeds_share, and if the job can run in tiles. */
void mm_cuda_choose_tiles(struct mm_cuda_retry *retry);

/* Prepares a retry after MM_NO_DEVICE_MEMORY, by step 1 or 4 of this list. Other functions take steps 2
 * and 3. Returns false if steps 1 and 4 cannot help. The steps are tried in this order, until the job begins:
 * 1. Free unused memory (mm_cuda_trim).
 * 2. If several jobs failed together, try each job alone, until one begins (mm_cuda_begin).
 * 3. Wait until the device is idle, and try the job alone (gpu/queue/worker_thread.c). On an idle device,
 *    step 1 also drops device copies of stored matrices.
 * 4. Run the job in tiles (tiles.h), with most of the free memory. */
bool mm_cuda_prepare_retry(struct mm_cuda_retry *retry);

/* Sets the jobs' errors to MM_NO_DEVICE_MEMORY, with the needed and the free bytes. Call this after
 * mm_cuda_release_memory. */
void mm_cuda_fail_job_memory(struct mm_lane *lane, struct mm_job *const *jobs, unsigned count);

__END_DECLS
