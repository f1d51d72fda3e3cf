/* Tests what the metrics count, also on many threads at once. */
#include "server/observe/metrics.h"
#include "api/problem.h"
#include "tests/unit/unit.h"

#include <pthread.h>

enum { THREADS = 96, ROUNDS = 5000 };

static struct mm_counts counts, before;

static int note_counts(void **state) {
    mm_metrics_sum(&before);
    return 0;
}

/* Sets `counts` to what the current test has counted. */
static void sum(void) {
    mm_metrics_sum(&counts);
    for (size_t word = 0; word < offsetof(struct mm_counts, flops) / sizeof(uint64_t); word++)
        ((uint64_t *)&counts)[word] -= ((const uint64_t *)&before)[word];
    for (size_t slot = 0; slot < MM_VARIANTS_MAX; slot++)
        counts.flops[slot] -= before.flops[slot];
}

static const struct mm_backend *cpu(void) {
    const struct mm_backend *backend = mm_backend_find("cpu");
    assert_non_null(backend);
    return backend;
}

static const struct mm_device device = {.number = 2};

/* Returns a finished product of 3×5 by 5×7. */
static struct mm_job make_job(void) {
    struct mm_job job = {.work.backend = cpu(),
                         .outcome.ran = cpu()->variants,
                         .work.device = &device,
                         .outcome.uploaded_bytes = 11,
                         .outcome.downloaded_bytes = 13};
    job.product.m = 3;
    job.product.k = 5;
    job.product.n = 7;
    job.outcome.span_ns[MM_SPAN_KERNEL] = 2500;
    return job;
}

static void test_every_code(void **state) {
    for (unsigned status = MM_OK; status < MM_STATUS_COUNT; status++) {
        const struct mm_record record = {.code = mm_problem_http((enum mm_status)status),
                                         .problem = (enum mm_status)status};
        mm_metrics_begin();
        mm_metrics_end(&record);
    }
    sum();
    uint64_t requests = 0;
    for (size_t code = 0; code < MM_HTTP_COUNT; code++) {
        assert_true(code == 0 || mm_http_table[code].code > mm_http_table[code - 1].code);
        requests += counts.requests[0][code];
    }
    assert_int_equal(requests, MM_STATUS_COUNT);
    assert_int_equal(counts.rejected[MM_OK], 0);
    for (unsigned status = MM_OK + 1; status < MM_STATUS_COUNT; status++)
        assert_int_equal(counts.rejected[status], 1);
    assert_int_equal(mm_counts_in_flight(&counts), 0);
}

/* A duration equal to a bound belongs to that bucket, because `le` means "less or equal". */
static void test_buckets(void **state) {
    for (size_t bound = 0; bound < MM_BUCKET_COUNT; bound++) {
        assert_true(bound == 0 || mm_bucket_bounds_ns[bound] > mm_bucket_bounds_ns[bound - 1]);
        for (uint64_t over = 0; over < 2; over++) {
            const struct mm_record record = {.code = 200, .duration_ns = mm_bucket_bounds_ns[bound] + over};
            mm_metrics_end(&record);
        }
    }
    const struct mm_histogram *durations = &counts.durations[0];
    sum();
    assert_int_equal(durations->buckets[0], 1);
    for (size_t bucket = 1; bucket < MM_BUCKET_COUNT; bucket++)
        assert_int_equal(durations->buckets[bucket], 2);
    assert_int_equal(durations->buckets[MM_BUCKET_COUNT], 1);
}

#define FAILED                                                                                               \
    { .is_done = true, .residual = 2.0, .bound = 1.0, .rows_checked = 1 }

/* A repaired product counts once. A failed product has no path and no result of a check. */
static void test_paths_and_checks(void **state) {
    static const struct {
        enum mm_path_kind path;
        enum mm_status status;
        size_t m;
        struct mm_verification check;
    } cases[] = {
        {MM_PATH_NONE, MM_OK, 3, {.residual = 2.0, .bound = 1.0}},
        {MM_PATH_CERTIFIED, MM_OK, 3, FAILED},
        {MM_PATH_REPAIRED, MM_OK, 3, {.is_done = true, .rows_unjudged = 1}},
        {MM_PATH_REPAIRED, MM_TIMEOUT, 3, FAILED},
        {MM_PATH_SIMT, MM_DEVICE_FAILED, 3, FAILED},
        {MM_PATH_NONE, MM_OK, 3, {.is_done = true, .rows_checked = 3}},
        {MM_PATH_NONE, MM_OK, 0, {.is_done = true}},
    };
    for (size_t index = 0; index < COUNT(cases); index++) {
        struct mm_job job = make_job();
        job.outcome.path = (struct mm_path){.kind = cases[index].path, .repaired = 100};
        job.outcome.verification = cases[index].check;
        job.product.m = cases[index].m;
        job.work.error.status = cases[index].status;
        mm_metrics_work(&job.work, NULL);
    }
    sum();
    assert_int_equal(counts.paths[MM_PATH_CERTIFIED], 1);
    assert_int_equal(counts.paths[MM_PATH_REPAIRED], 2);
    assert_int_equal(counts.paths[MM_PATH_SIMT], 0);
    assert_int_equal(counts.verdicts[MM_VERDICT_PASSED], 2);
    assert_int_equal(counts.verdicts[MM_VERDICT_FAILED], 2);
    assert_int_equal(counts.verdicts[MM_VERDICT_UNJUDGED], 1);
}

