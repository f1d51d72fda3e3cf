/* A queue with fake devices, for tests of the queue. Jobs end when the test lets them. */
#pragma once

#include "gpu/queue/queue.h"
#include "gpu/queue/task.h"
#include "tests/unit/unit.h"

#include <pthread.h>
#include <semaphore.h>

enum { FAKES_MAX = 4, LANES_MAX = 16, JOBS_MAX = 70, SLICES_MAX = 8 };

/* The number of columns of a product tells the fake device how to treat the product. */
enum {
    ALONE_N = 99,     /* needs the device alone, unless memory_bytes is set */
    FAILING_N = 98,   /* fails in `begin` */
    NO_MEMORY_N = 97, /* finds no memory while other jobs run, or if has_no_memory is set */
    SLOW_N = 96,      /* waits for the gate in `begin` */
    CUT_N = 95,       /* needs PIECES calls of begin and end */
    PIECES = 3
};

struct fake_device {
    struct mm_device device;
    pthread_mutex_t mutex; /* guards the members below */
    pthread_cond_t changed;
    bool open_gate;      /* if set, `end` returns at once */
    unsigned open_lanes; /* bit i: the next `end` in lane i returns even if the gate is closed */
    unsigned passes;     /* how many more calls of `end` return even if the gate is closed */
    bool fail_measure;
    bool fail_end;
    bool makes_late;                 /* jobs are past their deadline when they begin */
    bool has_no_memory;              /* NO_MEMORY_N finds no memory even alone */
    uint64_t kernel_ns;              /* kernel time of each job; 0 for 1 ns */
    unsigned batches;                /* calls of `begin` */
    unsigned begun;                  /* jobs passed to `begin` */
    unsigned under_way;              /* jobs begun but not ended */
    unsigned most;                   /* largest value of under_way so far */
    unsigned alone;                  /* running products with ALONE_N */
    bool was_shared;                 /* a product with ALONE_N did not run alone */
    struct mm_job *lanes[LANES_MAX]; /* first job that runs in each lane */
    pthread_t owners[LANES_MAX];     /* thread that uses the lane; 0 for none */
    bool was_misused;                /* a lane was busy, used by another thread, or unknown */
};

extern const struct mm_backend fake_backend;
extern const struct mm_backend
    fake_async; /* reports when a lane has ended, and batches products with equal tiles */
extern const struct mm_backend fake_planning; /* makes plans with `cuts` */
extern const struct mm_backend fake_host;     /* a backend of the host whose kernels take no time */

void open_gate(struct fake_device *fake);
void close_gate(struct fake_device *fake);
void open_lane(struct fake_device *fake, unsigned lane);
void let_pass(struct fake_device *fake,
              unsigned jobs); /* while the gate is closed, lets `end` return for this many jobs */
void wait_begun(struct fake_device *fake, unsigned begun);
unsigned begun_by(struct fake_device *fake);

/* The devices and the queue that open_scene makes. A member that is 0 means one device, one lane, an open
 * gate, fake_backend, 8 jobs, or any waiting time. */
struct setting {
    unsigned devices, lanes;
    bool closed; /* the gates are closed */
    const struct mm_backend *backend;
    size_t jobs_max, client_jobs_max;
    uint64_t wait_ns_max;
};
extern struct fake_device fakes[FAKES_MAX];
extern struct fake_device *const fake; /* the first of `fakes` */
extern struct mm_queue *queue;
extern unsigned done_calls;                  /* calls of done callbacks; atomic */
extern unsigned plans;                       /* plans made so far; atomic */
extern void (*computes)(struct mm_job *job); /* computes a job at its end; NULL if nothing is computed */
extern struct mm_cuts cuts;                  /* where plans cut C, if the backend is fake_planning */

void set_fakes(struct setting setting);
void open_scene(struct setting setting);
void close_queue(void); /* does nothing if the queue is closed */
/* Teardown of a test. Closes the queue, clears `computes`, and asserts that no lane was misused. */
int close_scene(void **state);

struct test_job {
    struct mm_job job;
    struct mm_task task;  /* replaces `job` if the work is a task */
    struct mm_work *work; /* points into `job` or `task` */
    sem_t done;
    int done_count; /* atomic */
    /* Only tasks use the members below. */
    sem_t entered; /* posted when a slice begins */
    sem_t let;     /* a slice waits for this before it ends */
    unsigned slices;
    unsigned runs; /* calls that were not cancelled */
    unsigned cancelled_runs;
    bool device_was_lost;       /* state of the device in the last cancelled call */
    unsigned begun[SLICES_MAX]; /* products that the first device had begun when each slice began */
    unsigned begun_at_end;      /* products that the first device had begun at the cancelled call */
    unsigned beside;            /* largest number of products that ran during a slice */
    bool fails;
    bool becomes_late; /* passes its deadline after a slice has begun */
};
extern struct test_job jobs[JOBS_MAX];

void job_init(struct test_job *test, const char *variant, size_t m); /* an m×2 by 2×2 product */
void task_init(struct test_job *test, unsigned slices);
void count_done(struct mm_work *first); /* the done callback of these jobs */
enum mm_status try_submit(struct test_job *test, struct mm_error *error);
void submit(struct test_job *test);
void submit_product(struct test_job *test, size_t n); /* a 2×2 by 2×n product by `naive` */
void submit_task(struct test_job *test, unsigned slices);
void wait_for(sem_t *semaphore);
/* Waits until the job is done. Asserts that its done callback was called once with this status. */
void job_wait(struct test_job *test, enum mm_status status);
void wait_all(struct test_job *first, unsigned count); /* each status must be MM_OK */
void let_slices(struct test_job *test, unsigned count);
/* Submits many rounds of jobs, which `make` prepares, while a device fails and comes back, and clients
 * cancel. Asserts that each job ends once, and then calls `ended`. */
void end_many(void (*make)(unsigned index), void (*ended)(unsigned index));
