/* The bounded queue as its callers see it: what is accepted and by which worker, counts, and the end. What
 * becomes of a job at its device is worker.c's. */
#include "gpu/queue/queue.h"

#include "gpu/mutex.h"
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
    mm_mutex_init(&opened->mutex);
    opened->limits = *limits;
    for (size_t index = 0; index < device_count; index++) {
        struct mm_worker *worker = &opened->workers[index];
        worker->queue = opened;
        worker->device = devices[index];
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

/* Sets job->worker: of those that can run it, the one where its kernel can begin first, as far as can be seen
 * without a lock. */
static enum mm_status choose_worker(struct mm_queue *queue, struct mm_job *job, struct mm_error *error) {
    struct mm_worker *best = NULL;
    double least = 0.0;
    bool failed = false;
    for (size_t index = 0; index < queue->worker_count; index++) {
        struct mm_worker *worker = &queue->workers[index];
        if (worker->device->backend != job->backend ||
            (job->variant != NULL &&
             mm_variant_missing(job->variant, worker->device, job->product.a.dtype) != NULL))
            continue;
        const double load = mm_worker_load_before(worker, job);
        if (mm_device_has_failed(worker->device)) {
            failed = true;
        } else if (best == NULL || load < least) {
            best = worker;
            least = load;
        }
    }
    job->worker = best;
    if (best != NULL)
        return MM_OK;
    if (failed)
        return mm_fail(error, MM_NOT_READY, "every %s device has failed", job->backend->name);
    return mm_fail_field(error, MM_UNSUPPORTED, "variant", "no %s device here can run %s", job->backend->name,
                         job->variant != NULL ? job->variant->name : "it");
}

/* Their bytes have no limit here: the memory of operands and results is counted where it is lent. */
static enum mm_status check_room(const struct mm_queue *queue, struct mm_error *error) {
    if (queue->jobs_waiting < queue->limits.jobs_max)
        return MM_OK;
    return mm_fail(error, MM_BUSY,
                   "%zu jobs wait already, and the limit is %zu (--queue-depth); try again later",
                   queue->jobs_waiting, queue->limits.jobs_max);
}

/* What a caller would wait for at this worker, as far as it is known. */
static enum mm_status check_wait(const struct mm_queue *queue, const struct mm_worker *worker,
                                 struct mm_error *error) {
    const double limit_ns = (double)queue->limits.wait_ns_max;
    if (queue->limits.wait_ns_max == 0 || worker->expected_ns <= limit_ns)
        return MM_OK;
    return mm_fail(error, MM_BUSY,
                   "the jobs before it will take %.3g s, but the limit is %.3g s (--queue-wait-ms)",
                   worker->expected_ns / 1e9, limit_ns / 1e9);
}

static enum mm_status fail_stopping(struct mm_error *error) {
    return mm_fail(error, MM_STOPPING, "the service is stopping and takes no new requests; try again later");
}

/* Clears what the queue and the backend set. No backend gets an empty product, in which nothing is wrong. */
static void clear(struct mm_job *job) {
    const struct mm_product *product = &job->product;
    job->error.status = MM_OK;
    job->ran = NULL;
    job->device = NULL;
    job->waits = false;
    job->begun = false;
    job->is_cancelled = false;
    job->pieces = (struct mm_pieces){0};
    job->more = false;
    job->batched = 1;
    job->uploaded_bytes = 0;
    job->downloaded_bytes = 0;
    job->path = (struct mm_path){.kind = MM_PATH_NONE};
    job->stored_c = NULL;
    job->verification =
        (struct mm_verification){.is_done = job->verify && (product->m == 0 || product->n == 0)};
    for (int span = MM_SPAN_QUEUE; span <= MM_SPAN_DOWNLOAD; span++)
        job->span_ns[span] = 0;
    job->queued_bytes = mm_product_bytes(product);
    job->queued_ns = mm_clock_ns();
}

/* Chooses the job's worker and plans it for that one's device. No lock is held. */
static enum mm_status assign(struct mm_queue *queue, struct mm_job *job, struct mm_error *error) {
    const enum mm_status status = choose_worker(queue, job, error);
    const struct mm_worker *worker = job->worker;
    return worker != NULL ? mm_job_plan(job, worker->device, error) : status;
}

void mm_queue_prepare(struct mm_queue *queue, struct mm_job *job) {
    clear(job);
    (void)assign(queue, job, &job->error);
}

/* Less than a suspended connection costs: some 10 µs of the plain loop, at 1 GFLOP/s. */
enum { RUN_FLOPS_MAX = 16000, RUN_BYTES_MAX = 32 << 10 };

bool mm_queue_run(struct mm_queue *queue, struct mm_job *job) {
    if (job->task != NULL || job->verify || job->part != NULL || mm_job_made_bytes(job) > 0 ||
        !job->backend->is_host || job->error.status != MM_OK ||
        mm_product_flops(&job->product) > RUN_FLOPS_MAX || job->queued_bytes > RUN_BYTES_MAX ||
        __atomic_load_n(&queue->stopping, __ATOMIC_RELAXED))
        return false;
    const struct mm_worker *worker = job->worker;
    job->device = worker->device;
    job->ran = job->plan.variant;
    if (job->product.m > 0 && job->product.n > 0)
        (void)job->backend->measure(worker->device, &job->plan, &job->product, &job->span_ns[MM_SPAN_KERNEL],
                                    &job->error);
    return true;
}

/* With the mutex held. */
static void hand_over(struct mm_worker *worker, struct mm_job *job) {
    mm_worker_add(worker, job);
    pthread_cond_signal(&worker->changed);
}

enum mm_status mm_queue_submit(struct mm_queue *queue, struct mm_job *job, struct mm_error *error) {
    enum mm_status status = job->error.status;
    if (status != MM_OK && error != NULL)
        *error = job->error;
    if (status != MM_OK)
        return status;
    pthread_mutex_lock(&queue->mutex);
    status = queue->stopping ? fail_stopping(error) : check_room(queue, error);
    if (status == MM_OK)
        status = check_wait(queue, job->worker, error);
    if (status == MM_OK)
        hand_over(job->worker, job);
    pthread_mutex_unlock(&queue->mutex);
    return status;
}

bool mm_queue_submit_idle(struct mm_queue *queue, const struct mm_device *device, struct mm_job *job) {
    struct mm_worker *worker = NULL;
    clear(job);
    job->alone = !job->task->shares;
    pthread_mutex_lock(&queue->mutex);
    for (size_t index = 0; index < queue->worker_count; index++)
        if (queue->workers[index].device == device)
            worker = &queue->workers[index];
    assert(worker != NULL);
    const bool takes = worker->jobs == 0 && !queue->stopping && !mm_device_has_failed(device);
    if (takes)
        hand_over(worker, job);
    pthread_mutex_unlock(&queue->mutex);
    return takes;
}

bool mm_queue_cancel(struct mm_queue *queue, struct mm_job *job) {
    pthread_mutex_lock(&queue->mutex);
    const bool waits = job->waits && !job->begun;
    __atomic_store_n(&job->is_cancelled, !waits, __ATOMIC_RELAXED);
    if (waits)
        mm_worker_remove(job->worker, job);
    else if (job->waits)
        mm_worker_prefer(job->worker, job); /* its end takes no time, and gives memory back */
    pthread_mutex_unlock(&queue->mutex);
    return waits;
}

uint64_t mm_queue_waited_ns(struct mm_queue *queue, const struct mm_job *job) {
    pthread_mutex_lock(&queue->mutex);
    const uint64_t waited_ns = job->span_ns[MM_SPAN_QUEUE];
    pthread_mutex_unlock(&queue->mutex);
    return waited_ns;
}

struct mm_queue_state mm_queue_look(struct mm_queue *queue) {
    double longest_ns = 0.0;
    pthread_mutex_lock(&queue->mutex);
    struct mm_queue_state state = {
        .jobs = queue->jobs_waiting + queue->jobs_running,
        .jobs_waiting = queue->jobs_waiting,
        .bytes_waiting = queue->bytes_waiting,
        .is_full = queue->jobs_waiting >= queue->limits.jobs_max,
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

/* Takes the jobs out of the worker's list, those that have begun only if told to, and puts them, in order,
 * before those `taken`. */
static struct mm_job *take_waiting(struct mm_worker *worker, bool with_begun, struct mm_job *taken) {
    struct mm_job *previous;
    for (struct mm_job *job = worker->waiting.last; job != NULL; job = previous) {
        previous = job->previous;
        if (job->begun && !with_begun)
            continue;
        mm_worker_remove(worker, job);
        job->next = taken;
        taken = job;
    }
    return taken;
}

bool mm_worker_pass_on(struct mm_queue *queue, struct mm_job *job, struct mm_worker *runs_at) {
    if (job->task != NULL || assign(queue, job, NULL) != MM_OK)
        return false;
    pthread_mutex_lock(&queue->mutex);
    const bool passes = !queue->closing; /* else the other's threads may have ended */
    if (passes && runs_at != NULL)
        mm_worker_untake(runs_at, job);
    if (passes)
        hand_over(job->worker, job);
    pthread_mutex_unlock(&queue->mutex);
    return passes;
}

/* Hands the jobs that waited for hung devices over to others. Fails those for which there is no other, and
 * begun tasks, which their own thread cannot end. */
static void move_or_fail(struct mm_queue *queue, struct mm_job *stranded) {
    struct mm_job *refused = NULL;
    struct mm_job *next;
    for (struct mm_job *job = stranded; job != NULL; job = next) {
        next = job->next;
        if (mm_worker_pass_on(queue, job, NULL))
            continue;
        mm_fail(&job->error, MM_NOT_READY, "the device failed while the job waited");
        if (job->begun)
            (void)job->task->run(job->task, NULL, true, &job->error);
        job->next = refused;
        refused = job;
    }
    mm_job_list_done(refused);
}

/* A process that was stopped for a while, and its devices not, knows nothing of what they did meanwhile. */
#define STOPPED_NS UINT64_C(1000000000)

/* Of a device that failed otherwise, the thread may be stuck all the same, with those who wait for it. */
static bool hangs(struct mm_worker *worker, uint64_t now_ns, uint64_t most_ns) {
    const struct mm_device *device = worker->device;
    const bool was_stopped = now_ns - worker->queue->looked_ns > STOPPED_NS;
    return most_ns != 0 && !device->backend->is_host &&
           mm_worker_hangs(worker, now_ns, most_ns, was_stopped) &&
           (!mm_device_has_failed(device) || worker->waiting.first != NULL);
}

struct mm_device *mm_queue_find_hung(struct mm_queue *queue, uint64_t now_ns, uint64_t most_ns) {
    struct mm_job *stranded = NULL;
    struct mm_device *found = NULL;
    pthread_mutex_lock(&queue->mutex);
    for (size_t index = 0; index < queue->worker_count; index++) {
        struct mm_worker *worker = &queue->workers[index];
        if (!hangs(worker, now_ns, most_ns))
            continue;
        if (!mm_device_has_failed(worker->device))
            found = worker->device;
        __atomic_store_n(&worker->device->failed, 1, __ATOMIC_RELAXED);
        stranded = take_waiting(worker, true, stranded);
    }
    queue->looked_ns = now_ns;
    pthread_mutex_unlock(&queue->mutex);
    move_or_fail(queue, stranded);
    return found;
}

void mm_queue_abort(struct mm_queue *queue, enum mm_status status, const char *detail) {
    struct mm_job *aborted = NULL;
    pthread_mutex_lock(&queue->mutex);
    queue->ending_tasks = true;
    for (size_t index = 0; index < queue->worker_count; index++)
        aborted = take_waiting(&queue->workers[index], false, aborted);
    pthread_mutex_unlock(&queue->mutex);
    for (struct mm_job *job = aborted; job != NULL; job = job->next)
        mm_fail(&job->error, status, "%s", detail);
    mm_job_list_done(aborted);
}

void mm_queue_close(struct mm_queue *queue) {
    if (queue == NULL)
        return;
    pthread_mutex_lock(&queue->mutex);
    __atomic_store_n(&queue->stopping, true, __ATOMIC_RELAXED);
    queue->ending_tasks = true;
    queue->closing = true;
    for (size_t index = 0; index < queue->worker_count; index++)
        pthread_cond_broadcast(&queue->workers[index].changed);
    pthread_mutex_unlock(&queue->mutex);
    for (size_t index = 0; index < queue->worker_count; index++)
        mm_worker_join(&queue->workers[index]);
    pthread_mutex_destroy(&queue->mutex);
    free(queue);
}
