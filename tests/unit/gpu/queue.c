/* The queue's promises: bounds, one done() a job, deadlines, the least loaded device. */
#include "queue_job.h"

#include "tests/unit/few_threads.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { JOBS_MAX = 4 };

static void without_threads_there_is_no_queue(void **state) {
    const struct mm_queue_limits limits = {.jobs_max = 1, .bytes_max = 1};
    struct fake_device fakes[2];
    struct mm_device *const devices[] = {&fakes[0].device, &fakes[1].device};
    struct mm_queue *queue = NULL;
    struct mm_error error;
    (void)state;
    for (unsigned index = 0; index < 2; index++) {
        fake_device_init(&fakes[index], index, 2, true);
        fakes[index].device.thread_count = 2;
    }
    for (int count = 0; count < 4; count++) {
        threads_left = count;
        assert_int_equal(mm_queue_open(devices, 2, &limits, &queue, &error), MM_INTERNAL);
        assert_int_equal(error.status, MM_INTERNAL);
        assert_null(queue);
    }
    threads_left = -1;
    assert_int_equal(mm_queue_open(devices, 2, &limits, &queue, &error), MM_OK);
    mm_queue_close(queue);
    for (unsigned index = 0; index < 2; index++)
        fake_device_destroy(&fakes[index]);
}

static void a_full_queue_refuses(void **state) {
    struct fake_device fake;
    struct test_job jobs[JOBS_MAX + 2];
    struct mm_error error;
    size_t waiting = 0;
    size_t waiting_bytes = 0;
    (void)state;
    fake_device_init(&fake, 0, 1, false);
    struct mm_queue *queue = open_queue(&fake, 1, JOBS_MAX, SIZE_MAX);
    for (int index = 0; index < JOBS_MAX + 2; index++)
        job_init(&jobs[index], "naive", 2);
    assert_int_equal(mm_queue_submit(queue, &jobs[0].job, &error), MM_OK);
    fake_device_wait_begun(&fake, 1); /* it runs, and waits no more */
    for (int index = 1; index <= JOBS_MAX; index++) {
        assert_false(mm_queue_full(queue));
        assert_int_equal(mm_queue_submit(queue, &jobs[index].job, &error), MM_OK);
    }
    assert_true(mm_queue_full(queue));
    assert_int_equal(mm_queue_jobs(queue), JOBS_MAX + 1);
    mm_queue_waiting(queue, &waiting, &waiting_bytes);
    assert_int_equal(waiting, JOBS_MAX);
    assert_int_equal(waiting_bytes, JOBS_MAX * 3 * 2 * 2 * sizeof(float));
    assert_int_equal(mm_queue_submit(queue, &jobs[JOBS_MAX + 1].job, &error), MM_BUSY);
    assert_int_equal(error.status, MM_BUSY);
    fake_device_open_gate(&fake);
    for (int index = 0; index <= JOBS_MAX; index++) {
        job_wait(&jobs[index]);
        assert_int_equal(jobs[index].job.error.status, MM_OK);
        assert_string_equal(jobs[index].job.ran->name, "naive");
    }
    mm_queue_waiting(queue, &waiting, &waiting_bytes);
    assert_int_equal(waiting, 0);
    assert_int_equal(waiting_bytes, 0);
    assert_int_equal(jobs[JOBS_MAX + 1].done_count, 0);
    mm_queue_close(queue);
    fake_device_destroy(&fake);
}

