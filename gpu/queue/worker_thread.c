/* The threads of a worker. Each thread begins and ends products in lanes, and runs slices of tasks. */
#include "gpu/queue/worker.h"

#include "gpu/cpu/cores.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

static bool has_begun(const struct mm_work *work) {
    return work->device != NULL;
}

/* Whether the work can run. If the work is cancelled or late, or the device has failed, sets work->error. */
static bool can_run(const struct mm_worker *worker, struct mm_work *work, uint64_t now_ns) {
    if (mm_work_is_cancelled(work))
        mm_fail(&work->error, MM_STOPPING, "the job was cancelled before its end");
    else if (mm_work_is_late(work, now_ns))
        mm_fail(&work->error, MM_TIMEOUT, "%s",
                has_begun(work) ? "the deadline passed before the job was over"
                                : "the deadline passed while the job waited; its kernel was not started");
    else if (mm_device_has_failed(worker->device))
        mm_fail(&work->error, MM_NOT_READY, "the device %s failed while the job waited",
                worker->device->name);
    return work->error.status == MM_OK;
}

/* Whether a task can run its next slice, or a product its next part. If not, sets work->error. */
static bool can_go_on(const struct mm_worker *worker, struct mm_work *work, uint64_t now_ns) {
    if (__atomic_load_n(&worker->queue->ending_tasks, __ATOMIC_RELAXED))
        mm_fail(&work->error, MM_STOPPING, "the service stopped before the job's end");
    return work->error.status == MM_OK && can_run(worker, work, now_ns);
}

/* Whether the device must run this product. Returns false if C is empty. Sets work.error and returns false if
 * the product cannot run. */
static bool is_to_run(struct mm_worker *worker, struct mm_job *job, uint64_t now_ns) {
    if (has_begun(&job->work))
        return can_go_on(worker, &job->work, now_ns);
    if (!can_run(worker, &job->work, now_ns))
        return false;
    mm_job_begin(job, worker->device);
    return job->product.m > 0 && job->product.n > 0;
}

/* Removes finished work from the running list. call_done will call its `done`. The caller holds the mutex. */
static void finish_one(struct mm_worker_thread *self, struct mm_work *work) {
    mm_worker_finish(self->worker, work);
    work->next = self->over;
    self->over = work;
}

/* Removes finished jobs from the running list, and updates the forecast of the device. The mutex guards both,
 * because several threads of a host device can call this at once. */
static void finish(struct mm_worker_thread *self, const struct mm_batch *batch) {
    if (batch->count == 0)
        return;
    pthread_mutex_lock(&self->worker->queue->mutex);
    for (unsigned index = batch->count; index-- > 0;) {
        const struct mm_job *job = batch->jobs[index];
        if (job->work.error.status == MM_OK)
            mm_forecast_learn(self->worker->device, job);
        finish_one(self, &batch->jobs[index]->work);
    }
    pthread_mutex_unlock(&self->worker->queue->mutex);
}

static void call_done(struct mm_worker_thread *self) {
    struct mm_work *list = self->over;
    self->over = NULL;
    mm_work_list_done(list);
}

/* If this device has failed, tries to move work to another device. Only work before its first step can move.
 * Returns whether the work was moved. */
static bool pass_on_if_failed(struct mm_worker *worker, struct mm_work *work, uint64_t now_ns) {
    return !has_begun(work) && mm_device_has_failed(worker->device) && !mm_work_is_late(work, now_ns) &&
           mm_worker_pass_on(worker->queue, work, worker);
}

/* Begins products in a free lane. Finishes products that need no device, and products that fail to begin. But
 * if other lanes are busy, *without_memory gets the products that failed because memory was short. */
