/* What a finished job tells of itself. */
#include "gpu/job.h"

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

double mm_job_work(const struct mm_job *job) {
    const struct mm_product *product = &job->product;
    if (job->ran->op == MM_MATMUL)
        return mm_product_flops(product);
    return 2.0 * (double)product->m * (double)product->n * (double)mm_dtype_bytes(product->a.dtype);
}

double mm_job_rate(const struct mm_job *job) {
    const uint64_t kernel_ns = job->span_ns[MM_SPAN_KERNEL];
    if (kernel_ns == 0)
        return 0.0;
    return (job->batched > 1 ? job->launch_work : mm_job_work(job)) / (double)kernel_ns;
}
