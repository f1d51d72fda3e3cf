/* The bounded queue and the workers behind it. One mutex guards all lists and counts; it is never held
 * while a backend or a done() runs. A worker owns its device, and keeps up to lane_count jobs begun,
 * ending them in the order in which they were begun. */
#include "gpu/queue.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LANES_MAX = 16 };

struct worker {
    struct mm_queue *queue;
    struct mm_device *device;
    pthread_t thread;
    pthread_cond_t changed; /* a job came, or the queue is closing; with queue->mutex */
    struct mm_job *first;   /* waiting, oldest first */
    struct mm_job *last;
    size_t jobs; /* waiting and running */
    double load; /* of these: see job_load */
};

struct mm_queue {
    pthread_mutex_t mutex; /* guards all below and the workers' lists and loads */
    struct mm_queue_limits limits;
    size_t jobs_waiting;
    size_t bytes_waiting;
    size_t jobs_running;
    bool stopping; /* refuse new jobs */
    bool closing;  /* workers end once their list is empty */
    size_t worker_count;
    struct worker workers[];
};

/* What a job adds to a device's load: its FLOPs, and its bytes so that none is free. Any measure does
 * that orders the devices; this one needs no rates. */
static double job_load(const struct mm_job *job) {
    return mm_product_flops(&job->product) + (double)job->queued_bytes;
}

static void append(struct worker *worker, struct mm_job *job) {
    job->next = NULL;
    job->previous = worker->last;
    job->worker = worker;
    if (worker->last != NULL)
        worker->last->next = job;
    else
        worker->first = job;
    worker->last = job;
    worker->jobs++;
    worker->load += job_load(job);
    worker->queue->jobs_waiting++;
    worker->queue->bytes_waiting += job->queued_bytes;
}

/* Takes a job out of the list that it waits in. */
static void take(struct worker *worker, struct mm_job *job) {
    if (job->previous != NULL)
        job->previous->next = job->next;
    else
        worker->first = job->next;
    if (job->next != NULL)
        job->next->previous = job->previous;
    else
        worker->last = job->previous;
    job->worker = NULL;
    worker->queue->jobs_waiting--;
    worker->queue->bytes_waiting -= job->queued_bytes;
}

/* The next job, now running; NULL where there is none and `wait` is false, or the queue closes. */
static struct mm_job *next_job(struct worker *worker, bool wait) {
    struct mm_queue *queue = worker->queue;
    struct mm_job *job = NULL;
    pthread_mutex_lock(&queue->mutex);
    while (wait && worker->first == NULL && !queue->closing)
        pthread_cond_wait(&worker->changed, &queue->mutex);
    if (worker->first != NULL) {
        job = worker->first;
        take(worker, job);
        queue->jobs_running++;
    }
    pthread_mutex_unlock(&queue->mutex);
    return job;
}

/* A job leaves its worker, run or not; with the mutex held. */
static void leave(struct worker *worker, const struct mm_job *job) {
    worker->jobs--;
    worker->load = worker->jobs == 0 ? 0.0 : worker->load - job_load(job); /* rounding does not add up */
}

