/* The lanes of one thread of a worker, and the jobs that are under way in them: what is begun, which of it is
 * over, what is ended. It knows no queue. For that one thread alone. */
#pragma once

#include "gpu/device/backend.h"

/* A thread has at most this many lanes. */
enum { MM_LANES_MAX = 16 };

/* Jobs that go together, in one lane. */
struct mm_batch {
    struct mm_job *jobs[MM_BATCH_MAX];
    unsigned count;
};

struct mm_pipeline {
    struct mm_device *device;
    unsigned first; /* of the device's lanes */
    unsigned lane_count;
    unsigned busy;       /* lanes with jobs under way */
    uint64_t begun;      /* batches, ever */
    uint64_t changed_ns; /* when a batch was begun or ended last */
    unsigned small_busy; /* lanes with jobs that may go together with others */
    uint64_t small_ns;   /* when such were begun last */
    struct {
        struct mm_batch batch; /* under way; of count 0: the lane is free */
        uint64_t order;        /* of its beginning */
    } lanes[MM_LANES_MAX];
};

/* All lanes of a device that tells when one is over; else the one of this index. */
void mm_pipeline_init(struct mm_pipeline *pipeline, struct mm_device *device, unsigned index);

static inline bool mm_pipeline_has_room(const struct mm_pipeline *pipeline) {
    return pipeline->busy < pipeline->lane_count;
}

/* Whether to begin others: a lane is free, and no launch of small jobs was begun in the last 30 µs that is
 * still under way. Small jobs that arrive meanwhile share the next launch: fewer launches, up to 40% more
 * requests a second. */
bool mm_pipeline_may_begin(const struct mm_pipeline *pipeline, uint64_t now_ns);

/* Begins the jobs in a free lane, which there must be. Those that failed are left in the
 * batch, the others are under way. */
void mm_pipeline_begin(struct mm_pipeline *pipeline, struct mm_batch *batch);

/* Ends the jobs of a lane that is over, of several the one that was begun first, and hands them out: true.
 * False if none is over; a device that cannot tell is waited for. Some lane is busy. */
bool mm_pipeline_end(struct mm_pipeline *pipeline, struct mm_batch *ended);
