/* Tests the queue: limits, deadlines, the choice of the device, and jobs that end without running. */
#include "scene.h"
#include "gpu/store/store.h"
#include "tests/unit/few_threads.h"

static void without_threads_there_is_no_queue(void **state) {
    const struct mm_queue_limits limits = {.jobs_max = 1};
    struct mm_device *const devices[] = {&fakes[0].device, &fakes[1].device};
    struct mm_error error;
    set_fakes((struct setting){.lanes = 2});
    for (int count = 0; count < 4; count++) {
        threads_left = count;
        assert_int_equal(mm_queue_open(devices, 2, &limits, &queue, &error), MM_INTERNAL);
        assert_int_equal(error.status, MM_INTERNAL);
        assert_null(queue);
    }
    threads_left = -1;
    assert_int_equal(mm_queue_open(devices, 2, &limits, &queue, &error), MM_OK);
}

static void expect_waiting(size_t count, size_t bytes) {
    assert_int_equal(mm_queue_look(queue).jobs_waiting, count);
    assert_int_equal(mm_queue_look(queue).bytes_waiting, bytes);
}

static void a_full_queue_refuses(void **state) {
    enum { MOST = 4 };
    struct mm_error error;
    open_scene((struct setting){.closed = true, .jobs_max = MOST});
    submit_product(&jobs[0], 2);
    wait_begun(fake, 1); /* a job that runs does not count as waiting */
    for (int index = 1; index <= MOST; index++) {
        assert_int_equal(mm_queue_check_depth(queue, 0, NULL), MM_OK);
        submit_product(&jobs[index], 2);
    }
    assert_int_equal(mm_queue_check_depth(queue, 0, NULL), MM_BUSY);
    assert_int_equal(mm_queue_look(queue).jobs, MOST + 1);
    expect_waiting(MOST, MOST * 3 * 2 * 2 * sizeof(float));
    job_init(&jobs[MOST + 1], "naive", 2);
    assert_int_equal(try_submit(&jobs[MOST + 1], &error), MM_BUSY);
    assert_int_equal(error.status, MM_BUSY);
    open_gate(fake);
    wait_all(jobs, MOST + 1);
    assert_string_equal(jobs[0].job.outcome.ran->name, "naive");
    expect_waiting(0, 0);
    assert_int_equal(jobs[MOST + 1].done_count, 0);
}

static void late_job_does_not_begin(void **state) {
    struct test_job *late = &jobs[0], *unstarted = &jobs[1], *failing = &jobs[2];
    open_scene((struct setting){.lanes = 2, .closed = true, .backend = &fake_async});
    for (int index = 0; index < 3; index++)
        job_init(&jobs[index], "naive", 2);
    fake->makes_late = true;
    pthread_mutex_lock(&fake->mutex); /* no job begins before two are submitted */
    submit(late);
    submit(failing);
    pthread_mutex_unlock(&fake->mutex);
    wait_begun(fake, 2);
    const uint64_t deadline_ns = unstarted->work->deadline_ns = mm_clock_ns() + 1;
    submit(unstarted);
    while (mm_clock_ns() <= deadline_ns)
        continue;
    open_lane(fake, 0); /* lane of the late job */
    job_wait(late, MM_TIMEOUT);
    assert_non_null(strstr(late->work->error.detail, "dropped"));
    job_wait(unstarted, MM_TIMEOUT);
    assert_non_null(strstr(unstarted->work->error.detail, "not started"));
    assert_true(unstarted->work->waited_ns > 0);
    assert_true(unstarted->work->device == NULL && unstarted->job.outcome.ran == NULL);
    pthread_mutex_lock(&fake->mutex);
    fake->fail_end = true;
    pthread_mutex_unlock(&fake->mutex);
    open_gate(fake);
    job_wait(failing, MM_DEVICE_FAILED); /* the device's failure has precedence over the deadline */
    assert_int_equal(begun_by(fake), 2);
}

