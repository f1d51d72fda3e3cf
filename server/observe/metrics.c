/* Counts with relaxed atomics, in COPIES copies of the counters. */
#include "server/observe/metrics.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

/* COPIES is enough for the HTTP threads and a few workers. Threads can share a copy without losing counts. */
enum {
    COPIES = 24,
    CACHE_LINE_BYTES = 64,
    WORD_COUNT = offsetof(struct mm_counts, flops) / sizeof(uint64_t)
};

struct copy {
    struct mm_counts counts;
    char apart[CACHE_LINE_BYTES];
};

static struct copy copies[COPIES];

#define US(count) (UINT64_C(1000) * (count))
#define MS(count) (UINT64_C(1000000) * (count))
#define S(count) (UINT64_C(1000000000) * (count))
const uint64_t mm_bucket_bounds_ns[MM_BUCKET_COUNT] = {
    US(1), US(5) / 2, US(5), US(10), US(25), US(50), US(100), US(250), US(500),
    MS(1), MS(5) / 2, MS(5), MS(10), MS(25), MS(50), MS(100), MS(250), MS(500),
    S(1),  S(5) / 2,  S(5),  S(10),  S(25),  S(50),  S(100),
};

static struct mm_counts *mine(void) {
    static unsigned threads;              /* threads that have counted; __atomic access only */
    static _Thread_local unsigned number; /* number of this thread's copy, from 1 on; 0: not chosen yet */
    if (number == 0)
        number = 1 + __atomic_fetch_add(&threads, 1, __ATOMIC_RELAXED) % COPIES;
    return &copies[number - 1].counts;
}

static void add(uint64_t *counter, uint64_t value) {
    __atomic_fetch_add(counter, value, __ATOMIC_RELAXED);
}

