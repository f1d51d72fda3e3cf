/* A forecast follows the best times that were seen, of kernels by their variant and of copies. */
#include "gpu/forecast.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct mm_variant variants[2] = {{.name = "one"}, {.name = "two"}};
static const struct mm_backend backend = {.name = "made up", .variants = variants, .variant_count = 2};

/* A job with `work` operations and bytes, half of each. */
static struct mm_job job_of(size_t work, unsigned row) {
    return (struct mm_job){.backend = &backend,
                           .ran = &variants[row],
                           .product = {.m = work / 4, .n = 1, .k = 1},
                           .queued_bytes = work / 2};
}

static void nothing_is_foretold_of_what_was_not_seen(void **state) {
    const struct mm_forecast forecast = {0};
    const struct mm_job job = job_of(1000, 0);
    (void)state;
    assert_true(mm_forecast_ns(&forecast, &job, job.ran) == 0.0);
}

static void the_best_time_counts(void **state) {
    struct mm_forecast forecast = {0};
    struct mm_job job = job_of(1000, 0);
    (void)state;
    job.span_ns[MM_SPAN_KERNEL] = 3000;
    mm_forecast_learn(&forecast, &job);
    assert_true(mm_forecast_ns(&forecast, &job, &variants[0]) == 3000.0);
    assert_true(mm_forecast_ns(&forecast, &job, &variants[1]) == 0.0);
    job.span_ns[MM_SPAN_KERNEL] = 2000;
    mm_forecast_learn(&forecast, &job);
    job.span_ns[MM_SPAN_KERNEL] = 9000;
    mm_forecast_learn(&forecast, &job);
    job.span_ns[MM_SPAN_KERNEL] = 0; /* nothing ran */
    mm_forecast_learn(&forecast, &job);
    const struct mm_job larger = job_of(4000, 0);
    assert_true(mm_forecast_ns(&forecast, &larger, &variants[0]) == 8000.0);
}

static void copies_count_by_their_bytes(void **state) {
    struct mm_forecast forecast = {0};
    struct mm_job job = job_of(1000, 1);
    (void)state;
    job.uploaded_bytes = 400;
    job.downloaded_bytes = 100;
    job.span_ns[MM_SPAN_UPLOAD] = 700;
    job.span_ns[MM_SPAN_DOWNLOAD] = 300;
    job.span_ns[MM_SPAN_KERNEL] = 4000;
    mm_forecast_learn(&forecast, &job);
    assert_true(mm_forecast_ns(&forecast, &job, &variants[1]) == 4000.0 + 500 * 2.0);
    assert_true(mm_forecast_ns(&forecast, &job, &variants[0]) == 500 * 2.0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_foretold_of_what_was_not_seen),
        cmocka_unit_test(the_best_time_counts),
        cmocka_unit_test(copies_count_by_their_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
