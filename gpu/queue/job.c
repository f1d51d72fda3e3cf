/* Plans jobs, and counts the bytes that they copy. */
#include "gpu/queue/job.h"

#include "gpu/device/backend.h"
#include "gpu/store/store.h"

void mm_job_clear(struct mm_job *job) {
    const bool is_empty = job->product.m == 0 || job->product.n == 0;
    job->outcome = (struct mm_outcome){.batched = 1,
                                       .devices = 1,
                                       .path.kind = MM_PATH_NONE,
                                       .verification.is_done = job->verify && is_empty,
                                       .reduction = mm_reduction_none()};
    job->stored_c = NULL;
    job->work.bytes = mm_product_bytes(&job->product);
    job->progress = (struct mm_progress){0};
    job->more = false;
}

struct mm_product mm_job_device_product(const struct mm_job *job) {
    struct mm_product product = mm_product_dense(&job->product);
    struct mm_matrix *const operands[] = {&product.a, &product.b, &product.addend, &product.bias};
    for (unsigned index = 0; index < MM_OPERANDS_MAX; index++)
        if (job->sources[index].kind == MM_SOURCE_STORED)
            operands[index]->ld += job->sources[index].gap;
    return product;
}

void mm_job_place_operand(const struct mm_job *job, struct mm_product *product, enum mm_operand_index index,
                          void *data) {
    const struct mm_source *source = &job->sources[index];
    const size_t element_bytes = mm_dtype_bytes(mm_product_operand(product, index)->dtype);
    if (source->kind == MM_SOURCE_STORED && data != NULL)
        data = (char *)data + source->first * element_bytes;
    mm_product_place_operand(product, index, data);
}

/* The load of reading a byte, in operations. A GPU does about 16 float32 operations in that time. */
static const double byte_load = 16;

enum mm_status mm_job_plan(struct mm_job *job, struct mm_device *device, struct mm_error *error) {
    const struct mm_backend *backend = device->backend;
    struct mm_work *work = &job->work;
    work->is_exclusive = false;
    work->batch_key = 0;
    work->load = mm_product_flops(&job->product) + byte_load * (double)work->bytes;
    work->expected_ns = 0.0;
    job->plan.variant = mm_variant_resolve(job->variant, device, &job->product);
    if (job->product.m == 0 || job->product.n == 0)
        return MM_OK;
    const struct mm_product product = backend->is_host ? job->product : mm_job_device_product(job);
    const enum mm_status status = mm_plan_make(device, job->plan.variant, &product, &job->plan, error);
    if (status != MM_OK)
        return status;
    if (backend->schedule != NULL)
        backend->schedule(job);
    if (work->is_exclusive)
        work->batch_key = 0;
    const double alone_ns = mm_forecast_ns(device, job, job->plan.variant);
    work->expected_ns = work->is_exclusive ? alone_ns : alone_ns / mm_device_threads(device);
    return MM_OK;
}

void mm_job_begin(struct mm_job *job, const struct mm_device *device) {
    job->work.device = device;
    job->outcome.ran = job->plan.variant;
    job->outcome.batched = 1;
    job->outcome.flops_or_bytes = mm_job_flops_or_bytes(job);
}

size_t mm_job_generated_bytes(const struct mm_job *job) {
    bool (*const is_generated)(const struct mm_source *) =
        job->work.backend != NULL && job->work.backend->is_host ? mm_source_is_off_host
                                                                : mm_source_is_generated;
    size_t bytes = 0;
    for (unsigned index = 0; index < MM_OPERANDS_MAX; index++)
        if (is_generated(&job->sources[index]))
            bytes += mm_matrix_bytes(mm_product_operand(&job->product, index));
    return bytes;
}

size_t mm_job_returned_bytes(const struct mm_job *job) {
    const struct mm_matrix *c = &job->product.c;
    const size_t elements =
        job->part == NULL || job->keeps_c ? c->rows * c->cols : mm_window_elements(job->part);
    return c->data == NULL ? 0 : elements * mm_dtype_bytes(c->dtype);
}

size_t mm_job_copied_bytes(const struct mm_job *job) {
    size_t bytes = mm_job_returned_bytes(job);
    for (unsigned index = 0; index < MM_OPERANDS_MAX; index++)
        if (job->sources[index].kind == MM_SOURCE_HOST)
            bytes += mm_matrix_dense_bytes(mm_product_operand(&job->product, index));
    return bytes;
}

struct mm_stored_range mm_job_reads(const struct mm_job *job, enum mm_operand_index index) {
    const struct mm_source *source = &job->sources[index];
    const struct mm_matrix *operand = mm_product_operand(&job->product, index);
    const size_t first = source->first * mm_dtype_bytes(operand->dtype);
    return job->product.whole.m > 0 && source->gap == 0
               ? (struct mm_stored_range){first, first + mm_matrix_bytes(operand)}
               : (struct mm_stored_range){0, source->stored->bytes};
}

size_t mm_job_absent_bytes_of(const struct mm_job *job, enum mm_operand_index index,
                              const struct mm_device *device) {
    const struct mm_source *source = &job->sources[index];
    return source->kind == MM_SOURCE_STORED
               ? mm_stored_absent_bytes(source->stored, mm_job_reads(job, index), device)
               : 0;
}

size_t mm_job_absent_bytes(const struct mm_job *job, const struct mm_device *device) {
    size_t bytes = 0;
    for (unsigned index = 0; index < MM_OPERANDS_MAX; index++)
        bytes += mm_job_absent_bytes_of(job, index, device);
    return bytes;
}

/* Only shares run in panels, because their plans allow to cut C. A share that reads only some columns of B
 * copies all of B. A small B is not worth several launches: on an H200, B must have 140 MiB. The rows of a
 * tall B would be short in panels, and short rows are copied slowly. If B is the addend, too, it is copied
 * for the addend. */
bool mm_job_copies_in_panels(const struct mm_job *job, const struct mm_device *device) {
    const struct mm_source *b = &job->sources[MM_OPERAND_B];
    const bool is_tall = !job->product.transpose_b && job->product.n < job->product.k;
    if (job->product.whole.m == 0 || job->plan.cuts.cols == 0 || b->kind != MM_SOURCE_STORED || b->gap > 0 ||
        b->stored->only_copy == NULL || b->stored == job->sources[MM_OPERAND_ADDEND].stored || is_tall)
        return false;
    return mm_job_absent_bytes_of(job, MM_OPERAND_B, device) > device->memory_bytes / 1024;
}

double mm_job_flops_or_bytes(const struct mm_job *job) {
    const struct mm_product *product = &job->product;
    if (job->outcome.ran->op == MM_MATMUL)
        return mm_product_flops(product);
    return (double)product->m * (double)product->n * (double)mm_product_count(product) *
           (double)(mm_dtype_bytes(product->a.dtype) + mm_dtype_bytes(product->c.dtype));
}
