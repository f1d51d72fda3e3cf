/* A task: work that is no product, such as a benchmark (gpu/lab/benchmark.h). A task is long, so a device
 * does it in slices, and products run between two slices. */
#pragma once

#include "gpu/queue/work.h"

/* Whether another slice follows. */
enum mm_task_state { MM_TASK_AGAIN, MM_TASK_OVER };

struct mm_task {
    struct mm_work work; /* first; its kind is MM_WORK_TASK */

    /* The slices may run beside products, and beside other tasks that share. Else nothing runs beside a
     * slice. */
    bool shares;

    void *subject; /* for `run` */

    /* Does one slice: about MM_TASK_SLICE_NS, and at least one step. If the task fails, this fills work.error
     * and returns MM_TASK_OVER. If `cancelled`, this releases what the task has acquired of the device,
     * leaves work.error as it is, and returns MM_TASK_OVER. The thread of the device's worker calls this,
     * with no lock held. If that thread hangs, another thread cancels with a device of NULL, and the memory
     * that the task has acquired is lost. */
    enum mm_task_state (*run)(struct mm_task *task, struct mm_device *device, bool cancelled);
};

#define MM_TASK_SLICE_NS UINT64_C(50000000)

/* The task that begins with this work; NULL if the work is a product. */
static inline struct mm_task *mm_work_task(struct mm_work *work) {
    return work->kind == MM_WORK_TASK ? (struct mm_task *)work : NULL;
}
