/* The device lanes of one worker thread, and their jobs. Only the worker thread calls these functions. */
#pragma once

#include "gpu/device/backend.h"

enum { MM_LANES_MAX = 16 };

/* Jobs that share a launch in one lane. */
struct mm_batch {
    struct mm_job *jobs[MM_BATCH_MAX];
    unsigned count;
};

/* Moves the jobs whose work.error has this status to another batch. */
void mm_batch_move(struct mm_batch *from, enum mm_status status, struct mm_batch *to);

struct mm_pipeline {
    struct mm_device *device;
    unsigned first; /* which lane of the device is the pipeline's first lane */
    unsigned lane_count;
    unsigned busy;
    uint64_t begun; /* number of batches that have begun so far */
    uint64_t changed_ns;
    unsigned small_busy; /* lanes that run small jobs, which have a batch key */
    uint64_t small_ns;   /* when small jobs last began */
    struct {
        struct mm_batch batch; /* empty if the lane is free */
        uint64_t order;        /* how many batches had begun before this batch */
    } lanes[MM_LANES_MAX];
};

/* Initializes a pipeline. If the backend has is_over, the pipeline gets all lanes of the device. Otherwise
 * the pipeline gets only lane `index`. */
void mm_pipeline_init(struct mm_pipeline *pipeline, struct mm_device *device, unsigned index);

static inline bool mm_pipeline_has_free_lane(const struct mm_pipeline *pipeline) {
    return pipeline->busy < pipeline->lane_count;
}

/* Whether to begin more jobs now. Returns false if no lane is free. Also returns false in the first 30 µs of
 * a launch of small jobs. Small jobs that arrive in this time then share the next launch. This serves up to
 * 40% more requests. */
bool mm_pipeline_may_begin(const struct mm_pipeline *pipeline, uint64_t now_ns);

/* Begins the jobs in a free lane. At least one lane must be free. Jobs that fail to begin stay in *batch. All
 * other jobs are removed from *batch. */
void mm_pipeline_begin(struct mm_pipeline *pipeline, struct mm_batch *batch);

/* Ends the oldest launch that is complete, and moves the launch's jobs to *ended. Returns false if no launch
 * is complete. But if the backend has no is_over, waits for the launch. At least one lane must be busy. */
bool mm_pipeline_end(struct mm_pipeline *pipeline, struct mm_batch *ended);
