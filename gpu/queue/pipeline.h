/* The lanes of one thread of a worker, and the jobs that are under way in them. It knows no queue. Only that
 * thread uses it. */
#pragma once

#include "gpu/device/backend.h"

/* A thread has at most this many lanes. */
enum { MM_LANES_MAX = 16 };

/* Jobs that share a lane and a launch. */
struct mm_batch {
    struct mm_job *jobs[MM_BATCH_MAX];
    unsigned count;
};

struct mm_pipeline {
    struct mm_device *device;
    unsigned first; /* lane 0 of this pipeline is this lane of the device */
    unsigned lane_count;
    unsigned busy;       /* lanes with jobs under way */
    uint64_t begun;      /* batches, ever */
    uint64_t changed_ns; /* when a batch was begun or ended last */
    unsigned small_busy; /* lanes with jobs that may share a launch */
    uint64_t small_ns;   /* when jobs that may share a launch were begun last */
    struct {
        struct mm_batch batch; /* under way; the lane is free if this has no jobs */
        uint64_t order;        /* `begun`, when the batch was begun */
    } lanes[MM_LANES_MAX];
};

/* The pipeline gets all lanes of the device if the backend has is_over, else only the lane `index`. */
void mm_pipeline_init(struct mm_pipeline *pipeline, struct mm_device *device, unsigned index);

static inline bool mm_pipeline_has_free_lane(const struct mm_pipeline *pipeline) {
    return pipeline->busy < pipeline->lane_count;
}

/* Whether to begin more jobs now: a lane is free, and no launch of small jobs is under way that was begun in
 * the last 30 µs. Small jobs that arrive in these 30 µs share the next launch, which gives up to 40% more
 * requests a second. */
bool mm_pipeline_may_begin(const struct mm_pipeline *pipeline, uint64_t now_ns);

/* Begins the jobs in a free lane; one must be free. Jobs that failed to begin are left in the batch, and the
 * others are under way. */
void mm_pipeline_begin(struct mm_pipeline *pipeline, struct mm_batch *batch);

/* Ends the jobs of a lane that is over, and moves them to *ended. If several lanes are over, that is the lane
 * whose jobs were begun first. False if none is over. Waits for a device that has no is_over. At least one
 * lane must be busy. */
bool mm_pipeline_end(struct mm_pipeline *pipeline, struct mm_batch *ended);
