/* What a worker does with its device: it keeps up to lane_count products begun, ending them in the order in
 * which they were begun, and runs the slices of tasks between them. It knows no caller. */
#include "gpu/worker.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* A task, which keeps its device for seconds, whatever its product says. */
static const double task_load = 1e13;

/* What a job adds to a device's load: its FLOPs, and its bytes so that none is free. Any measure does
 * that orders the devices; this one needs no rates. */
static double job_load(const struct mm_job *job) {
    return mm_product_flops(&job->product) + (double)job->queued_bytes +
           (job->task != NULL ? task_load : 0.0);
}

/* Puts a job into the worker's list: behind `previous`, or first where that is NULL. */
static void insert(struct mm_worker *worker, struct mm_job *job, struct mm_job *previous) {
    struct mm_job *next = previous == NULL ? worker->first : previous->next;
    job->previous = previous;
    job->next = next;
    job->worker = worker;
    *(previous == NULL ? &worker->first : &previous->next) = job;
    *(next == NULL ? &worker->last : &next->previous) = job;
}

/* Takes a job out of the list that it stands in. */
static void take(struct mm_worker *worker, struct mm_job *job) {
    *(job->previous == NULL ? &worker->first : &job->previous->next) = job->next;
    *(job->next == NULL ? &worker->last : &job->next->previous) = job->previous;
    job->worker = NULL;
}

void mm_worker_add(struct mm_worker *worker, struct mm_job *job) {
    insert(worker, job, worker->last);
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
}

void mm_worker_remove(struct mm_worker *worker, struct mm_job *job) {
    take(worker, job);
    end_waiting(worker->queue, job);
    leave(worker, job);
}

void mm_worker_prefer(struct mm_worker *worker, struct mm_job *job) {
    take(worker, job);
    insert(worker, job, NULL);
}

/* The next job, now running; NULL where none can be begun beside the `running` that are under way, or, with
 * nothing under way, where the queue closes. A task can be begun beside none. */
static struct mm_job *next_job(struct mm_worker *worker, unsigned running) {
    struct mm_queue *queue = worker->queue;
    pthread_mutex_lock(&queue->mutex);
    while (running == 0 && worker->first == NULL && !queue->closing)
        pthread_cond_wait(&worker->changed, &queue->mutex);
    struct mm_job *job = worker->first;
    if (job != NULL && job->task != NULL && running > 0)
        job = NULL;
    if (job != NULL)
        take(worker, job);
    if (job != NULL && !job->begun) {
        end_waiting(queue, job);
        queue->jobs_running++;
    }
    pthread_mutex_unlock(&queue->mutex);
    return job;
}

static void finish(struct mm_worker *worker, struct mm_job *job) {
    struct mm_queue *queue = worker->queue;
    pthread_mutex_lock(&queue->mutex);
    queue->jobs_running--;
    leave(worker, job);
    pthread_mutex_unlock(&queue->mutex);
    job->done(job);
}

static bool is_late(const struct mm_job *job, uint64_t now_ns) {
    return job->deadline_ns != 0 && now_ns > job->deadline_ns;
}

/* Whether there is still a point in working on the job, and a device to do it; else its error says why not.
 */
static bool can_run(const struct mm_worker *worker, struct mm_job *job, uint64_t now_ns) {
    if (is_late(job, now_ns))
        mm_fail(&job->error, MM_TIMEOUT, "%s",
                job->begun ? "the deadline passed before the job was over"
                           : "the deadline passed while the job waited; its kernel was not started");
    else if (mm_device_has_failed(worker->device))
        mm_fail(&job->error, MM_NOT_READY, "the device %s failed while the job waited", worker->device->name);
    return job->error.status == MM_OK;
}

/* Starts a product in the lane. True where it is under way; false where it is over already: too late,
 * nothing to compute, or failed. */
static bool start(struct mm_worker *worker, unsigned lane, struct mm_job *job) {
    uint64_t now_ns = mm_clock_ns();
    job->span_ns[MM_SPAN_QUEUE] = now_ns - job->queued_ns;
    if (!can_run(worker, job, now_ns))
        return false;
    job->device = worker->device;
    job->ran = mm_variant_resolve(job->variant, worker->device, &job->product);
    if (job->product.m == 0 || job->product.n == 0)
        return false;
    return worker->device->backend->begin(worker->device, lane, job) == MM_OK;
}

