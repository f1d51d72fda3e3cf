/* The lanes of one worker thread, and the jobs that run in them. Only that thread calls these functions. */
#pragma once

#include "gpu/device/backend.h"

enum { MM_LANES_MAX = 16 };

/* Jobs that share a launch in one lane. */
struct mm_batch {
    struct mm_job *jobs[MM_BATCH_MAX];
    unsigned count;
};

struct mm_pipeline {
    struct mm_device *device;
    unsigned first; /* index of the pipeline's first lane among the device's lanes */
    unsigned lane_count;
    unsigned busy;       /* lanes that run jobs */
    uint64_t begun;      /* number of batches begun so far */
    uint64_t changed_ns; /* when a batch last began or ended */
    unsigned small_busy; /* lanes that run jobs with a batch key */
    uint64_t small_ns;   /* when jobs with a batch key last began */
    struct {
        struct mm_batch batch; /* jobs in the lane; none if the lane is free */
        uint64_t order;        /* value of `begun` when the batch began */
    } lanes[MM_LANES_MAX];
};

/* Gives the pipeline all lanes of the device if the backend has is_over, otherwise only lane `index`. */
void mm_pipeline_init(struct mm_pipeline *pipeline, struct mm_device *device, unsigned index);

static inline bool mm_pipeline_has_free_lane(const struct mm_pipeline *pipeline) {
    return pipeline->busy < pipeline->lane_count;
}

/* Whether to begin more jobs now. A lane must be free. Also, no launch of small jobs may be running that
 * began in the last 30 µs. Small jobs that arrive meanwhile share the next launch, which gives up to 40% more
 * requests a second. */
bool mm_pipeline_may_begin(const struct mm_pipeline *pipeline, uint64_t now_ns);

/* Begins the jobs in a free lane; one must be free. Only jobs that failed to begin stay in the batch. */
void mm_pipeline_begin(struct mm_pipeline *pipeline, struct mm_batch *batch);

/* Ends the jobs of a lane whose launch is complete, and moves the jobs to *ended. If several launches are
 * complete, chooses the oldest. Returns false if none is complete. If the backend has no is_over, waits until
 * the launch is complete. At least one lane must be busy. */
bool mm_pipeline_end(struct mm_pipeline *pipeline, struct mm_batch *ended);
