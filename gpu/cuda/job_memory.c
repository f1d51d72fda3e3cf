/* Acquires and releases the device memory of jobs, and prepares another try if it is short. It enqueues
 * copies of stored operands, and knows no kernel. */
#include "gpu/cuda/job_memory.h"
#include "gpu/cuda/batch.h"
#include "gpu/cuda/memory.h"
#include "gpu/cuda/device_copy.h"
#include "gpu/cuda/stream.h"
#include "gpu/store/store.h"

enum { A, B, C };

static const struct mm_source *source_of(const struct mm_job *job, unsigned index) {
    return index == A ? &job->a_source : &job->b_source;
}

/* Whether the matrix is stored, and only this device has its elements. */
static bool is_only_here(const struct mm_job *job, const struct mm_plan *plan, unsigned index) {
    const struct mm_source *source = source_of(job, index);
    return index != C && source->kind == MM_SOURCE_STORED && source->stored->only_copy != NULL &&
           source->stored->only_copy->device == plan->device;
}

/* Bytes of a matrix for which the job needs new device memory. A shared launch uses some matrices in host
 * memory. */
static size_t matrix_bytes(const struct mm_job *job, const struct mm_plan *plan, unsigned index) {
    const struct mm_product *product = &job->product;
    const struct mm_matrix *matrix = index == A ? &product->a : index == B ? &product->b : &product->c;
    const bool is_used_on_host =
        job->work.batch_key != 0 &&
        (index == C ? matrix->data != NULL : mm_cuda_reads_in_place(job, source_of(job, index)));
    return is_used_on_host || is_only_here(job, plan, index)
               ? 0
               : mm_cuda_aligned(matrix->rows * matrix->cols * mm_dtype_bytes(matrix->dtype));
}

static size_t check_bytes(const struct mm_job *job) {
    return job->verify ? mm_cuda_aligned(mm_cuda_verify_bytes(&job->product)) : 0;
}

static size_t figures_bytes(const struct mm_job *job) {
    return job->reduces ? mm_cuda_aligned(mm_cuda_reduce_bytes()) : 0;
}

/* Bytes for the check, figures and workspace. A shared launch has none of these. */
static size_t bytes_beside(const struct mm_job *job, const struct mm_plan *plan) {
    return job->work.batch_key != 0 ? 0 : check_bytes(job) + figures_bytes(job) + plan->workspace_bytes;
}

size_t mm_cuda_needed_bytes(const struct mm_job *job, const struct mm_plan *plan) {
    return matrix_bytes(job, plan, A) + matrix_bytes(job, plan, B) + matrix_bytes(job, plan, C) +
           bytes_beside(job, plan);
}

/* Acquires memory that outlives the job: for C if it stays on the device, and device copies of stored
 * operands. The address of another matrix becomes NULL. */
static enum mm_status acquire_kept(struct mm_lane *lane, struct mm_job *job, void **matrices,
                                   struct mm_error *error) {
    enum mm_status status = MM_OK;
    matrices[C] = NULL;
    if (job->stores_c)
        status = mm_cuda_acquire_copy_on(mm_matrix_bytes(&job->product.c), lane, &job->stored_c, error);
    if (status == MM_OK && job->stores_c)
        matrices[C] = job->stored_c->data;
    for (unsigned index = A; index <= B && status == MM_OK; index++)
        status = mm_cuda_acquire_operand(source_of(job, index), lane, &job->outcome.uploaded_bytes,
                                         &matrices[index], error);
    return status;
}

/* Places the job's other matrices in the workspace, from *at on, and moves *at past them. Copies stored
 * operands there that got no device copy. */
static cudaError_t place(struct mm_lane *lane, struct mm_job *job, const struct mm_plan *plan,
                         void **matrices, char **at) {
    cudaError_t code = cudaSuccess;
    for (unsigned index = A; index <= C; index++) {
        const size_t bytes = matrix_bytes(job, plan, index);
        if (matrices[index] != NULL)
            continue;
        matrices[index] = *at;
        *at += bytes;
        if (index == C || bytes == 0 || source_of(job, index)->kind != MM_SOURCE_STORED)
            continue;
        const struct mm_stored *value = source_of(job, index)->stored;
        job->outcome.uploaded_bytes += value->only_copy == NULL ? value->bytes : 0;
        if (code == cudaSuccess)
            code = mm_cuda_copy_stored(value, matrices[index], lane);
    }
    return code;
}

enum mm_status mm_cuda_acquire_memory(struct mm_lane *lane, struct mm_job *const *jobs, unsigned count,
                                      const struct mm_plan *plan, struct mm_cuda_memory *memory,
                                      struct mm_error *error) {
    size_t bytes = bytes_beside(jobs[0], plan);
    void *workspace = NULL;
    enum mm_status status = MM_OK;
    for (unsigned job = 0; job < count && status == MM_OK; job++) {
        void **matrices = memory->matrices[job];
        status = acquire_kept(lane, jobs[job], matrices, error);
        for (unsigned index = A; index <= C && status == MM_OK; index++)
            bytes += matrices[index] == NULL ? matrix_bytes(jobs[job], plan, index) : 0;
    }
    if (status == MM_OK && (bytes > 0 || jobs[0]->work.batch_key == 0))
        status = mm_cuda_workspace(lane, bytes, &workspace, error);
    if (status != MM_OK)
        return status;
    char *at = workspace;
    cudaError_t code = cudaSuccess;
    for (unsigned job = 0; job < count && code == cudaSuccess; job++)
        code = place(lane, jobs[job], plan, memory->matrices[job], &at);
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
        job->outcome.uploaded_bytes = job->outcome.downloaded_bytes = 0;
        if (job->stored_c != NULL)
            job->stored_c->release(job->stored_c);
        job->stored_c = NULL;
    }
}

/* Whether jobs are under way in another lane, which have memory. */
static bool is_beside_others(const struct mm_lane *lane) {
    bool is_beside = false;
    for (unsigned index = 0; index < MM_CUDA_LANES; index++) {
        const struct mm_lane *other = &lane->device->lanes[index];
        is_beside = is_beside || (other != lane && __atomic_load_n(&other->is_busy, __ATOMIC_RELAXED));
    }
    return is_beside;
}

/* Changes the plan to one that needs less workspace. False if there is none. */
static bool use_less_workspace(const struct mm_job *job, struct mm_plan *plan) {
    const struct mm_product product = mm_product_dense(&job->product);
    struct mm_plan frugal;
    if (job->work.batch_key != 0 ||
        mm_plan_make(plan->device, plan->variant, &product, true, &frugal, NULL) != MM_OK ||
        frugal.workspace_bytes >= plan->workspace_bytes)
        return false;
    *plan = frugal;
    return true;
}

bool mm_cuda_prepare_retry(struct mm_cuda_retry *retry) {
    if (retry->tries++ == 0) {
        mm_cuda_trim(retry->lane->device);
        return true;
    }
    return retry->job != NULL && !is_beside_others(retry->lane) &&
           use_less_workspace(retry->job, retry->plan);
}

void mm_cuda_fail_job_memory(struct mm_lane *lane, struct mm_job *const *jobs, unsigned count,
                             const struct mm_plan *plan) {
    struct mm_cuda_device *device = lane->device;
    if (!is_beside_others(lane))
        mm_cuda_drop_copies(device, false);       /* copies that only these jobs needed count as free too */
    cudaStreamSynchronize(device->direct.stream); /* now the pool counts released memory as free */
    for (unsigned index = 0; index < count; index++)
        mm_cuda_fail_memory(device, mm_cuda_needed_bytes(jobs[index], plan), &jobs[index]->work.error);
}
