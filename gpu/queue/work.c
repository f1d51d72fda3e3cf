/* Plans products and tasks, and calls `done` for lists of work. */
#include "gpu/queue/work.h"

#include "gpu/queue/job.h"
#include "gpu/queue/task.h"

_Static_assert(offsetof(struct mm_job, work) == 0 && offsetof(struct mm_task, work) == 0,
               "a pointer to the work is one to the product or the task");

/* The load of a task, in operations. It is high, because a task keeps its device busy for seconds. */
static const double task_load = 1e13;

enum mm_status mm_work_plan(struct mm_work *work, struct mm_device *device, struct mm_error *error) {
    const struct mm_task *task = mm_work_task(work);
    if (task == NULL)
        return mm_job_plan(mm_work_job(work), device, error);
    work->is_exclusive = !task->shares;
    work->batch_key = 0;
    work->bytes = 0;
    work->load = task_load;
    work->expected_ns = 0.0;
    return MM_OK;
}

void mm_work_list_done(struct mm_work *first) {
    while (first != NULL) {
        struct mm_work *last = first;
        while (last->next != NULL && last->next->done == first->done)
            last = last->next;
        struct mm_work *rest = last->next;
        last->next = NULL;
        first->done(first);
        first = rest;
    }
}
