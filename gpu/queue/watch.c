/* A self-test is a task of its device's queue, one row of variants a slice, so a request that arrives
 * meanwhile waits for one row alone. */
#include "gpu/queue/watch.h"

#include "gpu/queue/self_test.h"
#include "gpu/queue/task.h"

#include <stdlib.h>
#include <string.h>

struct proof {
    struct mm_watch *watch;
    struct mm_device *device;
    struct mm_task task;     /* the queue's while is_under_way */
    size_t row;              /* of the backend, the one that is tried next */
    uint64_t ended_ns;       /* when all rows had been tried, or one failed */
    int is_under_way;        /* __atomic access only: what a row's end wrote is there once it is 0 */
    struct mm_error finding; /* of that row, until it is told */
};

struct mm_watch {
    struct mm_watch_limits limits;
    struct mm_watch_counts counts; /* __atomic access only */
    size_t device_count;
    struct proof proofs[];
};

static enum mm_task_state try_row(struct mm_task *task, struct mm_device *device, bool cancelled) {
    const struct proof *proof = task->subject;
    if (!cancelled)
        (void)mm_self_test_row(device, proof->row, &task->work.error);
    return MM_TASK_OVER;
}

/* The next row is to be tried; true after the last, or one that came to nothing. */
static bool go_on(struct proof *proof) {
    if (proof->task.work.error.status == MM_OK && ++proof->row < proof->device->backend->variant_count)
        return false;
    proof->row = 0;
    proof->ended_ns = mm_clock_ns();
    return true;
}

/* Ends a proof in this order: stores the finding, marks the device as failed, counts. */
static void settle(struct proof *proof) {
    struct mm_watch_counts *counts = &proof->watch->counts;
    struct mm_device *device = proof->device;
    const enum mm_status status = proof->task.work.error.status;
    const bool is_over = go_on(proof);
    uint64_t *count = &counts->undone;
    if (status == MM_OK)
        count = &counts->passed;
    else if (status == MM_DEVICE_FAILED)
        count = &counts->failed;
    proof->finding = proof->task.work.error;
    __atomic_store_n(&proof->is_under_way, 0, __ATOMIC_RELEASE);
    if (status == MM_DEVICE_FAILED)
        __atomic_store_n(&device->failed, 1, __ATOMIC_RELEASE);
    if (is_over)
        __atomic_fetch_add(count, 1, __ATOMIC_RELEASE);
}

static void settle_all(struct mm_work *first) {
    struct mm_work *next;
    for (struct mm_work *work = first; work != NULL; work = next) {
        next = work->next;
        settle(work->owner);
    }
}

struct mm_watch *mm_watch_open(struct mm_device *const *devices, size_t device_count,
                               const struct mm_watch_limits *limits) {
    struct mm_watch *watch = calloc(1, sizeof *watch + device_count * sizeof watch->proofs[0]);
    if (watch == NULL)
        return NULL;
    watch->limits = *limits;
    watch->device_count = device_count;
    for (size_t index = 0; index < device_count; index++)
        watch->proofs[index] =
            (struct proof){.watch = watch, .device = devices[index], .ended_ns = mm_clock_ns()};
    return watch;
}

void mm_watch_close(struct mm_watch *watch) {
    free(watch);
}

static void begin(struct proof *proof, struct mm_queue *queue) {
    proof->task = (struct mm_task){
        .work = {.kind = MM_WORK_TASK, .backend = proof->device->backend, .done = settle_all, .owner = proof},
        .subject = proof,
        .run = try_row};
    __atomic_store_n(&proof->is_under_way, 1, __ATOMIC_RELAXED);
    if (!mm_queue_submit_idle(queue, proof->device, &proof->task))
        __atomic_store_n(&proof->is_under_way, 0, __ATOMIC_RELAXED);
}

/* Whether it is something to be told: not that memory was short, or the queue's end. */
static bool is_news(enum mm_status status) {
    return status == MM_DEVICE_FAILED || status == MM_INTERNAL || status == MM_UNSUPPORTED;
}

/* Tells what the row before found, or tries the next. */
static enum mm_status look_at(struct proof *proof, struct mm_queue *queue, uint64_t now_ns,
                              struct mm_error *error) {
    const uint64_t rest_ns = proof->watch->limits.rest_ns;
    if (rest_ns == 0 || __atomic_load_n(&proof->is_under_way, __ATOMIC_ACQUIRE) != 0)
        return MM_OK;
    const enum mm_status found = proof->finding.status;
    proof->finding.status = MM_OK;
    if (is_news(found))
        return mm_fail(error, found, "the self-test of %s:%u failed: %.500s", proof->device->backend->name,
                       proof->device->index, proof->finding.detail);
    if (proof->row > 0 || (now_ns > proof->ended_ns && now_ns - proof->ended_ns >= rest_ns))
        begin(proof, queue);
    return MM_OK;
}

enum mm_status mm_watch_look(struct mm_watch *watch, struct mm_queue *queue, uint64_t now_ns,
                             struct mm_error *error) {
    const struct mm_device *hung = mm_queue_fail_hung(queue, now_ns, watch->limits.hang_ns);
    if (hung != NULL)
        return mm_fail(error, MM_DEVICE_FAILED, "%s:%u has been at one job for more than %g s",
                       hung->backend->name, hung->index, (double)watch->limits.hang_ns / 1e9);
    enum mm_status status = MM_OK;
    for (size_t index = 0; index < watch->device_count && status == MM_OK; index++)
        status = look_at(&watch->proofs[index], queue, now_ns, error);
    return status;
}

struct mm_watch_counts mm_watch_counts(const struct mm_watch *watch) {
    return (struct mm_watch_counts){.passed = __atomic_load_n(&watch->counts.passed, __ATOMIC_ACQUIRE),
                                    .failed = __atomic_load_n(&watch->counts.failed, __ATOMIC_ACQUIRE),
                                    .undone = __atomic_load_n(&watch->counts.undone, __ATOMIC_ACQUIRE)};
}