static void begin(struct mm_worker_thread *self, const struct mm_batch *batch,
                  struct mm_batch *without_memory) {
    struct mm_worker *worker = self->worker;
    const uint64_t now_ns = mm_clock_ns();
    struct mm_batch over = {.count = 0};
    struct mm_batch begun = {.count = 0};
    without_memory->count = 0;
    for (unsigned index = 0; index < batch->count; index++) {
        struct mm_job *job = batch->jobs[index];
        if (pass_on_if_failed(worker, &job->work, now_ns))
            continue;
        struct mm_batch *to = is_to_run(worker, job, now_ns) ? &begun : &over;
        to->jobs[to->count++] = job;
    }
    if (begun.count > 0)
        mm_pipeline_begin(&self->pipeline, &begun);
    finish(self, &over);
    if (self->pipeline.busy > 0)
        mm_batch_move(&begun, MM_NO_DEVICE_MEMORY, without_memory);
    finish(self, &begun); /* mm_pipeline_begin left only jobs that failed */
}

/* Begins products while no lane is busy. Products without memory fail, because no lane will free memory. */
static void begin_alone(struct mm_worker_thread *self, const struct mm_batch *batch) {
    struct mm_batch without_memory;
    assert(self->pipeline.busy == 0);
    begin(self, batch, &without_memory);
}

/* Continues a product that has more parts, on a host device. If other work waits, pauses the product. */
static void go_on(struct mm_worker_thread *self, struct mm_batch *batch) {
    struct mm_worker *worker = self->worker;
    batch->jobs[0]->more = false;
    pthread_mutex_lock(&worker->queue->mutex);
    const bool others_wait = !TAILQ_EMPTY(&worker->waiting);
    if (others_wait)
        mm_worker_pause(worker, &batch->jobs[0]->work);
    pthread_mutex_unlock(&worker->queue->mutex);
    if (!others_wait)
        begin_alone(self, batch);
}

/* Ends the jobs of one lane whose launch is complete. Returns false if no launch is complete. */
static bool end(struct mm_worker_thread *self) {
    struct mm_batch ended;
    if (!mm_pipeline_end(&self->pipeline, &ended))
        return false;
    if (ended.jobs[0]->more && ended.jobs[0]->work.error.status == MM_OK) {
        go_on(self, &ended);
        return true;
    }
    const uint64_t now_ns = mm_clock_ns();
    for (unsigned index = 0; index < ended.count; index++) {
        struct mm_work *work = &ended.jobs[index]->work;
        if (work->error.status == MM_OK && mm_work_is_late(work, now_ns))
            mm_fail(&work->error, MM_TIMEOUT,
                    "the deadline passed while the job ran; its result was dropped");
    }
    finish(self, &ended);
    return true;
}

/* A thread that waits for the device first polls for SPIN_NS, which is enough for a small product. Then it
 * naps, each time for 1/NAP_PART of the time waited so far. So naps delay the end of a job only a little. */
enum { SPIN_NS = 30000, NAP_PART = 16, NAP_NS_MAX = 200000 };

/* Returns when to look at the lanes again. Returns now_ns while the thread still polls. */
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

/* Waits until no lane is busy, and then tries again to begin a job that got no memory. */
static void begin_again(struct mm_worker_thread *self, struct mm_job *job) {
    const struct mm_batch batch = {.jobs = {job}, .count = 1};
    while (self->pipeline.busy > 0) {
        if (end(self))
            call_done(self);
        else
            sleep_until(next_look_ns(self, mm_clock_ns()));
    }
    job->work.error = (struct mm_error){.status = MM_OK};
    job->work.device = NULL;
    job->outcome.ran = NULL;
    begin_alone(self, &batch);
}

/* Begins products. Products that get no memory wait until no lane is busy. */
static void begin_all(struct mm_worker_thread *self, const struct mm_batch *batch) {
    struct mm_batch without_memory;
    begin(self, batch, &without_memory);
    for (unsigned index = 0; index < without_memory.count; index++)
        begin_again(self, without_memory.jobs[index]);
}

/* Whether this thread could begin a job, and the waiting list has changed since the thread's last look. */
static bool has_arrivals(const struct mm_worker_thread *self) {
    return mm_pipeline_may_begin(&self->pipeline, mm_clock_ns()) &&
           __atomic_load_n(&self->worker->changes, __ATOMIC_RELAXED) != self->seen;
}

