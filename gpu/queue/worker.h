/* A worker: the lists of work for one device, and the threads that do the work. Only gpu/queue uses this. */
#pragma once

#include "gpu/queue/pipeline.h"
#include "gpu/queue/queue.h"
#include "gpu/queue/task.h"

#include <pthread.h>

/* Only the thread itself uses this, except at start and join. */
struct mm_worker_thread {
    struct mm_worker *worker;
    pthread_t thread;
    uint64_t spin_ns; /* how long the thread polls the device before it naps */
    unsigned seen;    /* worker->changes when the thread last looked at the list */
    struct mm_pipeline pipeline;
    struct mm_work *over; /* list (by `next`) of work whose `done` is not called yet */
};

TAILQ_HEAD(mm_work_list, mm_work);

struct mm_worker {
    struct mm_queue *queue;
    struct mm_device *device;
    struct mm_worker_thread threads[MM_LANES_MAX];
    unsigned thread_count; /* number of started threads */

    /* Signalled when work arrives or ends, or when the queue closes. Uses queue->mutex and
     * CLOCK_MONOTONIC. */
    pthread_cond_t changed;

    /* How often work arrived, or left the front of the waiting list. __atomic access; written with the mutex
     * held. */
    unsigned changes;

    struct mm_work_list waiting; /* oldest first, including paused work */
    struct mm_work_list running; /* in order of start */
    size_t jobs;                 /* number of waiting and running jobs */
    double load;                 /* sum over the jobs; __atomic access, written with the mutex held */
    double expected_ns;          /* how long the jobs will keep the device busy; unknown times count 0 */
    bool runs_exclusive;
};

/* No thread holds the mutex while it calls a backend, a task or a `done`. */
struct mm_queue {
    pthread_mutex_t mutex; /* guards the members below, and the workers' lists and loads */
    struct mm_queue_limits limits;
    size_t jobs_waiting;
    size_t bytes_waiting;
    size_t jobs_running; /* including paused tasks */
    uint64_t looked_ns;  /* when mm_queue_fail_hung was last called */
    bool stopping;       /* new work is rejected; __atomic access, written with the mutex held */

    /* Only the first part of a product may still begin. Written with the mutex held; __atomic access. */
    bool ending_tasks;

    bool closing; /* workers end when their lists are empty */
    size_t worker_count;
    struct mm_worker workers[];
};

/* --- worker.c: the lists ------------------------------------------------------------------------- */

/* Adds idle work to the waiting list. The caller holds the mutex. */
void mm_worker_add(struct mm_worker *worker, struct mm_work *work);

/* Removes waiting or paused work, which becomes idle. The caller holds the mutex. */
void mm_worker_remove(struct mm_worker *worker, struct mm_work *work);

/* Moves work to the front of the waiting list. The caller holds the mutex. */
void mm_worker_prefer(struct mm_worker *worker, struct mm_work *work);

/* Removes running work, which becomes idle. The caller holds the mutex. */
void mm_worker_finish(struct mm_worker *worker, struct mm_work *work);

/* Moves running work to the end of the waiting list, or to the front if cancelled. The caller holds the
 * mutex. */
void mm_worker_pause(struct mm_worker *worker, struct mm_work *work);

/* Starts the next work. Returns a task, or fills *batch with products that may share a launch and returns
 * NULL. If nothing can begin beside the running work and may_wait is set, waits until something can begin or
 * the queue closes. If nothing was started, returns NULL with an empty batch. Sets *seen to worker->changes,
 * or to one less if more waiting work could begin, so the caller looks again. The caller does not hold the
 * mutex. */
struct mm_task *mm_worker_next(struct mm_worker *worker, bool may_wait, struct mm_batch *batch,
                               unsigned *seen);

/* --- queue.c: for a worker whose device has failed ----------------------------------------------- */

/* Plans a product that has not begun for another device, and moves it to that device's worker. Returns false
 * if no other device can run the product, if the queue is closing, or if the work is a task. `runs_at` is the
 * worker that runs the product, or NULL if the product is idle. The caller does not hold the mutex. */
bool mm_worker_pass_on(struct mm_queue *queue, struct mm_work *work, struct mm_worker *runs_at);

/* --- worker_thread.c ----------------------------------------------------------------------------- */

/* Starts the threads of a worker. Its queue, device and lists are set, and all other members are 0. Even
 * after a failure, the caller must call mm_worker_join. */
enum mm_status mm_worker_start(struct mm_worker *worker, struct mm_error *error);

/* Joins the worker's threads. The caller has set queue->closing and broadcast `changed`. */
void mm_worker_join(struct mm_worker *worker);
