/* Runs jobs on a lane: enqueues upload, kernels and download, and measures how long each of them takes. */
#include "gpu/cuda/memory.h"
#include "gpu/cuda/stream.h"
#include "gpu/cuda/batch.h"
#include "gpu/cuda/job_memory.h"
#include "gpu/cuda/panels.h"
#include "gpu/cuda/tiles.h"
#include "gpu/check/verify.h"
#include "gpu/queue/progress.h"

#include <assert.h>
#include <math.h>
#include <string.h>

cudaError_t mm_cuda_mark(struct mm_lane *lane, enum mm_cuda_mark point) {
    lane->last = point;
    return cudaEventRecord(lane->marks[point], lane->stream);
}

/* Enqueues the copying or the generation of an operand. Does nothing for a stored operand, because
 * mm_cuda_acquire_memory has already enqueued the copy. */
static cudaError_t upload(struct mm_job *job, const struct mm_product *product, unsigned index,
                          struct mm_lane *lane) {
    const struct mm_source *source = &job->sources[index];
    const struct mm_matrix *to = mm_product_operand(product, index);
    if (source->kind == MM_SOURCE_STORED)
        return cudaSuccess;
    if (mm_source_is_generated(source))
        return mm_cuda_generate_operand(source, to, lane);
    job->outcome.uploaded_bytes += mm_matrix_bytes(to);
    return mm_cuda_copy_matrix(to, mm_product_operand(&job->product, index), cudaMemcpyHostToDevice, lane);
}

static enum mm_status enqueue_upload(struct mm_job *job, const struct mm_product *product,
                                     struct mm_lane *lane, struct mm_error *error) {
    cudaError_t code = cudaSuccess;
    for (unsigned index = 0; index < MM_OPERANDS_MAX && code == cudaSuccess; index++)
        code = upload(job, product, index, lane);
    if (code == cudaSuccess)
        code = mm_cuda_mark(lane, MM_CUDA_UPLOADED);
    return mm_cuda_status(lane->device, code, "copying the operands to the device", error);
}

/* Enqueues the check of the next products of a stack, at most PRODUCTS_MAX. So, if the products are small,
 * the check takes at most a few milliseconds. */
static enum mm_status enqueue_check(struct mm_lane *lane, struct mm_error *error) {
    enum { PRODUCTS_MAX = 64 };
    struct mm_cuda_bands *bands = &lane->bands;
    size_t *checked = &bands->job->progress.checked;
    const size_t count = mm_size_min(mm_product_count(&bands->product) - *checked, PRODUCTS_MAX);
    const enum mm_arithmetic arithmetic = mm_variant_arithmetic(bands->job->plan.variant, false);
    const enum mm_status status =
        mm_cuda_verify(&bands->product, arithmetic, *checked, count, bands->seed, bands->check, lane, error);
    if (status != MM_OK)
        return status;
    *checked += count;
    return mm_cuda_status(lane->device, mm_cuda_mark(lane, MM_CUDA_VERIFIED), "checking a product", error);
}

static cudaError_t download(struct mm_job *job, const struct mm_matrix *c, const struct mm_lane *lane) {
    const struct mm_matrix *to = &job->product.c;
    job->outcome.downloaded_bytes = mm_job_returned_bytes(job);
    if (to->data == NULL)
        return cudaSuccess;
    if (job->part != NULL && !job->keeps_c && !mm_window_is_all(job->part))
        return mm_cuda_copy_part(to->data, c->data, c->dtype, job->part, lane);
    return mm_cuda_copy_matrix(to, c, cudaMemcpyDeviceToHost, lane);
}

/* Enqueues the reduction, the download and the first check. The download time includes the reduction. */
static enum mm_status enqueue_download(struct mm_lane *lane, struct mm_error *error) {
    const struct mm_cuda_bands *bands = &lane->bands;
    const struct mm_matrix *c = &bands->product.c;
    struct mm_job *job = bands->job;
    *lane->reduction = mm_reduction_none();
    if (job->reduces && mm_cuda_reduce(c, job->part, bands->figures, lane, error) != MM_OK)
        return error->status;
    cudaError_t code = download(job, c, lane);
    if (code == cudaSuccess)
        code = mm_cuda_mark(lane, MM_CUDA_DOWNLOADED);
    const enum mm_status status = mm_cuda_status(lane->device, code, "copying c from the device", error);
    return status == MM_OK && job->verify ? enqueue_check(lane, error) : status;
}

