/* Jobs whose done() is counted, and queues in front of fake devices. */
#include "queue_job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

unsigned done_calls;

/* Who waits may be gone with its job at once. */
void count_done(struct mm_job *first) {
    struct mm_job *next;
    __atomic_add_fetch(&done_calls, 1, __ATOMIC_SEQ_CST);
    for (struct mm_job *job = first; job != NULL; job = next) {
        struct test_job *test = job->owner;
        next = job->next;
        __atomic_add_fetch(&test->done_count, 1, __ATOMIC_SEQ_CST);
        sem_post(&test->done);
    }
}

void job_init(struct test_job *test, const char *variant, size_t m) {
    memset(test, 0, sizeof *test);
    sem_init(&test->done, 0, 0);
    test->job.backend = &fake_backend;
    test->job.variant = mm_backend_variant(&fake_backend, MM_MATMUL, variant);
    test->job.product.m = m;
    test->job.product.n = test->job.product.k = 2;
    test->job.product.a = mm_matrix_dense(MM_FLOAT32, m, 2, NULL);
    test->job.product.b = mm_matrix_dense(MM_FLOAT32, 2, 2, NULL);
    test->job.product.c = mm_matrix_dense(MM_FLOAT32, m, 2, NULL);
    test->job.done = count_done;
    test->job.owner = test;
}

void job_wait(struct test_job *test) {
    while (sem_wait(&test->done) != 0)
        continue;
    assert_int_equal(__atomic_load_n(&test->done_count, __ATOMIC_SEQ_CST), 1);
    sem_destroy(&test->done);
}

struct mm_queue *open_queue(struct fake_device *fakes, size_t count, size_t jobs_max, size_t bytes_max) {
    struct mm_device *devices[4];
    struct mm_queue *queue = NULL;
    const struct mm_queue_limits limits = {.jobs_max = jobs_max, .bytes_max = bytes_max};
    for (size_t index = 0; index < count; index++)
        devices[index] = &fakes[index].device;
    assert_int_equal(mm_queue_open(devices, count, &limits, &queue, NULL), MM_OK);
    return queue;
}
