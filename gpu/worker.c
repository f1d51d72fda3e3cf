/* The list of jobs in front of one device: what waits, which of it goes next and together, what runs, and
 * what that means for those behind it. A product that wants the device alone, and the slices of tasks, get it
 * alone, in their turn. It knows no caller. */
#include "gpu/worker.h"

#include <stddef.h>

/* A task, which keeps its device for seconds, whatever its product says. */
static const double task_load = 1e13;

/* What a job adds to a device's load: its FLOPs, and its bytes so that none is free. Any measure does
 * that orders the devices; this one needs no rates. */
static double job_load(const struct mm_job *job) {
    return mm_product_flops(&job->product) + (double)job->queued_bytes +
           (job->task != NULL ? task_load : 0.0);
}

/* Puts a job into a list: behind `previous`, or first where that is NULL. */
static void insert(struct mm_job_list *list, struct mm_job *job, struct mm_job *previous) {
    struct mm_job *next = previous == NULL ? list->first : previous->next;
    job->previous = previous;
    job->next = next;
    *(previous == NULL ? &list->first : &previous->next) = job;
    *(next == NULL ? &list->last : &next->previous) = job;
}

/* Takes a job out of the list that it stands in. */
static void take(struct mm_job_list *list, struct mm_job *job) {
    *(job->previous == NULL ? &list->first : &job->previous->next) = job->next;
    *(job->next == NULL ? &list->last : &job->next->previous) = job->previous;
}

/* A job waits at the worker: behind `previous`, or first where that is NULL. */
static void begin_waiting(struct mm_worker *worker, struct mm_job *job, struct mm_job *previous) {
    insert(&worker->waiting, job, previous);
    job->worker = worker;
}

static void leave_waiting(struct mm_worker *worker, struct mm_job *job) {
    take(&worker->waiting, job);
    job->worker = NULL;
}

/* Whether nothing is to run beside a product, since it keeps the whole device busy. No backend is asked of an
 * empty one, which no device runs. */
static bool wants_all(struct mm_device *device, const struct mm_variant *ran, const struct mm_job *job) {
    const bool is_empty = job->product.m == 0 || job->product.n == 0;
    return !is_empty && device->backend->wants_all != NULL && device->backend->wants_all(device, ran, job);
}

/* What there is to know of a job before it runs. Of a task that is little: it lasts as long as it likes. */
static void judge(const struct mm_worker *worker, struct mm_job *job) {
    struct mm_device *device = worker->device;
    job->alone = true;
    job->batch_key = 0;
    job->expected_ns = 0.0;
    if (job->task != NULL)
        return;
    const struct mm_variant *ran = mm_variant_resolve(job->variant, device, &job->product);
    job->alone = wants_all(device, ran, job);
    job->expected_ns = mm_forecast_ns(&worker->forecast, job, ran);
    if (job->alone)
        return;
    job->expected_ns /= mm_worker_threads(device);
    if (device->backend->batch_key != NULL)
        job->batch_key = device->backend->batch_key(device, ran, job);
}

/* Something of the list may be begun that could not before; with the mutex held. */
static void note_change(struct mm_worker *worker) {
    __atomic_store_n(&worker->changes, worker->changes + 1, __ATOMIC_RELAXED);
}

/* Others may run now; with the mutex held. */
static void wake_others(struct mm_worker *worker) {
    if (worker->waiting.first != NULL)
        pthread_cond_broadcast(&worker->changed);
}

void mm_worker_add(struct mm_worker *worker, struct mm_job *job) {
    judge(worker, job);
    worker->expected_ns += job->expected_ns;
    begin_waiting(worker, job, worker->waiting.last);
    note_change(worker);
    worker->jobs++;
    worker->load += job_load(job);
    worker->queue->jobs_waiting++;
    worker->queue->bytes_waiting += job->queued_bytes;
}

/* A job that waited, and was not begun, does not wait any more. */
static void end_waiting(struct mm_queue *queue, const struct mm_job *job) {
    queue->jobs_waiting--;
    queue->bytes_waiting -= job->queued_bytes;
}

/* A job leaves its worker, run or not; with the mutex held. */
static void leave(struct mm_worker *worker, const struct mm_job *job) {
    worker->jobs--;
    worker->load = worker->jobs == 0 ? 0.0 : worker->load - job_load(job); /* rounding does not add up */
    worker->expected_ns = worker->jobs == 0 ? 0.0 : worker->expected_ns - job->expected_ns;
}

void mm_worker_remove(struct mm_worker *worker, struct mm_job *job) {
    const bool was_first = worker->waiting.first == job; /* whom others may not have gone past */
    leave_waiting(worker, job);
    end_waiting(worker->queue, job);
    leave(worker, job);
    if (was_first) {
        note_change(worker);
        wake_others(worker);
    }
}

