/* Products that a CUDA device is asked to check (gpu/cuda/run.c), on a made-up CUDA runtime whose check is
 * the host's. No GPU takes part. */
#include "cuda_job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* Of matrices whose rows are longer, so that what is checked is what lies on the device. */
static void check_job(struct test_job *test, const struct mm_variant *ran) {
    struct mm_job *job = &test->job;
    job_init(test, ran, 9, 20, 31);
    job->verify = true;
    job->product.a.ld = 23;
    job->product.c.ld = 40;
    run(1, &job, 1);
}

static void a_check_is_in_no_span(void **state) {
    struct test_job test;
    struct mm_job *job = &test.job;
    (void)state;
    check_job(&test, &ours);
    expect_product(&test);
    assert_int_equal(fake_cuda.checks, 1);
    assert_true(job->verification.is_done);
    assert_int_equal(mm_verification_verdict(&job->verification), MM_VERDICT_PASSED);
    assert_int_equal(job->verification.rows_judged, 9);
    assert_int_equal(job->verification.took_ns, 4000000);
    assert_int_equal(job->span_ns[MM_SPAN_UPLOAD], 1000000);
    assert_int_equal(job->span_ns[MM_SPAN_KERNEL], 2000000);
    assert_int_equal(job->span_ns[MM_SPAN_DOWNLOAD], 3000000);
    assert_int_equal(job->downloaded_bytes, 9 * 31 * 4);
    assert_int_equal(device.lanes[1].last, MM_CUDA_VERIFIED);
    job_init(&test, &alone, 9, 20, 31); /* the next of this lane asks for none */
    run(1, &job, 1);
    assert_false(job->verification.is_done);
    assert_int_equal(fake_cuda.checks, 1);
    assert_int_equal(device.lanes[1].last, MM_CUDA_DOWNLOADED);
}

static enum mm_status launch_and_spoil(const struct mm_product *product, struct mm_lane *lane,
                                       struct mm_error *error) {
    const enum mm_status status = ours.launch(product, lane, error);
    if (lane->purpose == MM_CUDA_RUN)
        ((float *)product->c.data)[product->n + 3] += 1.0F; /* element 3 of row 1 */
    return status;
}

static void what_was_computed_wrongly_fails_its_check_alone(void **state) {
    static const struct mm_variant spoilt = {.name = "spoilt", .launch = launch_and_spoil};
    struct test_job test;
    (void)state;
    check_job(&test, &spoilt);
    assert_int_equal(test.job.error.status, MM_OK);
    assert_int_equal(mm_verification_verdict(&test.job.verification), MM_VERDICT_FAILED);
    assert_int_equal(test.job.verification.row, 1);
    assert_true(test.job.verification.residual == 1.0);
}

static void a_check_that_cannot_be_done_fails_the_job(void **state) {
    struct test_job test;
    struct mm_job *job = &test.job;
    (void)state;
    job_init(&test, &ours, 9, 20, 31);
    job->verify = true;
    fake_cuda.check_fails = cudaErrorInvalidValue;
    mm_cuda_begin(&device.head, 0, &job, 1);
    assert_int_equal(job->error.status, MM_INTERNAL);
    assert_false(device.lanes[0].is_busy);
    fake_cuda.check_fails = cudaSuccess;
    run_square(0, 17, MM_OK);
}

static void who_wants_a_check_goes_alone(void **state) {
    struct test_job test;
    (void)state;
    job_init(&test, &ours, 5, 5, 5);
    set_key(&test);
    assert_int_not_equal(test.job.batch_key, 0);
    test.job.verify = true;
    set_key(&test);
    assert_int_equal(test.job.batch_key, 0);
}

/* What a check takes is the job's too: 8 bytes less than that, and it runs alone. */
static void a_check_counts_in_the_memory_of_its_job(void **state) {
    struct test_job test;
    (void)state;
    job_init(&test, &ours, 40, 40, 40);
    device.head.memory_bytes = 8 * 3 * 40 * 40 * 4;
    assert_false(mm_cuda_wants_all(&device.head, &ours, &test.job));
    test.job.verify = true;
    assert_true(mm_cuda_wants_all(&device.head, &ours, &test.job));
    device.head.memory_bytes += 8 * mm_cuda_verify_bytes(&test.job.product);
    assert_false(mm_cuda_wants_all(&device.head, &ours, &test.job));
    device.head.memory_bytes -= 8;
    assert_true(mm_cuda_wants_all(&device.head, &ours, &test.job));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_DEVICE(a_check_is_in_no_span),
        WITH_DEVICE(what_was_computed_wrongly_fails_its_check_alone),
        WITH_DEVICE(a_check_that_cannot_be_done_fails_the_job),
        WITH_DEVICE(who_wants_a_check_goes_alone),
        WITH_DEVICE(a_check_counts_in_the_memory_of_its_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
