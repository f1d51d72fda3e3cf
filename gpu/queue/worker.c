/* The waiting list and the running list of one device's work, and the choice of the work that starts next.
 *
 * Clients get turns by start-time fair queueing (Goyal, Vin and Cheng, SIGCOMM 1996). A worker has a virtual
 * time: the turn of the work that started last. New work gets the first turn that its client has not used,
 * but none in the past. Each turn uses the client's time for as long as the step is expected to take. So a
 * client with much work waits for its own work, and other clients come between. */
#include "gpu/queue/worker.h"

#include <math.h>
#include <stddef.h>

/* Returns the queue's counter of work in this state: jobs_waiting, jobs_running, or NULL for idle work.
 * Paused tasks, and all shares of a product but one, count as running, so jobs_max does not limit them. */
static size_t *count_of(struct mm_queue *queue, const struct mm_work *work) {
    if (work->state == MM_WORK_IDLE)
        return NULL;
    if (work->state == MM_WORK_RUNNING || work->is_extra ||
        (work->state == MM_WORK_PAUSED && work->kind == MM_WORK_TASK))
        return &queue->jobs_running;
    return &queue->jobs_waiting;
}

/* Changes the work's state, and updates the counters and the waiting time. Only idle work can begin to wait,
 * and only running work can pause. The caller holds the mutex. */
static void move(struct mm_queue *queue, struct mm_work *work, enum mm_work_state state) {
    size_t *before = count_of(queue, work);
    assert((work->state == MM_WORK_IDLE) == (state == MM_WORK_WAITING));
    assert(state != MM_WORK_PAUSED || work->state == MM_WORK_RUNNING);
    work->state = state;
    size_t *after = count_of(queue, work);
    if (before == after)
        return;
    if (before != NULL)
        --*before;
    if (after != NULL)
        ++*after;
    if (before == &queue->jobs_waiting) {
        queue->jobs_waiting_of[work->client]--;
        work->waited_ns = mm_clock_ns() - work->queued_ns;
        queue->bytes_waiting -= work->bytes;
    }
    if (after == &queue->jobs_waiting) {
        queue->jobs_waiting_of[work->client]++;
        work->queued_ns = mm_clock_ns() - work->waited_ns;
        queue->bytes_waiting += work->bytes;
    }
}

/* Adds to the worker's load. The caller holds the mutex, but other threads read the load without it. */
static void add_load(struct mm_worker *worker, double load) {
    double sum = worker->jobs == 0 ? 0.0 : worker->load + load;
    __atomic_store(&worker->load, &sum, __ATOMIC_RELAXED);
}

/* Tells the worker's threads that waiting work can perhaps begin now. The caller holds the mutex. */
static void note_change(struct mm_worker *worker) {
    __atomic_store_n(&worker->changes, worker->changes + 1, __ATOMIC_RELAXED);
}

/* Wakes the worker's threads if work waits. The caller holds the mutex. */
static void wake_others(struct mm_worker *worker) {
    if (!TAILQ_EMPTY(&worker->waiting))
        pthread_cond_broadcast(&worker->changed);
}

/* Returns how much of the client's time a step uses. Work on a host device, and tasks, have steps of at most
 * MM_TASK_SLICE_NS. Without a minimum, steps with unknown times would use no time, and delay other clients
 * for ever. */
static double step_ns(const struct mm_worker *worker, const struct mm_work *work) {
    const double least_ns = 1000.0, slice_ns = (double)MM_TASK_SLICE_NS;
    if (work->kind == MM_WORK_TASK)
        return slice_ns;
    const double most_ns = worker->device->backend->is_host ? slice_ns : INFINITY;
    return fmin(fmax(work->expected_ns, least_ns), most_ns);
}

static double turn_ns(const struct mm_worker *worker, const struct mm_work *work) {
    return fmax(worker->now_ns, worker->next_ns[work->client]);
}

double mm_worker_wait_ns(const struct mm_worker *worker, const struct mm_work *work) {
    const double own_ns = turn_ns(worker, work);
    double wait_ns = worker->expected_ns;
    const struct mm_work *last = TAILQ_LAST(&worker->waiting, mm_work_list);
    for (; last != NULL && last->turn_ns > own_ns; last = TAILQ_PREV(last, mm_work_list, listed))
        wait_ns -= last->expected_ns;
    return wait_ns;
}

/* Inserts work into the waiting list at its client's next turn. The caller holds the mutex. */
static void take_turn(struct mm_worker *worker, struct mm_work *work) {
    if (worker->jobs == 0)
        worker->now_ns = worker->last_ns; /* earlier use of an idle device does not count */
    work->turn_ns = turn_ns(worker, work);
    worker->next_ns[work->client] = work->turn_ns + step_ns(worker, work);
    worker->last_ns = fmax(worker->last_ns, worker->next_ns[work->client]);
    struct mm_work *before = TAILQ_LAST(&worker->waiting, mm_work_list);
    while (before != NULL && before->turn_ns > work->turn_ns)
        before = TAILQ_PREV(before, mm_work_list, listed);
    if (before == NULL)
        TAILQ_INSERT_HEAD(&worker->waiting, work, listed);
    else
        TAILQ_INSERT_AFTER(&worker->waiting, before, work, listed);
}

