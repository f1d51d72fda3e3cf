/* What a worker does with its device: each of its threads keeps as many products begun as it has lanes,
 * ending them in the order in which they were begun; one that wants the device alone, and the slices of
 * tasks, get it alone, in their turn. It knows no caller. */
#include "gpu/worker.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static unsigned thread_count(const struct mm_device *device) {
    return device->thread_count == 0 ? 1 : device->thread_count;
}

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

/* Whether nothing is to run beside a product, since it keeps the whole device busy. */
static bool wants_all(const struct mm_device *device, const struct mm_variant *ran,
                      const struct mm_product *product) {
    return device->backend->wants_all != NULL && device->backend->wants_all(device, ran, product);
}

/* What there is to know of a job before it runs. Of a task that is little: it lasts as long as it likes. */
static void judge(const struct mm_worker *worker, struct mm_job *job) {
    const struct mm_device *device = worker->device;
    job->alone = true;
    job->expected_ns = 0.0;
    if (job->task != NULL)
        return;
    const struct mm_variant *ran = mm_variant_resolve(job->variant, device, &job->product);
    job->alone = wants_all(device, ran, &job->product);
    job->expected_ns = mm_forecast_ns(&worker->forecast, job, ran);
    if (!job->alone)
        job->expected_ns /= thread_count(device);
}

void mm_worker_add(struct mm_worker *worker, struct mm_job *job) {
    judge(worker, job);
    worker->expected_ns += job->expected_ns;
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
    worker->expected_ns = worker->jobs == 0 ? 0.0 : worker->expected_ns - job->expected_ns;
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

/* Whether the first job that waits can be begun beside those that run: nobody goes past one that must wait.
 */
static bool can_begin(const struct mm_worker *worker) {
    return worker->first != NULL && !worker->is_taken && (!worker->first->alone || worker->under_way == 0);
}

/* The next job, now running; NULL where none can be begun beside the thread's `running`, or, with nothing of
 * its own under way, where the queue closes. */
static struct mm_job *next_job(struct mm_worker *worker, unsigned running) {
    struct mm_queue *queue = worker->queue;
    struct mm_job *job = NULL;
    pthread_mutex_lock(&queue->mutex);
    while (running == 0 && !can_begin(worker) && !(queue->closing && worker->first == NULL))
        pthread_cond_wait(&worker->changed, &queue->mutex);
    if (can_begin(worker)) {
        job = worker->first;
        take(worker, job);
        worker->under_way++;
        worker->is_taken = job->alone;
    }
    if (job != NULL && !job->begun) {
        end_waiting(queue, job);
        queue->jobs_running++;
    }
    pthread_mutex_unlock(&queue->mutex);
    return job;
}

/* A job does not run any more, and others may; with the mutex held. */
static void end_running(struct mm_worker *worker, const struct mm_job *job) {
    worker->under_way--;
    if (job->alone)
        worker->is_taken = false;
    if (worker->first != NULL)
        pthread_cond_broadcast(&worker->changed);
}

static void finish(struct mm_worker *worker, struct mm_job *job) {
    struct mm_queue *queue = worker->queue;
    pthread_mutex_lock(&queue->mutex);
    queue->jobs_running--;
    end_running(worker, job);
    leave(worker, job);
    if (job->error.status == MM_OK && job->ran != NULL && job->task == NULL)
        mm_forecast_learn(&worker->forecast, job);
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
    end_running(worker, job);
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

/* The thread's own lanes are every step-th from its own number on. */
static void *work(void *argument) {
    const struct mm_worker_thread *self = argument;
    struct mm_worker *worker = self->worker;
    struct mm_job *running[MM_LANES_MAX];
    const unsigned step = thread_count(worker->device);
    const unsigned lane_count = worker->device->lane_count / step;
    unsigned oldest = 0;
    unsigned count = 0;
    for (;;) {
        struct mm_job *job = count < lane_count ? next_job(worker, count) : NULL;
        if (job != NULL && job->task != NULL) {
            run_slice(worker, job);
            continue;
        }
        if (job != NULL) {
            const unsigned turn = (oldest + count) % lane_count;
            if (start(worker, self->index + turn * step, job)) {
                running[turn] = job;
                count++;
            } else {
                finish(worker, job);
            }
            continue;
        }
        if (count == 0)
            return NULL; /* nothing is running, and next_job gave up waiting: the queue closes */
        end(worker, self->index + oldest * step, running[oldest]);
        finish(worker, running[oldest]);
        oldest = (oldest + 1) % lane_count;
        count--;
    }
}

static enum mm_status start_thread(struct mm_worker *worker, unsigned index, struct mm_error *error) {
    const struct mm_device *device = worker->device;
    struct mm_worker_thread *started = &worker->threads[index];
    char name[16];
    started->worker = worker;
    started->index = index;
    const int failure = pthread_create(&started->thread, NULL, work, started);
    if (failure != 0)
        return mm_fail(error, MM_INTERNAL, "a worker thread could not be started: %s", strerror(failure));
    worker->thread_count++;
    snprintf(name, sizeof name, "mm-%.6s-%u.%u", device->backend->name, device->index % 100, index % 100);
    pthread_setname_np(started->thread, name);
    return MM_OK;
}

enum mm_status mm_worker_start(struct mm_worker *worker, struct mm_error *error) {
    const unsigned count = thread_count(worker->device);
    enum mm_status status = MM_OK;
    assert(worker->device->lane_count >= count && worker->device->lane_count <= MM_LANES_MAX);
    pthread_cond_init(&worker->changed, NULL);
    for (unsigned index = 0; index < count && status == MM_OK; index++)
        status = start_thread(worker, index, error);
    return status;
}

void mm_worker_join(struct mm_worker *worker) {
    for (unsigned index = 0; index < worker->thread_count; index++)
        pthread_join(worker->threads[index].thread, NULL);
    pthread_cond_destroy(&worker->changed);
}