static void bytes_are_bounded(void **state) {
    struct fake_device fake;
    struct test_job jobs[3];
    (void)state;
    fake_device_init(&fake, 0, 1, false);
    struct mm_queue *queue = open_queue(&fake, 1, 100, 4 * (20 + 4 + 20));
    job_init(&jobs[0], "naive", 10);
    job_init(&jobs[1], "naive", 10);
    job_init(&jobs[2], "naive", 1);
    assert_int_equal(mm_queue_submit(queue, &jobs[0].job, NULL), MM_OK);
    fake_device_wait_begun(&fake, 1);
    assert_int_equal(mm_queue_submit(queue, &jobs[1].job, NULL), MM_OK);
    assert_int_equal(mm_queue_submit(queue, &jobs[2].job, NULL), MM_BUSY);
    fake_device_open_gate(&fake);
    job_wait(&jobs[0]);
    job_wait(&jobs[1]);
    assert_int_equal(mm_queue_submit(queue, &jobs[2].job, NULL), MM_OK);
    job_wait(&jobs[2]);
    mm_queue_close(queue);
    fake_device_destroy(&fake);
}

static void a_late_job_is_not_begun(void **state) {
    struct fake_device fake;
    struct test_job jobs[2];
    struct test_job failing;
    (void)state;
    fake_device_init(&fake, 0, 2, false);
    struct mm_queue *queue = open_queue(&fake, 1, 8, SIZE_MAX);
    job_init(&jobs[0], "naive", 2);
    job_init(&jobs[1], "naive", 2);
    job_init(&failing, "naive", 2);
    jobs[0].job.deadline_ns = mm_clock_ns() + 300 * 1000000; /* enough to begin it on a busy machine */
    jobs[1].job.deadline_ns = failing.job.deadline_ns = jobs[0].job.deadline_ns;
    pthread_mutex_lock(&fake.mutex); /* neither begins before both wait */
    assert_int_equal(mm_queue_submit(queue, &jobs[0].job, NULL), MM_OK);
    assert_int_equal(mm_queue_submit(queue, &failing.job, NULL), MM_OK);
    pthread_mutex_unlock(&fake.mutex);
    fake_device_wait_begun(&fake, 2);
    assert_int_equal(mm_queue_submit(queue, &jobs[1].job, NULL), MM_OK);
    while (mm_clock_ns() <= jobs[1].job.deadline_ns)
        continue;
    fake_device_let_pass(&fake, 1);
    job_wait(&jobs[0]);
    job_wait(&jobs[1]);
    pthread_mutex_lock(&fake.mutex);
    fake.fail_end = true;
    pthread_mutex_unlock(&fake.mutex);
    fake_device_open_gate(&fake);
    job_wait(&failing);
    assert_int_equal(failing.job.error.status, MM_DEVICE_FAILED); /* which says more */
    assert_int_equal(jobs[0].job.error.status, MM_TIMEOUT);
    assert_non_null(strstr(jobs[0].job.error.detail, "dropped"));
    assert_int_equal(jobs[1].job.error.status, MM_TIMEOUT);
    assert_non_null(strstr(jobs[1].job.error.detail, "not started"));
    assert_true(jobs[1].job.span_ns[MM_SPAN_QUEUE] > jobs[1].job.deadline_ns - jobs[1].job.queued_ns);
    assert_null(jobs[1].job.device);
    assert_null(jobs[1].job.ran);
    assert_int_equal(fake_device_begun(&fake), 2);
    mm_queue_close(queue);
    fake_device_destroy(&fake);
}

