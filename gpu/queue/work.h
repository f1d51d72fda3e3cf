/* Work: what waits in the queue of a device. A product (gpu/queue/job.h) and a task (gpu/queue/task.h) each
 * begin with it. Their owner embeds them in its own state, so queueing allocates nothing. gpu/queue/queue.h
 * says who owns work and how it ends. While the queue owns work, its owner reads only members that it set
 * itself. */
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

/* The states of work. A step is a slice of a task, a part of a product on the host, or a whole product on a
 * GPU. */
enum mm_work_state {
    MM_WORK_IDLE,    /* in no list: its owner has it, or it moves from one device to another */
    MM_WORK_WAITING, /* in its worker's list, before the first step */
    MM_WORK_RUNNING, /* a thread of its worker does a step */
    MM_WORK_PAUSED,  /* in its worker's list again, between two steps */
};

struct mm_work {
    /* Set by the owner. */
    enum mm_work_kind kind;
    const struct mm_backend *backend;    /* its devices can do the work */
    uint64_t deadline_ns;                /* no step begins after this mm_clock_ns(); 0: any time */
    void (*done)(struct mm_work *first); /* called when all work of the list by `next` is over. All of it has
                                            this `done`, and the queue reads none of it afterwards. The caller
                                            is a worker's thread, mm_queue_abort or mm_queue_fail_hung, and
                                            holds no lock */
    void *owner;                         /* for `done` */

    /* The queue sets these. The owner reads them from `done` on. */
    struct mm_error error;          /* MM_OK: the work is complete */
    const struct mm_device *device; /* the one that began the first step; NULL: none did */
    uint64_t waited_ns;             /* in the queue; for a product also between its parts */
    struct mm_work *next;           /* in the list for `done` */

    /* Only the queue uses these. */
    TAILQ_ENTRY(mm_work) listed; /* in a list of its worker */
    struct mm_worker *worker;    /* its device does the work; NULL: no device can */
    enum mm_work_state state;    /* mm_work_move changes it, with the queue's mutex held; IDLE before that */
    bool is_cancelled;           /* by mm_queue_cancel, after the first step began; __atomic access */
    bool is_exclusive;           /* nothing else runs on the device beside this work */
    uint64_t batch_key;          /* products of one key may share a launch; 0: it shares none */
    uint64_t queued_ns;          /* when the work began to wait, less the time of earlier waits */
    uint64_t seen_ns; /* when the watch first saw this step, or saw it since the device last showed progress;
                         0: not yet. __atomic access */
    size_t bytes;     /* of a product's matrices */
    double load;      /* in operations; the load of a device is the sum of its work */
    double expected_ns; /* how long the work will keep the device busy; 0: not known */
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

/* Notes that the device makes progress in a long step, so it does not hang. The thread that does the step. */
static inline void mm_work_show_progress(struct mm_work *work) {
    __atomic_store_n(&work->seen_ns, 0, __ATOMIC_RELAXED);
}

/* Plans the work for a device: sets is_exclusive, batch_key, load and expected_ns, and what its kind needs.
 * MM_UNSUPPORTED if the device cannot do the work. Any thread that has the work, with no lock held. */
enum mm_status mm_work_plan(struct mm_work *work, struct mm_device *device, struct mm_error *error);

/* Calls `done` for a list by `next`: once for each run of neighbours with one `done`. */
void mm_work_list_done(struct mm_work *first);
