/* A job on a lane: memory, upload, kernel, download, and the time of each. It knows no variant and
 * chooses none. */
#include "gpu/cuda/device.h"

#include <assert.h>
#include <string.h>

/* The product on dense matrices, which are not placed yet. Dense, because a row's unused end would
 * cost transfer and device memory, and may lie outside what the caller let us read. */
static struct mm_product dense(const struct mm_product *host) {
    struct mm_product product = *host;
    product.a = mm_matrix_dense(host->a.dtype, host->a.rows, host->a.cols, NULL);
    product.b = mm_matrix_dense(host->b.dtype, host->b.rows, host->b.cols, NULL);
    product.c = mm_matrix_dense(host->c.dtype, host->c.rows, host->c.cols, NULL);
    return product;
}

/* All three matrices lie in one piece of memory: one thing to take, to run out of, and to give back. */
static void place(struct mm_product *product, void *memory) {
    product->a.data = memory;
    product->b.data = (char *)product->a.data + mm_cuda_room(&product->a);
    product->c.data = (char *)product->b.data + mm_cuda_room(&product->b);
}

/* Calls the variant's launch for all but its work. Memory that a library or a kernel's code finds
 * missing may be what our own pool keeps, so it is tried once more after a trim. */
static enum mm_status rehearse(const struct mm_variant *variant, const struct mm_product *product,
                               struct mm_lane *lane, struct mm_error *error) {
    lane->purpose = MM_CUDA_REHEARSE;
    enum mm_status status = variant->launch(product, lane, error);
    if (status == MM_NO_DEVICE_MEMORY) {
        mm_cuda_trim(lane->device);
        status = variant->launch(product, lane, error);
    }
    lane->purpose = MM_CUDA_RUN;
    return status;
}

cudaError_t mm_cuda_mark(struct mm_lane *lane, enum mm_cuda_mark point) {
    return cudaEventRecord(lane->marks[point], lane->stream);
}

/* Enqueues the job's work, from the first copy to the last. */
static enum mm_status enqueue(const struct mm_job *job, const struct mm_product *product,
                              struct mm_lane *lane, struct mm_error *error) {
    cudaError_t code = mm_cuda_copy_matrix(&product->a, &job->product.a, cudaMemcpyHostToDevice, lane);
    if (code == cudaSuccess)
        code = mm_cuda_copy_matrix(&product->b, &job->product.b, cudaMemcpyHostToDevice, lane);
    if (code == cudaSuccess)
        code = mm_cuda_mark(lane, MM_CUDA_UPLOADED);
    if (code != cudaSuccess)
        return mm_cuda_fail(lane->device, code, "copying a and b to the device", error);

    const enum mm_status status = job->ran->launch(product, lane, error);
    if (status != MM_OK)
        return status;

    code = mm_cuda_mark(lane, MM_CUDA_COMPUTED);
    if (code == cudaSuccess)
        code = mm_cuda_copy_matrix(&job->product.c, &product->c, cudaMemcpyDeviceToHost, lane);
    if (code == cudaSuccess)
        code = mm_cuda_mark(lane, MM_CUDA_DOWNLOADED);
    if (code != cudaSuccess)
        return mm_cuda_fail(lane->device, code, "copying c from the device", error);
    return MM_OK;
}

/* The three matrices'. */
static size_t room_of(const struct mm_product *product) {
    return mm_cuda_room(&product->a) + mm_cuda_room(&product->b) + mm_cuda_room(&product->c);
}

/* Memory beside the product's matrices. */
struct scratch {
    size_t bytes;
    size_t saved_bytes; /* that it can be less */
};

/* A variant that cannot say has refused the product before, or will. */
static struct scratch scratch_of(const struct mm_variant *variant, const struct mm_product *product,
                                 struct mm_cuda_device *device) {
    struct mm_cuda_layout layout;
    const enum mm_status status = mm_cuda_describe(variant, product, device, &layout, NULL);
    return status == MM_OK ? (struct scratch){layout.scratch_bytes, layout.scratch_saved_bytes}
                           : (struct scratch){0};
}

