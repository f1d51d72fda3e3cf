/* The queue's promises on tasks: slices with products between them, the device to itself, and an end on the
 * worker's thread however it comes. */
#include "gpu/queue.h"

#include "fake_backend.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <semaphore.h>
#include <string.h>

#include <cmocka.h>

enum { SLICES_MAX = 8 };

/* A job and its done(); with slices, a task that does a slice whenever it is let. */
struct test_job {
    struct mm_job job;
    struct mm_task task;
    struct fake_device *fake;
    sem_t done;
    sem_t entered; /* posted as a slice begins */
    sem_t let;     /* waited for before it ends */
    unsigned slices;
    unsigned runs; /* calls that were not cancelled */
    unsigned cancelled_runs;
    unsigned begun[SLICES_MAX]; /* products that the device had begun when each slice began */
    unsigned begun_at_end;      /* the same when it was cancelled */
    unsigned beside;            /* products under way beside a slice, the most */
    bool fails;
    unsigned done_count;
};

static void count_done(struct mm_job *first) {
    struct mm_job *next;
    for (struct mm_job *job = first; job != NULL; job = next) {
        struct test_job *test = job->owner;
        next = job->next;
        test->done_count++;
        sem_post(&test->done);
    }
}

static void wait_for(sem_t *semaphore) {
    while (sem_wait(semaphore) != 0)
        continue;
}

static enum mm_task_state run_slice(struct mm_task *task, struct mm_device *device, bool cancelled,
                                    struct mm_error *error) {
    struct test_job *test = (struct test_job *)((char *)task - offsetof(struct test_job, task));
    assert_ptr_equal(device, &test->fake->device);
    if (cancelled) {
        assert_int_not_equal(error->status, MM_OK);
        test->cancelled_runs++;
        test->begun_at_end = fake_device_begun(test->fake);
        return MM_TASK_OVER;
    }
    pthread_mutex_lock(&test->fake->mutex);
    test->begun[test->runs++] = test->fake->begun;
    if (test->fake->under_way > test->beside)
        test->beside = test->fake->under_way;
    pthread_mutex_unlock(&test->fake->mutex);
    sem_post(&test->entered);
    wait_for(&test->let);
    if (test->fails) {
        mm_fail(error, MM_INTERNAL, "the task failed as told");
        return MM_TASK_OVER;
    }
    return test->runs < test->slices ? MM_TASK_AGAIN : MM_TASK_OVER;
}

/* slices 0: a product. */
static void job_init(struct test_job *test, struct fake_device *fake, unsigned slices) {
    memset(test, 0, sizeof *test);
    test->fake = fake;
    test->slices = slices;
    test->task.run = run_slice;
    sem_init(&test->done, 0, 0);
    sem_init(&test->entered, 0, 0);
    sem_init(&test->let, 0, 0);
    test->job.backend = &fake_backend;
    test->job.product.m = test->job.product.n = test->job.product.k = 2;
    test->job.task = slices > 0 ? &test->task : NULL;
    test->job.variant = slices > 0 ? NULL : mm_backend_variant(&fake_backend, MM_MATMUL, "naive");
    test->job.done = count_done;
    test->job.owner = test;
}

static void let_slices(struct test_job *test, unsigned count) {
    while (count-- > 0)
        sem_post(&test->let);
}

static void job_wait(struct test_job *test, enum mm_status status) {
    wait_for(&test->done);
    assert_int_equal(test->done_count, 1);
    assert_int_equal(test->job.error.status, status);
}

static struct mm_queue *open_queue(struct fake_device *fake, unsigned lanes, bool open_gate,
                                   size_t jobs_max) {
    struct mm_queue *queue = NULL;
    const struct mm_queue_limits limits = {.jobs_max = jobs_max, .bytes_max = SIZE_MAX};
    fake_device_init(fake, 0, lanes, open_gate);
    struct mm_device *devices[] = {&fake->device};
    assert_int_equal(mm_queue_open(devices, 1, &limits, &queue, NULL), MM_OK);
    return queue;
}

static void submit(struct mm_queue *queue, struct test_job *test) {
    assert_int_equal(mm_queue_submit(queue, &test->job, NULL), MM_OK);
}

static void products_get_in_between(void **state) {
    struct fake_device fake;
    struct test_job task;
    struct test_job products[2];
    struct mm_queue *queue = open_queue(&fake, 1, true, 8);
    (void)state;
    job_init(&task, &fake, 3);
    submit(queue, &task);
    wait_for(&task.entered);
    for (int index = 0; index < 2; index++) {
        job_init(&products[index], &fake, 0);
        submit(queue, &products[index]);
    }
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
    struct test_job last;
    struct mm_queue *queue = open_queue(&fake, 1, true, 8);
    (void)state;
    job_init(&task, &fake, 3);
    submit(queue, &task);
    wait_for(&task.entered);
    assert_false(mm_queue_cancel(queue, &task.job));
    let_slices(&task, 1);
    job_wait(&task, MM_STOPPING);
    assert_int_equal(task.runs, 1);
    assert_int_equal(task.cancelled_runs, 1);

    job_init(&last, &fake, 1); /* its last slice: there is nothing left to be given back */
    submit(queue, &last);
    wait_for(&last.entered);
    assert_false(mm_queue_cancel(queue, &last.job));
    let_slices(&last, 1);
    job_wait(&last, MM_OK);
    assert_int_equal(last.cancelled_runs, 0);
    assert_false(mm_queue_cancel(queue, &last.job)); /* over */

    last.runs = last.done_count = 0; /* the same job once more, without the mark */
    last.slices = 2;
    submit(queue, &last);
    let_slices(&last, 2);
    job_wait(&last, MM_OK);
    assert_int_equal(last.runs, 2);
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
    mm_queue_abort(queue);
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
        cmocka_unit_test(products_get_in_between),
        cmocka_unit_test(a_slice_has_the_device_to_itself),
        cmocka_unit_test(a_begun_task_does_not_wait),
        cmocka_unit_test(a_task_that_waits_is_taken_back),
        cmocka_unit_test(a_cancelled_task_ends_before_those_that_wait),
        cmocka_unit_test(a_task_is_cancelled_in_its_slice),
        cmocka_unit_test(deadlines_are_judged_between_slices),
        cmocka_unit_test(a_failed_device_ends_a_task),
        cmocka_unit_test(a_task_needs_a_device_of_its_backend),
        cmocka_unit_test(abort_ends_tasks),
        cmocka_unit_test(close_ends_tasks),
        cmocka_unit_test(many_threads_submit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
