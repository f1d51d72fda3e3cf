/* Acquires and releases the device memory of jobs, and prepares a retry if memory is short. */
#include "gpu/cuda/job_memory.h"
#include "gpu/cuda/batch.h"
#include "gpu/cuda/memory.h"
#include "gpu/cuda/device_copy.h"
#include "gpu/cuda/stream.h"
#include "gpu/cuda/tiles.h"
#include "gpu/store/store.h"

static size_t aligned_bytes(const struct mm_matrix *matrix) {
    return mm_cuda_aligned(mm_matrix_dense_bytes(matrix));
}

/* Whether the job reads a stored operand in the memory of its device, which has the only copy. */
static bool is_only_here(const struct mm_job *job, unsigned index) {
    const struct mm_source *source = &job->sources[index];
    return source->kind == MM_SOURCE_STORED &&
           mm_stored_find_part(source->stored, mm_job_reads(job, index), job->plan.device) != NULL;
}

/* Returns the device bytes to acquire for an operand. Returns 0 if the operand is stored on this device and
 * nowhere else, or if a shared launch reads the operand from host memory. */
static size_t operand_bytes(const struct mm_job *job, unsigned index) {
    const struct mm_source *source = &job->sources[index];
    const bool is_read_on_host = job->work.batch_key != 0 && mm_cuda_reads_in_place(job, source);
    const struct mm_matrix *operand = mm_product_operand(&job->product, index);
    if (is_only_here(job, index) || is_read_on_host || operand->rows == 0)
        return 0;
    return source->kind == MM_SOURCE_STORED ? mm_cuda_aligned(source->stored->bytes) : aligned_bytes(operand);
}

/* Returns the device bytes to acquire for C. Returns 0 if a shared launch writes C to host memory. */
static size_t c_bytes(const struct mm_job *job) {
    return job->work.batch_key != 0 && job->product.c.data != NULL ? 0 : aligned_bytes(&job->product.c);
}

/* Returns the device bytes of a job's sums. Only a job with an epilogue in a shared launch needs them. */
static size_t sums_bytes(const struct mm_job *job) {
    const struct mm_matrix *c = &job->product.c;
    const struct mm_matrix sums = mm_matrix_dense(mm_dtype_sum(job->product.a.dtype), c->rows, c->cols, NULL);
    return job->work.batch_key != 0 && job->product.epilogue.is_set ? aligned_bytes(&sums) : 0;
}

static size_t check_bytes(const struct mm_job *job) {
    return job->verify ? mm_cuda_aligned(mm_cuda_verify_bytes(&job->product)) : 0;
}

static size_t figures_bytes(const struct mm_job *job) {
    return job->reduces ? mm_cuda_aligned(mm_cuda_reduce_bytes()) : 0;
}

/* Returns the device bytes that a job needs besides its matrices. Jobs in shared launches need none. */
static size_t extra_bytes(const struct mm_job *job) {
    return job->work.batch_key != 0 ? 0 : check_bytes(job) + figures_bytes(job) + job->plan.workspace_bytes;
}

size_t mm_cuda_needed_bytes(const struct mm_job *job) {
    size_t bytes = c_bytes(job) + sums_bytes(job) + extra_bytes(job);
    for (unsigned index = 0; index < MM_OPERANDS_MAX; index++)
        bytes += operand_bytes(job, index);
    return bytes;
}

/* Acquires memory that is kept after the job ends: for a C that stays on the device, and for device copies of
 * stored operands. Sets the addresses of all other matrices in *placed to NULL. */
static enum mm_status acquire_lasting(struct mm_lane *lane, struct mm_job *job, struct mm_cuda_placed *placed,
                                      struct mm_error *error) {
    enum mm_status status = MM_OK;
    if (job->stores_c)
        status = mm_cuda_acquire_copy_on(mm_matrix_dense_bytes(&job->product.c), lane, &job->stored_c, error);
    placed->c = job->stored_c != NULL ? job->stored_c->data : NULL;
    for (unsigned index = 0; index < MM_OPERANDS_MAX && status == MM_OK; index++)
        status = mm_cuda_acquire_operand(job, index, lane, &placed->operands[index], error);
    return status;
}

/* Sets the missing addresses in *placed to memory of the workspace. *at is the workspace's first free
 * address, before and after the call. Also enqueues the copying of stored operands without a device copy. */
static cudaError_t place(struct mm_lane *lane, struct mm_job *job, struct mm_cuda_placed *placed, char **at) {
    cudaError_t code = cudaSuccess;
    for (unsigned index = 0; index < MM_OPERANDS_MAX; index++) {
        const struct mm_source *source = &job->sources[index];
        const size_t bytes = operand_bytes(job, index);
        if (placed->operands[index] != NULL)
            continue;
        placed->operands[index] = *at;
        *at += bytes;
        if (bytes == 0 || source->kind != MM_SOURCE_STORED)
            continue;
        job->outcome.uploaded_bytes += source->stored->only_copy == NULL ? source->stored->bytes : 0;
        if (code == cudaSuccess)
            code =
                mm_cuda_copy_stored(source->stored, 0, source->stored->bytes, placed->operands[index], lane);
    }
    if (placed->c == NULL) {
        placed->c = *at;
        *at += c_bytes(job);
    }
    placed->sums = *at;
    *at += sums_bytes(job);
    return code;
}