/* So many bytes, with the variant's scratch memory behind them: less of it where there is no more. */
static enum mm_status take_memory(struct mm_lane *lane, size_t bytes, const struct scratch *scratch,
                                  void **memory, struct mm_error *error) {
    lane->scratch_bytes = scratch->bytes;
    enum mm_status status = mm_cuda_workspace(lane, bytes + lane->scratch_bytes, memory, error);
    if (status == MM_NO_DEVICE_MEMORY && scratch->saved_bytes > 0) {
        lane->scratch_bytes -= scratch->saved_bytes;
        status = mm_cuda_workspace(lane, bytes + lane->scratch_bytes, memory, error);
    }
    if (status == MM_OK)
        lane->scratch = (char *)*memory + bytes;
    return status;
}

/* What the job takes of the device's memory beside its matrices. */
static size_t check_bytes(const struct mm_job *job) {
    return job->verify ? mm_cuda_verify_bytes(&job->product) : 0;
}

/* The check comes when C is on its way to the host, so that no span has its time. */
static enum mm_status enqueue_check(const struct mm_product *product, void *memory, struct mm_lane *lane,
                                    struct mm_error *error) {
    const enum mm_status status = mm_cuda_verify(product, memory, lane, error);
    if (status != MM_OK)
        return status;
    const cudaError_t code = mm_cuda_mark(lane, MM_CUDA_VERIFIED);
    if (code != cudaSuccess)
        return mm_cuda_fail(lane->device, code, "checking a product", error);
    return MM_OK;
}

static enum mm_status begin_one(struct mm_lane *lane, struct mm_job *job, struct mm_error *error) {
    struct mm_product product = dense(&job->product);
    void *memory = NULL;
    assert(job->ran->launch != NULL);
    enum mm_status status = rehearse(job->ran, &product, lane, error);
    if (status != MM_OK)
        return status;

    /* Taking memory counts as part of the upload: it is where a large first job's time goes. */
    const cudaError_t code = mm_cuda_mark(lane, MM_CUDA_BEGUN);
    if (code != cudaSuccess)
        return mm_cuda_fail(lane->device, code, "beginning a job", error);
    const size_t bytes = room_of(&product);
    const size_t check = mm_cuda_aligned(check_bytes(job));
    const struct scratch scratch = scratch_of(job->ran, &product, lane->device);
    status = take_memory(lane, bytes + check, &scratch, &memory, error);
    if (status != MM_OK)
        return status;
    place(&product, memory);
    status = enqueue(job, &product, lane, error);
    if (status == MM_OK && job->verify)
        status = enqueue_check(&product, (char *)memory + bytes, lane, error);
    if (status != MM_OK) {
        cudaStreamSynchronize(lane->stream); /* nothing touches the caller's matrices any more */
        return status;
    }
    lane->first = MM_CUDA_BEGUN;
    lane->last = job->verify ? MM_CUDA_VERIFIED : MM_CUDA_DOWNLOADED;
    job->batched = 1;
    job->uploaded_bytes = mm_matrix_bytes(&product.a) + mm_matrix_bytes(&product.b);
    job->downloaded_bytes = mm_matrix_bytes(&product.c);
    return MM_OK;
}

/* Whether any of the jobs is under way. */
static bool any_begun(struct mm_job *const *jobs, unsigned count) {
    for (unsigned index = 0; index < count; index++)
        if (jobs[index]->error.status == MM_OK)
            return true;
    return false;
}