/* A job may be submitted again. The second run must not show any results of the first run. */
static void job_can_be_submitted_again(void **state) {
    struct mm_job *job = &jobs[0].job;
    open_scene((struct setting){0});
    for (int is_late = 0; is_late < 2; is_late++) {
        job_init(&jobs[0], "naive", 2);
        memset(&job->work.error, 0x5a, sizeof job->work.error);
        job->outcome.ran = job->variant;
        job->work.device = &fake->device;
        job->outcome.uploaded_bytes = job->outcome.downloaded_bytes = 1;
        job->outcome.batched = 7;
        job->outcome.path = (struct mm_path){MM_PATH_REPAIRED, 7};
        job->outcome.verification.is_done = true;
        job->outcome.span_ns[MM_SPAN_UPLOAD] = 1;
        job->work.deadline_ns = is_late;
        submit(&jobs[0]);
        job_wait(&jobs[0], is_late ? MM_TIMEOUT : MM_OK);
        assert_ptr_equal(job->outcome.ran, is_late ? NULL : job->variant);
        assert_ptr_equal(job->work.device, is_late ? NULL : &fake->device);
        assert_int_equal(job->outcome.uploaded_bytes + job->outcome.downloaded_bytes +
                             job->outcome.span_ns[MM_SPAN_UPLOAD],
                         0);
        assert_int_equal(job->outcome.batched, 1);
        assert_int_equal(job->outcome.path.kind, MM_PATH_NONE);
        assert_false(job->outcome.verification.is_done);
    }
}

/* Submitting does not plan, because the caller may hold a lock. The worker reports a plan that fails. */
static void a_job_is_planned_once(void **state) {
    struct mm_error error;
    open_scene((struct setting){0});
    __atomic_store_n(&plans, 0, __ATOMIC_SEQ_CST);
    job_init(&jobs[0], "naive", 2);
    mm_queue_prepare(queue, jobs[0].work);
    assert_int_equal(plans, 1);
    assert_int_equal(mm_queue_submit(queue, jobs[0].work, NULL), MM_OK);
    job_wait(&jobs[0], MM_OK);
    assert_int_equal(plans, 1);
    job_init(&jobs[1], "nowhere", 2);
    mm_queue_prepare(queue, jobs[1].work);
    assert_int_equal(mm_queue_submit(queue, jobs[1].work, &error), MM_UNSUPPORTED);
    assert_string_equal(error.detail, "no fake device here can run nowhere");
    assert_int_equal(mm_queue_look(queue).jobs, 0);
}

static bool run_now(size_t m, size_t k, size_t n) {
    struct mm_product *product = &jobs[0].job.product;
    *product = (struct mm_product){.m = m, .n = n, .k = k};
    product->a = mm_matrix_dense(MM_FLOAT32, m, k, NULL);
    product->b = mm_matrix_dense(MM_FLOAT32, k, n, NULL);
    mm_queue_prepare(queue, jobs[0].work);
    return mm_queue_run(queue, &jobs[0].job);
}

static void tiny_product_on_the_host_runs_at_once(void **state) {
    struct mm_job *job = &jobs[0].job;
    open_scene((struct setting){.closed = true, .backend = &fake_host}); /* no worker could end the job */
    job_init(&jobs[0], "auto", 4);
    assert_true(run_now(4, 2, 2));
    assert_int_equal(job->work.error.status, MM_OK);
    assert_string_equal(job->outcome.ran->name, "naive");
    assert_ptr_equal(job->work.device, &fake->device);
    assert_int_equal(job->outcome.span_ns[MM_SPAN_KERNEL], 7);
    assert_int_equal(job->outcome.batched, 1);
    job->verify = true; /* only the backend's worker can check a product */
    assert_false(run_now(4, 2, 2));
    job->verify = false;
    assert_true(run_now(2000, 2, 2)); /* 16000 operations are allowed, but not one row more */
    assert_false(run_now(2001, 2, 2));
    assert_false(run_now(1, 5000, 1)); /* fewer operations, but 40 KB to read */
    assert_true(run_now(0, 2, 2));
    assert_int_equal(job->outcome.span_ns[MM_SPAN_KERNEL], 0);
    fake->fail_measure = true;
    assert_true(run_now(4, 2, 2));
    assert_int_equal(job->work.error.status, MM_INTERNAL);
    __atomic_store_n(&fake->device.failed, 1, __ATOMIC_RELAXED);
    assert_false(run_now(4, 2, 2));
    __atomic_store_n(&fake->device.failed, 0, __ATOMIC_RELAXED);
    mm_queue_stop(queue);
    assert_false(run_now(4, 2, 2)); /* mm_queue_submit then reports the error */
    assert_int_equal(jobs[0].done_count, 0);
    close_queue();
    open_scene((struct setting){0}); /* no device of the host */
    job_init(&jobs[0], "naive", 4);
    assert_false(run_now(4, 2, 2));
}