#define BAND_NS 100e6

/* Whether a band of `rows` rows would use the kernel and the splits of k of the whole product. If so,
 * dividing the product does not change the bits of C. */
static bool keeps_plan(const struct mm_plan *whole, const struct mm_product *product, size_t rows) {
    const struct mm_product band = mm_product_part(product, whole->variant->op, 0, rows, 0, product->n);
    struct mm_plan plan;
    return mm_plan_make(whole->device, whole->variant, &band, &plan, NULL) == MM_OK &&
           plan.layout.kernel == whole->layout.kernel && plan.layout.block_rows == whole->layout.block_rows &&
           plan.layout.split_depth == whole->layout.split_depth && plan.splits == whole->splits &&
           plan.workspace_bytes <= whole->workspace_bytes;
}

/* Returns how many products of a stack together take about BAND_NS. If each product needs its own launch,
 * returns at most LOOP_MAX, to limit the host's time. cuBLAS gets all products at once. */
static size_t band_products(const struct mm_plan *plan, const struct mm_product *product) {
    enum { LOOP_MAX = 1024 };
    const size_t count = mm_product_count(product);
    const bool is_library = plan->layout.block_rows == 0 && plan->launch_stack != NULL;
    const double each_ns = mm_forecast_kernel_ns(plan->device, plan->variant, product) / (double)count;
    const size_t most = plan->launch_stack == NULL ? mm_size_min(count, LOOP_MAX) : count;
    if (is_library || each_ns * (double)most <= BAND_NS)
        return most;
    return (size_t)fmax(BAND_NS / each_ns, 1.0);
}

size_t mm_cuda_band_rows(const struct mm_plan *plan, const struct mm_product *product) {
    const struct mm_product one = mm_product_item(product, 0);
    const double expected_ns = mm_forecast_kernel_ns(plan->device, plan->variant, &one);
    const size_t block_rows = plan->layout.block_rows;
    if (expected_ns <= BAND_NS || block_rows == 0)
        return product->m;
    for (double count = ceil(expected_ns / BAND_NS); count > 1.0; count = floor(count / 2.0)) {
        const size_t blocks = (size_t)ceil((double)product->m / count / (double)block_rows);
        const size_t rows = blocks * block_rows;
        const size_t rest = product->m % rows;
        if (rows < product->m && keeps_plan(plan, product, rows) &&
            (rest == 0 || keeps_plan(plan, product, rest)))
            return rows;
    }
    return product->m;
}

/* Enqueues the next band. After the last band, also enqueues the download. */
static enum mm_status enqueue_band(struct mm_lane *lane, struct mm_error *error) {
    struct mm_cuda_bands *bands = &lane->bands;
    struct mm_progress *progress = &bands->job->progress;
    const struct mm_product *product = &bands->product;
    const bool is_whole = bands->rows == product->m;
    enum mm_status status;
    progress->items = is_whole ? mm_size_min(mm_product_count(product) - progress->item, bands->products) : 1;
    progress->rows = mm_size_min(product->m - progress->row, bands->rows);
    progress->cols = product->n;
    if (bands->in_panels) {
        status = mm_cuda_launch_panels(lane, error);
    } else if (is_whole) {
        status =
            mm_plan_launch_range(&bands->job->plan, product, progress->item, progress->items, lane, error);
    } else {
        const struct mm_product one = mm_product_item(product, progress->item);
        const struct mm_product band =
            mm_product_part(&one, bands->job->plan.variant->op, progress->row, progress->rows, 0, product->n);
        status = mm_plan_launch(&bands->job->plan, &band, lane, error);
    }
    if (status == MM_OK)
        status =
            mm_cuda_status(lane->device, mm_cuda_mark(lane, MM_CUDA_COMPUTED), "running a kernel", error);
    return status != MM_OK || mm_progress_end(progress, product, 0) ? status : enqueue_download(lane, error);
}

