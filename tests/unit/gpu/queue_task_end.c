/* The queue's promises on the end of tasks, which comes on the worker's thread however it comes: cancelled,
 * late, failed, or with the queue. */
#include "task_job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void a_task_that_waits_is_taken_back(void **state) {
    struct fake_device fake;
    struct test_job task;
    struct test_job product;
    struct mm_queue *queue = open_queue(&fake, 1, false, 8);
    (void)state;
    job_init(&product, &fake, 0);
    job_init(&task, &fake, 2);
    submit(queue, &product);
    fake_device_wait_begun(&fake, 1);
    submit(queue, &task);
    assert_true(mm_queue_cancel(queue, &task.job));
    fake_device_open_gate(&fake);
    job_wait(&product, MM_OK);
    mm_queue_close(queue);
    assert_int_equal(task.runs + task.cancelled_runs + task.done_count, 0);
    fake_device_destroy(&fake);
}

static void a_cancelled_task_ends_before_those_that_wait(void **state) {
    struct fake_device fake;
    struct test_job task;
    struct test_job products[2];
    struct mm_queue *queue = open_queue(&fake, 1, false, 8);
    (void)state;
    job_init(&task, &fake, 3);
    submit(queue, &task);
    wait_for(&task.entered);
    for (int index = 0; index < 2; index++) {
        job_init(&products[index], &fake, 0);
        submit(queue, &products[index]);
    }
    let_slices(&task, 1);
    fake_device_wait_begun(&fake, 1); /* the first product runs, the second and the task wait */
    assert_false(mm_queue_cancel(queue, &task.job));
    assert_false(mm_queue_cancel(queue, &task.job));
    fake_device_open_gate(&fake);
    job_wait(&task, MM_STOPPING);
    job_wait(&products[0], MM_OK);
    job_wait(&products[1], MM_OK);
    assert_int_equal(task.runs, 1);
    assert_int_equal(task.cancelled_runs, 1);
    assert_int_equal(task.begun_at_end, 1);
    mm_queue_close(queue);
    fake_device_destroy(&fake);
}

static void a_task_is_cancelled_in_its_slice(void **state) {
    struct fake_device fake;
    struct test_job task;
    struct test_job product;
    struct test_job last;
    struct mm_queue *queue = open_queue(&fake, 1, true, 8);
    (void)state;
    job_init(&task, &fake, 3);
    submit(queue, &task);
    wait_for(&task.entered);
    job_init(&product, &fake, 0);
    submit(queue, &product);
    assert_false(mm_queue_cancel(queue, &task.job));
    let_slices(&task, 1);
    job_wait(&task, MM_STOPPING);
    assert_int_equal(task.runs, 1);
    assert_int_equal(task.cancelled_runs, 1);
    assert_int_equal(task.begun_at_end, 0); /* before the product */
    job_wait(&product, MM_OK);

    job_init(&last, &fake, 1); /* its last slice: there is nothing left to be given back */
    submit(queue, &last);
    wait_for(&last.entered);
    assert_false(mm_queue_cancel(queue, &last.job));
    let_slices(&last, 1);
    job_wait(&last, MM_OK);
    assert_int_equal(last.cancelled_runs, 0);
    assert_false(mm_queue_cancel(queue, &last.job)); /* over */

    for (int round = 0; round < 2;
         round++) { /* the same job once more, without the mark, and as one that waits */
        size_t waiting = 0;
        size_t bytes = 0;
        last.runs = last.done_count = 0;
        last.slices = 2;
        submit(queue, &last);
        let_slices(&last, 2);
        job_wait(&last, MM_OK);
        assert_int_equal(last.runs, 2);
        mm_queue_waiting(queue, &waiting, &bytes);
        assert_int_equal(waiting, 0);
        assert_int_equal(mm_queue_jobs(queue), 0);
    }
    mm_queue_close(queue);
    fake_device_destroy(&fake);
}

static void deadlines_are_judged_between_slices(void **state) {
    struct fake_device fake;
    struct test_job tasks[2];
    struct mm_queue *queue = open_queue(&fake, 1, true, 8);
    (void)state;
    for (int index = 0; index < 2; index++) {
        job_init(&tasks[index], &fake, 2);
        tasks[index].job.deadline_ns = mm_clock_ns() + 300 * 1000000; /* enough for a busy machine */
        submit(queue, &tasks[index]);
        if (index == 0)
            wait_for(&tasks[0].entered);
    }
    while (mm_clock_ns() <= tasks[1].job.deadline_ns)
        continue;
    let_slices(&tasks[0], 1);
    job_wait(&tasks[0], MM_TIMEOUT);
    assert_int_equal(tasks[0].runs, 1);
    assert_int_equal(tasks[0].cancelled_runs, 1);
    job_wait(&tasks[1], MM_TIMEOUT);
    assert_int_equal(tasks[1].runs + tasks[1].cancelled_runs, 0);
    mm_queue_close(queue);
    fake_device_destroy(&fake);
}

