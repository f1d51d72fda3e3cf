/* Work is what waits in a device's queue: a product (gpu/queue/job.h) or a task (gpu/queue/task.h). Products
 * and tasks have struct mm_work as their first member. The owner embeds work in its own struct, so queueing
 * allocates nothing. While the queue owns work, the owner may read only the members it has set. */
#pragma once

#include "gpu/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct mm_backend;
struct mm_device;
struct mm_worker;

/* Clients have numbers from 1 on, so tables by client need no search. */
enum { MM_CLIENTS_MAX = 1025 };

enum mm_work_kind { MM_WORK_PRODUCT, MM_WORK_TASK };

/* A step is a slice of a task, a part of a product on a host device, or a whole product on a GPU. */
enum mm_work_state {
    MM_WORK_IDLE,    /* the owner has the work, or the work moves to another device */
    MM_WORK_WAITING, /* the work is in its worker's waiting list, before the first step */
    MM_WORK_RUNNING, /* a thread of the work's worker runs a step */
    MM_WORK_PAUSED,  /* the work is in its worker's waiting list, between two steps */
};

struct mm_work {
    /* The owner sets these. */
    enum mm_work_kind kind;
    const struct mm_backend *backend; /* the work must be done on a device of this backend */
    uint64_t deadline_ns;             /* no step begins after this time (mm_clock_ns); 0 for no deadline */
    unsigned client;                  /* whose work this is, below MM_CLIENTS_MAX; 0 for the service's own */

    /* The queue calls this with a list of work that is over, linked by `next`. All work in the list has this
     * `done`. Afterwards the queue does not use the work. The caller is a worker's thread, mm_queue_abort or
     * mm_queue_fail_hung, with no lock held. */
    void (*done)(struct mm_work *first);

    void *owner; /* data for `done` */

    /* The queue sets these. The owner may read them when `done` is called. */
    struct mm_error error;          /* MM_OK if the work is complete */
    const struct mm_device *device; /* the device that began the first step, or NULL */
    uint64_t waited_ns;             /* time in the waiting list, for a product also between its parts */
    struct mm_work *next;           /* next work in the list that `done` gets */

    /* Only the queue uses these, with one exception. The backend's `schedule` sets is_exclusive and batch_key
     * of a job, and the backend reads batch_key. */
    TAILQ_ENTRY(mm_work) listed; /* entry in the worker's waiting or running list */
    struct mm_worker *worker;    /* the worker that will do the work; NULL if no device can */
    enum mm_work_state state;    /* changed by worker.c, with the queue's mutex held */
    bool is_cancelled;           /* cancelled after the first step began; __atomic access only */
    bool is_extra;               /* a share that does not count as waiting, because another share counts */
    bool is_exclusive;           /* nothing else may run on the device at the same time */
    uint64_t batch_key;          /* jobs with equal keys can share a launch; 0 for all other work */
    uint64_t queued_ns;          /* when the work began to wait, minus the time of earlier waits */
    double turn_ns;              /* place in the waiting list (worker.c) */

    /* When the watch first saw the current step. mm_work_show_progress sets this to 0, so the time starts
     * again. __atomic access only. */
    uint64_t seen_ns;

    size_t bytes;
    double load;        /* in operations; the sum over a device's work is the device's load */
    double expected_ns; /* how long the work will keep the device busy; 0 if not known */
};

/* Whether the work must end after the current step. Any thread. */
static inline bool mm_work_is_cancelled(const struct mm_work *work) {
    return __atomic_load_n(&work->is_cancelled, __ATOMIC_RELAXED);
}

static inline bool mm_work_is_late(const struct mm_work *work, uint64_t now_ns) {
    return work->deadline_ns != 0 && now_ns > work->deadline_ns;
}

/* Shows the watch that the device makes progress in a long step, so the device does not count as hung. Only
 * the thread that runs the step calls this. */
static inline void mm_work_show_progress(struct mm_work *work) {
    __atomic_store_n(&work->seen_ns, 0, __ATOMIC_RELAXED);
}

/* Plans the work for a device: sets is_exclusive, batch_key, load, expected_ns and a job's plan.
 * MM_UNSUPPORTED if the device cannot do the work. Called by the owner, with no lock held. */
enum mm_status mm_work_plan(struct mm_work *work, struct mm_device *device, struct mm_error *error);

/* Calls `done` for a list of work that is over. Neighbours with the same `done` get one call. */
void mm_work_list_done(struct mm_work *first);
