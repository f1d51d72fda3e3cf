/* A worker: the lists of work in front of one device, and the threads that do it. For gpu/queue alone:
 * queue.c is the owners' side, worker.c the lists, worker_thread.c the threads. */
#pragma once

#include "gpu/queue/pipeline.h"
#include "gpu/queue/queue.h"
#include "gpu/queue/task.h"

#include <pthread.h>

/* Only its own thread uses it, except for start and join. */
struct mm_worker_thread {
    struct mm_worker *worker;
    pthread_t thread;
    uint64_t spin_ns; /* how long the thread polls the device before it naps */
    unsigned seen;    /* worker->changes, when the thread looked at the list last */
    struct mm_pipeline pipeline;
    struct mm_work *over; /* work whose `done` is not called yet; a list by next */
};

TAILQ_HEAD(mm_work_list, mm_work);

struct mm_worker {
    struct mm_queue *queue;
    struct mm_device *device;
    struct mm_worker_thread threads[MM_LANES_MAX];
    unsigned thread_count;  /* started */
    pthread_cond_t changed; /* work arrived or ended, or the queue is closing; used with queue->mutex and
                               CLOCK_MONOTONIC */
    unsigned changes;       /* how often work arrived, or was cancelled at the front of the list; __atomic
                               access, written with the mutex held */
    struct mm_work_list waiting; /* oldest first; paused work too */
    struct mm_work_list running; /* in the order in which it started */
    size_t jobs;                 /* waiting and running */
    double load;                 /* of the jobs; other threads read it, by __atomic */
    double expected_ns;          /* how long the jobs will keep the device busy; unknown times count 0 */
    bool runs_exclusive;         /* exclusive work runs */
};

/* No thread holds the mutex while it calls a backend, a task or a `done`. */
struct mm_queue {
    pthread_mutex_t mutex; /* guards all below and the workers' lists and loads */
    struct mm_queue_limits limits;
    size_t jobs_waiting;
    size_t bytes_waiting;
    size_t jobs_running; /* paused tasks too */
    uint64_t looked_ns;  /* when hung devices were looked for last */
    bool stopping;       /* new work is rejected; __atomic access, written with the mutex held */
    bool ending_tasks;   /* no slice and no further part of a product begins; __atomic access, written with
                            the mutex held */
    bool closing;        /* workers end once their list is empty */
    size_t worker_count;
    struct mm_worker workers[];
};

/* --- worker.c: the lists ------------------------------------------------------------------------- */

/* Adds idle work to the waiting list. With the mutex held. */
void mm_worker_add(struct mm_worker *worker, struct mm_work *work);

/* Removes waiting or paused work from the worker; it becomes idle. With the mutex held. */
void mm_worker_remove(struct mm_worker *worker, struct mm_work *work);

/* Moves work to the front of the waiting list. With the mutex held. */
void mm_worker_prefer(struct mm_worker *worker, struct mm_work *work);

/* Removes running work from the worker; it becomes idle. With the mutex held. */
void mm_worker_finish(struct mm_worker *worker, struct mm_work *work);

/* Running work pauses: behind all other work, or before it if the work was cancelled and only has to end.
 * With the mutex held. */
void mm_worker_pause(struct mm_worker *worker, struct mm_work *work);

/* Starts the next work: returns a task, or returns NULL and fills *batch with products that may share a
 * launch. If nothing can begin beside the running work, this waits if may_wait, until the queue closes. If
 * nothing was started, it returns NULL with an empty batch. Sets *seen to worker->changes, or to one less if
 * more waiting work could begin, so the caller looks again. For the worker's threads, without the mutex. */
struct mm_task *mm_worker_next(struct mm_worker *worker, bool may_wait, struct mm_batch *batch,
                               unsigned *seen);

/* --- queue.c: for a worker whose device has failed ----------------------------------------------- */

/* Plans a product that has not begun for another device that can run it, and moves it to that device's
 * worker. False if there is no such device, or the work is a task. `runs_at` is the worker that runs the
 * product; NULL if the product is idle. Without the mutex. */
bool mm_worker_pass_on(struct mm_queue *queue, struct mm_work *work, struct mm_worker *runs_at);

/* --- worker_thread.c ----------------------------------------------------------------------------- */

/* Starts the threads of a worker whose queue, device and lists are set and all else is 0. Join it also on
 * failure. */
enum mm_status mm_worker_start(struct mm_worker *worker, struct mm_error *error);

/* Joins the worker's threads, once queue->closing is set and `changed` was broadcast. */
void mm_worker_join(struct mm_worker *worker);
