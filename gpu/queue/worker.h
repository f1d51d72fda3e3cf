/* A worker: the lists of work for one device, and the threads that do the work. Only gpu/queue uses this. */
#pragma once

#include "gpu/queue/pipeline.h"
#include "gpu/queue/queue.h"
#include "gpu/queue/task.h"

#include <pthread.h>

/* A thread of a worker. Only the thread itself uses this struct, except at start and join. */
struct mm_worker_thread {
    struct mm_worker *worker;
    pthread_t thread;
    uint64_t spin_ns; /* how long the thread polls the device before it sleeps */
    unsigned seen;    /* worker->changes when the thread last looked at the waiting list */
    struct mm_pipeline pipeline;
    struct mm_work *over; /* list of work whose `done` must still be called, linked by `next` */
};

TAILQ_HEAD(mm_work_list, mm_work);

struct mm_worker {
    struct mm_queue *queue;
    struct mm_device *device;
    struct mm_worker_thread threads[MM_LANES_MAX];
    unsigned thread_count;

    /* Signalled when work arrives or ends, or when the queue closes. Used with queue->mutex. */
    pthread_cond_t changed;

    /* Incremented when waiting work can perhaps begin. __atomic access; written with the mutex held. */
    unsigned changes;

    struct mm_work_list waiting; /* in order of turn_ns, including paused work */
    struct mm_work_list running; /* in order of start */
    size_t jobs;                 /* length of both lists together */
    double load;        /* sum of the work's loads (work.h); __atomic access, written with the mutex held */
    double expected_ns; /* time for all work in both lists; unknown times count as 0 */
    bool runs_exclusive;

    /* For the turns of clients (worker.c). All times are in the worker's virtual time. */
    double now_ns;                  /* the turn of the work that started last */
    double last_ns;                 /* the latest time in next_ns so far */
    double next_ns[MM_CLIENTS_MAX]; /* the first turn that each client has not used */
};

/* The queue. No thread may hold the mutex while it calls a backend, a task's `run` or a `done`. */
struct mm_queue {
    pthread_mutex_t mutex; /* guards the members below, and the workers' lists and loads */
    struct mm_queue_limits limits;
    size_t jobs_waiting;
    size_t jobs_waiting_of[MM_CLIENTS_MAX]; /* waiting jobs of each client */
    size_t bytes_waiting;
    size_t jobs_running; /* including paused tasks */
    uint64_t looked_ns;  /* when mm_queue_fail_hung was last called */
    bool stopping;       /* new work is rejected; __atomic access, written with the mutex held */

    /* If set, no step begins, except the first step of a product. __atomic access, written with the mutex
     * held. */
    bool ending_tasks;

    bool closing; /* workers end when their lists are empty */
    size_t worker_count;
    struct mm_worker workers[];
};

static inline double mm_worker_load(const struct mm_worker *worker) {
    double load;
    __atomic_load(&worker->load, &load, __ATOMIC_RELAXED);
    return load;
}

/* --- worker.c: the lists ------------------------------------------------------------------------- */

/* Forecasts how long the work would wait for its first step, in nanoseconds. Unknown times count as 0. The
 * caller holds the mutex. */
double mm_worker_wait_ns(const struct mm_worker *worker, const struct mm_work *work);

/* Adds idle work to the waiting list. The caller holds the mutex. */
void mm_worker_add(struct mm_worker *worker, struct mm_work *work);

/* Removes waiting or paused work, and makes it idle. The caller holds the mutex. */
void mm_worker_remove(struct mm_worker *worker, struct mm_work *work);

/* Moves work in the waiting list to the front. The caller holds the mutex. */
void mm_worker_prefer(struct mm_worker *worker, struct mm_work *work);

/* Removes running work, and makes it idle. The caller holds the mutex. */
void mm_worker_finish(struct mm_worker *worker, struct mm_work *work);

/* Moves running work to its client's next turn in the waiting list, or to the front if cancelled. The caller
 * holds the mutex. */
void mm_worker_pause(struct mm_worker *worker, struct mm_work *work);

/* Starts the next work: returns a task, or fills *batch with products that share a launch and returns NULL.
 * If may_wait, first waits until work can begin or the queue closes. If no work was started, *batch is empty,
 * and the result is NULL. Sets *seen to worker->changes, or to one less if more work can begin now, so the
 * caller looks again. The caller must not hold the mutex. */
struct mm_task *mm_worker_next(struct mm_worker *worker, bool may_wait, struct mm_batch *batch,
                               unsigned *seen);

/* --- queue.c: for a worker whose device has failed ----------------------------------------------- */

/* Plans a product for another device, and moves the product to the worker of that device. The product has not
 * begun. `runs_at` is the worker that has the product in its running list, or NULL. Returns false if no other
 * device can run the product, if the queue is closing, or if the work is a task. The caller must not hold the
 * mutex. */
bool mm_worker_pass_on(struct mm_queue *queue, struct mm_work *work, struct mm_worker *runs_at);

/* --- worker_thread.c ----------------------------------------------------------------------------- */

/* Starts the threads of a worker. The caller has set the worker's queue, device and lists, and all other
 * members to 0. Even after a failure, the caller must call mm_worker_join. */
enum mm_status mm_worker_start(struct mm_worker *worker, struct mm_error *error);

/* Joins the worker's threads. The caller has set queue->closing and broadcast `changed`. */
void mm_worker_join(struct mm_worker *worker);
