/* The queue's promises on tasks: slices with products between them, and the device to itself. */
#include "task_job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void products_get_in_between(void **state) {
    struct fake_device fake;
    struct test_job task;
    struct test_job products[2];
    struct mm_queue *queue = open_queue(&fake, 1, true, 8);
    (void)state;
    job_init(&task, &fake, 3);
    submit(queue, &task);
    wait_for(&task.entered);
    const uint64_t entered_ns = mm_clock_ns();
    for (int index = 0; index < 2; index++) {
        job_init(&products[index], &fake, 0);
        submit(queue, &products[index]);
    }
    assert_int_equal(mm_queue_wait_ns(queue), 0);
    let_slices(&task, 1);
    job_wait(&products[0], MM_OK);
    job_wait(&products[1], MM_OK);
    wait_for(&task.entered);
    assert_int_equal(mm_queue_jobs(queue), 1);
    let_slices(&task, 2);
    job_wait(&task, MM_OK);
    assert_int_equal(task.runs, 3);
    assert_int_equal(task.begun[0], 0);
    assert_int_equal(task.begun[1], 2);
    assert_int_equal(task.begun[2], 2);
    assert_int_equal(task.cancelled_runs, 0);
    assert_ptr_equal(task.job.device, &fake.device);
    assert_null(task.job.ran);
    assert_in_range(task.job.span_ns[MM_SPAN_QUEUE], 1, entered_ns - task.job.queued_ns);
    assert_int_equal(mm_queue_jobs(queue), 0);
    mm_queue_close(queue);
    fake_device_destroy(&fake);
}

static void a_slice_has_the_device_to_itself(void **state) {
    struct fake_device fake;
    struct test_job task;
    struct test_job products[6];
    struct mm_queue *queue = open_queue(&fake, 3, false, 8);
    (void)state;
    pthread_mutex_lock(&fake.mutex); /* no product begins before all jobs wait */
    for (int index = 0; index < 6; index++) {
        job_init(&products[index], &fake, 0);
        submit(queue, &products[index]);
        if (index == 1) {
            job_init(&task, &fake, 2);
            let_slices(&task, 2);
            submit(queue, &task);
        }
    }
    pthread_mutex_unlock(&fake.mutex);
    fake_device_wait_begun(&fake, 2); /* a lane is free, and the task is next */
    fake_device_open_gate(&fake);
    job_wait(&task, MM_OK);
    for (int index = 0; index < 6; index++)
        job_wait(&products[index], MM_OK);
    mm_queue_close(queue);
    assert_int_equal(task.begun[0], 2);
    assert_int_equal(task.begun[1], 6);
    assert_int_equal(task.beside, 0);
    fake_device_destroy(&fake);
}

static void a_begun_task_does_not_wait(void **state) {
    struct fake_device fake;
    struct test_job task;
    struct test_job products[3];
    size_t waiting = 0;
    size_t bytes = 0;
    struct mm_queue *queue = open_queue(&fake, 1, false, 1);
    (void)state;
    job_init(&task, &fake, 2);
    submit(queue, &task);
    wait_for(&task.entered);
    job_init(&products[0], &fake, 0);
    job_init(&products[1], &fake, 0);
    job_init(&products[2], &fake, 0);
    submit(queue, &products[0]);
    let_slices(&task, 1);
    fake_device_wait_begun(&fake, 1); /* the product runs, and the task stands in the list */
    mm_queue_waiting(queue, &waiting, &bytes);
    assert_int_equal(waiting, 0);
    assert_false(mm_queue_full(queue));
    assert_int_equal(mm_queue_jobs(queue), 2);
    submit(queue, &products[1]);
    assert_int_equal(mm_queue_submit(queue, &products[2].job, NULL), MM_BUSY);
    fake_device_open_gate(&fake);
    let_slices(&task, 1);
    job_wait(&task, MM_OK);
    job_wait(&products[0], MM_OK);
    job_wait(&products[1], MM_OK);
    mm_queue_close(queue);
    fake_device_destroy(&fake);
}

