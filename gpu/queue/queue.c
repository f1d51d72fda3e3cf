/* The functions of queue.h: accepts work, chooses a worker, cancels work, and closes the queue. */
#include "gpu/queue/queue.h"

#include "gpu/mutex.h"
#include "gpu/queue/share.h"
#include "gpu/queue/worker.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum mm_status mm_queue_open(struct mm_device *const *devices, size_t device_count,
                             const struct mm_queue_limits *limits, struct mm_queue **queue,
                             struct mm_error *error) {
    struct mm_queue *opened = calloc(1, sizeof *opened + device_count * sizeof opened->workers[0]);
    if (opened == NULL)
        return mm_fail(error, MM_INTERNAL, "the system has no memory for the queue");
    opened->mutex = MM_MUTEX_INITIALIZER;
    opened->limits = *limits;
    for (size_t index = 0; index < device_count; index++) {
        struct mm_worker *worker = &opened->workers[index];
        worker->queue = opened;
        worker->device = devices[index];
        TAILQ_INIT(&worker->waiting);
        TAILQ_INIT(&worker->running);
        enum mm_status status = mm_worker_start(worker, error);
        opened->worker_count++;
        if (status != MM_OK) {
            mm_queue_close(opened);
            return status;
        }
    }
    *queue = opened;
    return MM_OK;
}

static bool can_do(const struct mm_worker *worker, struct mm_work *work) {
    const struct mm_job *job = mm_work_job(work);
    return worker->device->backend == work->backend &&
           (job == NULL || (mm_variant_missing(job->variant, worker->device, job->product.a.dtype) == NULL &&
                            mm_share_can_move(job, worker->device)));
}

/* The load of copying a byte to a device, in operations. Copying a byte over PCIe takes as long as 1024
 * float32 operations. Only an eighth of this counts: later jobs use the copy too, and some copies come from
 * another GPU by NVLink. */
static const double copied_byte_load = 128;

/* Returns the worker's load, plus the load of copying this work's stored operands to the worker's device. */
static double load_before(const struct mm_worker *worker, struct mm_work *work) {
    const struct mm_job *job = mm_work_job(work);
    const size_t absent_bytes = job == NULL ? 0 : mm_job_absent_bytes(job, worker->device);
    return mm_worker_load(worker) + copied_byte_load * (double)absent_bytes;
}

/* Sets work->worker to the least loaded worker that can do the work. Reads the loads without a lock. */
static enum mm_status choose_worker(struct mm_queue *queue, struct mm_work *work, struct mm_error *error) {
    struct mm_worker *best = NULL;
    double least = 0.0;
    bool failed = false;
    for (size_t index = 0; index < queue->worker_count; index++) {
        struct mm_worker *worker = &queue->workers[index];
        if (!can_do(worker, work))
            continue;
        const double load = load_before(worker, work);
        if (mm_device_has_failed(worker->device)) {
            failed = true;
        } else if (best == NULL || load < least) {
            best = worker;
            least = load;
        }
    }
    work->worker = best;
    if (best != NULL)
        return MM_OK;
    if (failed)
        return mm_fail(error, MM_NOT_READY, "every %s device has failed", work->backend->name);
    const struct mm_job *job = mm_work_job(work);
    return mm_fail_field(error, MM_UNSUPPORTED, "variant", "no %s device here can run %s",
                         work->backend->name, job != NULL ? job->variant->name : "it");
}

/* Rejects work if too many jobs wait. The memory budget limits the bytes of waiting jobs. */
static enum mm_status check_depth(const struct mm_queue *queue, unsigned client, struct mm_error *error) {
    const size_t own = queue->jobs_waiting_of[client];
    if (queue->jobs_waiting >= queue->limits.jobs_max)
        return mm_fail_busy(error, MM_BUSY_QUEUE_DEPTH,
                            "%zu jobs wait already, and the limit is %zu (--queue-depth); try again later",
                            queue->jobs_waiting, queue->limits.jobs_max);
    if (queue->limits.client_jobs_max != 0 && own >= queue->limits.client_jobs_max)
        return mm_fail_busy(
            error, MM_BUSY_CLIENT_JOBS,
            "%zu jobs of this key or address wait already, and its limit is %zu (--jobs-per-key); "
            "try again later",
            own, queue->limits.client_jobs_max);
    return MM_OK;
}