/* Whether bands or checks must still be enqueued. */
static bool has_bands_left(const struct mm_lane *lane) {
    const struct mm_cuda_bands *bands = &lane->bands;
    return bands->job != NULL && bands->error.status == MM_OK &&
           (mm_job_computes(bands->job) || mm_job_checks(bands->job));
}

/* Enqueues the next band, tile or check, unless the job was cancelled or its deadline has passed. Sets
 * bands.error on failure. Also calls mm_work_show_progress, so the watch does not take the job for hung while
 * other jobs use the device. */
static void enqueue_next(struct mm_lane *lane) {
    struct mm_cuda_bands *bands = &lane->bands;
    mm_work_show_progress(&bands->job->work);
    if (mm_work_is_cancelled(&bands->job->work))
        mm_fail(&bands->error, MM_STOPPING, "the job was cancelled before its end");
    else if (mm_work_is_late(&bands->job->work, mm_clock_ns()))
        mm_fail(&bands->error, MM_TIMEOUT, "the deadline passed before the job was over");
    else if (bands->tiling.rows > 0)
        (void)mm_cuda_enqueue_tile(lane, &bands->error);
    else if (mm_job_computes(bands->job))
        (void)enqueue_band(lane, &bands->error);
    else
        (void)enqueue_check(lane, &bands->error);
}

/* Enqueues the job up to its first band. The upload time includes acquiring memory, which may be slow. */
static enum mm_status enqueue(struct mm_lane *lane, struct mm_job *job, struct mm_error *error) {
    const struct mm_plan *plan = &job->plan;
    struct mm_product product = mm_job_device_product(job);
    struct mm_cuda_memory memory;
    enum mm_status status = mm_cuda_prepare(plan, &product, lane, error);
    if (status != MM_OK)
        return status;
    const cudaError_t code = mm_cuda_mark(lane, MM_CUDA_BEGUN);
    if (code != cudaSuccess)
        return mm_cuda_status(lane->device, code, "beginning a job", error);
    const size_t rows = mm_cuda_band_rows(plan, &product);
    lane->bands.in_panels = rows == product.m && mm_job_copies_in_panels(job, plan->device);
    status = mm_cuda_acquire_memory(lane, &job, 1, &memory, error);
    if (status != MM_OK)
        return status;
    for (unsigned index = 0; index < MM_OPERANDS_MAX; index++)
        mm_job_place_operand(job, &product, index, memory.placed[0].operands[index]);
    product.c.data = memory.placed[0].c;
    job->progress = (struct mm_progress){.item = 0};
    lane->bands = (struct mm_cuda_bands){.job = job,
                                         .product = product,
                                         .products = band_products(plan, &product),
                                         .rows = rows,
                                         .in_panels = lane->bands.in_panels,
                                         .seed = job->verify ? mm_verify_seed() : 0,
                                         .check = memory.check,
                                         .figures = memory.figures};
    status = enqueue_upload(job, &product, lane, error);
    return status == MM_OK ? enqueue_band(lane, error) : status;
}

/* Enqueues the first tiles of a job. */
static enum mm_status enqueue_tiles(const struct mm_cuda_retry *retry, struct mm_job *job,
                                    struct mm_error *error) {
    struct mm_lane *lane = retry->lane;
    job->progress = (struct mm_progress){.item = 0};
    lane->bands = (struct mm_cuda_bands){
        .job = job, .tiling = retry->tiling, .seed = job->verify ? mm_verify_seed() : 0};
    return mm_cuda_begin_tiles(lane, error);
}

/* Tries to begin the jobs as one launch. On failure, releases the jobs' device memory. A single job that has
 * a batch key begins as a batch of one job, because a batch takes less time. */