static void finish(struct worker *worker, struct mm_job *job) {
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

/* Starts a job in the lane. True where it is under way; false where it is over already: too late,
 * nothing to compute, or failed. */
static bool start(struct worker *worker, unsigned lane, struct mm_job *job) {
    uint64_t now_ns = mm_clock_ns();
    job->span_ns[MM_SPAN_QUEUE] = now_ns - job->queued_ns;
    if (is_late(job, now_ns)) {
        mm_fail(&job->error, MM_TIMEOUT,
                "the deadline passed while the job waited; its kernel was not started");
        return false;
    }
    if (mm_device_has_failed(worker->device)) {
        mm_fail(&job->error, MM_NOT_READY, "the device %s failed while the job waited", worker->device->name);
        return false;
    }
    job->device = worker->device;
    job->ran = mm_variant_resolve(job->variant, worker->device, &job->product);
    if (job->product.m == 0 || job->product.n == 0)
        return false;
    return worker->device->backend->begin(worker->device, lane, job) == MM_OK;
}

static void end(struct worker *worker, unsigned lane, struct mm_job *job) {
    worker->device->backend->end(worker->device, lane, job);
    if (job->error.status == MM_OK && is_late(job, mm_clock_ns()))
        mm_fail(&job->error, MM_TIMEOUT, "the deadline passed while the job ran; its result was dropped");
}

static void *work(void *argument) {
    struct worker *worker = argument;
    struct mm_job *running[LANES_MAX];
    unsigned lane_count = worker->device->lane_count;
    unsigned oldest = 0;
    unsigned count = 0;
    for (;;) {
        struct mm_job *job = count < lane_count ? next_job(worker, count == 0) : NULL;
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

static enum mm_status start_worker(struct mm_queue *queue, struct mm_device *device, struct mm_error *error) {
    assert(device->lane_count >= 1 && device->lane_count <= LANES_MAX);
    struct worker *worker = &queue->workers[queue->worker_count];
    worker->queue = queue;
    worker->device = device;
    pthread_cond_init(&worker->changed, NULL);
    int failure = pthread_create(&worker->thread, NULL, work, worker);
    if (failure != 0) {
        pthread_cond_destroy(&worker->changed);
        return mm_fail(error, MM_INTERNAL, "a worker thread could not be started: %s", strerror(failure));
    }
    char name[16];
    snprintf(name, sizeof name, "mm-%.8s-%u", device->backend->name, device->index % 1000);
    pthread_setname_np(worker->thread, name);
    queue->worker_count++;
    return MM_OK;
}

enum mm_status mm_queue_open(struct mm_device *const *devices, size_t device_count,
                             const struct mm_queue_limits *limits, struct mm_queue **queue,
                             struct mm_error *error) {
    struct mm_queue *opened = calloc(1, sizeof *opened + device_count * sizeof opened->workers[0]);
    if (opened == NULL)
        return mm_fail(error, MM_INTERNAL, "the system has no memory for the queue");
    pthread_mutex_init(&opened->mutex, NULL);
    opened->limits = *limits;
    for (size_t index = 0; index < device_count; index++) {
        enum mm_status status = start_worker(opened, devices[index], error);
        if (status != MM_OK) {
            mm_queue_close(opened);
            return status;
        }
    }
    *queue = opened;
    return MM_OK;
}

/* The least loaded worker that can run the job; with queue->mutex held. */
static enum mm_status choose_worker(struct mm_queue *queue, const struct mm_job *job, struct worker **chosen,
                                    struct mm_error *error) {
    struct worker *best = NULL;
    bool failed = false;
    for (size_t index = 0; index < queue->worker_count; index++) {
        struct worker *worker = &queue->workers[index];
        if (worker->device->backend != job->backend ||
            mm_variant_missing(job->variant, worker->device) != NULL)
            continue;
        if (mm_device_has_failed(worker->device))
            failed = true;
        else if (best == NULL || worker->load < best->load)
            best = worker;
    }
    *chosen = best;
    if (best != NULL)
        return MM_OK;
    if (failed)
        return mm_fail(error, MM_NOT_READY, "every %s device has failed", job->backend->name);
    return mm_fail_field(error, MM_UNSUPPORTED, "variant", "no %s device here can run %s", job->backend->name,
                         job->variant->name);
}

static enum mm_status check_room(const struct mm_queue *queue, size_t bytes, struct mm_error *error) {
    const struct mm_queue_limits *limits = &queue->limits;
    if (queue->jobs_waiting >= limits->jobs_max) {
        mm_fail(error, MM_BUSY, "%zu jobs wait already, and the queue takes %zu", queue->jobs_waiting,
                limits->jobs_max);
    } else if (bytes > limits->bytes_max - queue->bytes_waiting) {
        mm_fail(error, MM_BUSY, "jobs of %zu bytes wait already, and the queue takes %zu bytes",
                queue->bytes_waiting, limits->bytes_max);
    } else {
        return MM_OK;
    }
    return MM_BUSY;
}

static enum mm_status fail_stopping(struct mm_error *error) {
    return mm_fail(error, MM_STOPPING, "the service is draining and takes no new jobs");
}

enum mm_status mm_queue_submit(struct mm_queue *queue, struct mm_job *job, struct mm_error *error) {
    struct worker *worker = NULL;
    const struct mm_product *product = &job->product;
    memset(&job->error, 0, sizeof job->error);
    job->ran = NULL;
    job->device = NULL;
    job->worker = NULL;
    job->batched = 1;
    job->uploaded_bytes = 0;
    job->downloaded_bytes = 0;
    for (int span = MM_SPAN_QUEUE; span <= MM_SPAN_DOWNLOAD; span++)
        job->span_ns[span] = 0;
    job->queued_bytes =
        mm_matrix_bytes(&product->a) + mm_matrix_bytes(&product->b) + mm_matrix_bytes(&product->c);
    job->queued_ns = mm_clock_ns();
    pthread_mutex_lock(&queue->mutex);
    enum mm_status status =
        queue->stopping ? fail_stopping(error) : check_room(queue, job->queued_bytes, error);
    if (status == MM_OK)
        status = choose_worker(queue, job, &worker, error);
    if (status == MM_OK) {
        append(worker, job);
        pthread_cond_signal(&worker->changed);
    }
    pthread_mutex_unlock(&queue->mutex);
    return status;
}

bool mm_queue_cancel(struct mm_queue *queue, struct mm_job *job) {
    pthread_mutex_lock(&queue->mutex);
    struct worker *worker = job->worker;
    if (worker != NULL) {
        take(worker, job);
        leave(worker, job);
    }
    pthread_mutex_unlock(&queue->mutex);
    return worker != NULL;
}

bool mm_queue_full(struct mm_queue *queue) {
    pthread_mutex_lock(&queue->mutex);
    bool full = queue->jobs_waiting >= queue->limits.jobs_max;
    pthread_mutex_unlock(&queue->mutex);
    return full;
}

size_t mm_queue_jobs(struct mm_queue *queue) {
    pthread_mutex_lock(&queue->mutex);
    size_t jobs = queue->jobs_waiting + queue->jobs_running;
    pthread_mutex_unlock(&queue->mutex);
    return jobs;
}

void mm_queue_waiting(struct mm_queue *queue, size_t *jobs, size_t *bytes) {
    pthread_mutex_lock(&queue->mutex);
    *jobs = queue->jobs_waiting;
    *bytes = queue->bytes_waiting;
    pthread_mutex_unlock(&queue->mutex);
}

void mm_queue_stop(struct mm_queue *queue) {
    pthread_mutex_lock(&queue->mutex);
    queue->stopping = true;
    pthread_mutex_unlock(&queue->mutex);
}

void mm_queue_abort(struct mm_queue *queue) {
    struct mm_job *aborted = NULL;
    pthread_mutex_lock(&queue->mutex);
    for (size_t index = 0; index < queue->worker_count; index++) {
        struct worker *worker = &queue->workers[index];
        while (worker->first != NULL) {
            struct mm_job *job = worker->first;
            take(worker, job);
            leave(worker, job);
            job->next = aborted;
            aborted = job;
        }
    }
    pthread_mutex_unlock(&queue->mutex);
    while (aborted != NULL) {
        struct mm_job *job = aborted;
        aborted = job->next;
        mm_fail(&job->error, MM_STOPPING, "the service stopped before the job's turn came");
        job->done(job);
    }
}

void mm_queue_close(struct mm_queue *queue) {
    if (queue == NULL)
        return;
    pthread_mutex_lock(&queue->mutex);
    queue->stopping = true;
    queue->closing = true;
    for (size_t index = 0; index < queue->worker_count; index++)
        pthread_cond_signal(&queue->workers[index].changed);
    pthread_mutex_unlock(&queue->mutex);
    for (size_t index = 0; index < queue->worker_count; index++) {
        pthread_join(queue->workers[index].thread, NULL);
        pthread_cond_destroy(&queue->workers[index].changed);
    }
    pthread_mutex_destroy(&queue->mutex);
    free(queue);
}
