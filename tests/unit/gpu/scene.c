#include "scene.h"

struct fake_device fakes[FAKES_MAX];
struct fake_device *const fake = &fakes[0];
struct mm_queue *queue;
struct test_job jobs[JOBS_MAX];
unsigned done_calls;
unsigned plans;
void (*computes)(struct mm_job *job);
struct mm_cuts cuts;

static enum mm_status launch(const struct mm_product *product, struct mm_lane *lane, struct mm_error *error) {
    return MM_OK;
}

static const char *only_on_device_1(const struct mm_device *device) {
    return device->index == 1 ? NULL : "only device 1 has it";
}

static const char *nowhere(const struct mm_device *device) {
    return "no device has it";
}

static const struct mm_variant *choose_first(const struct mm_device *device,
                                             const struct mm_product *product) {
    return &fake_backend.variants[0];
}

static const struct mm_variant variants[] = {
    {.name = "naive", .is_row_by_row = true, .launch[MM_FLOAT32] = launch},
    {.name = "second", .missing = only_on_device_1, .launch[MM_FLOAT32] = launch},
    {.name = "nowhere", .missing = nowhere, .launch[MM_FLOAT32] = launch},
    {.name = "cut", .launch[MM_FLOAT32] = launch},
    {.name = "uncut", .needs_whole = true, .launch[MM_FLOAT32] = launch},
    {.name = "simt", .is_row_by_row = true, .launch[MM_FLOAT32] = launch},
    {.name = "auto", .choose[MM_FLOAT32] = choose_first},
};

/* Sets or clears a lane's job. The caller holds the mutex. */
static void use_lane(struct fake_device *used, unsigned lane, struct mm_job *from, struct mm_job *to) {
    const unsigned threads = used->device.backend->is_over != NULL ? 1 : used->device.lane_count;
    pthread_t *owner = &used->owners[lane % threads];
    if (lane >= used->device.lane_count || used->lanes[lane] != from) {
        used->was_misused = true;
        return;
    }
    used->lanes[lane] = to;
    if (*owner != 0 && !pthread_equal(*owner, pthread_self()))
        used->was_misused = true;
    *owner = pthread_self();
}

/* The caller holds the mutex. */
static void begin_one(struct fake_device *used, struct mm_job *job) {
    used->begun++;
    if (used->makes_late)
        job->work.deadline_ns = 1;
    if (job->product.n == FAILING_N) {
        mm_fail(&job->work.error, MM_DEVICE_FAILED, "simulated failure");
        return;
    }
    if (job->product.n == NO_MEMORY_N && (used->under_way > 0 || used->has_no_memory)) {
        mm_fail(&job->work.error, MM_NO_DEVICE_MEMORY, "simulated lack of memory");
        return;
    }
    used->under_way++;
    if (used->under_way > used->most)
        used->most = used->under_way;
    used->alone += job->product.n == ALONE_N;
    used->was_shared = used->was_shared || (used->alone > 0 && used->under_way > 1);
}

static void begin(struct mm_device *device, unsigned lane, struct mm_job *const *begun, unsigned count) {
    struct fake_device *used = (struct fake_device *)device;
    struct mm_job *first = NULL;
    pthread_mutex_lock(&used->mutex);
    used->batches++;
    for (unsigned index = 0; index < count; index++) {
        begin_one(used, begun[index]);
        if (first == NULL && begun[index]->work.error.status == MM_OK)
            first = begun[index];
    }
    if (first != NULL)
        use_lane(used, lane, NULL, first);
    pthread_cond_broadcast(&used->changed);
    while (begun[0]->product.n == SLOW_N && !used->open_gate)
        pthread_cond_wait(&used->changed, &used->mutex);
    pthread_mutex_unlock(&used->mutex);
}

/* The caller holds the mutex. */
static bool is_open(const struct fake_device *used, unsigned lane) {
    return used->open_gate || used->passes > 0 || (used->open_lanes >> lane & 1) != 0;
}

static void end(struct mm_device *device, unsigned lane, struct mm_job *const *ended, unsigned count) {
    struct fake_device *used = (struct fake_device *)device;
    pthread_mutex_lock(&used->mutex);
    while (!is_open(used, lane))
        pthread_cond_wait(&used->changed, &used->mutex);
    used->passes -= !used->open_gate && used->passes > 0;
    used->open_lanes &= ~(1u << lane);
    use_lane(used, lane, ended[0], NULL);
    for (unsigned index = 0; index < count; index++) {
        struct mm_job *job = ended[index];
        used->under_way--;
        used->alone -= job->product.n == ALONE_N;
        job->outcome.span_ns[MM_SPAN_KERNEL] = used->kernel_ns == 0 ? 1 : used->kernel_ns;
        job->outcome.batched = count;
        job->more = job->product.n == CUT_N && ++job->progress.row < PIECES;
        if (computes != NULL)
            computes(job);
        if (used->fail_end)
            mm_fail(&job->work.error, MM_DEVICE_FAILED, "simulated failure at the end");
    }
    pthread_mutex_unlock(&used->mutex);
}

