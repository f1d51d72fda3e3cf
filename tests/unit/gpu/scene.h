/* A queue in front of fake devices, which end their jobs when told to, and jobs for it. */
#pragma once

#include "gpu/queue/queue.h"
#include "gpu/queue/task.h"
#include "tests/unit/unit.h"

#include <pthread.h>
#include <semaphore.h>

enum { FAKES_MAX = 3, LANES_MAX = 16, JOBS_MAX = 70, SLICES_MAX = 8 };

/* What products of so many columns do. */
enum {
    ALONE_N = 99,   /* want the device alone, unless it has memory_bytes */
    FAILING_N = 98, /* fail in begin */
    HUNGRY_N = 97,  /* find no memory beside others, nor where the device is starved */
    SLOW_N = 96,    /* wait for the gate in begin */
    CUT_N = 95,     /* are computed in PIECES pieces, each by its own begin and end */
    PIECES = 3
};

struct fake_device {
    struct mm_device device;
    pthread_mutex_t mutex; /* guards all below */
    pthread_cond_t changed;
    bool open_gate;                  /* whether `end` returns */
    unsigned open_lanes;             /* a bit for each lane that is over though the gate is closed, once */
    unsigned passes;                 /* calls of `end` that return all the same */
    bool fail_measure;               /* whether `measure` fails */
    bool fail_end;                   /* whether `end` tells of a failure */
    bool makes_late;                 /* whether the deadline of what is begun has passed from then on */
    bool is_starved;                 /* whether it has no memory for HUNGRY_N */
    uint64_t kernel_ns;              /* of each job; 0: 1 */
    unsigned batches;                /* calls of begin */
    unsigned begun;                  /* jobs that begin was called for */
    unsigned under_way;              /* begun and not ended */
    unsigned most;                   /* the most under way at one time */
    unsigned alone;                  /* of these, products of n = ALONE_N */
    bool was_shared;                 /* one of them was under way beside another product */
    struct mm_job *lanes[LANES_MAX]; /* the first of what is under way in each */
    pthread_t owners[LANES_MAX];     /* the thread that uses the lane, or all lanes; or 0 */
    bool was_misused;                /* a lane was not free, not the thread's, or not there */
};

extern const struct mm_backend fake_backend;
extern const struct mm_backend fake_async; /* the same, but it tells when a lane is over, and products go
                                              together by their tile */
extern const struct mm_backend fake_host;  /* the same on the host, whose kernels take no time */

void open_gate(struct fake_device *fake);
void close_gate(struct fake_device *fake);
void open_lane(struct fake_device *fake, unsigned lane);
void let_pass(struct fake_device *fake, unsigned jobs); /* while the gate is closed */
void wait_begun(struct fake_device *fake, unsigned begun);
unsigned begun_by(struct fake_device *fake);

/* The scene of a test. What is 0 is 1 of each, an open gate, fake_backend, 8 jobs, and any wait. */
struct setting {
    unsigned devices, lanes;
    bool closed; /* the gates */
    const struct mm_backend *backend;
    size_t jobs_max;
    uint64_t wait_ns_max;
};
extern struct fake_device fakes[FAKES_MAX];
extern struct fake_device *const fake; /* the first of them */
extern struct mm_queue *queue;
extern unsigned done_calls; /* calls of a job's done, with a list each; __atomic */
extern unsigned plans;      /* that were made; __atomic */

void set_fakes(struct setting setting);
void open_scene(struct setting setting);
void close_queue(void); /* where it is open */
/* A teardown: closes the queue, and asserts that no lane was misused. */
int close_scene(void **state);

struct test_job {
    struct mm_job job;
    struct mm_task task;  /* in place of the job, a slice whenever it is let */
    struct mm_work *work; /* of the one that it is */
    sem_t done;
    int done_count; /* __atomic */
    /* Of a task: */
    sem_t entered; /* posted as a slice begins */
    sem_t let;     /* waited for before it ends */
    unsigned slices;
    unsigned runs; /* calls that were not cancelled */
    unsigned cancelled_runs;
    bool device_was_lost;       /* at the last of these */
    unsigned begun[SLICES_MAX]; /* products that the first device had begun when each slice began */
    unsigned begun_at_end;      /* the same when it was cancelled */
    unsigned beside;            /* products under way beside a slice, the most */
    bool fails;
    bool becomes_late; /* its deadline has passed once a slice has begun */
};
extern struct test_job jobs[JOBS_MAX];

void job_init(struct test_job *test, const char *variant, size_t m); /* m×2 by 2×2 */
void task_init(struct test_job *test, unsigned slices);
void count_done(struct mm_work *first); /* the done of these jobs */
enum mm_status try_submit(struct test_job *test, struct mm_error *error);
void submit(struct test_job *test);
void submit_product(struct test_job *test, size_t n); /* a new one of 2×2 by 2×n, naive */
void submit_task(struct test_job *test, unsigned slices);
void wait_for(sem_t *semaphore);
/* Until its done, of which there must be one alone, with this status. */
void job_wait(struct test_job *test, enum mm_status status);
void wait_all(struct test_job *first, unsigned count); /* with MM_OK */
void let_slices(struct test_job *test, unsigned count);
