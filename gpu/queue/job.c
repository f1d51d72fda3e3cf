/* How a job is planned, and what a finished one tells of itself. */
#include "gpu/queue/job.h"

#include "gpu/device/backend.h"
#include "gpu/store/store.h"

enum mm_status mm_job_plan(struct mm_job *job, struct mm_device *device, struct mm_error *error) {
    const struct mm_backend *backend = device->backend;
    job->alone = job->task != NULL && !job->task->shares;
    job->plan.batch_key = 0;
    job->reduction = mm_reduction_none();
    if (job->task != NULL)
        return MM_OK;
    job->plan.variant = mm_variant_resolve(job->variant, device, &job->product);
    if (job->product.m == 0 || job->product.n == 0)
        return MM_OK;
    /* Other devices than the host's get dense copies of the matrices. */
    const struct mm_product product = backend->is_host ? job->product : mm_product_dense(&job->product);
    const enum mm_status status = mm_plan_make(device, job->plan.variant, &product, false, &job->plan, error);
    if (status != MM_OK)
        return status;
    if (backend->schedule != NULL)
        backend->schedule(job);
    job->alone = job->plan.fills_device;
    if (job->alone)
        job->plan.batch_key = 0;
    return MM_OK;
}

void mm_job_list_done(struct mm_job *first) {
    while (first != NULL) {
        struct mm_job *last = first;
        while (last->next != NULL && last->next->done == first->done)
            last = last->next;
        struct mm_job *rest = last->next;
        last->next = NULL;
        first->done(first);
        first = rest;
    }
}

size_t mm_job_made_bytes(const struct mm_job *job) {
    const struct mm_product *product = &job->product;
    bool (*const is_made)(const struct mm_source *) =
        job->backend != NULL && job->backend->is_host ? mm_source_is_elsewhere : mm_source_is_made;
    return (is_made(&job->a_source) ? mm_matrix_bytes(&product->a) : 0) +
           (is_made(&job->b_source) ? mm_matrix_bytes(&product->b) : 0);
}

size_t mm_job_returned_bytes(const struct mm_job *job) {
    const struct mm_matrix *c = &job->product.c;
    const size_t elements =
        job->part == NULL || job->keeps_c ? c->rows * c->cols : mm_window_elements(job->part);
    return c->data == NULL ? 0 : elements * mm_dtype_bytes(c->dtype);
}

size_t mm_job_copied_bytes(const struct mm_job *job) {
    return (job->a_source.kind == MM_SOURCE_HOST ? mm_matrix_bytes(&job->product.a) : 0) +
           (job->b_source.kind == MM_SOURCE_HOST ? mm_matrix_bytes(&job->product.b) : 0) +
           mm_job_returned_bytes(job);
}

size_t mm_job_absent_bytes(const struct mm_job *job, const struct mm_device *device) {
    const struct mm_source *const sources[] = {&job->a_source, &job->b_source};
    size_t bytes = 0;
    for (unsigned index = 0; index < 2; index++)
        if (sources[index]->kind == MM_SOURCE_STORED && mm_source_find(sources[index], device) == NULL)
            bytes += sources[index]->stored->bytes;
    return bytes;
}

double mm_job_work(const struct mm_job *job) {
    const struct mm_product *product = &job->product;
    if (job->ran->op == MM_MATMUL)
        return mm_product_flops(product);
    return (double)product->m * (double)product->n * (double)mm_product_count(product) *
           (double)(mm_dtype_bytes(product->a.dtype) + mm_dtype_bytes(product->c.dtype));
}

double mm_job_rate(const struct mm_job *job) {
    const uint64_t kernel_ns = job->span_ns[MM_SPAN_KERNEL];
    if (kernel_ns == 0)
        return 0.0;
    return (job->batched > 1 ? job->launch_work : mm_job_work(job)) / (double)kernel_ns;
}
