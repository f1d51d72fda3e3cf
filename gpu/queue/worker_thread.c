/* The threads of a worker: each keeps its lanes busy with products, ends each lane when it is over, and
 * runs slices of tasks. A product with more pieces, like a task after a slice, goes to the end of the
 * list. */
#include "gpu/queue/worker.h"

#include "gpu/cpu/cores.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

unsigned mm_worker_threads(const struct mm_device *device) {
    return device->backend->is_over != NULL ? 1 : device->lane_count;
}

static bool is_late(const struct mm_job *job, uint64_t now_ns) {
    return job->deadline_ns != 0 && now_ns > job->deadline_ns;
}

/* Whether the job is wanted and in time, and the device works; else its error says why not. */
static bool can_run(const struct mm_worker *worker, struct mm_job *job, uint64_t now_ns) {
    if (__atomic_load_n(&job->is_cancelled, __ATOMIC_RELAXED))
        mm_fail(&job->error, MM_STOPPING, "the job was cancelled before its end");
    else if (is_late(job, now_ns))
        mm_fail(&job->error, MM_TIMEOUT, "%s",
                job->begun ? "the deadline passed before the job was over"
                           : "the deadline passed while the job waited; its kernel was not started");
    else if (mm_device_has_failed(worker->device))
        mm_fail(&job->error, MM_NOT_READY, "the device %s failed while the job waited", worker->device->name);
    return job->error.status == MM_OK;
}

/* Whether a task, or a product that has begun, may go on; else its error says why not. */
static bool can_go_on(const struct mm_worker *worker, struct mm_job *job, uint64_t now_ns) {
    struct mm_queue *queue = worker->queue;
    pthread_mutex_lock(&queue->mutex);
    const bool ends = queue->ending_tasks;
    pthread_mutex_unlock(&queue->mutex);
    if (ends)
        mm_fail(&job->error, MM_STOPPING, "the service stopped before the job's end");
    return !ends && can_run(worker, job, now_ns);
}

/* Whether the device has something to do for this product. If not, it is over: too late, cancelled, or
 * empty. */
static bool is_to_run(struct mm_worker *worker, struct mm_job *job, uint64_t now_ns) {
    if (job->begun)
        return can_go_on(worker, job, now_ns);
    if (!can_run(worker, job, now_ns))
        return false;
    job->device = worker->device;
    job->ran = job->plan.variant;
    return job->product.m > 0 && job->product.n > 0;
}

/* The batch is over: its jobs' done is called a little later, together with that of others. */
static void finish(struct mm_worker_thread *self, const struct mm_batch *batch) {
    if (batch->count == 0)
        return;
    struct mm_job *list = mm_worker_finish(self->worker, batch);
    batch->jobs[batch->count - 1]->next = self->over;
    self->over = list;
}

/* Calls done for all that are over. */
static void call_done(struct mm_worker_thread *self) {
    struct mm_job *list = self->over;
    self->over = NULL;
    mm_job_list_done(list);
}

static void begin(struct mm_worker_thread *self, const struct mm_batch *taken);

/* A product has more pieces, and goes alone: it goes on at once, or after those that wait. */
static void go_on(struct mm_worker_thread *self, struct mm_batch *batch) {
    batch->jobs[0]->more = false;
    if (mm_worker_keeps(self->worker, batch->jobs[0]))
        begin(self, batch);
    else
        mm_worker_put_back(self->worker, batch->jobs[0]);
}

/* Ends a lane that is over; false where none is. */
static bool end(struct mm_worker_thread *self) {
    struct mm_batch ended;
    if (!mm_pipeline_end(&self->pipeline, &ended))
        return false;
    if (ended.jobs[0]->more && ended.jobs[0]->error.status == MM_OK) {
        go_on(self, &ended);
        return true;
    }
    const uint64_t now_ns = mm_clock_ns();
    for (unsigned index = 0; index < ended.count; index++) {
        struct mm_job *job = ended.jobs[index];
        if (job->error.status == MM_OK && is_late(job, now_ns))
            mm_fail(&job->error, MM_TIMEOUT, "the deadline passed while the job ran; its result was dropped");
    }
    finish(self, &ended);
    return true;
}

