/* A forecast follows the best times that were seen, of kernels by their variant and of copies. */
#include "gpu/forecast.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { US = 1000, TELLING = 1000000 /* the least work that a first rate is learned from */ };

static const struct mm_variant variants[MM_FORECAST_VARIANTS_MAX + 2] = {{.name = "one"}, {.name = "two"}};
static const struct mm_backend backend = {
    .name = "made up", .variants = variants, .variant_count = sizeof variants / sizeof variants[0]};

/* A job with `work` operations and bytes, half of each. */
static struct mm_job job_of(size_t work, unsigned row) {
    return (struct mm_job){.backend = &backend,
                           .ran = &variants[row],
                           .product = {.m = work / 4, .n = 1, .k = 1},
                           .queued_bytes = work / 2};
}

static void nothing_is_foretold_of_what_was_not_seen(void **state) {
    const struct mm_forecast forecast = {0};
    const struct mm_job job = job_of(TELLING, 0);
    (void)state;
    assert_true(mm_forecast_ns(&forecast, &job, job.ran) == 0.0);
}

static void the_best_time_counts(void **state) {
    struct mm_forecast forecast = {0};
    struct mm_job job = job_of(TELLING, 0);
    (void)state;
    job.span_ns[MM_SPAN_KERNEL] = 3000 * US;
    mm_forecast_learn(&forecast, &job);
    assert_true(mm_forecast_ns(&forecast, &job, &variants[0]) == 3000.0 * US);
    assert_true(mm_forecast_ns(&forecast, &job, &variants[1]) == 0.0);
    job.span_ns[MM_SPAN_KERNEL] = 2000 * US;
    mm_forecast_learn(&forecast, &job);
    job.span_ns[MM_SPAN_KERNEL] = 9000 * US;
    mm_forecast_learn(&forecast, &job);
    job.span_ns[MM_SPAN_KERNEL] = 0; /* nothing ran */
    mm_forecast_learn(&forecast, &job);
    const struct mm_job larger = job_of(4 * TELLING, 0);
    assert_true(mm_forecast_ns(&forecast, &larger, &variants[0]) == 8000.0 * US);
}

static void work_is_operations_and_bytes(void **state) {
    struct mm_forecast forecast = {0};
    struct mm_job operations = job_of(0, 0);
    struct mm_job bytes = job_of(0, 0);
    (void)state;
    operations.product.m = TELLING / 2; /* of which each has two */
    operations.span_ns[MM_SPAN_KERNEL] = 1000 * US;
    bytes.queued_bytes = 2 * TELLING;
    mm_forecast_learn(&forecast, &operations);
    assert_true(mm_forecast_ns(&forecast, &bytes, &variants[0]) == 2000.0 * US);
    bytes.queued_bytes = 4 * TELLING;
    bytes.span_ns[MM_SPAN_KERNEL] = 800 * US;
    mm_forecast_learn(&forecast, &bytes);
    assert_true(mm_forecast_ns(&forecast, &operations, &variants[0]) == 200.0 * US);
}

static void no_work_tells_nothing(void **state) {
    struct mm_forecast forecast = {0};
    struct mm_job job = job_of(0, 0);
    (void)state;
    job.span_ns[MM_SPAN_KERNEL] = job.span_ns[MM_SPAN_UPLOAD] = 5000 * US;
    mm_forecast_learn(&forecast, &job);
    job = job_of(TELLING, 0);
    assert_true(mm_forecast_ns(&forecast, &job, &variants[0]) == 0.0);
}

/* What took no longer than a launch does. */
static void short_times_tell_nothing(void **state) {
    struct mm_forecast forecast = {0};
    struct mm_job job = job_of(TELLING, 0);
    (void)state;
    job.uploaded_bytes = TELLING;
    job.span_ns[MM_SPAN_KERNEL] = job.span_ns[MM_SPAN_UPLOAD] = 50 * US - 1;
    mm_forecast_learn(&forecast, &job);
    assert_true(mm_forecast_ns(&forecast, &job, &variants[0]) == 0.0);
    job.span_ns[MM_SPAN_KERNEL] = 50 * US;
    mm_forecast_learn(&forecast, &job);
    assert_true(mm_forecast_ns(&forecast, &job, &variants[0]) == 50.0 * US);
}

/* A small job that was held up: by its rate, large ones would take hours. */
static void little_work_tells_nothing_of_much(void **state) {
    struct mm_forecast forecast = {0};
    const struct mm_job large = job_of(4000 * (size_t)TELLING, 0);
    struct mm_job job = job_of(TELLING - 4, 0);
    (void)state;
    job.uploaded_bytes = TELLING - 1;
    job.span_ns[MM_SPAN_KERNEL] = job.span_ns[MM_SPAN_UPLOAD] = 9000 * US;
    mm_forecast_learn(&forecast, &job);
    assert_true(mm_forecast_ns(&forecast, &large, &variants[0]) == 0.0);
}

