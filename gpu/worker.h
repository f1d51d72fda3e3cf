/* A worker: the list of jobs in front of one device, and the threads that do them. For queue.c and worker.c
 * alone, which share the queue's state: queue.c is the callers' side of it, worker.c the devices'. */
#ifndef MM_GPU_WORKER_H
#define MM_GPU_WORKER_H

#include "gpu/forecast.h"
#include "gpu/pipeline.h"
#include "gpu/queue.h"

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
    double load;                /* of these, to compare devices by */
    double expected_ns;         /* that these will keep the device busy, as far as it is known */
    struct mm_forecast forecast;
    unsigned under_way; /* running, of all threads */
    bool is_taken;      /* by one that wants the device alone */
};

/* One mutex guards all lists and counts; it is never held while a backend, a task or a done() runs, but for a
 * backend's choices. */
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

/* --- worker.c: the list --------------------------------------------------------------------------- */

/* With the mutex held. A job comes to a worker, where it waits from then on. */
void mm_worker_add(struct mm_worker *worker, struct mm_job *job);

/* Takes a job that waits, and was not begun, away from its worker. */
void mm_worker_remove(struct mm_worker *worker, struct mm_job *job);

/* Moves a job of the list to its front. */
void mm_worker_prefer(struct mm_worker *worker, struct mm_job *job);

/* Whether its device is at one job for more than so long, as far as this was asked meanwhile: a job's time
 * counts from the first look at it, or from this one where it `begins` anew. */
bool mm_worker_hangs(struct mm_worker *worker, uint64_t now_ns, uint64_t most_ns, bool begins);

/* For its threads, without the mutex. Takes the next jobs, which run from then on: one, or a batch that may
 * be begun together; none where none can be begun beside what runs. Where it may, it waits for one, and gives
 * up where the queue closes. *seen: worker->changes, as it was then, or one less where another that waits
 * could be begun as well. */
void mm_worker_take(struct mm_worker *worker, bool may_wait, struct mm_batch *batch, unsigned *seen);

/* They are over (there is one at least), and others may run. What is left to do is to call their done:
 * returns them as a list for that. */
struct mm_job *mm_worker_finish(struct mm_worker *worker, const struct mm_batch *batch);

/* Takes back a job that was taken and not begun, as if it had never been there. With the mutex held. */
void mm_worker_untake(struct mm_worker *worker, struct mm_job *job);

/* Puts a task that has done a slice back into the list: last, or first where it is only to be told that it
 * was cancelled. */
void mm_worker_put_back(struct mm_worker *worker, struct mm_job *job);

/* --- queue.c: for a worker whose device has failed ------------------------------------------------ */

/* Hands a product that was taken and not begun on to another device, if there is one that can run it: true,
 * and the caller has it no more. Without the mutex. */
bool mm_worker_pass_on(struct mm_worker *worker, struct mm_job *job);

/* --- worker_thread.c ------------------------------------------------------------------------------ */

/* How many the device is used by. */
unsigned mm_worker_threads(const struct mm_device *device);

/* Starts the threads of a worker, whose queue and device are set and all else is 0. Where that fails, those
 * that were started are to be joined, as of a worker that was. */
enum mm_status mm_worker_start(struct mm_worker *worker, struct mm_error *error);

/* Joins them, once queue->closing is set and `changed` was broadcast. */
void mm_worker_join(struct mm_worker *worker);

#endif