/* Moves the jobs that may have failed for want of what other lanes hold. */
static void take_hungry(struct mm_batch *failed, struct mm_batch *hungry) {
    unsigned others = 0;
    hungry->count = 0;
    for (unsigned index = 0; index < failed->count; index++) {
        struct mm_job *job = failed->jobs[index];
        struct mm_batch *to = job->error.status == MM_NO_DEVICE_MEMORY ? hungry : failed;
        to->jobs[to == hungry ? hungry->count++ : others++] = job;
    }
    failed->count = others;
}

/* How long to poll, which covers a small product; how long to nap after that: a part of the time waited,
 * so it adds little. */
enum { SPIN_NS = 30000, NAP_PART = 16, NAP_NS_MAX = 200000 };

/* When to look at the lanes again; now, if the thread still polls. */
static uint64_t next_look_ns(const struct mm_worker_thread *self, uint64_t now_ns) {
    const uint64_t waited_ns = now_ns - self->pipeline.changed_ns;
    if (waited_ns <= self->spin_ns)
        return now_ns;
    return now_ns + (waited_ns / NAP_PART < NAP_NS_MAX ? waited_ns / NAP_PART : NAP_NS_MAX);
}

static struct timespec time_of(uint64_t ns) {
    return (struct timespec){.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
}

static void sleep_until(uint64_t then_ns) {
    const struct timespec then = time_of(then_ns);
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &then, NULL);
}

/* Begins a job that found no memory again, once nothing else is under way. By then its deadline may have
 * passed, or the device have failed. */
static void begin_alone(struct mm_worker_thread *self, struct mm_job *job) {
    const struct mm_batch batch = {.jobs = {job}, .count = 1};
    while (self->pipeline.busy > 0) {
        if (end(self))
            call_done(self);
        else
            sleep_until(next_look_ns(self, mm_clock_ns()));
    }
    job->error = (struct mm_error){.status = MM_OK};
    begin(self, &batch);
}

/* Whether a job that this device cannot run any more goes to another one. */
static bool goes_elsewhere(struct mm_worker *worker, struct mm_job *job, uint64_t now_ns) {
    return !job->begun && mm_device_has_failed(worker->device) && !is_late(job, now_ns) &&
           mm_worker_pass_on(worker->queue, job, worker);
}

/* Begins the products in a free lane; those that are over already are finished. */
static void begin(struct mm_worker_thread *self, const struct mm_batch *taken) {
    struct mm_worker *worker = self->worker;
    const uint64_t now_ns = mm_clock_ns();
    struct mm_batch over = {.count = 0};
    struct mm_batch begun = {.count = 0};
    struct mm_batch hungry = {.count = 0};
    for (unsigned index = 0; index < taken->count; index++) {
        struct mm_job *job = taken->jobs[index];
        if (goes_elsewhere(worker, job, now_ns))
            continue;
        struct mm_batch *to = is_to_run(worker, job, now_ns) ? &begun : &over;
        to->jobs[to->count++] = job;
    }
    if (begun.count > 0)
        mm_pipeline_begin(&self->pipeline, &begun);
    finish(self, &over);
    if (self->pipeline.busy > 0)
        take_hungry(&begun, &hungry);
    finish(self, &begun); /* what is left of it failed */
    for (unsigned index = 0; index < hungry.count; index++)
        begin_alone(self, hungry.jobs[index]);
}

/* Whether there may be a job that the thread could begin, since it looked at the list last. */
static bool has_arrivals(const struct mm_worker_thread *self) {
    return mm_pipeline_may_begin(&self->pipeline, mm_clock_ns()) &&
           __atomic_load_n(&self->worker->changes, __ATOMIC_RELAXED) != self->seen;
}

