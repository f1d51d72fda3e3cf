/* A job for tests of the queue, and a queue in front of fake devices. */
#ifndef TESTS_UNIT_GPU_QUEUE_JOB_H
#define TESTS_UNIT_GPU_QUEUE_JOB_H

#include "gpu/queue.h"

#include "fake_backend.h"

#include <semaphore.h>

struct test_job {
    struct mm_job job;
    sem_t done;
    int done_count; /* __atomic */
};

/* Calls of a job's done, with a list each. __atomic. */
extern unsigned done_calls;

/* The done() of these jobs. */
void count_done(struct mm_job *first);

/* A product of m×2 by 2×2 for the fake backend, by one of its variants. */
void job_init(struct test_job *test, const char *variant, size_t m);

/* Until its done(), of which there must be one alone. */
void job_wait(struct test_job *test);

/* Of at most four devices. */
struct mm_queue *open_queue(struct fake_device *fakes, size_t count, size_t jobs_max, size_t bytes_max);

#endif