/* Rejects work that would wait too long at its worker. The time of jobs without a rate counts as 0. */
static enum mm_status check_wait(const struct mm_queue *queue, const struct mm_work *work,
                                 struct mm_error *error) {
    const double limit_ns = (double)queue->limits.wait_ns_max;
    if (queue->limits.wait_ns_max == 0 || work->worker->expected_ns <= limit_ns)
        return MM_OK;
    const double wait_ns = mm_worker_wait_ns(work->worker, work);
    return wait_ns <= limit_ns
               ? MM_OK
               : mm_fail_busy(
                     error, MM_BUSY_QUEUE_WAIT,
                     "the jobs before it will take %.3g s, but the limit is %.3g s (--queue-wait-ms)",
                     wait_ns / 1e9, limit_ns / 1e9);
}

static void clear(struct mm_work *work) {
    struct mm_job *job = mm_work_job(work);
    work->error.status = MM_OK;
    work->device = NULL;
    work->state = MM_WORK_IDLE;
    work->is_cancelled = false;
    work->waited_ns = 0;
    if (job != NULL)
        mm_job_clear(job);
}

/* Chooses a worker, and plans the work for the worker's device. The caller holds no lock. */
static enum mm_status assign(struct mm_queue *queue, struct mm_work *work, struct mm_error *error) {
    const enum mm_status status = choose_worker(queue, work, error);
    return status == MM_OK ? mm_work_plan(work, work->worker->device, error) : status;
}

void mm_queue_prepare(struct mm_queue *queue, struct mm_work *work) {
    struct mm_job *job = mm_work_job(work);
    clear(work);
    if (assign(queue, work, &work->error) == MM_OK && job != NULL && job->shares != NULL)
        mm_shares_make(queue, job);
}

/* Products up to this size take about 10 µs. This is less than the time to wake up another thread. */
enum { RUN_FLOPS_MAX = 16000, RUN_BYTES_MAX = 32 << 10 };

bool mm_queue_run(struct mm_queue *queue, struct mm_job *job) {
    struct mm_work *work = &job->work;
    if (job->verify || job->part != NULL || mm_job_generated_bytes(job) > 0 || !work->backend->is_host ||
        work->error.status != MM_OK || mm_product_flops(&job->product) > RUN_FLOPS_MAX ||
        work->bytes > RUN_BYTES_MAX || __atomic_load_n(&queue->stopping, __ATOMIC_RELAXED))
        return false;
    struct mm_device *device = work->worker->device;
    mm_job_begin(job, device);
    if (job->product.m > 0 && job->product.n > 0)
        (void)work->backend->measure(device, &job->plan, &job->product, &job->outcome.span_ns[MM_SPAN_KERNEL],
                                     &work->error);
    return true;
}

/* The caller holds the mutex. */
static void hand_over(struct mm_worker *worker, struct mm_work *work) {
    mm_worker_add(worker, work);
    pthread_cond_signal(&worker->changed);
}

enum mm_status mm_queue_submit(struct mm_queue *queue, struct mm_work *work, struct mm_error *error) {
    enum mm_status status = work->error.status;
    if (status != MM_OK && error != NULL)
        *error = work->error;
    if (status != MM_OK)
        return status;
    pthread_mutex_lock(&queue->mutex);
    const unsigned count = mm_work_units(work);
    status = queue->stopping ? mm_fail(error, MM_STOPPING,
                                       "the service is stopping and takes no new requests; try again later")
                             : check_depth(queue, work->client, error);
    for (unsigned index = 0; index < count && status == MM_OK; index++) {
        struct mm_work *unit = mm_work_unit(work, index);
        unit->deadline_ns = work->deadline_ns;
        unit->client = work->client;
        status = check_wait(queue, unit, error);
    }
    for (unsigned index = 0; index < count && status == MM_OK; index++)
        hand_over(mm_work_unit(work, index)->worker, mm_work_unit(work, index));
    pthread_mutex_unlock(&queue->mutex);
    return status;
}