/* Inserts work at the front of the waiting list. The caller holds the mutex. */
static void go_first(struct mm_worker *worker, struct mm_work *work) {
    work->turn_ns = 0.0;
    TAILQ_INSERT_HEAD(&worker->waiting, work, listed);
}

void mm_worker_add(struct mm_worker *worker, struct mm_work *work) {
    take_turn(worker, work);
    move(worker->queue, work, MM_WORK_WAITING);
    work->worker = worker;
    note_change(worker);
    worker->jobs++;
    add_load(worker, work->load);
    worker->expected_ns += work->expected_ns;
}

static void leave(struct mm_worker *worker, struct mm_work *work) {
    move(worker->queue, work, MM_WORK_IDLE);
    worker->jobs--;
    add_load(worker, -work->load);
    worker->expected_ns = worker->jobs == 0 ? 0.0 : worker->expected_ns - work->expected_ns;
}

void mm_worker_remove(struct mm_worker *worker, struct mm_work *work) {
    const bool was_first = TAILQ_FIRST(&worker->waiting) == work;
    TAILQ_REMOVE(&worker->waiting, work, listed);
    worker->next_ns[work->client] -= step_ns(worker, work);
    leave(worker, work);
    if (was_first) {
        note_change(worker);
        wake_others(worker);
    }
}

void mm_worker_prefer(struct mm_worker *worker, struct mm_work *work) {
    TAILQ_REMOVE(&worker->waiting, work, listed);
    go_first(worker, work);
}

/* Whether the first waiting work can begin beside the running work. If not, no other work can begin
 * either. */
static bool can_begin(const struct mm_worker *worker) {
    const struct mm_work *first = TAILQ_FIRST(&worker->waiting);
    return first != NULL && !worker->runs_exclusive &&
           (!first->is_exclusive || TAILQ_EMPTY(&worker->running));
}

static void start(struct mm_worker *worker, struct mm_work *work) {
    TAILQ_REMOVE(&worker->waiting, work, listed);
    TAILQ_INSERT_TAIL(&worker->running, work, listed);
    move(worker->queue, work, MM_WORK_RUNNING);
    mm_work_show_progress(work);
    worker->runs_exclusive = work->is_exclusive;
}

/* Limits of a batch: how many bytes the jobs copy, and how many other jobs they may overtake. */
enum { BATCH_BYTES_MAX = 2 << 20, SKIPPED_MAX = 64 };

static void add_companions(struct mm_worker *worker, struct mm_batch *batch) {
    const uint64_t key = batch->jobs[0]->work.batch_key;
    size_t bytes = mm_job_copied_bytes(batch->jobs[0]);
    unsigned skipped = 0;
    struct mm_work *next;
    for (struct mm_work *work = TAILQ_FIRST(&worker->waiting); work != NULL && !work->is_exclusive;
         work = next) {
        next = TAILQ_NEXT(work, listed);
        if (work->batch_key != key && ++skipped > SKIPPED_MAX)
            break;
        if (work->batch_key != key)
            continue;
        struct mm_job *job = mm_work_job(work); /* not NULL, because only products have keys */
        bytes += mm_job_copied_bytes(job);
        if (batch->count == MM_BATCH_MAX || bytes > BATCH_BYTES_MAX)
            break;
        start(worker, work);
        batch->jobs[batch->count++] = job;
    }
}

/* Starts the first waiting work. If it is a task, returns the task. Otherwise *batch gets the product, and
 * the waiting jobs that can share its launch. */
static struct mm_task *start_first(struct mm_worker *worker, struct mm_batch *batch) {
    struct mm_work *first = TAILQ_FIRST(&worker->waiting);
    worker->now_ns = fmax(worker->now_ns, first->turn_ns);
    start(worker, first);
    if (first->kind == MM_WORK_TASK)
        return mm_work_task(first);
    batch->jobs[batch->count++] = mm_work_job(first);
    if (first->batch_key != 0)
        add_companions(worker, batch);
    return NULL;
}

struct mm_task *mm_worker_next(struct mm_worker *worker, bool may_wait, struct mm_batch *batch,
                               unsigned *seen) {
    struct mm_queue *queue = worker->queue;
    struct mm_task *task = NULL;
    batch->count = 0;
    pthread_mutex_lock(&queue->mutex);
    while (may_wait && !can_begin(worker) && !(queue->closing && TAILQ_EMPTY(&worker->waiting)))
        pthread_cond_wait(&worker->changed, &queue->mutex);
    if (can_begin(worker))
        task = start_first(worker, batch);
    *seen = worker->changes - (can_begin(worker) ? 1 : 0);
    pthread_mutex_unlock(&queue->mutex);
    return task;
}

/* Removes work from the running list. Always clears runs_exclusive, because exclusive work runs alone. This
 * must not depend on work->is_exclusive, which can already come from a plan for another device. */
static void end_running(struct mm_worker *worker, struct mm_work *work) {
    TAILQ_REMOVE(&worker->running, work, listed);
    worker->runs_exclusive = false;
}

void mm_worker_finish(struct mm_worker *worker, struct mm_work *work) {
    end_running(worker, work);
    leave(worker, work);
    wake_others(worker);
}

void mm_worker_pause(struct mm_worker *worker, struct mm_work *work) {
    end_running(worker, work);
    if (mm_work_is_cancelled(work))
        go_first(worker, work);
    else
        take_turn(worker, work);
    move(worker->queue, work, MM_WORK_PAUSED);
    wake_others(worker);
}