/* Sleeps until then_ns, or until a job arrives that this thread could begin. */
static void nap(struct mm_worker_thread *self, uint64_t then_ns) {
    struct mm_worker *worker = self->worker;
    const struct timespec then = time_of(then_ns);
    if (!mm_pipeline_has_free_lane(&self->pipeline)) {
        sleep_until(then_ns);
        return;
    }
    pthread_mutex_lock(&worker->queue->mutex);
    if (!has_arrivals(self))
        pthread_cond_timedwait(&worker->changed, &worker->queue->mutex, &then);
    pthread_mutex_unlock(&worker->queue->mutex);
}

/* Ends a launch when it is complete. Stops waiting if a job arrives that this thread could begin. */
static void wait_and_end(struct mm_worker_thread *self) {
    while (!end(self) && !has_arrivals(self)) {
        const uint64_t now_ns = mm_clock_ns();
        const uint64_t then_ns = next_look_ns(self, now_ns);
        if (then_ns > now_ns)
            nap(self, then_ns);
    }
}

/* Runs a slice of a task, or ends the task. To end a task that has begun, calls its `run` with
 * `cancelled`. */
static void run_slice(struct mm_worker_thread *self, struct mm_task *task) {
    struct mm_worker *worker = self->worker;
    struct mm_work *work = &task->work;
    enum mm_task_state state = MM_TASK_OVER;
    const bool goes_on = can_go_on(worker, work, mm_clock_ns());
    if (goes_on)
        work->device = worker->device;
    if (has_begun(work))
        state = task->run(task, worker->device, !goes_on);
    pthread_mutex_lock(&worker->queue->mutex);
    if (state == MM_TASK_AGAIN)
        mm_worker_pause(worker, work);
    else
        finish_one(self, work);
    pthread_mutex_unlock(&worker->queue->mutex);
}

/* The main function of a worker's thread. The thread of a GPU begins the next jobs before it calls `done`, so
 * the GPU works meanwhile. Before a slice of a task or a product on a host device, the thread first calls
 * `done`. */
static void *run(void *argument) {
    struct mm_worker_thread *self = argument;
    struct mm_worker *worker = self->worker;
    struct mm_batch batch;
    const bool is_async = worker->device->backend->is_over != NULL;
    self->spin_ns = mm_cores() > 1 ? SPIN_NS : 0; /* on a single core, polling would stop all other threads */
    if (is_async)
        prctl(PR_SET_TIMERSLACK, 1000UL); /* without this, a nap can take 50 µs longer */
    for (;;) {
        struct mm_task *task = NULL;
        batch.count = 0;
        if (mm_pipeline_may_begin(&self->pipeline, mm_clock_ns()) && (is_async || self->over == NULL))
            task =
                mm_worker_next(worker, self->pipeline.busy == 0 && self->over == NULL, &batch, &self->seen);
        const bool has_work = task != NULL || batch.count > 0;
        if (batch.count > 0)
            begin_all(self, &batch);
        if (self->over != NULL)
            call_done(self);
        else if (!has_work && self->pipeline.busy > 0)
            wait_and_end(self);
        else if (!has_work)
            return NULL; /* nothing runs or waits, so the queue is closing */
        if (task != NULL)
            run_slice(self, task);
    }
}

static enum mm_status start_thread(struct mm_worker *worker, unsigned index, struct mm_error *error) {
    const struct mm_device *device = worker->device;
    struct mm_worker_thread *started = &worker->threads[index];
    char name[16];
    started->worker = worker;
    mm_pipeline_init(&started->pipeline, worker->device, index);
    const int failure = pthread_create(&started->thread, NULL, run, started);
    if (failure != 0)
        return mm_fail(error, MM_INTERNAL, "a worker thread could not be started: %s", strerror(failure));
    worker->thread_count++;
    snprintf(name, sizeof name, "mm-%.6s-%u.%u", device->backend->name, device->index % 100, index % 100);
    pthread_setname_np(started->thread, name);
    return MM_OK;
}

enum mm_status mm_worker_start(struct mm_worker *worker, struct mm_error *error) {
    const unsigned count = mm_device_threads(worker->device);
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