/* Neither little work nor a short time keeps a job from mending what is known. */
static void any_job_mends_a_rate(void **state) {
    struct mm_forecast forecast = {0};
    const struct mm_job large = job_of(TELLING, 0);
    struct mm_job job = job_of(TELLING, 0);
    (void)state;
    job.uploaded_bytes = TELLING;
    job.span_ns[MM_SPAN_KERNEL] = job.span_ns[MM_SPAN_UPLOAD] = 9000 * US;
    mm_forecast_learn(&forecast, &job);
    job = job_of(TELLING / 10, 0);
    job.uploaded_bytes = TELLING / 10;
    job.span_ns[MM_SPAN_KERNEL] = 20 * US;
    job.span_ns[MM_SPAN_UPLOAD] = 30 * US;
    mm_forecast_learn(&forecast, &job);
    assert_true(mm_forecast_ns(&forecast, &large, &variants[0]) == (200.0 + 300.0 / 2) * US);
}

/* Of a job that asks for one, which then lasts as much longer. */
static void checks_take_their_time(void **state) {
    struct mm_forecast forecast = {0};
    const struct mm_job unchecked = job_of(TELLING, 0);
    struct mm_job job = job_of(TELLING, 0);
    (void)state;
    job.queued_bytes = TELLING;
    job.verification.took_ns = 700 * US;
    mm_forecast_learn(&forecast, &job); /* it asked for none */
    job.verify = true;
    assert_true(mm_forecast_ns(&forecast, &job, &variants[0]) == 0.0);
    mm_forecast_learn(&forecast, &job);
    assert_true(mm_forecast_ns(&forecast, &job, &variants[0]) == 700.0 * US);
    assert_true(mm_forecast_ns(&forecast, &unchecked, &variants[0]) == 0.0);
}

/* Without depth there are only zeros to write: by that time, others would be foretold to take none. */
static void no_depth_tells_nothing(void **state) {
    static const struct mm_variant transpose = {.name = "transpose", .op = MM_TRANSPOSE};
    static const struct mm_backend moves = {.name = "moves", .variants = &transpose, .variant_count = 1};
    struct mm_forecast forecast = {0};
    struct mm_job job = job_of(TELLING, 0);
    (void)state;
    job.product.k = 0;
    job.queued_bytes = TELLING;
    job.span_ns[MM_SPAN_KERNEL] = 60 * US;
    mm_forecast_learn(&forecast, &job);
    assert_true(mm_forecast_ns(&forecast, &job, &variants[0]) == 0.0);
    job.backend = &moves;
    job.ran = &transpose;
    mm_forecast_learn(&forecast, &job);
    assert_true(mm_forecast_ns(&forecast, &job, &transpose) == 60.0 * US);
}

/* Which go together: they must not write on what is known of the copies. */
static void rows_past_the_table_do_no_harm(void **state) {
    struct mm_forecast forecast = {0};
    struct mm_job job = job_of(TELLING, MM_FORECAST_VARIANTS_MAX);
    (void)state;
    job.span_ns[MM_SPAN_KERNEL] = 3000 * US;
    mm_forecast_learn(&forecast, &job);
    assert_true(forecast.copy_ns == 0.0);
    assert_true(mm_forecast_ns(&forecast, &job, &variants[MM_FORECAST_VARIANTS_MAX + 1]) == 3000.0 * US);
    assert_true(mm_forecast_ns(&forecast, &job, &variants[0]) == 0.0);
}

static void copies_count_by_their_bytes(void **state) {
    struct mm_forecast forecast = {0};
    struct mm_job job = job_of(TELLING, 1);
    (void)state;
    job.uploaded_bytes = 4 * TELLING;
    job.downloaded_bytes = TELLING;
    job.span_ns[MM_SPAN_UPLOAD] = 700 * US;
    job.span_ns[MM_SPAN_DOWNLOAD] = 300 * US;
    job.span_ns[MM_SPAN_KERNEL] = 4000 * US;
    mm_forecast_learn(&forecast, &job);
    assert_true(mm_forecast_ns(&forecast, &job, &variants[1]) == (4000.0 + 100.0) * US);
    assert_true(mm_forecast_ns(&forecast, &job, &variants[0]) == 100.0 * US);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_foretold_of_what_was_not_seen),
        cmocka_unit_test(the_best_time_counts),
        cmocka_unit_test(work_is_operations_and_bytes),
        cmocka_unit_test(no_work_tells_nothing),
        cmocka_unit_test(short_times_tell_nothing),
        cmocka_unit_test(little_work_tells_nothing_of_much),
        cmocka_unit_test(any_job_mends_a_rate),
        cmocka_unit_test(checks_take_their_time),
        cmocka_unit_test(no_depth_tells_nothing),
        cmocka_unit_test(rows_past_the_table_do_no_harm),
        cmocka_unit_test(copies_count_by_their_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