void mm_worker_prefer(struct mm_worker *worker, struct mm_job *job) {
    leave_waiting(worker, job);
    begin_waiting(worker, job, NULL);
}

/* Whether the first job that waits can be begun beside those that run: nobody goes past one that must wait.
 */
static bool can_begin(const struct mm_worker *worker) {
    return worker->waiting.first != NULL && !worker->is_taken &&
           (!worker->waiting.first->alone || worker->under_way == 0);
}

/* Takes a job out of the list, to be run. */
static void take_to_run(struct mm_worker *worker, struct mm_job *job, struct mm_batch *batch) {
    struct mm_queue *queue = worker->queue;
    leave_waiting(worker, job);
    insert(&worker->running, job, worker->running.last);
    job->seen_ns = 0;
    worker->under_way++;
    worker->is_taken = job->alone;
    if (!job->begun) {
        end_waiting(queue, job);
        queue->jobs_running++;
    }
    batch->jobs[batch->count++] = job;
}

/* A batch takes those that wait and may go with its first, and waits for none to come. It passes over others,
 * which it keeps waiting for no longer than a small launch takes: it ends at so many bytes, at so many passed
 * over, and before one that is to be alone, whom nobody goes past. */
enum { BATCH_BYTES_MAX = 2 << 20, PASSED_OVER_MAX = 64 };

static void take_companions(struct mm_worker *worker, struct mm_batch *batch) {
    const uint64_t key = batch->jobs[0]->batch_key;
    size_t bytes = batch->jobs[0]->queued_bytes;
    unsigned passed_over = 0;
    struct mm_job *next;
    for (struct mm_job *job = worker->waiting.first; job != NULL && !job->alone; job = next) {
        next = job->next;
        if (job->batch_key != key && ++passed_over > PASSED_OVER_MAX)
            break;
        if (job->batch_key != key)
            continue;
        bytes += job->queued_bytes;
        if (batch->count == MM_BATCH_MAX || bytes > BATCH_BYTES_MAX)
            break;
        take_to_run(worker, job, batch);
    }
}

void mm_worker_take(struct mm_worker *worker, bool may_wait, struct mm_batch *batch, unsigned *seen) {
    struct mm_queue *queue = worker->queue;
    batch->count = 0;
    pthread_mutex_lock(&queue->mutex);
    while (may_wait && !can_begin(worker) && !(queue->closing && worker->waiting.first == NULL))
        pthread_cond_wait(&worker->changed, &queue->mutex);
    if (can_begin(worker))
        take_to_run(worker, worker->waiting.first, batch);
    if (batch->count > 0 && batch->jobs[0]->batch_key != 0)
        take_companions(worker, batch);
    *seen = worker->changes - (can_begin(worker) ? 1 : 0);
    pthread_mutex_unlock(&queue->mutex);
}

/* A job does not run any more; with the mutex held, and others to be woken. */
static void end_running(struct mm_worker *worker, struct mm_job *job) {
    take(&worker->running, job);
    worker->under_way--;
    if (job->alone)
        worker->is_taken = false;
}

bool mm_worker_hangs(struct mm_worker *worker, uint64_t now_ns, uint64_t most_ns, bool begins) {
    struct mm_job *oldest = worker->running.first;
    if (oldest == NULL)
        return false;
    if (oldest->seen_ns == 0 || begins)
        oldest->seen_ns = now_ns;
    return now_ns - oldest->seen_ns > most_ns;
}

void mm_worker_untake(struct mm_worker *worker, struct mm_job *job) {
    worker->queue->jobs_running--;
    end_running(worker, job);
    leave(worker, job);
    wake_others(worker);
}

struct mm_job *mm_worker_finish(struct mm_worker *worker, const struct mm_batch *batch) {
    struct mm_queue *queue = worker->queue;
    pthread_mutex_lock(&queue->mutex);
    for (unsigned index = 0; index < batch->count; index++) {
        struct mm_job *job = batch->jobs[index];
        queue->jobs_running--;
        end_running(worker, job);
        job->next = index + 1 < batch->count ? batch->jobs[index + 1] : NULL;
        leave(worker, job);
        if (job->error.status == MM_OK && job->ran != NULL && job->task == NULL)
            mm_forecast_learn(&worker->forecast, job);
    }
    wake_others(worker);
    pthread_mutex_unlock(&queue->mutex);
    return batch->jobs[0];
}

void mm_worker_put_back(struct mm_worker *worker, struct mm_job *job) {
    struct mm_queue *queue = worker->queue;
    pthread_mutex_lock(&queue->mutex);
    job->begun = true;
    end_running(worker, job);
    begin_waiting(worker, job, job->given_up ? NULL : worker->waiting.last);
    wake_others(worker);
    pthread_mutex_unlock(&queue->mutex);
}
