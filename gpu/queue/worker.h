/* A worker: the list of jobs in front of one device, and the threads that do them. For gpu/queue alone:
 * queue.c is the callers' side, worker.c the list, worker_thread.c the threads. */
#pragma once

#include "gpu/queue/pipeline.h"
#include "gpu/queue/queue.h"

#include <pthread.h>

/* Used by its own thread alone, but for what start and join do. */
struct mm_worker_thread {
    struct mm_worker *worker;
    pthread_t thread;
    uint64_t spin_ns; /* how long it asks the device again and again */
    unsigned seen;    /* of worker->changes, when it looked at the list last */
    struct mm_pipeline pipeline;
    struct mm_job *over; /* whose done is still to be called; by next */
};

/* By next and previous of the jobs. */
struct mm_job_list {
    struct mm_job *first;
    struct mm_job *last;
};

struct mm_worker {
    struct mm_queue *queue;
    struct mm_device *device;
    struct mm_worker_thread threads[MM_LANES_MAX];
    unsigned thread_count;  /* started */
    pthread_cond_t changed; /* a job came or ended, or the queue is closing; with queue->mutex, and by the
                               clock CLOCK_MONOTONIC */
    unsigned changes; /* of the list that may let a job begin, ever: one came, or one was cancelled; __atomic
                         access, written with the mutex held */
    struct mm_job_list waiting; /* oldest first */
    struct mm_job_list running; /* in the order in which they were taken */
    size_t jobs;                /* waiting and running */
    double load;                /* of these, to compare devices by; other threads read it, by __atomic */
    double expected_ns;         /* that these will keep the device busy, as far as it is known */
    unsigned under_way;         /* running, of all threads */
    bool is_taken;              /* by one that wants the device alone */
};

/* One mutex guards all lists and counts; it is never held while a backend, a task or a done() runs. */
struct mm_queue {
    pthread_mutex_t mutex; /* guards all below and the workers' lists and loads */
    struct mm_queue_limits limits;
    size_t jobs_waiting;
    size_t bytes_waiting;
    uint64_t looked_ns;  /* when hung devices were looked for last */
    size_t jobs_running; /* begun tasks that wait for their next slice among them */
    bool stopping;       /* refuse new jobs */
    bool ending_tasks;   /* begin no task and no slice any more */
    bool closing;        /* workers end once their list is empty */
    size_t worker_count;
    struct mm_worker workers[];
};

/* --- worker.c: the list -------------------------------------------------------------------------- */

/* What keeps a job from its kernel at this worker, to compare workers by: the load there, and the copies of
 * stored operands that are not there. Any thread that owns the job, without the mutex. */
double mm_worker_load_before(const struct mm_worker *worker, const struct mm_job *job);

/* With the mutex held. A job comes to a worker, where it waits from then on. */
void mm_worker_add(struct mm_worker *worker, struct mm_job *job);

/* Takes a job of the list away from its worker. */
void mm_worker_remove(struct mm_worker *worker, struct mm_job *job);

/* Moves a job of the list to its front. */
void mm_worker_prefer(struct mm_worker *worker, struct mm_job *job);

/* Whether its device has been at one job for longer than most_ns. A job's time counts from the first call
 * while it runs, or from this one if `begins`. */
bool mm_worker_hangs(struct mm_worker *worker, uint64_t now_ns, uint64_t most_ns, bool begins);

/* For its threads, without the mutex. Takes the next jobs to run: one, or a batch that may share a launch;
 * none if none can begin beside what runs. If it may wait, it waits for one until the queue closes. *seen:
 * worker->changes at that time, or one less if another waiting job could begin as well. */
void mm_worker_take(struct mm_worker *worker, bool may_wait, struct mm_batch *batch, unsigned *seen);

/* Ends the run of these jobs (at least one), and returns them as a list whose done is to be called. */
struct mm_job *mm_worker_finish(struct mm_worker *worker, const struct mm_batch *batch);

/* Takes back a job that was taken and not begun, as if it had never been there. With the mutex held. */
void mm_worker_untake(struct mm_worker *worker, struct mm_job *job);

/* Whether a product that has more pieces goes on at once, since no other job waits. */
bool mm_worker_keeps(struct mm_worker *worker, struct mm_job *job);

/* Puts a task after a slice, or a product with more pieces, back into the list: last, or first if it was
 * cancelled and only has to end. */
void mm_worker_put_back(struct mm_worker *worker, struct mm_job *job);

/* --- queue.c: for a worker whose device has failed ----------------------------------------------- */

/* Hands a product that has not begun to another device that can run it, planned for that one: true, and it is
 * that worker's. False if there is none. `runs_at` has taken the product from its list; NULL: no worker has
 * it. Without the mutex. */
bool mm_worker_pass_on(struct mm_queue *queue, struct mm_job *job, struct mm_worker *runs_at);

/* --- worker_thread.c ----------------------------------------------------------------------------- */

/* How many the device is used by: one, or one for each lane. */
unsigned mm_worker_threads(const struct mm_device *device);

/* Starts the threads of a worker whose queue and device are set and all else is 0. Join it also on
 * failure. */
enum mm_status mm_worker_start(struct mm_worker *worker, struct mm_error *error);

/* Joins them, once queue->closing is set and `changed` was broadcast. */
void mm_worker_join(struct mm_worker *worker);