bool mm_queue_submit_idle(struct mm_queue *queue, const struct mm_device *device, struct mm_task *task) {
    struct mm_worker *worker = NULL;
    for (size_t index = 0; index < queue->worker_count; index++)
        if (queue->workers[index].device == device)
            worker = &queue->workers[index];
    assert(worker != NULL);
    clear(&task->work);
    (void)mm_work_plan(&task->work, worker->device, NULL);
    pthread_mutex_lock(&queue->mutex);
    const bool accepts = worker->jobs == 0 && !queue->stopping && !mm_device_has_failed(device);
    if (accepts)
        hand_over(worker, &task->work);
    pthread_mutex_unlock(&queue->mutex);
    return accepts;
}

bool mm_queue_cancel(struct mm_queue *queue, struct mm_work *work) {
    pthread_mutex_lock(&queue->mutex);
    const bool waited = mm_work_cancel_units(work);
    pthread_mutex_unlock(&queue->mutex);
    if (waited)
        mm_work_release_parts(work);
    return waited;
}

uint64_t mm_queue_waited_ns(struct mm_queue *queue, struct mm_work *work) {
    pthread_mutex_lock(&queue->mutex);
    const uint64_t waited_ns = mm_work_unit(work, 0)->waited_ns;
    pthread_mutex_unlock(&queue->mutex);
    return waited_ns;
}

enum mm_status mm_queue_check_depth(struct mm_queue *queue, unsigned client, struct mm_error *error) {
    pthread_mutex_lock(&queue->mutex);
    const enum mm_status status = check_depth(queue, client, error);
    pthread_mutex_unlock(&queue->mutex);
    return status;
}

struct mm_queue_state mm_queue_look(struct mm_queue *queue) {
    double longest_ns = 0.0;
    pthread_mutex_lock(&queue->mutex);
    struct mm_queue_state state = {
        .jobs = queue->jobs_waiting + queue->jobs_running,
        .jobs_waiting = queue->jobs_waiting,
        .bytes_waiting = queue->bytes_waiting,
    };
    for (size_t index = 0; index < queue->worker_count; index++)
        longest_ns = fmax(longest_ns, queue->workers[index].expected_ns);
    pthread_mutex_unlock(&queue->mutex);
    state.wait_ns = (uint64_t)fmin(longest_ns, 1e18);
    return state;
}

void mm_queue_stop(struct mm_queue *queue) {
    pthread_mutex_lock(&queue->mutex);
    __atomic_store_n(&queue->stopping, true, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&queue->mutex);
}

/* Removes waiting work from the worker. If with_paused, also removes paused work. Adds the removed work to
 * the front of the list `removed`, in order, and returns this list. */
static struct mm_work *remove_waiting(struct mm_worker *worker, bool with_paused, struct mm_work *removed) {
    struct mm_work *previous;
    for (struct mm_work *work = TAILQ_LAST(&worker->waiting, mm_work_list); work != NULL; work = previous) {
        previous = TAILQ_PREV(work, mm_work_list, listed);
        if (work->state == MM_WORK_PAUSED && !with_paused)
            continue;
        mm_worker_remove(worker, work);
        work->next = removed;
        removed = work;
    }
    return removed;
}

bool mm_worker_pass_on(struct mm_queue *queue, struct mm_work *work, struct mm_worker *runs_at) {
    const double counted_ns = work->expected_ns; /* mm_worker_finish must subtract the old time */
    const bool is_assigned = work->kind != MM_WORK_TASK && assign(queue, work, NULL) == MM_OK;
    const double expected_ns = work->expected_ns;
    work->expected_ns = counted_ns;
    if (!is_assigned)
        return false;
    pthread_mutex_lock(&queue->mutex);
    const bool passes = !queue->closing; /* after closing, the other worker's threads may have ended */
    if (passes && runs_at != NULL)
        mm_worker_finish(runs_at, work);
    if (passes) {
        work->expected_ns = expected_ns;
        hand_over(work->worker, work);
    }
    pthread_mutex_unlock(&queue->mutex);
    return passes;
}

/* Moves products from hung devices to other devices. Fails tasks, and products that no other device can run.
 * Also cancels paused tasks, because the thread of a hung device cannot cancel them. */