static bool is_over(struct mm_device *device, unsigned lane) {
    struct fake_device *used = (struct fake_device *)device;
    pthread_mutex_lock(&used->mutex);
    const bool over = is_open(used, lane);
    pthread_mutex_unlock(&used->mutex);
    return over;
}

static void schedule(struct mm_job *job) {
    __atomic_add_fetch(&plans, 1, __ATOMIC_SEQ_CST);
    assert_true(job->product.m > 0 && job->product.n > 0);
    job->work.is_exclusive = job->product.n == ALONE_N && job->plan.device->memory_bytes == 0;
    if (job->work.backend == &fake_async)
        job->work.batch_key = job->product.tile;
}

static enum mm_status measure(struct mm_device *device, const struct mm_plan *plan,
                              const struct mm_product *product, uint64_t *kernel_ns, struct mm_error *error) {
    *kernel_ns = 7;
    return ((struct fake_device *)device)->fail_measure
               ? mm_fail(error, MM_INTERNAL, "simulated failure")
               : plan->variant->launch[MM_FLOAT32](product, NULL, error);
}

static enum mm_status plan(const struct mm_product *product, struct mm_plan *plan, struct mm_error *error) {
    plan->cuts = cuts;
    return MM_OK;
}

#define ROWS .variants = variants, .variant_count = COUNT(variants), .begin = begin, .end = end
const struct mm_backend fake_backend = {.name = "fake", ROWS, .schedule = schedule};
const struct mm_backend fake_planning = {.name = "planning", ROWS, .plan = plan};
const struct mm_backend fake_async = {.name = "async", ROWS, .is_over = is_over, .schedule = schedule};
const struct mm_backend fake_host = {.name = "host", ROWS, .is_host = true, .measure = measure};

static void set_gate(struct fake_device *told, bool open, unsigned lanes, unsigned passes) {
    pthread_mutex_lock(&told->mutex);
    told->open_gate = open;
    told->open_lanes |= lanes;
    told->passes += passes;
    pthread_cond_broadcast(&told->changed);
    pthread_mutex_unlock(&told->mutex);
}

void open_gate(struct fake_device *told) {
    set_gate(told, true, 0, 0);
}

void close_gate(struct fake_device *told) {
    set_gate(told, false, 0, 0);
}

void open_lane(struct fake_device *told, unsigned lane) {
    set_gate(told, false, 1u << lane, 0);
}

void let_pass(struct fake_device *told, unsigned count) {
    set_gate(told, false, 0, count);
}

void wait_begun(struct fake_device *asked, unsigned begun) {
    pthread_mutex_lock(&asked->mutex);
    while (asked->begun < begun)
        pthread_cond_wait(&asked->changed, &asked->mutex);
    pthread_mutex_unlock(&asked->mutex);
}

unsigned begun_by(struct fake_device *asked) {
    pthread_mutex_lock(&asked->mutex);
    const unsigned begun = asked->begun;
    pthread_mutex_unlock(&asked->mutex);
    return begun;
}

void set_fakes(struct setting setting) {
    memset(fakes, 0, sizeof fakes);
    for (unsigned index = 0; index < FAKES_MAX; index++) {
        fakes[index].device.backend = setting.backend == NULL ? &fake_backend : setting.backend;
        fakes[index].device.index = index;
        fakes[index].device.lane_count = setting.lanes == 0 ? 1 : setting.lanes;
        fakes[index].open_gate = !setting.closed;
        pthread_mutex_init(&fakes[index].mutex, NULL);
        pthread_cond_init(&fakes[index].changed, NULL);
    }
}

void open_scene(struct setting setting) {
    struct mm_device *const devices[] = {&fakes[0].device, &fakes[1].device, &fakes[2].device,
                                         &fakes[3].device};
    const struct mm_queue_limits limits = {.jobs_max = setting.jobs_max == 0 ? 8 : setting.jobs_max,
                                           .client_jobs_max = setting.client_jobs_max,
                                           .wait_ns_max = setting.wait_ns_max};
    set_fakes(setting);
    assert_int_equal(
        mm_queue_open(devices, setting.devices == 0 ? 1 : setting.devices, &limits, &queue, NULL), MM_OK);
}

void close_queue(void) {
    mm_queue_close(queue);
    queue = NULL;
}

int close_scene(void **state) {
    close_queue();
    computes = NULL;
    for (unsigned index = 0; index < FAKES_MAX; index++)
        assert_false(fakes[index].was_misused);
    return 0;
}