static struct mm_account account;

static void *count(void *argument) {
    struct mm_job job = make_job();
    struct mm_record record = {.route = MM_ROUTE_OTHER,
                               .code = 200,
                               .work = &job.work,
                               .account = &account,
                               .in_bytes = 3,
                               .out_bytes = 5,
                               .duration_ns = 7,
                               .cancelled_in = MM_SPAN_QUEUE};
    for (unsigned stage = 0; stage < MM_STAGE_COUNT; stage++)
        record.stage_ns[stage] = stage;
    record.cancelled = true;
    for (int round = 0; round < ROUNDS; round++) {
        mm_metrics_begin();
        mm_metrics_work(&job.work, &account);
        mm_metrics_end(&record);
    }
    return NULL;
}

/* More threads count than there are copies of the counters. The number of requests in flight must never be
 * negative. */
static void test_threads(void **state) {
    pthread_t threads[THREADS];
    const uint64_t total = THREADS * ROUNDS;
    for (int thread = 0; thread < THREADS; thread++)
        assert_int_equal(pthread_create(&threads[thread], NULL, count, NULL), 0);
    for (int look = 0; look < 20; look++) {
        sum();
        assert_in_range(mm_counts_in_flight(&counts), 0, total);
    }
    for (int thread = 0; thread < THREADS; thread++)
        pthread_join(threads[thread], NULL);
    sum();
    assert_int_equal(counts.begun, total);
    assert_int_equal(counts.requests[MM_ROUTE_OTHER][0], total);
    assert_int_equal(counts.durations[MM_ROUTE_OTHER].buckets[0], total);
    assert_int_equal(counts.durations[MM_ROUTE_OTHER].sum_ns, 7 * total);
    assert_int_equal(counts.cancelled[MM_SPAN_QUEUE], total);
    for (unsigned stage = 0; stage < MM_STAGE_COUNT; stage++)
        assert_int_equal(counts.stages[stage].sum_ns, stage * total);
    assert_true(counts.flops[mm_variant_slot(cpu(), 0)] == 210.0 * (double)total);
    assert_int_equal(counts.kernels[mm_variant_slot(cpu(), 0)].sum_ns, 2500 * total);
    assert_int_equal(counts.uploaded_bytes, 11 * total);
    assert_int_equal(counts.downloaded_bytes, 13 * total);
    assert_int_equal(mm_counts_in_flight(&counts), 0);
    assert_int_equal(account.products, total);
    assert_true(account.flops == 210.0 * (double)total);
    assert_float_equal(account.kernel_s, 2500e-9 * (double)total, 1e-6);
    assert_int_equal(account.in_bytes, 3 * total);
    assert_int_equal(account.out_bytes, 5 * total);
}

/* Jobs that share a launch share its time. A failed job, an empty product and a transpose are no products. */
static void test_accounts(void **state) {
    struct mm_account mine = {.name = "a"};
    struct mm_job job = make_job();
    job.outcome.batched = 5;
    mm_metrics_work(&job.work, &mine);
    assert_true(mine.kernel_s == 2500 / 1e9 / 5);
    job.work.error.status = MM_DEVICE_FAILED;
    mm_metrics_work(&job.work, &mine);
    job = make_job();
    job.product.m = 0;
    mm_metrics_work(&job.work, &mine);
    job = make_job();
    while (job.outcome.ran->op != MM_TRANSPOSE)
        job.outcome.ran++;
    mm_metrics_work(&job.work, &mine);
    assert_float_equal(mine.kernel_s, 3000e-9, 1e-12);
    assert_int_equal(mine.products, 1);
    assert_true(mine.flops == 210.0);
    const struct mm_record record = {.code = 429, .problem = MM_BUSY, .account = &mine, .in_bytes = 9};
    mm_metrics_end(&record);
    assert_int_equal(mine.rejected[MM_BUSY], 1);
    assert_int_equal(mine.rejected[MM_OK], 0);
    assert_int_equal(mine.in_bytes, 9);
}

RUN_TESTS_BETWEEN(note_counts, NULL, test_every_code, test_buckets, test_paths_and_checks, test_accounts,
                  test_threads)
