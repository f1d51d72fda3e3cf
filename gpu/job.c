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

double mm_job_gflops(const struct mm_job *job) {
    uint64_t kernel_ns = job->span_ns[MM_SPAN_KERNEL];
    const double flops = job->batched > 1 ? job->launch_flops : mm_product_flops(&job->product);
    return kernel_ns == 0 ? 0.0 : flops / (double)kernel_ns;
}

double mm_job_gigabytes_per_second(const struct mm_job *job) {
    const struct mm_product *product = &job->product;
    uint64_t kernel_ns = job->span_ns[MM_SPAN_KERNEL];
    double bytes = 2.0 * (double)product->m * (double)product->n * (double)mm_dtype_bytes(product->a.dtype);
    return kernel_ns == 0 ? 0.0 : bytes / (double)kernel_ns;
}
