/* What a finished job tells of itself. */
#include "gpu/job.h"

double mm_job_gflops(const struct mm_job *job) {
    uint64_t kernel_ns = job->span_ns[MM_SPAN_KERNEL];
    return kernel_ns == 0 ? 0.0 : mm_product_flops(&job->product) / (double)kernel_ns;
}