/* Sleeps until then, or until a job comes that the thread could begin. */
static void nap(struct mm_worker_thread *self, uint64_t then_ns) {
    struct mm_worker *worker = self->worker;
    const struct timespec then = time_of(then_ns);
    if (!mm_pipeline_has_room(&self->pipeline)) {
        sleep_until(then_ns);
        return;
    }
    pthread_mutex_lock(&worker->queue->mutex);
    if (!has_arrivals(self))
        pthread_cond_timedwait(&worker->changed, &worker->queue->mutex, &then);
    pthread_mutex_unlock(&worker->queue->mutex);
}

/* Waits until a lane is over, and ends it, or until a job comes that the thread could begin beside. */
static void wait_and_end(struct mm_worker_thread *self) {
    while (!end(self) && !has_arrivals(self)) {
        const uint64_t now_ns = mm_clock_ns();
        const uint64_t then_ns = next_look_ns(self, now_ns);
        if (then_ns > now_ns)
            nap(self, then_ns);
    }
}

/* One slice of a task, or its end. A task that never began holds nothing and is not called. */
static void run_slice(struct mm_worker_thread *self, struct mm_job *job) {
    struct mm_worker *worker = self->worker;
    const struct mm_batch batch = {.jobs = {job}, .count = 1};
    enum mm_task_state state = MM_TASK_OVER;
    uint64_t now_ns = mm_clock_ns();
    bool goes_on = can_go_on(worker, job, now_ns);
    if (goes_on)
        job->device = worker->device;
    if (goes_on || job->begun)
        state = job->task->run(job->task, worker->device, !goes_on, &job->error);
    if (state == MM_TASK_AGAIN)
        mm_worker_put_back(worker, job);
    else
        finish(self, &batch);
}

/* done() is called after the next jobs have begun, so the device works meanwhile; but before a task, and
 * before a product that keeps this very thread busy. */
static void *work(void *argument) {
    struct mm_worker_thread *self = argument;
    struct mm_worker *worker = self->worker;
    struct mm_batch batch;
    const bool is_async = worker->device->backend->is_over != NULL;
    self->spin_ns = mm_cores() > 1 ? SPIN_NS : 0; /* the only core is for who has work to do */
    if (is_async)
        prctl(PR_SET_TIMERSLACK, 1000UL); /* else a nap may take 50 µs more */
    for (;;) {
        batch.count = 0;
        if (mm_pipeline_may_begin(&self->pipeline, mm_clock_ns()) && (is_async || self->over == NULL))
            mm_worker_take(worker, self->pipeline.busy == 0 && self->over == NULL, &batch, &self->seen);
        const bool is_task = batch.count > 0 && batch.jobs[0]->task != NULL;
        if (batch.count > 0 && !is_task)
            begin(self, &batch);
        if (self->over != NULL)
            call_done(self);
        else if (batch.count == 0 && self->pipeline.busy > 0)
            wait_and_end(self);
        else if (batch.count == 0)
            return NULL; /* nothing is running, and the worker gave up waiting: the queue closes */
        if (is_task)
            run_slice(self, batch.jobs[0]);
    }
}

static enum mm_status start_thread(struct mm_worker *worker, unsigned index, struct mm_error *error) {
    const struct mm_device *device = worker->device;
    struct mm_worker_thread *started = &worker->threads[index];
    char name[16];
    started->worker = worker;
    mm_pipeline_init(&started->pipeline, worker->device, index);
    const int failure = pthread_create(&started->thread, NULL, work, started);
    if (failure != 0)
        return mm_fail(error, MM_INTERNAL, "a worker thread could not be started: %s", strerror(failure));
    worker->thread_count++;
    snprintf(name, sizeof name, "mm-%.6s-%u.%u", device->backend->name, device->index % 100, index % 100);
    pthread_setname_np(started->thread, name);
    return MM_OK;
}

enum mm_status mm_worker_start(struct mm_worker *worker, struct mm_error *error) {
    const unsigned count = mm_worker_threads(worker->device);
    enum mm_status status = MM_OK;
    assert(worker->device->lane_count >= 1 && worker->device->lane_count <= MM_LANES_MAX);
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
