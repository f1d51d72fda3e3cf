/* What a worker does with its device: each of its threads keeps its lanes busy with products, those that wait
 * together and may share a launch in one lane, and ends each lane as soon as it is over; a product that wants
 * the device alone, and the slices of tasks, get it alone, in their turn. It knows no caller. */
#include "gpu/worker.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

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
    struct mm_device *device = worker->device;
    job->alone = true;
    job->expected_ns = 0.0;
    if (job->task != NULL)
        return;
    const struct mm_variant *ran = mm_variant_resolve(job->variant, device, &job->product);
    job->alone = wants_all(device, ran, &job->product);
    job->expected_ns = mm_forecast_ns(&worker->forecast, job, ran);
    if (job->alone)
        return;
    job->expected_ns /= thread_count(device);
    if (device->backend->batch_key != NULL)
        job->batch_key = device->backend->batch_key(device, ran, job);
}

void mm_worker_add(struct mm_worker *worker, struct mm_job *job) {
    judge(worker, job);
    worker->expected_ns += job->expected_ns;
    insert(worker, job, worker->last);
    __atomic_store_n(&worker->arrived, worker->arrived + 1, __ATOMIC_RELAXED);
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

/* Takes a job out of the list, to be run. */
static void take_to_run(struct mm_worker *worker, struct mm_job *job, struct mm_batch *batch) {
    struct mm_queue *queue = worker->queue;
    take(worker, job);
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
enum { BATCH_BYTES_MAX = 2 << 20, PASSED_OVER_MAX = 256 };

static void take_companions(struct mm_worker *worker, struct mm_batch *batch) {
    const uint64_t key = batch->jobs[0]->batch_key;
    size_t bytes = batch->jobs[0]->queued_bytes;
    unsigned passed_over = 0;
    struct mm_job *next;
    for (struct mm_job *job = worker->first; job != NULL && !job->alone; job = next) {
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

/* The next jobs, now running: one, or a batch. None where none can be begun beside what the thread has under
 * way, or, with nothing of its own under way, where the queue closes. */
static void take_next(struct mm_worker_thread *self, struct mm_batch *batch) {
    struct mm_worker *worker = self->worker;
    struct mm_queue *queue = worker->queue;
    batch->count = 0;
    pthread_mutex_lock(&queue->mutex);
    while (self->pipeline.busy == 0 && !can_begin(worker) && !(queue->closing && worker->first == NULL))
        pthread_cond_wait(&worker->changed, &queue->mutex);
    if (can_begin(worker))
        take_to_run(worker, worker->first, batch);
    if (batch->count > 0 && batch->jobs[0]->batch_key != 0)
        take_companions(worker, batch);
    self->seen = worker->arrived;
    pthread_mutex_unlock(&queue->mutex);
}

/* A job does not run any more; with the mutex held, and others to be woken. */
static void end_running(struct mm_worker *worker, const struct mm_job *job) {
    worker->under_way--;
    if (job->alone)
        worker->is_taken = false;
}

/* Others may run now; with the mutex held. */
static void wake_others(struct mm_worker *worker) {
    if (worker->first != NULL)
        pthread_cond_broadcast(&worker->changed);
}

static void finish_all(struct mm_worker *worker, const struct mm_batch *batch) {
    struct mm_queue *queue = worker->queue;
    if (batch->count == 0)
        return;
    pthread_mutex_lock(&queue->mutex);
    for (unsigned index = 0; index < batch->count; index++) {
        struct mm_job *job = batch->jobs[index];
        job->next = index + 1 < batch->count ? batch->jobs[index + 1] : NULL;
        queue->jobs_running--;
        end_running(worker, job);
        leave(worker, job);
        if (job->error.status == MM_OK && job->ran != NULL && job->task == NULL)
            mm_forecast_learn(&worker->forecast, job);
    }
    wake_others(worker);
    pthread_mutex_unlock(&queue->mutex);
    mm_job_list_done(batch->jobs[0]);
}

static void finish(struct mm_worker *worker, struct mm_job *job) {
    const struct mm_batch batch = {.jobs = {job}, .count = 1};
    finish_all(worker, &batch);
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

/* Whether there is something for the device to do for this product. It is over already where not: too late,
 * or nothing to compute. */
static bool is_to_run(struct mm_worker *worker, struct mm_job *job, uint64_t now_ns) {
    job->span_ns[MM_SPAN_QUEUE] = now_ns - job->queued_ns;
    if (!can_run(worker, job, now_ns))
        return false;
    job->device = worker->device;
    job->ran = mm_variant_resolve(job->variant, worker->device, &job->product);
    return job->product.m > 0 && job->product.n > 0;
}

/* Begins the products in a free lane; those that are over already are finished. */
static void begin(struct mm_worker_thread *self, const struct mm_batch *taken) {
    struct mm_worker *worker = self->worker;
    const uint64_t now_ns = mm_clock_ns();
    struct mm_batch over = {.count = 0};
    struct mm_batch begun = {.count = 0};
    for (unsigned index = 0; index < taken->count; index++) {
        struct mm_batch *to = is_to_run(worker, taken->jobs[index], now_ns) ? &begun : &over;
        to->jobs[to->count++] = taken->jobs[index];
    }
    if (begun.count > 0)
        mm_pipeline_begin(&self->pipeline, &begun);
    finish_all(worker, &over);
    finish_all(worker, &begun); /* what is left of it failed */
}

/* Ends a lane that is over; false where none is. */
static bool end(struct mm_worker_thread *self) {
    struct mm_batch ended;
    if (!mm_pipeline_end(&self->pipeline, &ended))
        return false;
    const uint64_t now_ns = mm_clock_ns();
    for (unsigned index = 0; index < ended.count; index++) {
        struct mm_job *job = ended.jobs[index];
        if (job->error.status == MM_OK && is_late(job, now_ns))
            mm_fail(&job->error, MM_TIMEOUT, "the deadline passed while the job ran; its result was dropped");
    }
    finish_all(self->worker, &ended);
    return true;
}

/* Whether a job came that a free lane could take, since the thread looked at the list last. */
static bool has_arrivals(const struct mm_worker_thread *self) {
    return mm_pipeline_has_room(&self->pipeline) &&
           __atomic_load_n(&self->worker->arrived, __ATOMIC_RELAXED) != self->seen;
}

/* How long the device is asked again and again, which is what a small product takes; and how long a nap in
 * between is after that: by how long it has been waited for, so that it adds little to that. */
enum { SPIN_NS = 30000, NAP_PART = 16, NAP_NS_MAX = 200000 };

static struct timespec after(uint64_t now_ns, uint64_t wait_ns) {
    const uint64_t then_ns = now_ns + wait_ns;
    return (struct timespec){.tv_sec = (time_t)(then_ns / 1000000000),
                             .tv_nsec = (long)(then_ns % 1000000000)};
}

/* Sleeps for so long, or until a job comes that the thread could begin. */
static void nap(struct mm_worker_thread *self, uint64_t now_ns, uint64_t wait_ns) {
    struct mm_worker *worker = self->worker;
    const struct timespec until = after(now_ns, wait_ns);
    if (!mm_pipeline_has_room(&self->pipeline)) {
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
        return;
    }
    pthread_mutex_lock(&worker->queue->mutex);
    if (!has_arrivals(self))
        pthread_cond_timedwait(&worker->changed, &worker->queue->mutex, &until);
    pthread_mutex_unlock(&worker->queue->mutex);
}

/* Waits until a lane is over, and ends it, or until a job comes that the thread could begin beside. */
static void wait_and_end(struct mm_worker_thread *self) {
    while (!end(self) && !has_arrivals(self)) {
        const uint64_t now_ns = mm_clock_ns();
        const uint64_t waited_ns = now_ns - self->pipeline.changed_ns;
        if (waited_ns > SPIN_NS)
            nap(self, now_ns, waited_ns / NAP_PART < NAP_NS_MAX ? waited_ns / NAP_PART : NAP_NS_MAX);
    }
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
    wake_others(worker);
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
    struct mm_worker_thread *self = argument;
    struct mm_batch batch;
    if (self->worker->device->backend->is_over != NULL)
        prctl(PR_SET_TIMERSLACK, 1000UL); /* else a nap may take 50 µs more */
    for (;;) {
        batch.count = 0;
        if (mm_pipeline_has_room(&self->pipeline))
            take_next(self, &batch);
        if (batch.count > 0 && batch.jobs[0]->task != NULL)
            run_slice(self->worker, batch.jobs[0]);
        else if (batch.count > 0)
            begin(self, &batch);
        else if (self->pipeline.busy > 0)
            wait_and_end(self);
        else
            return NULL; /* nothing is running, and take_next gave up waiting: the queue closes */
    }
}

static enum mm_status start_thread(struct mm_worker *worker, unsigned index, struct mm_error *error) {
    const struct mm_device *device = worker->device;
    struct mm_worker_thread *started = &worker->threads[index];
    char name[16];
    started->worker = worker;
    mm_pipeline_init(&started->pipeline, worker->device, index, thread_count(device));
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
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&worker->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    for (unsigned index = 0; index < count && status == MM_OK; index++)
        status = start_thread(worker, index, error);
    return status;
}

void mm_worker_join(struct mm_worker *worker) {
    for (unsigned index = 0; index < worker->thread_count; index++)
        pthread_join(worker->threads[index].thread, NULL);
    pthread_cond_destroy(&worker->changed);
}