/* Adds in a loop, because C has no atomic addition of doubles. */
static void add_double(double *counter, double value) {
    double seen;
    double sum;
    __atomic_load(counter, &seen, __ATOMIC_RELAXED);
    do
        sum = seen + value;
    while (!__atomic_compare_exchange(counter, &seen, &sum, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

static void observe(struct mm_histogram *histogram, uint64_t ns) {
    size_t bucket = 0;
    while (bucket < MM_BUCKET_COUNT && ns > mm_bucket_bounds_ns[bucket])
        bucket++;
    add(&histogram->buckets[bucket], 1);
    add(&histogram->sum_ns, ns);
}

static size_t code_index(unsigned code) {
    size_t index = 0;
    while (index < MM_HTTP_COUNT && mm_http_table[index].code != code)
        index++;
    assert(index < MM_HTTP_COUNT);
    return index;
}

size_t mm_variant_slot(const struct mm_backend *backend, size_t row) {
    size_t slot = row;
    for (const struct mm_backend *const *before = mm_backends(); *before != backend; before++)
        slot += (*before)->variant_count;
    assert(slot < MM_VARIANTS_MAX);
    return slot;
}

void mm_metrics_begin(void) {
    add(&mine()->begun, 1);
}

/* A reply of 200 has a job that has ended. */
static void count_model(struct mm_oip_stats *model, const struct mm_record *record) {
    if (record->code != 200) {
        add(&model->fail, 1);
        add(&model->fail_ns, record->duration_ns);
        return;
    }
    const unsigned batched = mm_work_job(record->work)->outcome.batched;
    add(&model->success, 1);
    add(&model->success_ns, record->duration_ns);
    add(&model->queue_ns, record->stage_ns[MM_SPAN_QUEUE]);
    add(&model->upload_ns, record->stage_ns[MM_SPAN_UPLOAD]);
    add(&model->kernel_ns, record->stage_ns[MM_SPAN_KERNEL]);
    add(&model->download_ns, record->stage_ns[MM_SPAN_DOWNLOAD]);
    add(&model->launch_millionths, 1000000 / (batched > 0 ? batched : 1));
}

/* Counts an ended request. mm_keys_admit has already added 1 to account->requests. */
static void count_account(struct mm_account *account, const struct mm_record *record) {
    add(&account->in_bytes, record->in_bytes);
    add(&account->out_bytes, record->out_bytes);
    if (record->problem != MM_OK)
        add(&account->rejected[record->problem], 1);
}

void mm_metrics_end(const struct mm_record *record) {
    struct mm_counts *counts = mine();
    if (record->account != NULL)
        count_account(record->account, record);
    if (record->model != NULL)
        count_model(record->model, record);
    observe(&counts->durations[record->route], record->duration_ns);
    if (record->problem != MM_OK)
        add(&counts->rejected[record->problem], 1);
    if (record->problem == MM_BUSY)
        add(&counts->busy[record->busy], 1);
    if (record->store_op != MM_STORE_NONE)
        add(&counts->store[record->store_op][record->left ? MM_INTERNAL : record->problem], 1);
    if (record->cancelled)
        add(&counts->cancelled[record->cancelled_in], 1);
    /* Count only answered products. They have all stages, so the mean stages add up to the mean duration. */
    if (record->work != NULL && record->code == 200)
        for (unsigned stage = 0; stage < MM_STAGE_COUNT; stage++)
            observe(&counts->stages[stage], record->stage_ns[stage]);
    /* Needs release order: if mm_metrics_sum sees this request as ended, it must also see it in `begun`. */
    __atomic_fetch_add(&counts->requests[record->route][code_index(record->code)], 1, __ATOMIC_RELEASE);
}

void mm_metrics_drop(void) {
    add(&mine()->cancelled[MM_STAGE_SEND], 1);
}

static void count_device_error(struct mm_counts *counts, const struct mm_device *device,
                               enum mm_status status) {
    if (device != NULL && status != MM_OK)
        add(&counts->device_errors[device->number][status], 1);
}

/* Counts a computed job. Divides the time of a launch by its jobs, so all accounts together count it once. */
static void count_job(struct mm_account *account, const struct mm_job *job, double flops) {
    const unsigned batched = job->outcome.batched;
    add_double(&account->kernel_s,
               (double)job->outcome.span_ns[MM_SPAN_KERNEL] / 1e9 / (batched > 0 ? batched : 1));
    if (job->outcome.ran->op != MM_MATMUL)
        return;
    add(&account->products, 1);
    add_double(&account->flops, flops);
}

void mm_metrics_work(struct mm_work *work, struct mm_account *account) {
    struct mm_counts *counts = mine();
    const struct mm_job *job = mm_work_job(work);
    count_device_error(counts, work->device, work->error.status);
    if (job == NULL || job->outcome.ran == NULL)
        return;
    const struct mm_outcome *outcome = &job->outcome;
    /* After MM_TIMEOUT there is a result too, although it came too late for the client. */
    const bool has_result = work->error.status == MM_OK || work->error.status == MM_TIMEOUT;
    if (has_result && outcome->verification.is_done && !outcome->ran->wrong_on_purpose)
        add(&counts->verdicts[mm_verification_verdict(&outcome->verification)], 1);
    if (job->product.m == 0 || job->product.n == 0)
        return; /* an empty product runs no kernel */
    add(&counts->uploaded_bytes, outcome->uploaded_bytes);
    add(&counts->downloaded_bytes, outcome->downloaded_bytes);
    if (!has_result)
        return;
    size_t slot = mm_variant_slot(work->backend, (size_t)(outcome->ran - work->backend->variants));
    observe(&counts->kernels[slot], outcome->span_ns[MM_SPAN_KERNEL]);
    if (outcome->ran->op == MM_MATMUL)
        add(&counts->products[job->product.a.dtype], 1);
    add(&counts->paths[outcome->path.kind], 1);
    const double flops = mm_product_flops(&job->product);
    add_double(&counts->flops[slot], flops);
    if (account != NULL)
        count_job(account, job, flops);
}

void mm_metrics_rows(const struct mm_benchmark *benchmark) {
    const size_t row_count = mm_benchmark_request(benchmark)->subject_count;
    const struct mm_benchmark_row *rows = mm_benchmark_rows(benchmark);
    for (size_t row = 0; row < row_count; row++)
        count_device_error(mine(), rows[row].device, rows[row].error.status);
}

void mm_metrics_closed(enum mm_closed reason) {
    add(&mine()->closed[reason], 1);
}

void mm_metrics_reload_failed(enum mm_reload what) {
    add(&mine()->reload_failures[what], 1);
}

/* Reads the counters backwards, `begun` last. So each request that counts as ended also counts as begun. */
void mm_metrics_sum(struct mm_counts *counts) {
    memset(counts, 0, sizeof *counts);
    uint64_t *sums = (uint64_t *)counts;
    for (size_t word = WORD_COUNT; word-- > 0;)
        for (size_t copy = 0; copy < COPIES; copy++)
            sums[word] += __atomic_load_n((const uint64_t *)&copies[copy].counts + word, __ATOMIC_ACQUIRE);
    for (size_t slot = 0; slot < MM_VARIANTS_MAX; slot++)
        for (size_t copy = 0; copy < COPIES; copy++) {
            double flops;
            __atomic_load(&copies[copy].counts.flops[slot], &flops, __ATOMIC_RELAXED);
            counts->flops[slot] += flops;
        }
}

uint64_t mm_counts_in_flight(const struct mm_counts *counts) {
    uint64_t ended = 0;
    for (size_t route = 0; route < MM_ROUTE_LABELS; route++)
        for (size_t code = 0; code < MM_HTTP_COUNT; code++)
            ended += counts->requests[route][code];
    return counts->begun - ended;
}
