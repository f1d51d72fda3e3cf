/* Measures rates of kernels and copies from jobs that ran, and forecasts the time of other jobs. */
#include "gpu/plan/forecast.h"

#include "gpu/device/backend.h"

#include <inttypes.h>
#include <math.h>

static double read_rate(const double *rate) {
    double value;
    __atomic_load(rate, &value, __ATOMIC_RELAXED);
    return value;
}

static void write_rate(double *rate, double value) {
    __atomic_store(rate, &value, __ATOMIC_RELAXED);
}

/* Returns a kernel's work, to which the time is about proportional: operations of a product, or bytes of a
 * transposition. Bytes do not measure products, because thin products have more bytes for each operation than
 * other products. */
static double work_of(const struct mm_variant *variant, const struct mm_product *product) {
    return variant->op == MM_MATMUL ? mm_product_flops(product) : (double)mm_product_bytes(product);
}

/* Returns a variant's index in the rates. Variants beyond the maximum share the last index. */
static size_t row_of(const struct mm_device *device, const struct mm_variant *variant) {
    const size_t row = (size_t)(variant - device->backend->variants);
    return row < MM_FORECAST_VARIANTS_MAX ? row : MM_FORECAST_VARIANTS_MAX - 1;
}

/* The first measured rate must come from a job with much work and a long time. If a small job was
 * interrupted, its rate would forecast hours for a large job. Later, any faster job improves the rate. */
enum { FIRST_NS_MIN = 50000, FIRST_WORK_MIN = 1000000 };

/* If the first job takes this many times the assumed time, it was interrupted or has an unusual shape. The
 * job's rate is ignored, because by this rate the service would reject all large jobs. */
enum { ASSUMED_TIMES_MAX = 32 };

/* Updates a rate, and returns whether it changed. assumed_ns is the job's time by the assumed rate, or 0 if
 * no rate is assumed. */
static bool update_rate(double *best, bool is_first, double assumed_ns, uint64_t ns, double work) {
    const bool is_long_enough = ns >= FIRST_NS_MIN && work >= FIRST_WORK_MIN &&
                                (assumed_ns == 0.0 || (double)ns < ASSUMED_TIMES_MAX * assumed_ns);
    const bool is_better = ns > 0 && (double)ns < read_rate(best) * work;
    if (is_first ? !is_long_enough : !is_better)
        return false;
    write_rate(best, (double)ns / work);
    return true;
}

static void update_measured_rate(double *best, uint64_t ns, double work) {
    (void)update_rate(best, read_rate(best) == 0.0, 0.0, ns, work);
}

/* Whether a product is thin (MM_FORECAST_THIN). Examples are square matrices with an edge below 48, and a
 * matrix times fewer than 16 vectors. */
static bool is_thin(const struct mm_variant *variant, const struct mm_product *product) {
    const double elements = (double)mm_product_bytes(product) / (double)mm_dtype_bytes(product->a.dtype);
    return variant->op == MM_MATMUL && mm_product_flops(product) < MM_FORECAST_THIN * elements;
}

/* Updates the rates for operations and for bytes. The first rate for bytes comes from a thin product that
 * took longer than forecast by the rate for operations. */
static void learn_kernel(struct mm_forecast *forecast, size_t row, const struct mm_job *job) {
    const enum mm_dtype dtype = job->product.a.dtype;
    const uint64_t ns = job->outcome.span_ns[MM_SPAN_KERNEL];
    const double work = work_of(job->outcome.ran, &job->product);
    double *kernel_ns = &forecast->kernel_ns[row][dtype], *byte_ns = &forecast->byte_ns[row][dtype];
    bool *measured = &forecast->measured[row][dtype];
    const double known_ns = read_rate(kernel_ns) * work;
    const bool thin = is_thin(job->outcome.ran, &job->product);
    const bool is_first = !__atomic_load_n(measured, __ATOMIC_RELAXED);
    const bool is_first_by_bytes = read_rate(byte_ns) == 0.0 && thin && (double)ns > known_ns;
    (void)update_rate(byte_ns, is_first_by_bytes, known_ns, ns, (double)mm_product_bytes(&job->product));
    if (!(is_first && thin) && update_rate(kernel_ns, is_first, known_ns, ns, work))
        __atomic_store_n(measured, true, __ATOMIC_RELAXED);
}

void mm_forecast_assume(struct mm_device *device, const struct mm_variant *variant,
                        const struct mm_product *product, double took_ns) {
    const double rate = took_ns / work_of(variant, product);
    for (unsigned dtype = 0; dtype < MM_DTYPE_COUNT; dtype++) {
        /* Wide elements need more time for each operation. Narrow elements need more time for each byte. */
        const double of_float32 = (double)mm_dtype_bytes((enum mm_dtype)dtype) / sizeof(float);
        const double times = variant->op == MM_MATMUL ? of_float32 : 1.0 / of_float32;
        write_rate(&device->forecast.kernel_ns[row_of(device, variant)][dtype],
                   rate * (times > 1.0 ? times : 1.0));
    }
}