static enum mm_status try(const struct mm_cuda_retry *retry, struct mm_job *const *jobs, unsigned count,
                          struct mm_error *error) {
    struct mm_lane *lane = retry->lane;
    enum mm_status status;
    *lane->path = (struct mm_path){.kind = MM_PATH_NONE};
    lane->bands = (struct mm_cuda_bands){.job = NULL};
    lane->first = MM_CUDA_BEGUN;
    if (jobs[0]->work.batch_key != 0)
        status = mm_cuda_begin_batch(lane, jobs, count, error);
    else if (retry->tiling.rows > 0)
        status = enqueue_tiles(retry, jobs[0], error);
    else
        status = enqueue(lane, jobs[0], error);
    if (status == MM_OK)
        return MM_OK;
    mm_cuda_wait(lane); /* until then the streams may use the jobs' matrices */
    mm_cuda_release_memory(jobs, count);
    return status;
}

/* Begins one job, or several jobs as one launch, and retries if memory is short. On failure, no job begins,
 * and all jobs get the error. If several jobs fail with MM_STORE_FULL, changes the error to
 * MM_NO_DEVICE_MEMORY. Then begin_one tries each job alone, because one job may still fit. */
static enum mm_status begin(struct mm_lane *lane, struct mm_job *const *jobs, unsigned count) {
    struct mm_cuda_retry retry = {.lane = lane, .job = count == 1 ? jobs[0] : NULL};
    struct mm_error error;
    enum mm_status status;
    mm_cuda_choose_tiles(&retry);
    do
        status = try(&retry, jobs, count, &error);
    while (status == MM_NO_DEVICE_MEMORY && mm_cuda_prepare_retry(&retry));
    if (status == MM_STORE_FULL && count > 1)
        status = MM_NO_DEVICE_MEMORY;
    for (unsigned job = 0; job < count && status != MM_OK; job++)
        jobs[job]->work.error = error;
    if (status == MM_NO_DEVICE_MEMORY)
        mm_cuda_fail_job_memory(lane, jobs, count);
    return status;
}

/* Tries each job alone, until one begins. The worker begins the remaining jobs later. */
static enum mm_status begin_one(struct mm_lane *lane, struct mm_job *const *jobs, unsigned count) {
    enum mm_status status = MM_NO_DEVICE_MEMORY;
    for (unsigned job = 0; job < count && status != MM_OK; job++) {
        jobs[job]->work.error = (struct mm_error){.status = MM_OK};
        status = begin(lane, &jobs[job], 1);
    }
    return status;
}

void mm_cuda_begin(struct mm_device *head, unsigned index, struct mm_job *const *jobs, unsigned count) {
    struct mm_lane *lane = &((struct mm_cuda_device *)head)->lanes[index];
    struct mm_error error;
    assert(index < MM_CUDA_LANES);
    assert(count == 1 || jobs[0]->work.batch_key != 0);
    if (mm_cuda_use(head, &error) != MM_OK) {
        for (unsigned job = 0; job < count; job++)
            jobs[job]->work.error = error;
        return;
    }
    enum mm_status status = begin(lane, jobs, count);
    if (status == MM_NO_DEVICE_MEMORY && count > 1)
        status = begin_one(lane, jobs, count);
    if (status != MM_OK)
        mm_cuda_free_large_workspace(lane);
    __atomic_store_n(&lane->is_busy, status == MM_OK, __ATOMIC_RELAXED);
}

/* CUDA returns milliseconds, with a resolution of about 500 ns. */
cudaError_t mm_cuda_span(const struct mm_lane *lane, enum mm_cuda_mark from, uint64_t *span_ns) {
    float ms = 0.0f;
    const cudaError_t code = cudaEventElapsedTime(&ms, lane->marks[from], lane->marks[from + 1]);
    if (code == cudaSuccess)
        *span_ns = (uint64_t)((double)ms * 1e6 + 0.5);
    return code;
}

/* Returns the event after which is_over or `end` goes on. */
static cudaEvent_t awaited(const struct mm_lane *lane) {
    return lane->bands.tiling.rows > 0 && has_bands_left(lane) ? mm_cuda_tile_awaited(lane)
                                                               : lane->marks[lane->last];
}

