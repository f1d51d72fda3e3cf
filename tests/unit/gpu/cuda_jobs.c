/* Jobs on a CUDA device (gpu/cuda/run.c, memory.c, launch.c, copy.c), on a made-up CUDA runtime. No GPU takes
 * part. */
#include "cuda_job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { SCRATCH_BYTES = 4096, SAVED_BYTES = 3072 };

static size_t scratch_given; /* to the last launch */

/* Fills its scratch memory, and tells a path, as a kernel would. */
static enum mm_status launch_with_scratch(const struct mm_product *product, struct mm_lane *lane,
                                          struct mm_error *error) {
    const struct mm_cuda_layout layout = {.kernel = &fake_kernels.plain,
                                          .block_rows = FAKE_BLOCK,
                                          .block_cols = FAKE_BLOCK,
                                          .scratch_bytes = SCRATCH_BYTES,
                                          .scratch_saved_bytes = SAVED_BYTES};
    if (lane->purpose == MM_CUDA_RUN) {
        scratch_given = lane->scratch_bytes;
        memset(lane->scratch, 0xa5, lane->scratch_bytes);
        *lane->path = (struct mm_path){MM_PATH_REPAIRED, 3};
    }
    return mm_cuda_launch(&layout, product, lane, error);
}

static const struct mm_variant scratching = {.name = "scratching", .launch = launch_with_scratch};

/* Rows of A and of C have an end that is not theirs. */
static void one_alone_is_copied_there_and_back(void **state) {
    struct test_job test;
    struct mm_job *job = &test.job;
    (void)state;
    job_init(&test, &ours, 9, 20, 31);
    job->is_locked = false;
    job->product.a.ld = 23;
    job->product.c.ld = 40;
    set_key(&test);
    assert_int_equal(job->batch_key, 0);
    run(1, &job, 1);
    expect_product(&test);
    assert_int_equal(job->batched, 1);
    assert_int_equal(job->uploaded_bytes, (9 * 20 + 20 * 31) * 4);
    assert_int_equal(job->downloaded_bytes, 9 * 31 * 4);
    assert_int_equal(job->span_ns[MM_SPAN_UPLOAD], 1000000);
    assert_int_equal(job->span_ns[MM_SPAN_KERNEL], 2000000);
    assert_int_equal(job->span_ns[MM_SPAN_DOWNLOAD], 3000000);
    assert_true(mm_job_rate(job) == 2.0 * 9 * 20 * 31 / 2e6);
    assert_int_equal(fake_cuda.launches, 1);
    assert_int_equal(fake_cuda.copies, 3);
}

/* Behind the matrices, which stay as they are. What was told is not told of the next. */
static void scratch_memory_lies_beside_the_matrices(void **state) {
    struct test_job test;
    struct mm_job *job = &test.job;
    (void)state;
    job_init(&test, &scratching, 9, 20, 31);
    run(1, &job, 1);
    expect_product(&test);
    assert_int_equal(job->path.kind, MM_PATH_REPAIRED);
    assert_int_equal(job->path.repaired, 3);
    assert_true(fake_cuda.memory_used >= (9 * 20 + 20 * 31 + 9 * 31) * 4 + SCRATCH_BYTES);
    job_init(&test, &ours, 9, 20, 31);
    run(1, &job, 1);
    expect_product(&test);
    assert_int_equal(job->path.kind, MM_PATH_NONE);
}

static enum mm_status run_scratching(size_t memory_max) {
    struct test_job test;
    struct mm_job *job = &test.job;
    job_init(&test, &scratching, 16, 16, 16);
    fake_cuda.memory_max = memory_max;
    scratch_given = 0;
    mm_cuda_begin(&device.head, 1, &job, 1);
    if (job->error.status == MM_OK) {
        mm_cuda_end(&device.head, 1, &job, 1);
        expect_product(&test);
    }
    return job->error.status;
}

/* What it can save it does without where there is no more memory. */
static void scratch_memory_can_be_less(void **state) {
    const size_t matrices = 3 * 16 * 16 * 4;
    (void)state;
    assert_int_equal(run_scratching(matrices + SCRATCH_BYTES), MM_OK);
    assert_int_equal(scratch_given, SCRATCH_BYTES);
    assert_int_equal(run_scratching(matrices + SCRATCH_BYTES), MM_OK); /* what the lane has is enough */
    assert_int_equal(scratch_given, SCRATCH_BYTES);
    drop(state);
    reset(state);
    assert_int_equal(run_scratching(matrices + SCRATCH_BYTES - 1), MM_OK);
    assert_int_equal(scratch_given, SCRATCH_BYTES - SAVED_BYTES);
    drop(state);
    reset(state);
    assert_int_equal(run_scratching(matrices + SCRATCH_BYTES - SAVED_BYTES - 1), MM_NO_DEVICE_MEMORY);
    assert_int_equal(scratch_given, 0);
}

