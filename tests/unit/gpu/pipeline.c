/* Tests when a thread may begin more jobs: it needs a free lane and must not be collecting small jobs. */
#include "gpu/queue/pipeline.h"
#include "scene.h"

static struct mm_pipeline pipeline;

static int set_up(void **state) {
    set_fakes((struct setting){.lanes = 3, .backend = &fake_async});
    pipeline = (struct mm_pipeline){0};
    mm_pipeline_init(&pipeline, &fake->device, 0);
    return 0;
}

static void begin(unsigned index, uint64_t key, size_t n) {
    struct mm_batch batch = {.jobs = {&jobs[index].job}, .count = 1};
    jobs[index].job = (struct mm_job){.work.batch_key = key, .product = {.m = 1, .n = n, .k = 1}};
    mm_pipeline_begin(&pipeline, &batch);
}

static void end(void) {
    struct mm_batch batch;
    assert_true(mm_pipeline_end(&pipeline, &batch));
}

/* While small jobs are collected, more jobs may begin only after 30 µs. */
static void expect_collecting(uint64_t begun_ns) {
    assert_false(mm_pipeline_may_begin(&pipeline, begun_ns));
    assert_false(mm_pipeline_may_begin(&pipeline, begun_ns + 29999));
    assert_true(mm_pipeline_may_begin(&pipeline, begun_ns + 30000));
}

static void small_jobs_are_collected_for_30_us(void **state) {
    begin(0, 5, 1);
    expect_collecting(pipeline.changed_ns);
    begin(1, 5, 1);
    end();
    assert_false(mm_pipeline_may_begin(&pipeline, pipeline.small_ns)); /* the second job still runs */
    end();
    assert_true(mm_pipeline_may_begin(&pipeline, pipeline.small_ns));
}

/* Large jobs do not change how long small jobs are collected. */
static void large_jobs_are_not_collected(void **state) {
    begin(0, 0, 1);
    begin(1, 5, 1);
    const uint64_t begun_ns = pipeline.changed_ns;
    while (mm_clock_ns() == begun_ns)
        continue;
    begin(2, 0, 1);
    end();
    expect_collecting(begun_ns);
    end();
    assert_true(mm_pipeline_may_begin(&pipeline, begun_ns));
    end();
}

static void failed_jobs_delay_no_others(void **state) {
    begin(0, 5, FAILING_N);
    assert_int_equal(jobs[0].job.work.error.status, MM_DEVICE_FAILED);
    assert_true(mm_pipeline_may_begin(&pipeline, mm_clock_ns()));
}

RUN_TESTS_BETWEEN(set_up, close_scene, small_jobs_are_collected_for_30_us, large_jobs_are_not_collected,
                  failed_jobs_delay_no_others)
