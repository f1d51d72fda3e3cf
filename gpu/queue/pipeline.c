/* Begins and ends jobs in the lanes of a worker's thread. */
#include "gpu/queue/pipeline.h"

#include <assert.h>

void mm_pipeline_init(struct mm_pipeline *pipeline, struct mm_device *device, unsigned index) {
    const bool has_all = device->backend->is_over != NULL;
    *pipeline = (struct mm_pipeline){
        .device = device, .first = has_all ? 0 : index, .lane_count = has_all ? device->lane_count : 1};
}

/* How long new jobs wait after a launch of small jobs. Equals SPIN_NS of worker_thread.c. */
enum { COLLECT_NS = 30000 };

bool mm_pipeline_may_begin(const struct mm_pipeline *pipeline, uint64_t now_ns) {
    return mm_pipeline_has_free_lane(pipeline) &&
           (pipeline->small_busy == 0 || now_ns - pipeline->small_ns >= COLLECT_NS);
}

static bool are_small(const struct mm_batch *batch) {
    return batch->jobs[0]->work.batch_key != 0;
}

static unsigned free_lane(const struct mm_pipeline *pipeline) {
    unsigned index = 0;
    while (pipeline->lanes[index].batch.count > 0)
        index++;
    assert(index < pipeline->lane_count);
    return index;
}

void mm_batch_move(struct mm_batch *from, enum mm_status status, struct mm_batch *to) {
    unsigned others = 0;
    for (unsigned index = 0; index < from->count; index++) {
        struct mm_job *job = from->jobs[index];
        if (job->work.error.status == status)
            to->jobs[to->count++] = job;
        else
            from->jobs[others++] = job;
    }
    from->count = others;
}

void mm_pipeline_begin(struct mm_pipeline *pipeline, struct mm_batch *batch) {
    const unsigned index = free_lane(pipeline);
    struct mm_batch *under_way = &pipeline->lanes[index].batch;
    struct mm_device *device = pipeline->device;
    device->backend->begin(device, pipeline->first + index, batch->jobs, batch->count);
    mm_batch_move(batch, MM_OK, under_way); /* the jobs that failed to begin stay in *batch */
    if (under_way->count == 0)
        return;
    pipeline->busy++;
    pipeline->lanes[index].order = pipeline->begun++;
    pipeline->changed_ns = mm_clock_ns();
    if (are_small(under_way)) {
        pipeline->small_busy++;
        pipeline->small_ns = pipeline->changed_ns;
    }
}

static bool is_over(const struct mm_pipeline *pipeline, unsigned index) {
    struct mm_device *device = pipeline->device;
    return device->backend->is_over == NULL || device->backend->is_over(device, pipeline->first + index);
}

bool mm_pipeline_end(struct mm_pipeline *pipeline, struct mm_batch *ended) {
    unsigned found = pipeline->lane_count;
    assert(pipeline->busy > 0);
    for (unsigned index = 0; index < pipeline->lane_count; index++)
        if (pipeline->lanes[index].batch.count > 0 &&
            (found == pipeline->lane_count || pipeline->lanes[index].order < pipeline->lanes[found].order) &&
            is_over(pipeline, index))
            found = index;
    if (found == pipeline->lane_count)
        return false;
    struct mm_batch *over = &pipeline->lanes[found].batch;
    struct mm_device *device = pipeline->device;
    device->backend->end(device, pipeline->first + found, over->jobs, over->count);
    *ended = *over;
    if (are_small(over))
        pipeline->small_busy--;
    over->count = 0;
    pipeline->busy--;
    pipeline->changed_ns = mm_clock_ns();
    return true;
}
