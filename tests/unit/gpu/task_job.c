/* Tasks whose slices begin and end when told to. */
#include "task_job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void count_done(struct mm_job *first) {
    struct mm_job *next;
    for (struct mm_job *job = first; job != NULL; job = next) {
        struct test_job *test = job->owner;
        next = job->next;
        test->done_count++;
        sem_post(&test->done);
    }
}

void wait_for(sem_t *semaphore) {
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

void job_init(struct test_job *test, struct fake_device *fake, unsigned slices) {
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

void let_slices(struct test_job *test, unsigned count) {
    while (count-- > 0)
        sem_post(&test->let);
}

void job_wait(struct test_job *test, enum mm_status status) {
    wait_for(&test->done);
    assert_int_equal(test->done_count, 1);
    assert_int_equal(test->job.error.status, status);
}

struct mm_queue *open_queue(struct fake_device *fake, unsigned lanes, bool open_gate, size_t jobs_max) {
    struct mm_queue *queue = NULL;
    const struct mm_queue_limits limits = {.jobs_max = jobs_max, .bytes_max = SIZE_MAX};
    fake_device_init(fake, 0, lanes, open_gate);
    struct mm_device *devices[] = {&fake->device};
    assert_int_equal(mm_queue_open(devices, 1, &limits, &queue, NULL), MM_OK);
    return queue;
}

void submit(struct mm_queue *queue, struct test_job *test) {
    assert_int_equal(mm_queue_submit(queue, &test->job, NULL), MM_OK);
}
