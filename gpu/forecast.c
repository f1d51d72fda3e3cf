/* Rates of kernels and of copies. */
#include "gpu/forecast.h"

/* Any measure of a kernel's work that grows with its time: transpositions have no operations. */
static double work_of(const struct mm_job *job) {
    return mm_product_flops(&job->product) + (double)job->queued_bytes;
}

/* Rows past the table, of which there are none, would have nothing foretold. */
static size_t row_of(const struct mm_job *job, const struct mm_variant *ran) {
    const size_t row = (size_t)(ran - job->backend->variants);
    return row < MM_FORECAST_VARIANTS_MAX ? row : MM_FORECAST_VARIANTS_MAX - 1;
}

/* A first rate is that of much work, in more than a launch's or a call's time: the same hiccup in a small job
 * would foretell hours for a large one. What took less time than that rate says mends it, whatever its size.
 */
enum { TELLING_NS = 50000, TELLING_WORK = 1000000 };

static void keep_best(double *best, uint64_t ns, double work) {
    const bool tells =
        *best == 0.0 ? ns >= TELLING_NS && work >= TELLING_WORK : ns > 0 && (double)ns < *best * work;
    if (tells)
        *best = (double)ns / work;
}

void mm_forecast_learn(struct mm_forecast *forecast, const struct mm_job *job) {
    const double copied = (double)job->uploaded_bytes + (double)job->downloaded_bytes;
    const bool computed = job->ran->op != MM_MATMUL || job->product.k > 0; /* zeros are soon written */
    if (computed)
        keep_best(&forecast->kernel_ns[row_of(job, job->ran)], job->span_ns[MM_SPAN_KERNEL], work_of(job));
    keep_best(&forecast->copy_ns, job->span_ns[MM_SPAN_UPLOAD] + job->span_ns[MM_SPAN_DOWNLOAD], copied);
    if (job->verify)
        keep_best(&forecast->check_ns, job->verification.took_ns, (double)job->queued_bytes);
}

double mm_forecast_ns(const struct mm_forecast *forecast, const struct mm_job *job,
                      const struct mm_variant *ran) {
    const double for_a_byte = forecast->copy_ns + (job->verify ? forecast->check_ns : 0.0);
    return forecast->kernel_ns[row_of(job, ran)] * work_of(job) + for_a_byte * (double)job->queued_bytes;
}