bool mm_cuda_is_over(struct mm_device *head, unsigned index) {
    struct mm_lane *lane = &((struct mm_cuda_device *)head)->lanes[index];
    if (mm_cuda_use(head, NULL) != MM_OK)
        return true;
    const cudaError_t code = cudaEventQuery(awaited(lane));
    if (code == cudaErrorNotReady)
        (void)cudaGetLastError();
    if (code == cudaSuccess && has_bands_left(lane)) {
        enqueue_next(lane);
        return lane->bands.error.status != MM_OK;
    }
    return code != cudaErrorNotReady;
}

/* Reads the spans of a job that has succeeded, and the result of its check. Tiles are checked between
 * kernels, so the time of these checks is subtracted from the span of the kernels. */
static cudaError_t read_results(struct mm_lane *lane, struct mm_job *job, uint64_t *span_ns) {
    struct mm_verification *verification = &job->outcome.verification;
    uint64_t *kernel_ns = &span_ns[MM_SPAN_KERNEL];
    cudaError_t code = cudaSuccess;
    if (lane->first == MM_CUDA_BEGUN)
        code = mm_cuda_span(lane, MM_CUDA_BEGUN, &span_ns[MM_SPAN_UPLOAD]);
    if (code == cudaSuccess)
        code = mm_cuda_span(lane, MM_CUDA_UPLOADED, kernel_ns);
    if (code == cudaSuccess && lane->last >= MM_CUDA_DOWNLOADED)
        code = mm_cuda_span(lane, MM_CUDA_COMPUTED, &span_ns[MM_SPAN_DOWNLOAD]);
    if (code != cudaSuccess || !job->verify)
        return code;
    *verification = *lane->verification;
    if (lane->bands.tiling.rows == 0)
        return mm_cuda_span(lane, MM_CUDA_DOWNLOADED, &verification->took_ns);
    code = mm_cuda_read_check_time(lane, &verification->took_ns);
    *kernel_ns -= mm_size_min(*kernel_ns, verification->took_ns);
    return code;
}

void mm_cuda_end(struct mm_device *head, unsigned index, struct mm_job *const *jobs, unsigned count) {
    struct mm_cuda_device *device = (struct mm_cuda_device *)head;
    struct mm_lane *lane = &device->lanes[index];
    uint64_t span_ns[MM_SPAN_COUNT] = {0};
    struct mm_error error = {.status = MM_OK};
    assert(index < MM_CUDA_LANES);
    if (mm_cuda_use(head, &error) == MM_OK) {
        cudaError_t code = cudaEventSynchronize(awaited(lane));
        while (code == cudaSuccess && has_bands_left(lane)) {
            enqueue_next(lane);
            code = cudaEventSynchronize(awaited(lane));
        }
        if (code == cudaSuccess && lane->bands.error.status != MM_OK)
            code = mm_cuda_wait(lane); /* until then the streams may use the jobs' matrices */
        error = lane->bands.error;
        if (code == cudaSuccess && error.status == MM_OK)
            code = read_results(lane, jobs[0], span_ns);
        if (code != cudaSuccess)
            mm_cuda_status(device, code, "running a job", &error);
    }
    for (unsigned job = 0; job < count; job++) {
        memcpy(&jobs[job]->outcome.span_ns[MM_SPAN_UPLOAD], &span_ns[MM_SPAN_UPLOAD],
               (MM_SPAN_DOWNLOAD - MM_SPAN_UPLOAD + 1) * sizeof span_ns[0]);
        jobs[job]->work.error = error;
        jobs[job]->outcome.path = *lane->path;
        if (jobs[job]->reduces)
            jobs[job]->outcome.reduction = *lane->reduction;
    }
    mm_cuda_free_large_workspace(lane);
    __atomic_store_n(&lane->is_busy, false, __ATOMIC_RELAXED);
}

/* A job that needs much device memory runs alone, because a second such job might get no memory. */
void mm_cuda_schedule(struct mm_job *job) {
    job->work.batch_key = 0;
    job->work.is_exclusive =
        mm_cuda_needed_bytes(job) > mm_cuda_large_bytes(job->plan.device) || mm_cuda_exceeds_share(job);
    job->work.batch_key = mm_cuda_batch_key(job);
}
