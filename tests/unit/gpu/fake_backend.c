/* A device whose jobs end when its gate opens. */
#include "fake_backend.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static enum mm_status fake_launch(const struct mm_product *product, struct mm_lane *lane,
                                  struct mm_error *error) {
    (void)product;
    (void)lane;
    (void)error;
    return MM_OK;
}

static const char *only_on_device_1(const struct mm_device *device) {
    return device->index == 1 ? NULL : "only device 1 has it";
}

static const char *nowhere(const struct mm_device *device) {
    (void)device;
    return "no device has it";
}

static const struct mm_variant *choose_first(const struct mm_device *device,
                                             const struct mm_product *product);

static const struct mm_variant variants[] = {
    {.name = "naive", .dtypes = MM_DTYPE_BIT(MM_FLOAT32), .launch = fake_launch},
    {.name = "second",
     .dtypes = MM_DTYPE_BIT(MM_FLOAT32),
     .missing = only_on_device_1,
     .launch = fake_launch},
    {.name = "nowhere", .dtypes = MM_DTYPE_BIT(MM_FLOAT32), .missing = nowhere, .launch = fake_launch},
    {.name = "auto", .dtypes = MM_DTYPE_BIT(MM_FLOAT32), .choose = choose_first},
};

static const struct mm_variant *choose_first(const struct mm_device *device,
                                             const struct mm_product *product) {
    (void)device;
    (void)product;
    return &variants[0];
}

/* A job comes to a lane, or leaves it for NULL; with the mutex held. */
static void use_lane(struct fake_device *fake, unsigned lane, struct mm_job *from, struct mm_job *to) {
    const unsigned threads = fake->device.thread_count == 0 ? 1 : fake->device.thread_count;
    const unsigned owner = lane % threads;
    if (lane >= fake->device.lane_count || fake->lanes[lane] != from) {
        fake->was_misused = true;
        return;
    }
    fake->lanes[lane] = to;
    if (fake->has_owner[owner] && !pthread_equal(fake->owners[owner], pthread_self()))
        fake->was_misused = true;
    fake->owners[owner] = pthread_self();
    fake->has_owner[owner] = true;
}

/* With fake->mutex held. */
static void begin_one(struct fake_device *fake, struct mm_job *job) {
    fake->begun++;
    if (fake->fail_begin || job->product.n == FAILING_N) {
        mm_fail(&job->error, MM_DEVICE_FAILED, "told to fail");
        return;
    }
    if (job->product.n == HUNGRY_N && (fake->under_way > 0 || fake->is_starved)) {
        mm_fail(&job->error, MM_NO_DEVICE_MEMORY, "no memory as told");
        return;
    }
    fake->under_way++;
    if (fake->under_way > fake->most)
        fake->most = fake->under_way;
    fake->alone += job->product.n == ALONE_N;
    fake->was_shared = fake->was_shared || (fake->alone > 0 && fake->under_way > 1);
}

static void fake_begin(struct mm_device *device, unsigned lane, struct mm_job *const *jobs, unsigned count) {
    struct fake_device *fake = (struct fake_device *)device;
    struct mm_job *first = NULL;
    pthread_mutex_lock(&fake->mutex);
    fake->batches++;
    for (unsigned index = 0; index < count; index++) {
        begin_one(fake, jobs[index]);
        if (first == NULL && jobs[index]->error.status == MM_OK)
            first = jobs[index];
    }
    if (first != NULL)
        use_lane(fake, lane, NULL, first);
    pthread_cond_broadcast(&fake->changed);
    while (jobs[0]->product.n == SLOW_N && !fake->open_gate)
        pthread_cond_wait(&fake->changed, &fake->mutex);
    pthread_mutex_unlock(&fake->mutex);
}

/* With fake->mutex held. */
static bool is_open(const struct fake_device *fake, unsigned lane) {
    return fake->open_gate || fake->passes > 0 || (fake->open_lanes >> lane & 1) != 0;
}

static void fake_end(struct mm_device *device, unsigned lane, struct mm_job *const *jobs, unsigned count) {
    struct fake_device *fake = (struct fake_device *)device;
    pthread_mutex_lock(&fake->mutex);
    while (!is_open(fake, lane))
        pthread_cond_wait(&fake->changed, &fake->mutex);
    fake->passes -= !fake->open_gate && fake->passes > 0;
    fake->open_lanes &= ~(1u << lane);
    use_lane(fake, lane, jobs[0], NULL);
    for (unsigned index = 0; index < count; index++) {
        struct mm_job *job = jobs[index];
        fake->under_way--;
        fake->alone -= job->product.n == ALONE_N;
        job->span_ns[MM_SPAN_KERNEL] = fake->kernel_ns == 0 ? 1 : fake->kernel_ns;
        job->batched = count;
        if (fake->fail_end)
            mm_fail(&job->error, MM_DEVICE_FAILED, "told to fail at its end");
    }
    pthread_mutex_unlock(&fake->mutex);
}

