/* A task: work that is no product, such as a benchmark (gpu/lab/benchmark.h). It is long, so a device does it
 * in slices, and products run between two of them. */
#pragma once

#include "gpu/queue/work.h"

/* What a slice returns: whether another one follows. */
enum mm_task_state { MM_TASK_AGAIN, MM_TASK_OVER };

struct mm_task {
    struct mm_work work; /* first; its kind is MM_WORK_TASK */

    /* Its slices may run beside products, and beside other tasks that share. Else a slice has the device
     * alone. */
    bool shares;

    void *subject; /* for `run` */

    /* Does one slice: about MM_TASK_SLICE_NS, and at least one step. If the task failed, it fills work.error
     * and returns MM_TASK_OVER. If `cancelled`, it releases what it has acquired of the device, leaves
     * work.error as it is, and returns MM_TASK_OVER. The thread of the device's worker calls it, with no lock
     * held. If that thread hangs, another one cancels with a device of NULL, and what the task had acquired
     * is lost. */
    enum mm_task_state (*run)(struct mm_task *task, struct mm_device *device, bool cancelled);
};

#define MM_TASK_SLICE_NS UINT64_C(50000000)

/* The task that begins with this work; NULL: it is a product. */
static inline struct mm_task *mm_work_task(struct mm_work *work) {
    return work->kind == MM_WORK_TASK ? (struct mm_task *)work : NULL;
}