static void move_or_fail(struct mm_queue *queue, struct mm_work *stranded) {
    struct mm_work *refused = NULL;
    struct mm_work *next;
    for (struct mm_work *work = stranded; work != NULL; work = next) {
        next = work->next;
        if (mm_worker_pass_on(queue, work, NULL))
            continue;
        struct mm_task *task = mm_work_task(work);
        mm_fail(&work->error, MM_NOT_READY, "the device failed while the job waited");
        if (task != NULL && work->device != NULL)
            (void)task->run(task, NULL, true);
        work->next = refused;
        refused = work;
    }
    mm_work_list_done(refused);
}

/* If mm_queue_fail_hung was not called for this long, the process itself was stopped, and the times of steps
 * start again. */
#define STOPPED_NS UINT64_C(1000000000)

/* Returns when the watch first saw the current step of this work. For a new step, this is now_ns. */
static uint64_t note_seen(const struct mm_queue *queue, struct mm_work *running, uint64_t now_ns) {
    const uint64_t seen_ns = __atomic_load_n(&running->seen_ns, __ATOMIC_RELAXED);
    if (seen_ns != 0 && now_ns - queue->looked_ns <= STOPPED_NS)
        return seen_ns;
    __atomic_store_n(&running->seen_ns, now_ns, __ATOMIC_RELAXED);
    return now_ns;
}

/* Whether the worker's device is a GPU whose current step takes longer than most_ns. If the GPU is already
 * marked as failed, returns true only if work waits in the worker's list. The caller holds the mutex. */
static bool hangs(const struct mm_worker *worker, uint64_t now_ns, uint64_t most_ns) {
    struct mm_work *oldest = TAILQ_FIRST(&worker->running);
    if (most_ns == 0 || worker->device->backend->is_host || oldest == NULL)
        return false;
    return now_ns - note_seen(worker->queue, oldest, now_ns) > most_ns &&
           (!mm_device_has_failed(worker->device) || !TAILQ_EMPTY(&worker->waiting));
}

struct mm_device *mm_queue_fail_hung(struct mm_queue *queue, uint64_t now_ns, uint64_t most_ns) {
    struct mm_work *stranded = NULL;
    struct mm_device *found = NULL;
    pthread_mutex_lock(&queue->mutex);
    for (size_t index = 0; index < queue->worker_count; index++) {
        struct mm_worker *worker = &queue->workers[index];
        if (!hangs(worker, now_ns, most_ns))
            continue;
        if (!mm_device_has_failed(worker->device))
            found = worker->device;
        __atomic_store_n(&worker->device->failed, 1, __ATOMIC_RELAXED);
        stranded = remove_waiting(worker, true, stranded);
    }
    queue->looked_ns = now_ns;
    pthread_mutex_unlock(&queue->mutex);
    move_or_fail(queue, stranded);
    return found;
}

void mm_queue_abort(struct mm_queue *queue, enum mm_status status, const char *detail) {
    struct mm_work *aborted = NULL;
    pthread_mutex_lock(&queue->mutex);
    __atomic_store_n(&queue->ending_tasks, true, __ATOMIC_RELAXED);
    for (size_t index = 0; index < queue->worker_count; index++)
        aborted = remove_waiting(&queue->workers[index], false, aborted);
    pthread_mutex_unlock(&queue->mutex);
    for (struct mm_work *work = aborted; work != NULL; work = work->next)
        mm_fail(&work->error, status, "%s", detail);
    mm_work_list_done(aborted);
}

void mm_queue_close(struct mm_queue *queue) {
    if (queue == NULL)
        return;
    pthread_mutex_lock(&queue->mutex);
    __atomic_store_n(&queue->stopping, true, __ATOMIC_RELAXED);
    __atomic_store_n(&queue->ending_tasks, true, __ATOMIC_RELAXED);
    queue->closing = true;
    for (size_t index = 0; index < queue->worker_count; index++)
        pthread_cond_broadcast(&queue->workers[index].changed);
    pthread_mutex_unlock(&queue->mutex);
    for (size_t index = 0; index < queue->worker_count; index++)
        mm_worker_join(&queue->workers[index]);
    pthread_mutex_destroy(&queue->mutex);
    free(queue);
}