static bool fake_is_over(struct mm_device *device, unsigned lane) {
    struct fake_device *fake = (struct fake_device *)device;
    pthread_mutex_lock(&fake->mutex);
    const bool is_over = is_open(fake, lane);
    pthread_mutex_unlock(&fake->mutex);
    return is_over;
}

static uint64_t fake_batch_key(struct mm_device *device, const struct mm_variant *ran,
                               const struct mm_job *job) {
    (void)device;
    (void)ran;
    return job->product.tile;
}

static bool fake_wants_all(struct mm_device *device, const struct mm_variant *ran, const struct mm_job *job) {
    (void)device;
    (void)ran;
    assert_true(job->product.m > 0 && job->product.n > 0);
    return job->product.n == ALONE_N;
}

static enum mm_status fake_measure(struct mm_device *device, const struct mm_variant *variant,
                                   const struct mm_product *product, uint64_t *kernel_ns,
                                   struct mm_error *error) {
    struct fake_device *fake = (struct fake_device *)device;
    *kernel_ns = 7;
    return fake->fail_begin ? mm_fail(error, MM_INTERNAL, "told to fail")
                            : variant->launch(product, NULL, error);
}

const struct mm_backend fake_backend = {
    .name = "fake",
    .variants = variants,
    .variant_count = sizeof variants / sizeof variants[0],
    .begin = fake_begin,
    .end = fake_end,
    .wants_all = fake_wants_all,
};

const struct mm_backend fake_async = {
    .name = "async",
    .variants = variants,
    .variant_count = sizeof variants / sizeof variants[0],
    .begin = fake_begin,
    .end = fake_end,
    .is_over = fake_is_over,
    .batch_key = fake_batch_key,
    .wants_all = fake_wants_all,
};

const struct mm_backend fake_host = {
    .name = "host",
    .is_host = true,
    .variants = variants,
    .variant_count = sizeof variants / sizeof variants[0],
    .begin = fake_begin,
    .end = fake_end,
    .measure = fake_measure,
};

void fake_device_init(struct fake_device *fake, unsigned index, unsigned lane_count, bool open_gate) {
    memset(fake, 0, sizeof *fake);
    fake->device.backend = &fake_backend;
    fake->device.index = index;
    fake->device.lane_count = lane_count;
    fake->open_gate = open_gate;
    pthread_mutex_init(&fake->mutex, NULL);
    pthread_cond_init(&fake->changed, NULL);
}

void fake_device_destroy(struct fake_device *fake) {
    assert_false(fake->was_misused);
    pthread_cond_destroy(&fake->changed);
    pthread_mutex_destroy(&fake->mutex);
}

void fake_device_open_gate(struct fake_device *fake) {
    pthread_mutex_lock(&fake->mutex);
    fake->open_gate = true;
    pthread_cond_broadcast(&fake->changed);
    pthread_mutex_unlock(&fake->mutex);
}

void fake_device_open_lane(struct fake_device *fake, unsigned lane) {
    pthread_mutex_lock(&fake->mutex);
    fake->open_lanes |= 1u << lane;
    pthread_cond_broadcast(&fake->changed);
    pthread_mutex_unlock(&fake->mutex);
}

void fake_device_close_gate(struct fake_device *fake) {
    pthread_mutex_lock(&fake->mutex);
    fake->open_gate = false;
    pthread_mutex_unlock(&fake->mutex);
}

void fake_device_let_pass(struct fake_device *fake, unsigned jobs) {
    pthread_mutex_lock(&fake->mutex);
    fake->passes += jobs;
    pthread_cond_broadcast(&fake->changed);
    pthread_mutex_unlock(&fake->mutex);
}

void fake_device_wait_begun(struct fake_device *fake, unsigned begun) {
    pthread_mutex_lock(&fake->mutex);
    while (fake->begun < begun)
        pthread_cond_wait(&fake->changed, &fake->mutex);
    pthread_mutex_unlock(&fake->mutex);
}

unsigned fake_device_begun(struct fake_device *fake) {
    pthread_mutex_lock(&fake->mutex);
    unsigned begun = fake->begun;
    pthread_mutex_unlock(&fake->mutex);
    return begun;
}
