/* A worker: the lists of work in front of one device, and the threads that do it. For gpu/queue alone:
 * queue.c is the owners' side, worker.c the lists, worker_thread.c the threads. */
#pragma once

#include "gpu/queue/pipeline.h"
#include "gpu/queue/queue.h"
#include "gpu/queue/task.h"

#include <pthread.h>

/* Used by its own thread alone, except by start and join. */
struct mm_worker_thread {
    struct mm_worker *worker;
    pthread_t thread;
    uint64_t spin_ns; /* how long it polls the device */
    unsigned seen;    /* of worker->changes, when it looked at the list last */
    struct mm_pipeline pipeline;
    struct mm_work *over; /* whose `done` is still to be called; by next */
};

TAILQ_HEAD(mm_work_list, mm_work);

struct mm_worker {
    struct mm_queue *queue;
    struct mm_device *device;
    struct mm_worker_thread threads[MM_LANES_MAX];
    unsigned thread_count;       /* started */
    pthread_cond_t changed;      /* work came or ended, or the queue is closing; with queue->mutex, and by the
                                    clock CLOCK_MONOTONIC */
    unsigned changes;            /* how often work came, or left the front of the list by being cancelled;
                                    __atomic access, written with the mutex held */
    struct mm_work_list waiting; /* oldest first; paused work too */
    struct mm_work_list running; /* in the order in which it was taken */
    size_t jobs;                 /* waiting and running */
    double load;                 /* of these; other threads read it, by __atomic */
    double expected_ns;          /* how long these will keep the device busy; unknown times count 0 */
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
    bool stopping;       /* refuse new work; __atomic access, written with the mutex held */
    bool ending_tasks;   /* begin no slice, and go on with no product; __atomic access, written with
                            the mutex held */
    bool closing;        /* workers end once their list is empty */
    size_t worker_count;
    struct mm_worker workers[];
};

/* --- worker.c: the lists ------------------------------------------------------------------------- */

/* Idle work comes to wait at its worker. With the mutex held. */
void mm_worker_add(struct mm_worker *worker, struct mm_work *work);

/* Waiting or paused work becomes idle. With the mutex held. */
void mm_worker_remove(struct mm_worker *worker, struct mm_work *work);

/* Moves work to the front of the waiting list. With the mutex held. */
void mm_worker_prefer(struct mm_worker *worker, struct mm_work *work);

/* Running work becomes idle. With the mutex held. */
void mm_worker_finish(struct mm_worker *worker, struct mm_work *work);

/* Running work pauses: behind all other work, or before it if it was cancelled and only has to end. With the
 * mutex held. */
void mm_worker_pause(struct mm_worker *worker, struct mm_work *work);

/* Takes the next work to run, for the worker's threads, without the mutex: a task, which is returned, or a
 * batch of products that may share a launch. If nothing can begin beside what runs, the batch is empty and
 * NULL is returned; if the caller may wait, that happens only once the queue closes. *seen: worker->changes
 * at that time, or one less if other waiting work could begin as well, so that the caller looks again. */
struct mm_task *mm_worker_next(struct mm_worker *worker, bool may_wait, struct mm_batch *batch,
                               unsigned *seen);

/* --- queue.c: for a worker whose device has failed ----------------------------------------------- */

/* Hands a product that has not begun to another device that can run it, planned for that one: true, and it is
 * that worker's. False if there is none, or the work is a task. `runs_at` runs the product; NULL: it is idle.
 * Without the mutex. */
bool mm_worker_pass_on(struct mm_queue *queue, struct mm_work *work, struct mm_worker *runs_at);

/* --- worker_thread.c ----------------------------------------------------------------------------- */

/* Starts the threads of a worker whose queue, device and lists are set and all else is 0. Join it also on
 * failure. */
enum mm_status mm_worker_start(struct mm_worker *worker, struct mm_error *error);

/* Joins them, once queue->closing is set and `changed` was broadcast. */
void mm_worker_join(struct mm_worker *worker);