/* A job that may go with others goes by their way when it is alone as well: it is the shorter one. */
void mm_cuda_begin(struct mm_device *head, unsigned index, struct mm_job *const *jobs, unsigned count) {
    struct mm_cuda_device *device = (struct mm_cuda_device *)head;
    struct mm_lane *lane = &device->lanes[index];
    struct mm_error error;
    assert(index < MM_CUDA_LANES);
    assert(count == 1 || jobs[0]->batch_key != 0);
    lane->path->kind = MM_PATH_NONE;
    enum mm_status status = mm_cuda_use(head, &error);
    if (status == MM_OK && jobs[0]->batch_key != 0) {
        mm_cuda_begin_batch(lane, jobs, count);
    } else {
        if (status == MM_OK)
            status = begin_one(lane, jobs[0], &error);
        if (status != MM_OK)
            for (unsigned job = 0; job < count; job++)
                jobs[job]->error = error;
    }
    __atomic_store_n(&lane->is_busy, any_begun(jobs, count), __ATOMIC_RELAXED);
}

/* Nanoseconds from one mark to the next; CUDA tells them as milliseconds, in steps of about 500 ns. */
static cudaError_t span(const struct mm_lane *lane, enum mm_cuda_mark from, uint64_t *span_ns) {
    float ms = 0.0f;
    const cudaError_t code = cudaEventElapsedTime(&ms, lane->marks[from], lane->marks[from + 1]);
    if (code == cudaSuccess)
        *span_ns = (uint64_t)((double)ms * 1e6 + 0.5);
    return code;
}

bool mm_cuda_is_over(struct mm_device *head, unsigned index) {
    const struct mm_lane *lane = &((struct mm_cuda_device *)head)->lanes[index];
    if (mm_cuda_use(head, NULL) != MM_OK || cudaEventQuery(lane->marks[lane->last]) != cudaErrorNotReady)
        return true;
    (void)cudaGetLastError(); /* else who asks for the last error later is told of this one */
    return false;
}

/* The spans of what is over in the lane. */
static cudaError_t read_spans(const struct mm_lane *lane, uint64_t *span_ns) {
    cudaError_t code = cudaSuccess;
    span_ns[MM_SPAN_UPLOAD] = span_ns[MM_SPAN_DOWNLOAD] = 0;
    if (lane->first == MM_CUDA_BEGUN)
        code = span(lane, MM_CUDA_BEGUN, &span_ns[MM_SPAN_UPLOAD]);
    if (code == cudaSuccess)
        code = span(lane, MM_CUDA_UPLOADED, &span_ns[MM_SPAN_KERNEL]);
    if (code == cudaSuccess && lane->last >= MM_CUDA_DOWNLOADED)
        code = span(lane, MM_CUDA_COMPUTED, &span_ns[MM_SPAN_DOWNLOAD]);
    return code;
}

static cudaError_t read_verification(const struct mm_lane *lane, struct mm_verification *verification) {
    *verification = *lane->verification;
    return span(lane, MM_CUDA_DOWNLOADED, &verification->took_ns);
}

void mm_cuda_end(struct mm_device *head, unsigned index, struct mm_job *const *jobs, unsigned count) {
    struct mm_cuda_device *device = (struct mm_cuda_device *)head;
    struct mm_lane *lane = &device->lanes[index];
    uint64_t span_ns[MM_SPAN_COUNT] = {0};
    struct mm_error error = {.status = MM_OK};
    assert(index < MM_CUDA_LANES);
    if (mm_cuda_use(head, &error) == MM_OK) {
        cudaError_t code = cudaEventSynchronize(lane->marks[lane->last]);
        if (code == cudaSuccess)
            code = read_spans(lane, span_ns);
        if (code == cudaSuccess && lane->last == MM_CUDA_VERIFIED)
            code = read_verification(lane, &jobs[0]->verification);
        if (code != cudaSuccess)
            mm_cuda_fail(device, code, "running a job", &error);
    }
    for (unsigned job = 0; job < count; job++) {
        memcpy(&jobs[job]->span_ns[MM_SPAN_UPLOAD], &span_ns[MM_SPAN_UPLOAD],
               (MM_SPAN_DOWNLOAD - MM_SPAN_UPLOAD + 1) * sizeof span_ns[0]);
        jobs[job]->error = error;
        jobs[job]->path = *lane->path;
    }
    mm_cuda_leave_workspace(lane);
    __atomic_store_n(&lane->is_busy, false, __ATOMIC_RELAXED);
}

