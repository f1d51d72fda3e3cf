/* A job for tests of the queue that is a task or a product, and a queue in front of one fake device. */
#ifndef TESTS_UNIT_GPU_TASK_JOB_H
#define TESTS_UNIT_GPU_TASK_JOB_H

#include "gpu/queue.h"

#include "fake_backend.h"

#include <semaphore.h>

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

/* A task of so many slices; 0: a product. */
void job_init(struct test_job *test, struct fake_device *fake, unsigned slices);

/* Lets so many slices end. */
void let_slices(struct test_job *test, unsigned count);

/* Until its done(), of which there must be one alone, with this status. */
void job_wait(struct test_job *test, enum mm_status status);

void wait_for(sem_t *semaphore);

struct mm_queue *open_queue(struct fake_device *fake, unsigned lanes, bool open_gate, size_t jobs_max);
void submit(struct mm_queue *queue, struct test_job *test);

#endif
