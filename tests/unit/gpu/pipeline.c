/* When a thread's pipeline may begin others: while it has a lane, and collects none for a launch of small
 * jobs. */
#include "gpu/pipeline.h"
#include "tests/unit/gpu/fake_backend.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

struct fixture {
    struct fake_device fake;
    struct mm_pipeline pipeline;
    struct mm_job jobs[3];
};

static int set_up(void **state) {
    static struct fixture fixture;
    fixture = (struct fixture){0};
    fake_device_init(&fixture.fake, 0, 3, true);
    fixture.fake.device.backend = &fake_async;
    mm_pipeline_init(&fixture.pipeline, &fixture.fake.device, 0, 1);
    *state = &fixture;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *fixture = *state;
    fake_device_destroy(&fixture->fake);
    return 0;
}

static void begin(struct fixture *fixture, unsigned index, uint64_t key, size_t n) {
    struct mm_batch batch = {.jobs = {&fixture->jobs[index]}, .count = 1};
    fixture->jobs[index] = (struct mm_job){.batch_key = key, .product = {.m = 1, .n = n, .k = 1}};
    mm_pipeline_begin(&fixture->pipeline, &batch);
}

static void end(struct fixture *fixture) {
    struct mm_batch batch;
    assert_true(mm_pipeline_end(&fixture->pipeline, &batch));
}

static void any_number_up_to_the_lanes_is_begun(void **state) {
    struct fixture *fixture = *state;
    const struct mm_pipeline *pipeline = &fixture->pipeline;
    for (unsigned index = 0; index < 3; index++) {
        assert_true(mm_pipeline_may_begin(pipeline, pipeline->changed_ns));
        begin(fixture, index, 0, 1);
    }
    assert_false(mm_pipeline_may_begin(pipeline, UINT64_MAX));
    for (unsigned index = 0; index < 3; index++) {
        end(fixture);
        assert_true(mm_pipeline_may_begin(pipeline, pipeline->changed_ns));
    }
}

static void beside_small_ones_others_wait_30_us(void **state) {
    struct fixture *fixture = *state;
    const struct mm_pipeline *pipeline = &fixture->pipeline;
    begin(fixture, 0, 5, 1);
    const uint64_t begun_ns = pipeline->changed_ns;
    assert_false(mm_pipeline_may_begin(pipeline, begun_ns));
    assert_false(mm_pipeline_may_begin(pipeline, begun_ns + 29999));
    assert_true(mm_pipeline_may_begin(pipeline, begun_ns + 30000));
    begin(fixture, 1, 5, 1);
    end(fixture);
    assert_false(mm_pipeline_may_begin(pipeline, pipeline->small_ns)); /* the second is under way yet */
    end(fixture);
    assert_true(mm_pipeline_may_begin(pipeline, pipeline->small_ns));
}

/* A large one beside them neither begins their time anew, nor ends it. */
static void only_small_ones_collect(void **state) {
    struct fixture *fixture = *state;
    const struct mm_pipeline *pipeline = &fixture->pipeline;
    begin(fixture, 0, 0, 1);
    begin(fixture, 1, 5, 1);
    const uint64_t begun_ns = pipeline->changed_ns;
    while (mm_clock_ns() == begun_ns)
        continue;
    begin(fixture, 2, 0, 1);
    end(fixture);
    assert_false(mm_pipeline_may_begin(pipeline, begun_ns + 29999));
    assert_true(mm_pipeline_may_begin(pipeline, begun_ns + 30000));
    end(fixture);
    assert_true(mm_pipeline_may_begin(pipeline, begun_ns));
    end(fixture);
}

static void those_that_fail_keep_nobody(void **state) {
    struct fixture *fixture = *state;
    begin(fixture, 0, 5, FAILING_N);
    assert_int_equal(fixture->jobs[0].error.status, MM_DEVICE_FAILED);
    assert_true(mm_pipeline_may_begin(&fixture->pipeline, mm_clock_ns()));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(any_number_up_to_the_lanes_is_begun, set_up, tear_down),
        cmocka_unit_test_setup_teardown(beside_small_ones_others_wait_30_us, set_up, tear_down),
        cmocka_unit_test_setup_teardown(only_small_ones_collect, set_up, tear_down),
        cmocka_unit_test_setup_teardown(those_that_fail_keep_nobody, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
