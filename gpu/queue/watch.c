/* Tests idle devices again. Each variant is tested by a task of its own, so a request that arrives during the
 * self-test waits for at most one variant. */
#include "gpu/queue/watch.h"

#include "gpu/queue/self_test.h"
#include "gpu/queue/task.h"

#include <stdlib.h>
#include <string.h>

struct self_test {
    struct mm_watch *watch;
    struct mm_device *device;
    struct mm_task task; /* belongs to the queue while is_under_way */
    size_t row;
    uint64_t ended_ns;
    int is_under_way;        /* a task tests a variant; __atomic access only */
    struct mm_error finding; /* error of the variant tested last; MM_OK after it was reported */
};

struct mm_watch {
    struct mm_watch_limits limits;
    struct mm_watch_counts counts; /* __atomic access only */
    size_t device_count;
    struct self_test tests[];
};

static enum mm_task_state test_row(struct mm_task *task, struct mm_device *device, bool cancelled) {
    const struct self_test *test = task->subject;
    if (!cancelled)
        (void)mm_self_test_row(device, test->row, &task->work.error);
    return MM_TASK_OVER;
}

/* Ends the test of a variant: stores the finding, and marks the device as failed if the result was wrong. If
 * the self-test is over, because this variant failed or was the last, also counts it. */
static void end(struct self_test *test) {
    struct mm_watch_counts *counts = &test->watch->counts;
    struct mm_device *device = test->device;
    const enum mm_status status = test->task.work.error.status;
    const bool is_over = status != MM_OK || ++test->row == device->backend->variant_count;
    uint64_t *count = &counts->undone;
    if (status == MM_OK)
        count = &counts->passed;
    else if (status == MM_DEVICE_FAILED)
        count = &counts->failed;
    if (is_over) {
        test->row = 0;
        test->ended_ns = mm_clock_ns();
    }
    test->finding = test->task.work.error;
    __atomic_store_n(&test->is_under_way, 0, __ATOMIC_RELEASE);
    if (status == MM_DEVICE_FAILED)
        __atomic_store_n(&device->failed, 1, __ATOMIC_RELEASE);
    if (is_over)
        __atomic_fetch_add(count, 1, __ATOMIC_RELEASE);
}

static void end_all(struct mm_work *first) {
    struct mm_work *next;
    for (struct mm_work *work = first; work != NULL; work = next) {
        next = work->next;
        end(work->owner);
    }
}

struct mm_watch *mm_watch_open(struct mm_device *const *devices, size_t device_count,
                               const struct mm_watch_limits *limits) {
    struct mm_watch *watch = calloc(1, sizeof *watch + device_count * sizeof watch->tests[0]);
    if (watch == NULL)
        return NULL;
    watch->limits = *limits;
    watch->device_count = device_count;
    for (size_t index = 0; index < device_count; index++)
        watch->tests[index] =
            (struct self_test){.watch = watch, .device = devices[index], .ended_ns = mm_clock_ns()};
    return watch;
}

void mm_watch_close(struct mm_watch *watch) {
    free(watch);
}

static void begin(struct self_test *test, struct mm_queue *queue) {
    test->task = (struct mm_task){
        .work = {.kind = MM_WORK_TASK, .backend = test->device->backend, .done = end_all, .owner = test},
        .subject = test,
        .run = test_row};
    __atomic_store_n(&test->is_under_way, 1, __ATOMIC_RELAXED);
    if (!mm_queue_submit_idle(queue, test->device, &test->task))
        __atomic_store_n(&test->is_under_way, 0, __ATOMIC_RELAXED);
}

/* Whether to report the status. Short memory, for example, says nothing about the device. */
static bool is_news(enum mm_status status) {
    return status == MM_DEVICE_FAILED || status == MM_INTERNAL || status == MM_UNSUPPORTED;
}

/* Reports the finding of the variant tested last, or begins the test of the next variant. */
static enum mm_status look_at(struct self_test *test, struct mm_queue *queue, uint64_t now_ns,
                              struct mm_error *error) {
    const uint64_t rest_ns = test->watch->limits.rest_ns;
    if (rest_ns == 0 || __atomic_load_n(&test->is_under_way, __ATOMIC_ACQUIRE) != 0)
        return MM_OK;
    const enum mm_status found = test->finding.status;
    test->finding.status = MM_OK;
    if (is_news(found))
        return mm_fail(error, found, "the self-test of %s:%u failed: %.500s", test->device->backend->name,
                       test->device->index, test->finding.detail);
    if (test->row > 0 || (now_ns > test->ended_ns && now_ns - test->ended_ns >= rest_ns))
        begin(test, queue);
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
        status = look_at(&watch->tests[index], queue, now_ns, error);
    return status;
}

struct mm_watch_counts mm_watch_counts(const struct mm_watch *watch) {
    return (struct mm_watch_counts){.passed = __atomic_load_n(&watch->counts.passed, __ATOMIC_ACQUIRE),
                                    .failed = __atomic_load_n(&watch->counts.failed, __ATOMIC_ACQUIRE),
                                    .undone = __atomic_load_n(&watch->counts.undone, __ATOMIC_ACQUIRE)};
}