/* Once it is over, others find all of the device's memory. */
static void the_largest_leave_nothing_taken(void **state) {
    (void)state;
    device.head.memory_bytes = 8 * 3 * 40 * 40 * 4;
    run_square(0, 41, MM_OK);
    assert_int_equal(fake_cuda.memory_used, 0);
    run_square(0, 20, MM_OK);
    assert_int_not_equal(fake_cuda.memory_used, 0);
}

static void a_lane_keeps_its_workspace(void **state) {
    (void)state;
    run_square(0, 20, MM_OK);
    run_square(0, 20, MM_OK);
    run_square(0, 3, MM_OK);
    run_square(0, 22, MM_OK); /* there is half as much again */
    assert_int_equal(fake_cuda.taken, 1);
    run_square(0, 40, MM_OK);
    assert_int_equal(fake_cuda.taken, 2);
    run_square(1, 3, MM_OK);
    assert_int_equal(fake_cuda.taken, 3);
}

/* Room for one and a half of the large ones: with it, and without what there might be besides. */
static void lanes_without_jobs_give_their_workspaces(void **state) {
    const size_t bytes = 3 * ((44 * 44 * 4 + 255) / 256 * 256);
    struct test_job test;
    struct mm_job *job = &test.job;
    (void)state;
    fake_cuda.memory_max = bytes + 100;
    run_square(0, 44, MM_OK);
    run_square(1, 44, MM_OK);
    assert_int_equal(fake_cuda.memory_used, bytes);
    assert_int_equal(mm_cuda_memory_free(&device.head), bytes + 100);

    job_init(&test, &ours, 40, 40, 40);
    mm_cuda_begin(&device.head, 1, &job, 1);
    assert_int_equal(job->error.status, MM_OK);
    assert_false(mm_cuda_memory_free(&device.head) > 100);
    run_square(0, 44, MM_NO_DEVICE_MEMORY);
    mm_cuda_end(&device.head, 1, &job, 1);
    expect_product(&test);
    run_square(0, 44, MM_OK);
}

static void a_launch_that_fails_fails_all_and_leaves_the_lane_well(void **state) {
    struct test_job tests[2];
    struct mm_job *jobs[2] = {&tests[0].job, &tests[1].job};
    (void)state;
    for (int index = 0; index < 2; index++) {
        job_init(&tests[index], &ours, 17, 17, 17);
        set_key(&tests[index]);
    }
    fake_cuda.launch_fails = cudaErrorInvalidValue;
    mm_cuda_begin(&device.head, 0, jobs, 2);
    for (int index = 0; index < 2; index++)
        assert_int_equal(jobs[index]->error.status, MM_INTERNAL);
    assert_false(device.lanes[0].is_busy);
    fake_cuda.launch_fails = cudaSuccess;
    run_square(0, 17, MM_OK);
}

static void what_fails_later_fails_all(void **state) {
    struct test_job tests[2];
    struct mm_job *jobs[2] = {&tests[0].job, &tests[1].job};
    (void)state;
    for (int index = 0; index < 2; index++) {
        job_init(&tests[index], &ours, 3, 3, 3);
        set_key(&tests[index]);
    }
    mm_cuda_begin(&device.head, 0, jobs, 2);
    fake_cuda.is_late = true;
    assert_false(mm_cuda_is_over(&device.head, 0));
    fake_cuda.is_late = false;
    assert_true(mm_cuda_is_over(&device.head, 0));
    fake_cuda.event_fails = cudaErrorIllegalAddress;
    assert_true(mm_cuda_is_over(&device.head, 0));
    mm_cuda_end(&device.head, 0, jobs, 2);
    for (int index = 0; index < 2; index++)
        assert_int_equal(jobs[index]->error.status, MM_INTERNAL);
}

static void the_largest_run_alone(void **state) {
    struct test_job test;
    (void)state;
    job_init(&test, &ours, 40, 40, 40);
    device.head.memory_bytes = 8 * 3 * 40 * 40 * 4;
    assert_false(mm_cuda_wants_all(&device.head, &ours, &test.job));
    device.head.memory_bytes -= 8;
    assert_true(mm_cuda_wants_all(&device.head, &ours, &test.job));
    device.head.memory_bytes += 8 * SCRATCH_BYTES;
    assert_false(mm_cuda_wants_all(&device.head, &ours, &test.job));
    assert_true(mm_cuda_wants_all(&device.head, &scratching, &test.job));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_DEVICE(one_alone_is_copied_there_and_back),
        WITH_DEVICE(scratch_memory_lies_beside_the_matrices),
        WITH_DEVICE(scratch_memory_can_be_less),
        WITH_DEVICE(the_largest_leave_nothing_taken),
        WITH_DEVICE(a_lane_keeps_its_workspace),
        WITH_DEVICE(lanes_without_jobs_give_their_workspaces),
        WITH_DEVICE(a_launch_that_fails_fails_all_and_leaves_the_lane_well),
        WITH_DEVICE(what_fails_later_fails_all),
        WITH_DEVICE(the_largest_run_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