static void the_least_loaded_device_is_chosen(void **state) {
    static const unsigned devices[] = {0, 1, 1, 0};
    open_scene((struct setting){.devices = 2, .closed = true});
    job_init(&jobs[0], "naive", 1000); /* goes to the first device, which then has more work */
    submit(&jobs[0]);
    wait_begun(fake, 1);
    submit_product(&jobs[1], 2);
    submit_product(&jobs[2], 2);
    open_gate(fake);
    job_wait(&jobs[0], MM_OK); /* the first device is idle again */
    submit_product(&jobs[3], 2);
    open_gate(&fakes[1]);
    wait_all(jobs + 1, 3);
    for (int index = 0; index < 4; index++)
        assert_int_equal(jobs[index].work->device->index, devices[index]);
}

static void submit_stored(struct test_job *test, struct mm_stored *b) {
    job_init(test, "naive", 2);
    test->job.sources[MM_OPERAND_B] = (struct mm_source){.kind = MM_SOURCE_STORED, .stored = b};
    submit(test);
}

/* In this test, a job counts as much as copying 6 bytes. */
static void jobs_go_to_devices_with_their_operands(void **state) {
    static const unsigned devices[] = {1, 1, 0, 0, 0};
    struct mm_device_copy copies[] = {{.device = &fakes[0].device}, {.device = &fakes[1].device}};
    struct mm_stored value = {.bytes = 1000};
    open_scene((struct setting){.devices = 2, .closed = true});
    mm_stored_add_copy(&value, &copies[0]); /* the memory of this copy was freed */
    mm_stored_add_copy(&value, &copies[1]);
    copies[1].filled.end = 1000;
    submit_stored(&jobs[0], &value);
    submit_stored(&jobs[1], &value); /* waits, because copying to the idle device would take longer */
    value.bytes = 8;
    submit_stored(&jobs[2], &value);
    copies[0].filled.end = 1000;
    value.bytes = 1000;
    submit_stored(&jobs[3], &value); /* both devices have a copy, so the one with less work runs the job */
    open_gate(&fakes[0]);
    open_gate(&fakes[1]);
    wait_all(jobs, 4);
    copies[1].filled.end = 0;
    submit_stored(&jobs[4], &value);
    wait_all(&jobs[4], 1);
    for (int index = 0; index < 5; index++)
        assert_int_equal(jobs[index].work->device->index, devices[index]);
}

static void job_goes_to_a_device_that_has_its_variant(void **state) {
    open_scene((struct setting){.devices = 2});
    job_init(&jobs[0], "second", 2);
    submit(&jobs[0]);
    job_wait(&jobs[0], MM_OK);
    assert_int_equal(jobs[0].work->device->index, 1);
    job_init(&jobs[1], "nowhere", 2);
    assert_int_equal(try_submit(&jobs[1], NULL), MM_UNSUPPORTED);
    __atomic_store_n(&fakes[1].device.failed, 1, __ATOMIC_RELAXED);
    assert_int_equal(try_submit(&jobs[0], NULL), MM_NOT_READY);
}

