/* The queue's promises on jobs that end otherwise than by being run: taken back, refused, or with the queue.
 */
#include "queue_job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void stop_refuses_and_close_drains(void **state) {
    struct fake_device fake;
    struct test_job jobs[3];
    (void)state;
    fake_device_init(&fake, 0, 1, true);
    struct mm_queue *queue = open_queue(&fake, 1, 8, SIZE_MAX);
    for (int index = 0; index < 3; index++)
        job_init(&jobs[index], "naive", 2);
    assert_int_equal(mm_queue_submit(queue, &jobs[0].job, NULL), MM_OK);
    assert_int_equal(mm_queue_submit(queue, &jobs[1].job, NULL), MM_OK);
    mm_queue_stop(queue);
    assert_int_equal(mm_queue_submit(queue, &jobs[2].job, NULL), MM_STOPPING);
    mm_queue_close(queue);
    for (int index = 0; index < 2; index++) {
        job_wait(&jobs[index]);
        assert_int_equal(jobs[index].job.error.status, MM_OK);
    }
    fake_device_destroy(&fake);
}

static void abort_ends_those_that_wait(void **state) {
    struct fake_device fakes[2];
    struct test_job jobs[6]; /* for either device in turn, of which the first two run */
    (void)state;
    for (unsigned index = 0; index < 2; index++)
        fake_device_init(&fakes[index], index, 1, false);
    struct mm_queue *queue = open_queue(fakes, 2, 8, SIZE_MAX);
    for (int index = 0; index < 6; index++) {
        job_init(&jobs[index], "naive", 2);
        assert_int_equal(mm_queue_submit(queue, &jobs[index].job, NULL), MM_OK);
        if (index < 2)
            fake_device_wait_begun(&fakes[index], 1);
    }
    mm_queue_stop(queue);
    mm_queue_abort(queue, MM_STOPPING, "stopped");
    for (int index = 2; index < 6; index++) {
        job_wait(&jobs[index]);
        assert_int_equal(jobs[index].job.error.status, MM_STOPPING);
    }
    assert_int_equal(mm_queue_jobs(queue), 2);
    for (int index = 0; index < 2; index++) {
        fake_device_open_gate(&fakes[index]);
        job_wait(&jobs[index]);
        assert_int_equal(jobs[index].job.error.status, MM_OK);
    }
    mm_queue_close(queue);
    mm_queue_close(NULL);
    for (int index = 0; index < 2; index++)
        fake_device_destroy(&fakes[index]);
}

static struct mm_queue *asked;

static void ask_and_count(struct mm_job *job) {
    (void)mm_queue_jobs(asked);
    count_done(job);
}

static void done_may_ask_the_queue(void **state) {
    struct fake_device fake;
    struct test_job jobs[2];
    (void)state;
    fake_device_init(&fake, 0, 1, false);
    struct mm_queue *queue = open_queue(&fake, 1, 8, SIZE_MAX);
    asked = queue;
    for (int index = 0; index < 2; index++) {
        job_init(&jobs[index], "naive", 2);
        jobs[index].job.done = ask_and_count;
        assert_int_equal(mm_queue_submit(queue, &jobs[index].job, NULL), MM_OK);
        fake_device_wait_begun(&fake, 1);
    }
    mm_queue_abort(queue, MM_STOPPING, "stopped");
    job_wait(&jobs[1]);
    fake_device_open_gate(&fake);
    job_wait(&jobs[0]);
    mm_queue_close(queue);
    fake_device_destroy(&fake);
}

static void a_waiting_job_is_taken_back(void **state) {
    struct fake_device fake;
    struct test_job jobs[4];
    (void)state;
    fake_device_init(&fake, 0, 1, false);
    struct mm_queue *queue = open_queue(&fake, 1, 3, SIZE_MAX);
    for (int index = 0; index < 4; index++)
        job_init(&jobs[index], "naive", 2);
    assert_int_equal(mm_queue_submit(queue, &jobs[0].job, NULL), MM_OK);
    fake_device_wait_begun(&fake, 1);
    for (int index = 1; index < 4; index++)
        assert_int_equal(mm_queue_submit(queue, &jobs[index].job, NULL), MM_OK);
    assert_true(mm_queue_full(queue));
    assert_false(mm_queue_cancel(queue, &jobs[0].job)); /* it runs */
    assert_true(mm_queue_cancel(queue, &jobs[2].job));
    assert_false(mm_queue_cancel(queue, &jobs[2].job));
    assert_false(mm_queue_full(queue));
    assert_true(mm_queue_cancel(queue, &jobs[3].job)); /* the last */
    assert_true(mm_queue_cancel(queue, &jobs[1].job)); /* the first */
    assert_int_equal(mm_queue_submit(queue, &jobs[3].job, NULL), MM_OK);
    assert_int_equal(mm_queue_jobs(queue), 2);
    fake_device_open_gate(&fake);
    job_wait(&jobs[0]);
    job_wait(&jobs[3]);
    mm_queue_close(queue);
    assert_int_equal(jobs[1].done_count, 0);
    assert_int_equal(jobs[2].done_count, 0);
    assert_int_equal(fake.begun, 2);
    fake_device_destroy(&fake);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stop_refuses_and_close_drains),
        cmocka_unit_test(abort_ends_those_that_wait),
        cmocka_unit_test(done_may_ask_the_queue),
        cmocka_unit_test(a_waiting_job_is_taken_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
