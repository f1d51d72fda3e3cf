/* A job on a lane: memory, upload, kernel, download, and the time of each. It knows no variant and
 * chooses none. */
#include "gpu/cuda/device.h"

#include <assert.h>
#include <string.h>

enum { ALIGNMENT = 256 };

/* The product on dense matrices, which are not placed yet. Dense, because a row's unused end would
 * cost transfer and device memory, and may lie outside what the caller let us read. */
static struct mm_product dense(const struct mm_product *host) {
    struct mm_product product = *host;
    product.a = mm_matrix_dense(host->a.dtype, host->a.rows, host->a.cols, NULL);
    product.b = mm_matrix_dense(host->b.dtype, host->b.rows, host->b.cols, NULL);
    product.c = mm_matrix_dense(host->c.dtype, host->c.rows, host->c.cols, NULL);
    return product;
}

/* Bytes of a matrix up to where the next may begin. */
static size_t room(const struct mm_matrix *matrix) {
    return (mm_matrix_bytes(matrix) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* All three matrices lie in one piece of memory: one thing to take, to run out of, and to give back. */
static void place(struct mm_product *product, void *memory) {
    product->a.data = memory;
    product->b.data = (char *)product->a.data + room(&product->a);
    product->c.data = (char *)product->b.data + room(&product->b);
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

static cudaError_t mark(struct mm_lane *lane, enum mm_cuda_mark point) {
    return cudaEventRecord(lane->marks[point], lane->stream);
}

/* Enqueues the job's work, from the first copy to the last. */
static enum mm_status enqueue(const struct mm_job *job, const struct mm_product *product,
                              struct mm_lane *lane, struct mm_error *error) {
    cudaError_t code = mm_cuda_copy_matrix(&product->a, &job->product.a, cudaMemcpyHostToDevice, lane);
    if (code == cudaSuccess)
        code = mm_cuda_copy_matrix(&product->b, &job->product.b, cudaMemcpyHostToDevice, lane);
    if (code == cudaSuccess)
        code = mark(lane, MM_CUDA_UPLOADED);
    if (code != cudaSuccess)
        return mm_cuda_fail(lane->device, code, "copying a and b to the device", error);

    const enum mm_status status = job->ran->launch(product, lane, error);
    if (status != MM_OK)
        return status;

    code = mark(lane, MM_CUDA_COMPUTED);
    if (code == cudaSuccess)
        code = mm_cuda_copy_matrix(&job->product.c, &product->c, cudaMemcpyDeviceToHost, lane);
    if (code == cudaSuccess)
        code = mark(lane, MM_CUDA_DOWNLOADED);
    if (code != cudaSuccess)
        return mm_cuda_fail(lane->device, code, "copying c from the device", error);
    return MM_OK;
}

static enum mm_status begin_one(struct mm_device *head, unsigned index, struct mm_job *job) {
    struct mm_cuda_device *device = (struct mm_cuda_device *)head;
    struct mm_lane *lane = &device->lanes[index];
    struct mm_product product = dense(&job->product);
    void *memory = NULL;
    assert(index < MM_CUDA_LANES);
    assert(job->ran->launch != NULL);

    enum mm_status status = mm_cuda_use(head, &job->error);
    if (status == MM_OK)
        status = rehearse(job->ran, &product, lane, &job->error);
    if (status != MM_OK)
        return status;

    /* Taking memory counts as part of the upload: it is where a large first job's time goes. */
    const cudaError_t code = mark(lane, MM_CUDA_BEGUN);
    if (code != cudaSuccess)
        return mm_cuda_fail(device, code, "beginning a job", &job->error);
    status = mm_cuda_take(lane, room(&product.a) + room(&product.b) + room(&product.c), &memory, &job->error);
    if (status != MM_OK)
        return status;
    place(&product, memory);
    status = enqueue(job, &product, lane, &job->error);
    mm_cuda_give(lane, memory); /* in the stream's order: once the download is over */
    if (status != MM_OK) {
        cudaStreamSynchronize(lane->stream); /* nothing touches the caller's matrices any more */
        return status;
    }
    job->uploaded_bytes = mm_matrix_bytes(&product.a) + mm_matrix_bytes(&product.b);
    job->downloaded_bytes = mm_matrix_bytes(&product.c);
    return MM_OK;
}

/* Nanoseconds from one mark to the next; CUDA tells them as milliseconds, in steps of about 500 ns. */
static cudaError_t span(const struct mm_lane *lane, enum mm_cuda_mark from, uint64_t *span_ns) {
    float ms = 0.0f;
    const cudaError_t code = cudaEventElapsedTime(&ms, lane->marks[from], lane->marks[from + 1]);
    if (code == cudaSuccess)
        *span_ns = (uint64_t)((double)ms * 1e6 + 0.5);
    return code;
}

void mm_cuda_begin(struct mm_device *head, unsigned index, struct mm_job *const *jobs, unsigned count) {
    assert(count == 1);
    (void)begin_one(head, index, jobs[0]);
}

void mm_cuda_end(struct mm_device *head, unsigned index, struct mm_job *const *jobs, unsigned count) {
    struct mm_job *job = jobs[0];
    assert(count == 1);
    struct mm_cuda_device *device = (struct mm_cuda_device *)head;
    struct mm_lane *lane = &device->lanes[index];
    assert(index < MM_CUDA_LANES);
    job->batched = 1;
    if (mm_cuda_use(head, &job->error) != MM_OK)
        return;
    cudaError_t code = cudaStreamSynchronize(lane->stream);
    if (code == cudaSuccess)
        code = span(lane, MM_CUDA_BEGUN, &job->span_ns[MM_SPAN_UPLOAD]);
    if (code == cudaSuccess)
        code = span(lane, MM_CUDA_UPLOADED, &job->span_ns[MM_SPAN_KERNEL]);
    if (code == cudaSuccess)
        code = span(lane, MM_CUDA_COMPUTED, &job->span_ns[MM_SPAN_DOWNLOAD]);
    if (code == cudaSuccess)
        memset(&job->error, 0, sizeof job->error);
    else
        mm_cuda_fail(device, code, "running a job", &job->error);
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
        code = mark(lane, MM_CUDA_UPLOADED);
    if (code == cudaSuccess)
        status = variant->launch(product, lane, error);
    if (code == cudaSuccess)
        code = mark(lane, MM_CUDA_COMPUTED);
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
enum mm_status mm_cuda_measure(struct mm_device *head, const struct mm_variant *variant,
                               const struct mm_product *product, uint64_t *kernel_ns,
                               struct mm_error *error) {
    struct mm_cuda_device *device = (struct mm_cuda_device *)head;
    struct mm_lane *lane = &device->direct;
    assert(variant->launch != NULL);
    enum mm_status status = mm_cuda_use(head, error);
    if (status == MM_OK)
        status = rehearse(variant, product, lane, error);
    if (status == MM_OK && kernel_ns == NULL)
        return run_once(variant, product, lane, error);
    if (status == MM_OK)
        status = measure_once(variant, product, lane, kernel_ns, error);
    if (status == MM_OK && mm_cuda_gate_gave_up(device->gate))
        status = measure_once(variant, product, lane, kernel_ns, error);
    return status;
}