/* As soon as a job's semaphore is posted, the waiting thread may free the job. */
void count_done(struct mm_work *first) {
    struct mm_work *next;
    __atomic_add_fetch(&done_calls, 1, __ATOMIC_SEQ_CST);
    for (struct mm_work *work = first; work != NULL; work = next) {
        struct test_job *test = work->owner;
        next = work->next;
        __atomic_add_fetch(&test->done_count, 1, __ATOMIC_SEQ_CST);
        sem_post(&test->done);
    }
}

static enum mm_task_state run_slice(struct mm_task *task, struct mm_device *device, bool cancelled) {
    struct test_job *test = task->subject;
    if (cancelled) {
        assert_int_not_equal(task->work.error.status, MM_OK);
        test->cancelled_runs++;
        test->device_was_lost = device == NULL;
        test->begun_at_end = begun_by(fake);
        return MM_TASK_OVER;
    }
    pthread_mutex_lock(&fake->mutex);
    test->begun[test->runs++] = fake->begun;
    if (test->becomes_late)
        task->work.deadline_ns = 1;
    if (fake->under_way > test->beside)
        test->beside = fake->under_way;
    pthread_mutex_unlock(&fake->mutex);
    sem_post(&test->entered);
    wait_for(&test->let);
    if (test->fails) {
        mm_fail(&task->work.error, MM_INTERNAL, "simulated failure of the task");
        return MM_TASK_OVER;
    }
    return test->runs < test->slices ? MM_TASK_AGAIN : MM_TASK_OVER;
}

static void test_init(struct test_job *test, bool is_task) {
    memset(test, 0, sizeof *test);
    sem_init(&test->done, 0, 0);
    sem_init(&test->entered, 0, 0);
    sem_init(&test->let, 0, 0);
    test->work = is_task ? &test->task.work : &test->job.work;
    test->work->kind = is_task ? MM_WORK_TASK : MM_WORK_PRODUCT;
    test->work->backend = fake->device.backend;
    test->work->done = count_done;
    test->work->owner = test;
}

void job_init(struct test_job *test, const char *variant, size_t m) {
    test_init(test, false);
    test->job.variant = mm_backend_variant(&fake_backend, MM_MATMUL, variant);
    test->job.product = (struct mm_product){.m = m, .n = 2, .k = 2};
    test->job.product.a = mm_matrix_dense(MM_FLOAT32, m, 2, NULL);
    test->job.product.b = mm_matrix_dense(MM_FLOAT32, 2, 2, NULL);
    test->job.product.c = mm_matrix_dense(MM_FLOAT32, m, 2, NULL);
}

void task_init(struct test_job *test, unsigned slices) {
    test_init(test, true);
    test->slices = slices;
    test->task.subject = test;
    test->task.run = run_slice;
}

enum mm_status try_submit(struct test_job *test, struct mm_error *error) {
    mm_queue_prepare(queue, test->work);
    return mm_queue_submit(queue, test->work, error);
}

void submit(struct test_job *test) {
    assert_int_equal(try_submit(test, NULL), MM_OK);
}

void submit_product(struct test_job *test, size_t n) {
    job_init(test, "naive", 2);
    test->job.product.n = n;
    submit(test);
}

void submit_task(struct test_job *test, unsigned slices) {
    task_init(test, slices);
    submit(test);
}

void wait_for(sem_t *semaphore) {
    while (sem_wait(semaphore) != 0)
        continue;
}

void job_wait(struct test_job *test, enum mm_status status) {
    wait_for(&test->done);
    assert_int_equal(__atomic_load_n(&test->done_count, __ATOMIC_SEQ_CST), 1);
    assert_int_equal(test->work->error.status, status);
}

void wait_all(struct test_job *first, unsigned count) {
    for (unsigned index = 0; index < count; index++)
        job_wait(&first[index], MM_OK);
}

void let_slices(struct test_job *test, unsigned count) {
    while (count-- > 0)
        sem_post(&test->let);
}

void end_many(void (*make)(unsigned index), void (*ended)(unsigned index)) {
    enum { ROUNDS = 200, AT_ONCE = 4 };
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct fake_device *failing = &fakes[round % FAKES_MAX];
        bool is_back[AT_ONCE];
        __atomic_store_n(&failing->device.failed, round % 3 == 0, __ATOMIC_RELAXED);
        for (unsigned index = 0; index < AT_ONCE; index++) {
            make(index);
            submit(&jobs[index]);
        }
        for (unsigned index = 0; index < AT_ONCE; index++)
            is_back[index] = (round + index) % 2 == 0 && mm_queue_cancel(queue, jobs[index].work);
        for (unsigned index = 0; index < AT_ONCE; index++) {
            if (!is_back[index])
                wait_for(&jobs[index].done);
            assert_int_equal(__atomic_load_n(&jobs[index].done_count, __ATOMIC_SEQ_CST), !is_back[index]);
            ended(index);
        }
        __atomic_store_n(&failing->device.failed, 0, __ATOMIC_RELAXED);
    }
    assert_int_equal(mm_queue_look(queue).jobs, 0);
}