/* What a job was before, and what became of it then, is nothing to the queue. */
static void a_job_is_as_new_each_time(void **state) {
    struct fake_device fake;
    struct test_job test;
    (void)state;
    fake_device_init(&fake, 0, 1, true);
    struct mm_queue *queue = open_queue(&fake, 1, 8, SIZE_MAX);
    for (int round = 0; round < 2; round++) {
        const bool is_late = round == 0;
        job_init(&test, "naive", 2);
        memset(&test.job.error, 0x5a, sizeof test.job.error);
        test.job.ran = test.job.variant;
        test.job.device = &fake.device;
        test.job.uploaded_bytes = test.job.downloaded_bytes = 1;
        test.job.batched = 7;
        test.job.path = (struct mm_path){MM_PATH_REPAIRED, 7};
        test.job.verification.is_done = true;
        test.job.span_ns[MM_SPAN_UPLOAD] = 1;
        test.job.deadline_ns = is_late ? 1 : 0;
        assert_int_equal(mm_queue_submit(queue, &test.job, NULL), MM_OK);
        job_wait(&test);
        assert_int_equal(test.job.error.status, is_late ? MM_TIMEOUT : MM_OK);
        assert_ptr_equal(test.job.ran, is_late ? NULL : test.job.variant);
        assert_ptr_equal(test.job.device, is_late ? NULL : &fake.device);
        assert_int_equal(test.job.uploaded_bytes + test.job.downloaded_bytes, 0);
        assert_int_equal(test.job.batched, 1);
        assert_int_equal(test.job.path.kind, MM_PATH_NONE);
        assert_false(test.job.verification.is_done);
        assert_int_equal(test.job.span_ns[MM_SPAN_UPLOAD], 0);
    }
    mm_queue_close(queue);
    fake_device_destroy(&fake);
}

static void a_tiny_product_of_the_hosts_runs_at_once(void **state) {
    struct fake_device fake;
    struct test_job test;
    (void)state;
    fake_device_init(&fake, 0, 1, false); /* nobody could end it */
    fake.device.backend = &fake_host;
    struct mm_queue *queue = open_queue(&fake, 1, 8, SIZE_MAX);
    job_init(&test, "auto", 4);
    test.job.backend = &fake_host;
    assert_true(mm_queue_run(queue, &test.job));
    assert_int_equal(test.job.error.status, MM_OK);
    assert_string_equal(test.job.ran->name, "naive");
    assert_ptr_equal(test.job.device, &fake.device);
    assert_int_equal(test.job.span_ns[MM_SPAN_KERNEL], 7);
    assert_int_equal(test.job.batched, 1);
    test.job.verify = true; /* that takes a backend's job */
    assert_false(mm_queue_run(queue, &test.job));
    test.job.verify = false;
    test.job.product.m = 2000; /* 16000 operations, and one row more */
    assert_true(mm_queue_run(queue, &test.job));
    test.job.product.m = 2001;
    assert_false(mm_queue_run(queue, &test.job));
    test.job.product = (struct mm_product){.m = 1, .n = 1, .k = 5000}; /* 10000 operations */
    test.job.product.a = mm_matrix_dense(MM_FLOAT32, 1, 5000, NULL);
    test.job.product.b = mm_matrix_dense(MM_FLOAT32, 5000, 1, NULL);
    assert_false(mm_queue_run(queue, &test.job)); /* but 40 KB to be read */
    test.job.product = (struct mm_product){.m = 0, .n = 2, .k = 2};
    assert_true(mm_queue_run(queue, &test.job));
    assert_int_equal(test.job.span_ns[MM_SPAN_KERNEL], 0);
    test.job.product.m = 4;
    fake.fail_begin = true;
    assert_true(mm_queue_run(queue, &test.job));
    assert_int_equal(test.job.error.status, MM_INTERNAL);
    __atomic_store_n(&fake.device.failed, 1, __ATOMIC_RELAXED);
    assert_false(mm_queue_run(queue, &test.job));
    __atomic_store_n(&fake.device.failed, 0, __ATOMIC_RELAXED);
    mm_queue_stop(queue);
    assert_false(mm_queue_run(queue, &test.job)); /* a submit says why not */
    assert_int_equal(test.done_count, 0);
    sem_destroy(&test.done);
    mm_queue_close(queue);
    fake_device_destroy(&fake);
}

static void what_is_not_the_hosts_is_not_run_at_once(void **state) {
    struct fake_device fake;
    struct test_job test;
    (void)state;
    fake_device_init(&fake, 0, 1, true);
    struct mm_queue *queue = open_queue(&fake, 1, 8, SIZE_MAX);
    job_init(&test, "naive", 4);
    assert_false(mm_queue_run(queue, &test.job));
    sem_destroy(&test.done);
    mm_queue_close(queue);
    fake_device_destroy(&fake);
}

