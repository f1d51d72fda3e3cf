/* Work is what waits in a device's queue: a product (gpu/queue/job.h) or a task (gpu/queue/task.h). Both have
 * this struct as their first member. The owner embeds them in its own state, so queueing allocates nothing.
 * gpu/queue/queue.h says who owns work. While the queue owns it, the owner reads only members that the owner
 * has set. */
#pragma once

#include "gpu/status.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct mm_backend;
struct mm_device;
struct mm_worker;

enum mm_work_kind { MM_WORK_PRODUCT, MM_WORK_TASK };

/* A step is a slice of a task, a part of a product on the host, or a whole product on a GPU. */
enum mm_work_state {
    MM_WORK_IDLE,    /* in no list: the owner has the work, or it moves to another device */
    MM_WORK_WAITING, /* in its worker's waiting list, before the first step */
    MM_WORK_RUNNING, /* a thread of its worker runs a step */
    MM_WORK_PAUSED,  /* in its worker's waiting list, between two steps */
};

struct mm_work {
    /* The owner sets these. */
    enum mm_work_kind kind;
    const struct mm_backend *backend; /* devices of this backend can do the work */
    uint64_t deadline_ns;             /* no step begins after this mm_clock_ns(); 0 for no deadline */

    /* Called with a list (by `next`) of work that is over and has this `done`. The queue does not use the
     * work afterwards. A worker's thread, mm_queue_abort or mm_queue_fail_hung calls this, with no lock
     * held. */
    void (*done)(struct mm_work *first);

    void *owner; /* data for `done` */

    /* The queue sets these. The owner may read them once `done` is called. */
    struct mm_error error;          /* MM_OK if the work is complete */
    const struct mm_device *device; /* device that began the first step; NULL if none did */
    uint64_t waited_ns;             /* time in the queue; for a product also between its parts */
    struct mm_work *next;           /* next work in the list for `done` */

    /* Only the queue uses these. */
    TAILQ_ENTRY(mm_work) listed; /* entry in the worker's waiting or running list */
    struct mm_worker *worker;    /* its device will do the work; NULL if no device can */
    enum mm_work_state state;    /* changed by mm_work_move, with the queue's mutex held */
    bool is_cancelled;           /* cancelled after the first step began; __atomic access */
    bool is_exclusive;           /* nothing else may run on the device at the same time */
    uint64_t batch_key;          /* work with equal keys may share a launch; 0 if it cannot share */
    uint64_t queued_ns;          /* when the work began to wait, minus the time of earlier waits */

    /* When the watch first saw the current step or its last progress; 0 if not yet. __atomic access. */
    uint64_t seen_ns;

    size_t bytes;       /* bytes of a product's matrices */
    double load;        /* in operations; a device's load is the sum for all its work */
    double expected_ns; /* how long the work will keep the device busy; 0 if not known */
};

/* Changes the state. Only idle work may begin to wait, and only running work may pause. */
static inline void mm_work_move(struct mm_work *work, enum mm_work_state state) {
    assert((work->state == MM_WORK_IDLE) == (state == MM_WORK_WAITING));
    assert(state != MM_WORK_PAUSED || work->state == MM_WORK_RUNNING);
    work->state = state;
}

/* Whether to end the work after the current step. Any thread. */
static inline bool mm_work_is_cancelled(const struct mm_work *work) {
    return __atomic_load_n(&work->is_cancelled, __ATOMIC_RELAXED);
}

/* Notes that the device makes progress in a long step, so the watch does not take the device for hung. Only
 * the thread that runs the step calls this. */
static inline void mm_work_show_progress(struct mm_work *work) {
    __atomic_store_n(&work->seen_ns, 0, __ATOMIC_RELAXED);
}

/* Plans the work for a device: sets is_exclusive, batch_key, load and expected_ns, and the plan of a job.
 * MM_UNSUPPORTED if the device cannot do the work. Any thread that owns the work, with no lock held. */
enum mm_status mm_work_plan(struct mm_work *work, struct mm_device *device, struct mm_error *error);

/* Calls `done` for a list (by `next`) of work that is over. Neighbours with an equal `done` share one
 * call. */
void mm_work_list_done(struct mm_work *first);