void mm_forecast_learn(struct mm_device *device, const struct mm_job *job) {
    struct mm_forecast *forecast = &device->forecast;
    const double copied = (double)job->outcome.uploaded_bytes + (double)job->outcome.downloaded_bytes;
    const bool computed =
        job->outcome.ran->op != MM_MATMUL || job->product.k > 0; /* if k is 0, the kernel only writes zeros */
    const bool is_whole = job->outcome.tiles == 0;               /* spans of tiles overlap */
    if (computed && is_whole && job->outcome.peer_bytes == 0)    /* kernels of panels may wait for copies */
        learn_kernel(forecast, row_of(device, job->outcome.ran), job);
    if (is_whole)
        update_measured_rate(&forecast->copy_ns,
                             job->outcome.span_ns[MM_SPAN_UPLOAD] + job->outcome.span_ns[MM_SPAN_DOWNLOAD],
                             copied);
    if (is_whole && job->outcome.uploaded_bytes == 0)
        update_measured_rate(&forecast->peer_ns, job->outcome.span_ns[MM_SPAN_UPLOAD],
                             (double)job->outcome.peer_bytes);
    if (job->verify)
        update_measured_rate(&forecast->check_ns[job->product.a.dtype], job->outcome.verification.took_ns,
                             (double)mm_product_bytes(&job->product));
}

/* Returns the larger of the forecasts by `work` and by the bytes of the product. */
static double work_ns(const struct mm_device *device, const struct mm_variant *variant,
                      const struct mm_product *product, double work) {
    const struct mm_forecast *forecast = &device->forecast;
    const size_t row = row_of(device, variant);
    const enum mm_dtype dtype = product->a.dtype;
    const double by_work = read_rate(&forecast->kernel_ns[row][dtype]) * work;
    const double by_bytes = read_rate(&forecast->byte_ns[row][dtype]) * (double)mm_product_bytes(product);
    return by_bytes > by_work ? by_bytes : by_work;
}

/* The least time in nanoseconds for each further product of a stack, as measured on a CPU. */
#define PRODUCT_NS 200.0

double mm_forecast_kernel_ns(const struct mm_device *device, const struct mm_variant *variant,
                             const struct mm_product *product) {
    const double count = (double)mm_product_count(product);
    const double elements = (double)product->m * (double)product->n * count;
    const bool is_small = !device->backend->is_host && variant->op == MM_MATMUL &&
                          elements < MM_FORECAST_ELEMENTS_MIN && elements > 0.0;
    const double work =
        is_small ? 2.0 * MM_FORECAST_ELEMENTS_MIN * (double)product->k : work_of(variant, product);
    const double ns = work_ns(device, variant, product, work);
    return ns == 0.0 ? 0.0 : ns + PRODUCT_NS * (count - 1.0);
}

/* Returns the edge of the largest square that takes at most most_ns; 0 if there is none. */
static size_t largest_edge(const struct mm_device *device, const struct mm_variant *variant,
                           const struct mm_product *like, double most_ns) {
    enum { EDGE_BITS = 24 };
    size_t edge = 0;
    for (size_t bit = (size_t)1 << EDGE_BITS; bit > 0; bit /= 2) {
        const size_t tried = edge + bit;
        struct mm_product product = {.a = mm_matrix_dense(like->a.dtype, tried, tried, NULL)};
        if (variant->op == MM_MATMUL)
            product.b = product.a;
        (void)mm_product_conform(variant->op, &product, NULL);
        product.c = mm_product_result(variant->op, &product);
        if (mm_forecast_kernel_ns(device, variant, &product) <= most_ns)
            edge = tried;
    }
    return edge;
}

enum mm_status mm_forecast_check(const struct mm_device *device, const struct mm_variant *variant,
                                 const struct mm_product *product, uint64_t kernel_ms_max,
                                 struct mm_error *error) {
    const double most_ns = (double)kernel_ms_max * 1e6;
    const double expected_ns = mm_forecast_kernel_ns(device, variant, product);
    if (kernel_ms_max == 0 || expected_ns <= most_ns)
        return MM_OK;
    return mm_fail_limit(error, "variant", kernel_ms_max,
                         "%s would take about %.3g s for this, but the limit is %" PRIu64
                         " ms (--max-kernel-ms), enough for squares of an edge up to %zu",
                         variant->name, expected_ns / 1e9, kernel_ms_max,
                         largest_edge(device, variant, product, most_ns));
}

double mm_forecast_copy_ns(const struct mm_device *device, size_t bytes) {
    return read_rate(&device->forecast.copy_ns) * (double)bytes;
}

double mm_forecast_fetch_ns(const struct mm_device *device, const struct mm_job *job) {
    double ns = 0.0;
    for (unsigned index = 0; index < MM_OPERANDS_MAX; index++) {
        const bool is_on_devices = mm_source_is_off_host(&job->sources[index]);
        const double peer_ns = is_on_devices ? read_rate(&device->forecast.peer_ns) : 0.0;
        const double byte_ns = peer_ns > 0.0 ? peer_ns : read_rate(&device->forecast.copy_ns);
        const double all_ns = byte_ns * (double)mm_job_absent_bytes_of(job, index, device);
        if (index == MM_OPERAND_B && mm_job_copies_in_panels(job, device)) /* kernels hide most of it */
            ns += fmax(all_ns / MM_FIRST_PANEL,
                       all_ns - mm_forecast_kernel_ns(device, job->plan.variant, &job->product));
        else
            ns += all_ns;
    }
    return ns;
}

double mm_forecast_ns(const struct mm_device *device, const struct mm_job *job,
                      const struct mm_variant *variant) {
    const struct mm_forecast *forecast = &device->forecast;
    const enum mm_dtype dtype = job->product.a.dtype;
    const double check_ns = job->verify ? read_rate(&forecast->check_ns[dtype]) : 0.0;
    /* mm_forecast_kernel_ns would forecast too much here. That function assumes a minimum size of C for each
     * launch, but several jobs can share one launch. */
    return work_ns(device, variant, &job->product, work_of(variant, &job->product)) +
           read_rate(&forecast->copy_ns) * (double)mm_job_copied_bytes(job) +
           check_ns * (double)mm_product_bytes(&job->product);
}