static void an_empty_product_needs_no_device(void **state) {
    static const struct mm_product products[] = {
        {.m = 0, .n = 2, .k = 2}, {.m = 2, .n = 0, .k = 2}, {.m = 2, .n = 2, .k = 0}};
    struct mm_job *job = &jobs[0].job;
    open_scene((struct setting){0});
    for (int index = 0; index < 3; index++) {
        job_init(&jobs[0], "auto", 2);
        job->product = products[index];
        job->verify = index == 1; /* the check must pass */
        submit(&jobs[0]);
        job_wait(&jobs[0], MM_OK);
        assert_true(job->outcome.verification.is_done == job->verify);
        assert_int_equal(mm_verification_verdict(&job->outcome.verification), MM_VERDICT_PASSED);
        assert_string_equal(job->outcome.ran->name, "naive");
        assert_true(mm_outcome_rate(&job->outcome) == 0.0);
        assert_int_equal(begun_by(fake), index == 2); /* with k = 0 it must write zeros */
    }
}

static void stop_refuses_and_close_drains(void **state) {
    open_scene((struct setting){0});
    submit_product(&jobs[0], 2);
    submit_product(&jobs[1], 2);
    mm_queue_stop(queue);
    job_init(&jobs[2], "naive", 2);
    assert_int_equal(try_submit(&jobs[2], NULL), MM_STOPPING);
    close_queue();
    wait_all(jobs, 2);
}

static void ask_and_count(struct mm_work *work) {
    (void)mm_queue_look(queue).jobs;
    count_done(work);
}

/* The devices get jobs in turn, so jobs 0 and 1 run. A done callback is allowed to call the queue. */
static void abort_ends_waiting_jobs(void **state) {
    open_scene((struct setting){.devices = 2, .closed = true});
    for (int index = 0; index < 6; index++) {
        job_init(&jobs[index], "naive", 2);
        jobs[index].work->done = ask_and_count;
        submit(&jobs[index]);
        if (index < 2)
            wait_begun(&fakes[index], 1);
    }
    mm_queue_stop(queue);
    mm_queue_abort(queue, MM_STOPPING, "stopped");
    for (int index = 2; index < 6; index++)
        job_wait(&jobs[index], MM_STOPPING);
    assert_int_equal(mm_queue_look(queue).jobs, 2);
    open_gate(&fakes[0]);
    open_gate(&fakes[1]);
    wait_all(jobs, 2);
}

static void waiting_job_is_cancelled(void **state) {
    open_scene((struct setting){.closed = true, .jobs_max = 3});
    submit_product(&jobs[0], 2);
    wait_begun(fake, 1);
    for (int index = 1; index < 4; index++)
        submit_product(&jobs[index], 2);
    assert_int_equal(mm_queue_check_depth(queue, 0, NULL), MM_BUSY);
    assert_false(mm_queue_cancel(queue, jobs[0].work)); /* this job runs */
    assert_true(mm_queue_cancel(queue, jobs[2].work));
    assert_false(mm_queue_cancel(queue, jobs[2].work));
    assert_int_equal(mm_queue_check_depth(queue, 0, NULL), MM_OK);
    assert_true(mm_queue_cancel(queue, jobs[3].work)); /* last in the list */
    assert_true(mm_queue_cancel(queue, jobs[1].work)); /* first in the list */
    submit(&jobs[3]);
    assert_int_equal(mm_queue_look(queue).jobs, 2);
    open_gate(fake);
    job_wait(&jobs[0], MM_OK);
    job_wait(&jobs[3], MM_OK);
    close_queue();
    assert_int_equal(jobs[1].done_count + jobs[2].done_count, 0);
    assert_int_equal(fake->begun, 2);
}

RUN_TESTS_BETWEEN(NULL, close_scene, without_threads_there_is_no_queue, a_full_queue_refuses,
                  late_job_does_not_begin, job_can_be_submitted_again, a_job_is_planned_once,
                  tiny_product_on_the_host_runs_at_once, the_least_loaded_device_is_chosen,
                  jobs_go_to_devices_with_their_operands, job_goes_to_a_device_that_has_its_variant,
                  an_empty_product_needs_no_device, stop_refuses_and_close_drains, abort_ends_waiting_jobs,
                  waiting_job_is_cancelled)