enum mm_status mm_cuda_acquire_memory(struct mm_lane *lane, struct mm_job *const *jobs, unsigned count,
                                      struct mm_cuda_memory *memory, struct mm_error *error) {
    size_t bytes = extra_bytes(jobs[0]);
    void *workspace = NULL;
    enum mm_status status = MM_OK;
    for (unsigned job = 0; job < count && status == MM_OK; job++) {
        struct mm_cuda_placed *placed = &memory->placed[job];
        status = acquire_lasting(lane, jobs[job], placed, error);
        for (unsigned index = 0; index < MM_OPERANDS_MAX && status == MM_OK; index++)
            bytes += placed->operands[index] == NULL ? operand_bytes(jobs[job], index) : 0;
        bytes += sums_bytes(jobs[job]) + (placed->c == NULL ? c_bytes(jobs[job]) : 0);
    }
    if (status == MM_OK && (bytes > 0 || jobs[0]->work.batch_key == 0))
        status = mm_cuda_workspace(lane, bytes, &workspace, error);
    if (status != MM_OK)
        return status;
    char *at = workspace;
    cudaError_t code = cudaSuccess;
    for (unsigned job = 0; job < count && code == cudaSuccess; job++)
        code = place(lane, jobs[job], &memory->placed[job], &at);
    if (jobs[0]->work.batch_key == 0) {
        memory->check = at;
        memory->figures = at + check_bytes(jobs[0]);
        lane->scratch = at + check_bytes(jobs[0]) + figures_bytes(jobs[0]);
    }
    return mm_cuda_status(lane->device, code, "copying a stored matrix to the device", error);
}

void mm_cuda_release_memory(struct mm_job *const *jobs, unsigned count) {
    for (unsigned index = 0; index < count; index++) {
        struct mm_job *job = jobs[index];
        job->outcome.uploaded_bytes = job->outcome.downloaded_bytes = job->outcome.peer_bytes = 0;
        if (job->stored_c != NULL)
            job->stored_c->release(job->stored_c);
        job->stored_c = NULL;
    }
}

/* Whether jobs run in other lanes, so more memory will be free when these jobs end. */
static bool are_others_busy(const struct mm_lane *lane) {
    bool are_busy = false;
    for (unsigned index = 0; index < MM_CUDA_LANES; index++) {
        const struct mm_lane *other = &lane->device->lanes[index];
        are_busy = are_busy || (other != lane && __atomic_load_n(&other->is_busy, __ATOMIC_RELAXED));
    }
    return are_busy;
}

bool mm_cuda_exceeds_share(const struct mm_job *job) {
    return job->device_bytes_max != 0 && mm_cuda_needed_bytes(job) > job->device_bytes_max;
}

/* Chooses tiles that need at most `bytes`. Returns false if there are none. */
static bool use_tiles(struct mm_cuda_retry *retry, size_t bytes) {
    struct mm_tiling tiling;
    if (!mm_cuda_find_tiles(retry->job, &retry->job->plan, bytes, &tiling))
        return false;
    retry->tiling = tiling;
    return true;
}

void mm_cuda_choose_tiles(struct mm_cuda_retry *retry) {
    if (retry->job != NULL && mm_cuda_exceeds_share(retry->job))
        (void)use_tiles(retry, retry->job->device_bytes_max);
}

/* Chooses tiles that fit in the free memory, except a sixteenth, because the pool may round up. Returns false
 * if the tiles that have failed would fit, too. */
static bool use_smaller_tiles(struct mm_cuda_retry *retry) {
    const size_t free_bytes = mm_cuda_memory_free(&retry->lane->device->head);
    const size_t bytes = free_bytes - free_bytes / 16;
    return retry->job->work.is_exclusive &&
           (retry->tiling.rows == 0 || mm_cuda_tiles_bytes(retry->job, &retry->tiling) > bytes) &&
           use_tiles(retry, bytes);
}

bool mm_cuda_prepare_retry(struct mm_cuda_retry *retry) {
    mm_cuda_trim(retry->lane->device);
    if (retry->tries++ == 0)
        return true;
    return retry->job != NULL && !are_others_busy(retry->lane) && use_smaller_tiles(retry);
}

void mm_cuda_fail_job_memory(struct mm_lane *lane, struct mm_job *const *jobs, unsigned count) {
    struct mm_cuda_device *device = lane->device;
    if (!are_others_busy(lane))
        mm_cuda_drop_copies(device, false);
    cudaStreamSynchronize(device->direct.stream); /* so the reported free bytes include released memory */
    for (unsigned index = 0; index < count; index++)
        mm_cuda_fail_memory(device, mm_cuda_needed_bytes(jobs[index]), &jobs[index]->work.error);
}
