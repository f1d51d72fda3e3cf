/* The list of jobs in front of one device: what waits, which goes next and together, what runs. A product
 * that needs the device alone, and slices of tasks, get it alone, in their turn. It knows no caller. */
#include "gpu/queue/worker.h"

#include <stddef.h>

/* A task, which keeps its device for seconds, whatever its product says. */
static const double task_load = 1e13;

/* A GPU does about so many float32 operations while it reads a byte of its memory, and while a byte arrives
 * from another GPU by NVLink. By PCIe a copy takes eight times as long, but later jobs use it as well. */
static const double byte_load = 16, copied_byte_load = 128;

/* What a job adds to a device's load: its time, counted in operations. Any measure does that orders the
 * devices; this one needs no rates. */
static double job_load(const struct mm_job *job) {
    return mm_product_flops(&job->product) + byte_load * (double)job->queued_bytes +
           (job->task != NULL ? task_load : 0.0);
}

double mm_worker_load_before(const struct mm_worker *worker, const struct mm_job *job) {
    double load;
    __atomic_load(&worker->load, &load, __ATOMIC_RELAXED);
    return load + copied_byte_load * (double)mm_job_absent_bytes(job, worker->device);
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
    job->waits = true;
}

static void leave_waiting(struct mm_worker *worker, struct mm_job *job) {
    take(&worker->waiting, job);
    job->waits = false;
}

/* How long the job will keep the device busy. Of a task nothing is known: it lasts as long as it likes. */
static double expected_ns(const struct mm_worker *worker, const struct mm_job *job) {
    if (job->task != NULL)
        return 0.0;
    const double alone_ns = mm_forecast_ns(worker->device, job, job->plan.variant);
    return job->alone ? alone_ns : alone_ns / mm_worker_threads(worker->device);
}

/* Adds to the worker's load, which other threads read; with the mutex held. */
static void add_load(struct mm_worker *worker, double load) {
    double sum = worker->jobs == 0 ? 0.0 : worker->load + load; /* rounding must not add up */
    __atomic_store(&worker->load, &sum, __ATOMIC_RELAXED);
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
    job->expected_ns = expected_ns(worker, job);
    worker->expected_ns += job->expected_ns;
    begin_waiting(worker, job, worker->waiting.last);
    note_change(worker);
    worker->jobs++;
    add_load(worker, job_load(job));
    worker->queue->jobs_waiting++;
    worker->queue->bytes_waiting += job->queued_bytes;
}

/* A begun task does, also while it stands in the list. */
static bool counts_as_running(const struct mm_job *job) {
    return job->begun && job->task != NULL;
}

/* A job that counted as waiting does not wait any more. */
static void end_waiting(struct mm_queue *queue, struct mm_job *job) {
    job->span_ns[MM_SPAN_QUEUE] = mm_clock_ns() - job->queued_ns;
    queue->jobs_waiting--;
    queue->bytes_waiting -= job->queued_bytes;
}

/* A job leaves its worker, run or not; with the mutex held. */
static void leave(struct mm_worker *worker, const struct mm_job *job) {
    worker->jobs--;
    add_load(worker, -job_load(job));
    worker->expected_ns = worker->jobs == 0 ? 0.0 : worker->expected_ns - job->expected_ns;
}

void mm_worker_remove(struct mm_worker *worker, struct mm_job *job) {
    const bool was_first = worker->waiting.first == job; /* whom others may not have gone past */
    leave_waiting(worker, job);
    if (counts_as_running(job))
        worker->queue->jobs_running--;
    else
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

/* Whether the first waiting job can begin beside those that run. No job overtakes one that must wait. */
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
    if (!counts_as_running(job)) {
        end_waiting(queue, job);
        queue->jobs_running++;
    }
    batch->jobs[batch->count++] = job;
}

/* A batch takes the waiting jobs that may share a launch with its first. It skips others, which it delays
 * no longer than a small launch takes: it ends at so many copied bytes or skipped jobs, and before a job that
 * needs the device alone. */
enum { BATCH_BYTES_MAX = 2 << 20, PASSED_OVER_MAX = 64 };

static void take_companions(struct mm_worker *worker, struct mm_batch *batch) {
    const uint64_t key = batch->jobs[0]->plan.batch_key;
    size_t bytes = mm_job_copied_bytes(batch->jobs[0]);
    unsigned passed_over = 0;
    struct mm_job *next;
    for (struct mm_job *job = worker->waiting.first; job != NULL && !job->alone; job = next) {
        next = job->next;
        if (job->plan.batch_key != key && ++passed_over > PASSED_OVER_MAX)
            break;
        if (job->plan.batch_key != key)
            continue;
        bytes += mm_job_copied_bytes(job);
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
    if (batch->count > 0 && batch->jobs[0]->task == NULL && batch->jobs[0]->plan.batch_key != 0)
        take_companions(worker, batch);
    *seen = worker->changes - (can_begin(worker) ? 1 : 0);
    pthread_mutex_unlock(&queue->mutex);
}

/* A job stops running; with the mutex held, and others to be woken. If the device was taken, this job had
 * it (job->alone may be of another device's plan by now). */
static void end_running(struct mm_worker *worker, struct mm_job *job) {
    take(&worker->running, job);
    worker->under_way--;
    worker->is_taken = false;
}

bool mm_worker_hangs(struct mm_worker *worker, uint64_t now_ns, uint64_t most_ns, bool begins) {
    struct mm_job *oldest = worker->running.first;
    if (oldest == NULL)
        return false;
    uint64_t seen_ns = __atomic_load_n(&oldest->seen_ns, __ATOMIC_RELAXED);
    if (seen_ns == 0 || begins) {
        seen_ns = now_ns;
        __atomic_store_n(&oldest->seen_ns, seen_ns, __ATOMIC_RELAXED);
    }
    return now_ns - seen_ns > most_ns;
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
            mm_forecast_learn(worker->device, job);
    }
    wake_others(worker);
    pthread_mutex_unlock(&queue->mutex);
    return batch->jobs[0];
}

bool mm_worker_keeps(struct mm_worker *worker, struct mm_job *job) {
    pthread_mutex_lock(&worker->queue->mutex);
    const bool keeps = worker->waiting.first == NULL;
    job->begun = true;
    pthread_mutex_unlock(&worker->queue->mutex);
    return keeps;
}

void mm_worker_put_back(struct mm_worker *worker, struct mm_job *job) {
    struct mm_queue *queue = worker->queue;
    pthread_mutex_lock(&queue->mutex);
    job->begun = true;
    end_running(worker, job);
    if (job->task == NULL) {
        queue->jobs_running--;
        queue->jobs_waiting++;
        queue->bytes_waiting += job->queued_bytes;
        job->queued_ns = mm_clock_ns() - job->span_ns[MM_SPAN_QUEUE]; /* while it ran it did not wait */
    }
    begin_waiting(worker, job,
                  __atomic_load_n(&job->is_cancelled, __ATOMIC_RELAXED) ? NULL : worker->waiting.last);
    wake_others(worker);
    pthread_mutex_unlock(&queue->mutex);
}