/* A device that has a task is the more loaded, whatever else waits for the other. */
static void products_keep_away_from_tasks(void **state) {
    struct fake_device fakes[2];
    struct mm_device *devices[] = {&fakes[0].device, &fakes[1].device};
    const struct mm_queue_limits limits = {.jobs_max = 8, .bytes_max = SIZE_MAX};
    struct mm_queue *queue = NULL;
    struct test_job task;
    struct test_job products[3];
    (void)state;
    for (unsigned index = 0; index < 2; index++)
        fake_device_init(&fakes[index], index, 1, true);
    assert_int_equal(mm_queue_open(devices, 2, &limits, &queue, NULL), MM_OK);
    fake_device_close_gate(&fakes[1]);
    job_init(&task, &fakes[0], 1);
    submit(queue, &task);
    wait_for(&task.entered);
    for (int index = 0; index < 3; index++) {
        job_init(&products[index], &fakes[1], 0);
        submit(queue, &products[index]);
    }
    let_slices(&task, 1);
    job_wait(&task, MM_OK);
    fake_device_open_gate(&fakes[1]);
    for (int index = 0; index < 3; index++) {
        job_wait(&products[index], MM_OK);
        assert_ptr_equal(products[index].job.device, &fakes[1].device);
    }
    mm_queue_close(queue);
    for (unsigned index = 0; index < 2; index++)
        fake_device_destroy(&fakes[index]);
}

static void a_task_is_not_run_at_once(void **state) {
    struct fake_device fake;
    struct test_job task;
    struct mm_device *device = &fake.device;
    struct mm_queue *queue = NULL;
    const struct mm_queue_limits limits = {.jobs_max = 8, .bytes_max = SIZE_MAX};
    (void)state;
    fake_device_init(&fake, 0, 1, true);
    fake.device.backend = &fake_host;
    assert_int_equal(mm_queue_open(&device, 1, &limits, &queue, NULL), MM_OK);
    job_init(&task, &fake, 1);
    task.job.backend = &fake_host;
    assert_false(mm_queue_run(queue, &task.job));
    mm_queue_close(queue);
    fake_device_destroy(&fake);
}

static void a_task_needs_a_device_of_its_backend(void **state) {
    static const struct mm_backend other = {.name = "other"};
    struct fake_device fake;
    struct test_job task;
    struct mm_queue *queue = open_queue(&fake, 1, true, 8);
    (void)state;
    job_init(&task, &fake, 1);
    task.job.backend = &other;
    assert_int_equal(mm_queue_submit(queue, &task.job, NULL), MM_UNSUPPORTED);
    mm_queue_close(queue);
    fake_device_destroy(&fake);
}

static void *submit_many(void *argument) {
    struct test_job *example = argument;
    struct mm_queue *queue = example->job.owner;
    for (unsigned round = 0; round < 300; round++) {
        struct test_job test;
        job_init(&test, example->fake, round % 3);
        let_slices(&test, round % 3);
        if (mm_queue_submit(queue, &test.job, NULL) != MM_OK)
            continue;
        if (round % 5 == 0 && mm_queue_cancel(queue, &test.job))
            continue;
        wait_for(&test.done);
        assert_int_equal(test.done_count, 1);
        assert_true(test.job.error.status == MM_OK || round % 5 == 0);
    }
    return NULL;
}

static void many_threads_submit(void **state) {
    struct fake_device fake;
    struct test_job example;
    pthread_t threads[6];
    struct mm_queue *queue = open_queue(&fake, 2, true, 4);
    (void)state;
    job_init(&example, &fake, 0);
    example.job.owner = queue;
    for (int index = 0; index < 6; index++)
        assert_int_equal(pthread_create(&threads[index], NULL, submit_many, &example), 0);
    for (int index = 0; index < 6; index++)
        pthread_join(threads[index], NULL);
    assert_int_equal(mm_queue_jobs(queue), 0);
    mm_queue_close(queue);
    fake_device_destroy(&fake);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_get_in_between),    cmocka_unit_test(a_slice_has_the_device_to_itself),
        cmocka_unit_test(a_begun_task_does_not_wait), cmocka_unit_test(products_keep_away_from_tasks),
        cmocka_unit_test(a_task_is_not_run_at_once),  cmocka_unit_test(a_task_needs_a_device_of_its_backend),
        cmocka_unit_test(many_threads_submit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