/* Beside it another of its size might find no memory, where it would by itself. */
bool mm_cuda_wants_all(struct mm_device *device, const struct mm_variant *ran, const struct mm_job *job) {
    const struct mm_product product = dense(&job->product);
    const size_t bytes = room_of(&product);
    const struct scratch scratch = scratch_of(ran, &product, (struct mm_cuda_device *)device);
    return bytes + check_bytes(job) + scratch.bytes > mm_cuda_large_bytes(device);
}

static enum mm_status run_once(const struct mm_variant *variant, const struct mm_product *product,
                               struct mm_lane *lane, struct mm_error *error) {
    const enum mm_status status = variant->launch(product, lane, error);
    const cudaError_t waited = cudaStreamSynchronize(lane->stream);
    if (status == MM_OK && waited != cudaSuccess)
        return mm_cuda_fail(lane->device, waited, "running a kernel", error);
    return status;
}

static enum mm_status measure_once(const struct mm_variant *variant, const struct mm_product *product,
                                   struct mm_lane *lane, uint64_t *kernel_ns, struct mm_error *error) {
    struct mm_cuda_device *device = lane->device;
    enum mm_status status = MM_OK;
    cudaError_t code = mm_cuda_gate_close(device->gate, lane->stream);
    if (code == cudaSuccess)
        code = mm_cuda_mark(lane, MM_CUDA_UPLOADED);
    if (code == cudaSuccess)
        status = variant->launch(product, lane, error);
    if (code == cudaSuccess)
        code = mm_cuda_mark(lane, MM_CUDA_COMPUTED);
    mm_cuda_gate_open(device->gate);
    /* Waited for in any case, so that the caller's memory is free of us when this returns. */
    const cudaError_t waited = cudaStreamSynchronize(lane->stream);
    if (status != MM_OK)
        return status;
    if (code == cudaSuccess)
        code = waited;
    if (code == cudaSuccess)
        code = span(lane, MM_CUDA_UPLOADED, kernel_ns);
    if (code != cudaSuccess)
        status = mm_cuda_fail(device, code, "measuring a kernel", error);
    return status;
}

/* A time that the host's may be in, since the gate gave up, is measured once more: the library has loaded its
 * kernel by then, or the host was held up. Where every launch waits, under a debugger, that is no better. */
static enum mm_status measure_surely(const struct mm_variant *variant, const struct mm_product *product,
                                     struct mm_lane *lane, uint64_t *kernel_ns, struct mm_error *error) {
    const enum mm_status status = measure_once(variant, product, lane, kernel_ns, error);
    if (status != MM_OK || !mm_cuda_gate_gave_up(lane->device->gate))
        return status;
    return measure_once(variant, product, lane, kernel_ns, error);
}

/* The caller has placed the matrices; the rest is kept for the next time, unless it is large. All of it is
 * taken: who measures wants to know of the variant as it is. */
static enum mm_status take_scratch(const struct mm_variant *variant, const struct mm_product *product,
                                   struct mm_lane *lane, struct mm_error *error) {
    lane->scratch_bytes = scratch_of(variant, product, lane->device).bytes;
    return lane->scratch_bytes == 0 ? MM_OK
                                    : mm_cuda_workspace(lane, lane->scratch_bytes, &lane->scratch, error);
}

enum mm_status mm_cuda_measure(struct mm_device *head, const struct mm_variant *variant,
                               const struct mm_product *product, uint64_t *kernel_ns,
                               struct mm_error *error) {
    struct mm_lane *lane = &((struct mm_cuda_device *)head)->direct;
    assert(variant->launch != NULL);
    enum mm_status status = mm_cuda_use(head, error);
    if (status == MM_OK)
        status = rehearse(variant, product, lane, error);
    if (status == MM_OK)
        status = take_scratch(variant, product, lane, error);
    if (status == MM_OK)
        status = kernel_ns == NULL ? run_once(variant, product, lane, error)
                                   : measure_surely(variant, product, lane, kernel_ns, error);
    mm_cuda_leave_workspace(lane);
    return status;
}
