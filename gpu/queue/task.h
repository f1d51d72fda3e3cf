/* A task: work other than a product, such as a benchmark (gpu/lab/benchmark.h). A device runs a task in
 * slices, and products run between two slices. */
#pragma once

#include "gpu/queue/work.h"

enum mm_task_state { MM_TASK_AGAIN, MM_TASK_OVER };

struct mm_task {
    struct mm_work work; /* first member; its kind is MM_WORK_TASK */

    /* Whether a slice can run while products, or slices of other tasks with `shares`, run on the device.
     * Otherwise a slice runs alone. */
    bool shares;

    void *subject; /* data for `run` */

    /* Runs one slice of about MM_TASK_SLICE_NS. If the task fails, sets work.error and returns MM_TASK_OVER.
     * If `cancelled`, only releases what the task has acquired from the device, and returns MM_TASK_OVER. A
     * worker's thread calls this with no lock held. If the worker's thread hangs, another thread calls this
     * with `cancelled` and a device of NULL, and the task's device memory is lost. */
    enum mm_task_state (*run)(struct mm_task *task, struct mm_device *device, bool cancelled);
};

#define MM_TASK_SLICE_NS UINT64_C(50000000)

/* Returns the task whose first member is this work, or NULL if the work is a product. */
static inline struct mm_task *mm_work_task(struct mm_work *work) {
    return work->kind == MM_WORK_TASK ? (struct mm_task *)work : NULL;
}