static void a_failed_device_ends_a_task(void **state) {
    struct fake_device fake;
    struct test_job task;
    struct test_job failing;
    struct mm_queue *queue = open_queue(&fake, 1, true, 8);
    (void)state;
    job_init(&failing, &fake, 3);
    failing.fails = true;
    let_slices(&failing, 1);
    submit(queue, &failing);
    job_wait(&failing, MM_INTERNAL);
    assert_int_equal(failing.runs, 1);

    job_init(&task, &fake, 3);
    submit(queue, &task);
    wait_for(&task.entered);
    __atomic_store_n(&fake.device.failed, 1, __ATOMIC_RELAXED);
    let_slices(&task, 1);
    job_wait(&task, MM_NOT_READY);
    assert_int_equal(task.cancelled_runs, 1);
    assert_int_equal(mm_queue_submit(queue, &failing.job, NULL), MM_NOT_READY);
    mm_queue_close(queue);
    fake_device_destroy(&fake);
}

static void stop_lets_tasks_go_on(void **state) {
    struct fake_device fake;
    struct test_job task;
    struct mm_queue *queue = open_queue(&fake, 1, true, 8);
    (void)state;
    job_init(&task, &fake, 2);
    submit(queue, &task);
    wait_for(&task.entered);
    mm_queue_stop(queue);
    let_slices(&task, 2);
    job_wait(&task, MM_OK);
    assert_int_equal(task.runs, 2);
    mm_queue_close(queue);
    fake_device_destroy(&fake);
}

static void abort_ends_tasks(void **state) {
    struct fake_device fake;
    struct test_job tasks[2];
    struct test_job product;
    struct mm_queue *queue = open_queue(&fake, 1, false, 8);
    (void)state;
    job_init(&tasks[0], &fake, 3);
    job_init(&tasks[1], &fake, 3);
    job_init(&product, &fake, 0);
    submit(queue, &tasks[0]);
    wait_for(&tasks[0].entered);
    submit(queue, &product);
    submit(queue, &tasks[1]);
    let_slices(&tasks[0], 1);
    fake_device_wait_begun(&fake, 1); /* of the tasks, the first has begun and the second has not */
    mm_queue_stop(queue);
    mm_queue_abort(queue, MM_STOPPING, "stopped");
    job_wait(&tasks[1], MM_STOPPING);
    assert_int_equal(tasks[1].runs + tasks[1].cancelled_runs, 0);
    assert_int_equal(mm_queue_jobs(queue), 2);
    fake_device_open_gate(&fake);
    job_wait(&tasks[0], MM_STOPPING);
    assert_int_equal(tasks[0].runs, 1);
    assert_int_equal(tasks[0].cancelled_runs, 1);
    job_wait(&product, MM_OK);
    mm_queue_close(queue);
    fake_device_destroy(&fake);
}

static void *close_queue(void *queue) {
    mm_queue_close(queue);
    return NULL;
}

static void close_ends_tasks(void **state) {
    struct fake_device fake;
    struct test_job task;
    pthread_t closer;
    (void)state;
    struct mm_queue *queue = open_queue(&fake, 1, true, 8);
    job_init(&task, &fake, 100);
    submit(queue, &task);
    wait_for(&task.entered);
    assert_int_equal(pthread_create(&closer, NULL, close_queue, queue), 0);
    struct mm_error error = {.status = MM_OK};
    struct test_job late;
    job_init(&late, &fake, 1);
    /* Once it refuses, it closes. What it took before waits behind the slice, and is ended too. */
    while (mm_queue_submit(queue, &late.job, &error) == MM_OK)
        assert_true(mm_queue_cancel(queue, &late.job));
    assert_int_equal(error.status, MM_STOPPING);
    let_slices(&task, 1);
    pthread_join(closer, NULL);
    job_wait(&task, MM_STOPPING);
    assert_int_equal(task.runs, 1);
    assert_int_equal(task.cancelled_runs, 1);
    fake_device_destroy(&fake);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_task_that_waits_is_taken_back),
        cmocka_unit_test(a_cancelled_task_ends_before_those_that_wait),
        cmocka_unit_test(a_task_is_cancelled_in_its_slice),
        cmocka_unit_test(deadlines_are_judged_between_slices),
        cmocka_unit_test(a_failed_device_ends_a_task),
        cmocka_unit_test(stop_lets_tasks_go_on),
        cmocka_unit_test(abort_ends_tasks),
        cmocka_unit_test(close_ends_tasks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