static void end(struct mm_worker *worker, unsigned lane, struct mm_job *job) {
    worker->device->backend->end(worker->device, lane, job);
    if (job->error.status == MM_OK && is_late(job, mm_clock_ns()))
        mm_fail(&job->error, MM_TIMEOUT, "the deadline passed while the job ran; its result was dropped");
}

/* Whether the task may go on with a slice; else its error says why not. */
static bool can_go_on(const struct mm_worker *worker, struct mm_job *job, uint64_t now_ns) {
    struct mm_queue *queue = worker->queue;
    pthread_mutex_lock(&queue->mutex);
    bool ends = queue->ending_tasks;
    bool given_up = job->given_up;
    pthread_mutex_unlock(&queue->mutex);
    if (ends || given_up)
        mm_fail(&job->error, MM_STOPPING, "%s",
                given_up ? "the job was given up before its end"
                         : "the service stopped before the job's end");
    return job->error.status == MM_OK && can_run(worker, job, now_ns);
}

/* Puts a task back into the list: last, or first where it is only to be told that it was cancelled. */
static void wait_again(struct mm_worker *worker, struct mm_job *job) {
    struct mm_queue *queue = worker->queue;
    pthread_mutex_lock(&queue->mutex);
    job->begun = true;
    insert(worker, job, job->given_up ? NULL : worker->last);
    pthread_mutex_unlock(&queue->mutex);
}

/* One slice of a task, or its end. One that was never begun holds nothing, and need not be told. */
static void run_slice(struct mm_worker *worker, struct mm_job *job) {
    enum mm_task_state state = MM_TASK_OVER;
    uint64_t now_ns = mm_clock_ns();
    bool goes_on = can_go_on(worker, job, now_ns);
    if (!job->begun)
        job->span_ns[MM_SPAN_QUEUE] = now_ns - job->queued_ns;
    if (goes_on)
        job->device = worker->device;
    if (goes_on || job->begun)
        state = job->task->run(job->task, worker->device, !goes_on, &job->error);
    if (state == MM_TASK_AGAIN)
        wait_again(worker, job);
    else
        finish(worker, job);
}

static void *work(void *argument) {
    struct mm_worker *worker = argument;
    struct mm_job *running[MM_LANES_MAX];
    unsigned lane_count = worker->device->lane_count;
    unsigned oldest = 0;
    unsigned count = 0;
    for (;;) {
        struct mm_job *job = count < lane_count ? next_job(worker, count) : NULL;
        if (job != NULL && job->task != NULL) {
            run_slice(worker, job);
            continue;
        }
        if (job != NULL) {
            unsigned lane = (oldest + count) % lane_count;
            if (start(worker, lane, job)) {
                running[lane] = job;
                count++;
            } else {
                finish(worker, job);
            }
            continue;
        }
        if (count == 0)
            return NULL; /* nothing is running, and next_job gave up waiting: the queue closes */
        end(worker, oldest, running[oldest]);
        finish(worker, running[oldest]);
        oldest = (oldest + 1) % lane_count;
        count--;
    }
}

enum mm_status mm_worker_start(struct mm_worker *worker, struct mm_error *error) {
    const struct mm_device *device = worker->device;
    assert(device->lane_count >= 1 && device->lane_count <= MM_LANES_MAX);
    pthread_cond_init(&worker->changed, NULL);
    int failure = pthread_create(&worker->thread, NULL, work, worker);
    if (failure != 0) {
        pthread_cond_destroy(&worker->changed);
        return mm_fail(error, MM_INTERNAL, "a worker thread could not be started: %s", strerror(failure));
    }
    char name[16];
    snprintf(name, sizeof name, "mm-%.8s-%u", device->backend->name, device->index % 1000);
    pthread_setname_np(worker->thread, name);
    return MM_OK;
}

void mm_worker_join(struct mm_worker *worker) {
    pthread_join(worker->thread, NULL);
    pthread_cond_destroy(&worker->changed);
}
