/* Shares: the blocks of C that several devices compute for one product. Each share is an ordinary job in the
 * queue of one device. The owner of the product's job also owns the memory of the shares, so queueing
 * allocates nothing. Only gpu/queue uses this, except mm_shares_bytes. */
#pragma once

#include "gpu/queue/job.h"

struct mm_queue;

struct mm_share {
    struct mm_job job;     /* first member; job.work.owner is the struct mm_shares */
    struct mm_window part; /* the wanted elements of the block, if only a part of C is wanted */
    bool has_moved;        /* the share runs again, because a device failed */
};

struct mm_shares {
    struct mm_job *whole; /* the product */
    struct mm_queue *queue;
    unsigned count;        /* 0 if one device computes the product, as the job `whole` */
    unsigned cols;         /* the shares form a grid with this number of columns, numbered row by row */
    unsigned left;         /* shares that the queue has, or that still move; __atomic access */
    struct mm_error error; /* why the product failed; guarded by the queue's mutex */
    struct mm_share of[];
};

/* Returns the bytes of memory for the shares of `count` devices. */
static inline size_t mm_shares_bytes(unsigned count) {
    return sizeof(struct mm_shares) + count * sizeof(struct mm_share);
}

/* Divides a planned job among at most job->devices devices, and plans each share. Sets job->shares->count,
 * which is 0 if one device must compute the product. The job owns job->shares, which is not NULL. Any thread
 * that owns the job, with no lock held. */
void mm_shares_make(struct mm_queue *queue, struct mm_job *job);

/* The `done` of shares. */
void mm_share_done(struct mm_work *first);

/* Whether a job may move to this device. A share moves only to a device that plans every product as the
 * device of the share's plan does, so no bit of C changes. */
bool mm_share_can_move(const struct mm_job *job, const struct mm_device *device);

/* Returns how many works the queue has for this work: its shares, or 1. */
unsigned mm_work_units(struct mm_work *work);

/* Returns one of these works: a share, or the work itself. */
struct mm_work *mm_work_unit(struct mm_work *work, unsigned index);

/* Releases the parts of C that shares of this work have left on their devices. The queue has no share of the
 * work. */
void mm_work_release_parts(struct mm_work *work);

/* Removes the units of this work that wait, and marks the others as cancelled. Returns whether the queue then
 * has no unit, so no `done` follows. The caller holds the mutex. */
bool mm_work_cancel_units(struct mm_work *work);