static void the_least_loaded_device_is_chosen(void **state) {
    struct fake_device fakes[2];
    struct test_job jobs[4];
    (void)state;
    fake_device_init(&fakes[0], 0, 1, false);
    fake_device_init(&fakes[1], 1, 1, false);
    struct mm_queue *queue = open_queue(fakes, 2, 8, SIZE_MAX);
    job_init(&jobs[0], "naive", 1000); /* to the first, which is then the more loaded */
    for (int index = 1; index < 4; index++)
        job_init(&jobs[index], "naive", 2);
    assert_int_equal(mm_queue_submit(queue, &jobs[0].job, NULL), MM_OK);
    fake_device_wait_begun(&fakes[0], 1);
    for (int index = 1; index < 3; index++)
        assert_int_equal(mm_queue_submit(queue, &jobs[index].job, NULL), MM_OK);
    fake_device_open_gate(&fakes[0]);
    job_wait(&jobs[0]); /* and has nothing to do then */
    assert_int_equal(mm_queue_submit(queue, &jobs[3].job, NULL), MM_OK);
    fake_device_open_gate(&fakes[1]);
    for (int index = 1; index < 4; index++)
        job_wait(&jobs[index]);
    assert_int_equal(jobs[0].job.device->index, 0);
    assert_int_equal(jobs[1].job.device->index, 1);
    assert_int_equal(jobs[2].job.device->index, 1);
    assert_int_equal(jobs[3].job.device->index, 0);
    mm_queue_close(queue);
    fake_device_destroy(&fakes[0]);
    fake_device_destroy(&fakes[1]);
}

static void a_variant_goes_where_it_can_run(void **state) {
    struct fake_device fakes[2];
    struct test_job jobs[3];
    struct mm_error error;
    (void)state;
    fake_device_init(&fakes[0], 0, 1, true);
    fake_device_init(&fakes[1], 1, 1, true);
    struct mm_queue *queue = open_queue(fakes, 2, 8, SIZE_MAX);
    job_init(&jobs[0], "second", 2);
    assert_int_equal(mm_queue_submit(queue, &jobs[0].job, &error), MM_OK);
    job_wait(&jobs[0]);
    assert_int_equal(jobs[0].job.device->index, 1);
    job_init(&jobs[1], "nowhere", 2);
    assert_int_equal(mm_queue_submit(queue, &jobs[1].job, &error), MM_UNSUPPORTED);
    __atomic_store_n(&fakes[1].device.failed, 1, __ATOMIC_RELAXED);
    job_init(&jobs[2], "second", 2);
    assert_int_equal(mm_queue_submit(queue, &jobs[2].job, &error), MM_NOT_READY);
    mm_queue_close(queue);
    fake_device_destroy(&fakes[0]);
    fake_device_destroy(&fakes[1]);
}

static void one_failed_job_fails_alone(void **state) {
    struct fake_device fake;
    struct test_job jobs[3];
    (void)state;
    fake_device_init(&fake, 0, 1, true);
    fake.fail_begin = true;
    struct mm_queue *queue = open_queue(&fake, 1, 8, SIZE_MAX);
    job_init(&jobs[0], "naive", 2);
    assert_int_equal(mm_queue_submit(queue, &jobs[0].job, NULL), MM_OK);
    job_wait(&jobs[0]);
    assert_int_equal(jobs[0].job.error.status, MM_DEVICE_FAILED);
    pthread_mutex_lock(&fake.mutex);
    fake.fail_begin = false;
    fake.fail_end = true;
    pthread_mutex_unlock(&fake.mutex);
    job_init(&jobs[1], "naive", 2);
    assert_int_equal(mm_queue_submit(queue, &jobs[1].job, NULL), MM_OK);
    job_wait(&jobs[1]);
    assert_int_equal(jobs[1].job.error.status, MM_DEVICE_FAILED);
    pthread_mutex_lock(&fake.mutex);
    fake.fail_end = false;
    pthread_mutex_unlock(&fake.mutex);
    job_init(&jobs[2], "naive", 2);
    assert_int_equal(mm_queue_submit(queue, &jobs[2].job, NULL), MM_OK);
    job_wait(&jobs[2]);
    assert_int_equal(jobs[2].job.error.status, MM_OK);
    mm_queue_close(queue);
    fake_device_destroy(&fake);
}

static void an_empty_product_needs_no_device(void **state) {
    static const struct mm_product products[] = {{.m = 0, .n = 2, .k = 2}, {.m = 2, .n = 0, .k = 2}};
    struct fake_device fake;
    struct test_job test;
    (void)state;
    fake_device_init(&fake, 0, 1, true);
    struct mm_queue *queue = open_queue(&fake, 1, 8, SIZE_MAX);
    for (int index = 0; index < 2; index++) {
        job_init(&test, "auto", 2);
        test.job.product = products[index];
        test.job.verify = index == 1; /* there is nothing wrong with it */
        assert_int_equal(mm_queue_submit(queue, &test.job, NULL), MM_OK);
        job_wait(&test);
        assert_true(test.job.verification.is_done == test.job.verify);
        assert_int_equal(mm_verification_verdict(&test.job.verification), MM_VERDICT_PASSED);
        assert_int_equal(test.job.error.status, MM_OK);
        assert_string_equal(test.job.ran->name, "naive");
        assert_true(mm_job_rate(&test.job) == 0.0);
    }
    assert_int_equal(fake_device_begun(&fake), 0);
    job_init(&test, "auto", 2); /* with no depth there are zeros to be written */
    test.job.product.k = 0;
    assert_int_equal(mm_queue_submit(queue, &test.job, NULL), MM_OK);
    job_wait(&test);
    mm_queue_close(queue);
    assert_int_equal(fake.begun, 1);
    fake_device_destroy(&fake);
}

static void *submit_many(void *argument) {
    struct mm_queue *queue = argument;
    for (int round = 0; round < 500; round++) {
        struct test_job test;
        job_init(&test, "auto", 1 + (size_t)round % 7);
        enum mm_status status = mm_queue_submit(queue, &test.job, NULL);
        if (status == MM_OK)
            job_wait(&test);
        else
            assert_int_equal(status, MM_BUSY);
    }
    return NULL;
}

static void many_threads_submit(void **state) {
    struct fake_device fakes[3];
    pthread_t threads[8];
    (void)state;
    for (unsigned index = 0; index < 3; index++)
        fake_device_init(&fakes[index], index, 1 + index, true);
    struct mm_queue *queue = open_queue(fakes, 3, 4, SIZE_MAX);
    for (int index = 0; index < 8; index++)
        assert_int_equal(pthread_create(&threads[index], NULL, submit_many, queue), 0);
    for (int index = 0; index < 8; index++)
        pthread_join(threads[index], NULL);
    assert_int_equal(mm_queue_jobs(queue), 0);
    mm_queue_close(queue);
    for (unsigned index = 0; index < 3; index++)
        fake_device_destroy(&fakes[index]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_threads_there_is_no_queue),
        cmocka_unit_test(a_full_queue_refuses),
        cmocka_unit_test(bytes_are_bounded),
        cmocka_unit_test(a_late_job_is_not_begun),
        cmocka_unit_test(a_job_is_as_new_each_time),
        cmocka_unit_test(a_tiny_product_of_the_hosts_runs_at_once),
        cmocka_unit_test(what_is_not_the_hosts_is_not_run_at_once),
        cmocka_unit_test(the_least_loaded_device_is_chosen),
        cmocka_unit_test(a_variant_goes_where_it_can_run),
        cmocka_unit_test(one_failed_job_fails_alone),
        cmocka_unit_test(an_empty_product_needs_no_device),
        cmocka_unit_test(many_threads_submit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
