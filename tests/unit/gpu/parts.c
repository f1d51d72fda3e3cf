/* Tests stored results that lie in parts on several devices: how shares make and release the parts, and how
 * the elements are read. */
#include "scene.h"
#include "gpu/queue/share.h"
#include "gpu/store/stored.h"

#include <stdlib.h>

enum { M = 128, N = 2, C_BYTES = M * N * sizeof(float) };

static char shares[JOBS_MAX][4096 + FAKES_MAX * sizeof(struct mm_share)] __attribute__((aligned(64)));
static unsigned parts; /* parts that exist; atomic */
static unsigned slow_parts;
static bool falls_back;

static void release(struct mm_device_copy *copy) {
    __atomic_sub_fetch(&parts, 1, __ATOMIC_SEQ_CST);
    free(copy);
}

static enum mm_status read_part(struct mm_device_copy *copy, const struct mm_window *part,
                                enum mm_dtype dtype, void *to, struct mm_error *error) {
    mm_window_pack(part, dtype, copy->data, to);
    return MM_OK;
}

/* Stores a part of C, as a device does. */
static void compute(struct mm_job *job) {
    if (!job->stores_c)
        return; /* a product of submit_product */
    struct mm_device_copy *copy = calloc(1, sizeof *copy);
    assert_non_null(copy);
    assert_null(job->stored_c);
    *copy = (struct mm_device_copy){.device = job->plan.device, .release = release};
    job->stored_c = copy;
    __atomic_add_fetch(&parts, 1, __ATOMIC_SEQ_CST);
    if (strcmp(job->outcome.ran->name, "simt") == 0)
        __atomic_add_fetch(&slow_parts, 1, __ATOMIC_SEQ_CST);
    else if (falls_back)
        job->outcome.path = (struct mm_path){.kind = MM_PATH_REPAIRED, .repaired = 9, .repaired_max = 8};
}

/* Makes a product of M×2 by 2×2 whose C stays on the devices. */
static struct mm_job *divide(unsigned index, unsigned devices) {
    struct mm_job *job = &jobs[index].job;
    job_init(&jobs[index], "naive", M);
    job->stores_c = true;
    job->devices = devices;
    job->shares = (struct mm_shares *)(void *)shares[index];
    return job;
}

static void open_devices(struct setting setting) {
    setting.devices = FAKES_MAX;
    open_scene(setting);
    computes = compute;
    parts = slow_parts = 0;
}

/* Expects `count` parts in the order of the rows of C, and releases them. */
static void expect_parts(struct mm_job *job, unsigned count) {
    struct mm_device_copy *part = job->stored_c;
    assert_int_equal(parts, count);
    for (unsigned index = 0; index < count; index++, part = part->next_part) {
        const struct mm_job *share = &job->shares->of[index].job;
        assert_non_null(part);
        assert_ptr_equal(part->device, share->work.device);
        assert_int_equal(share->product.n, N);
        assert_int_equal(part->first, share->product.whole.row * N * sizeof(float));
        assert_null(share->stored_c);
    }
    assert_null(part);
    mm_device_copy_release(job->stored_c);
    assert_int_equal(parts, 0);
}

/* A device that must first copy B computes as many rows as the others, because a larger part may not fit. */
static void parts_are_even(void **state) {
    struct mm_device_copy copy = {.device = &fakes[0].device, .data = shares, .filled = {0, 16}};
    struct mm_stored b = {.bytes = 16, .only_copy = &copy, .copies = &copy};
    open_devices((struct setting){0});
    for (unsigned index = 0; index < 2; index++) {
        fakes[index].device.forecast.kernel_ns[0][MM_FLOAT32] = 1.0;
        fakes[index].device.forecast.peer_ns = 1e6;
    }
    struct mm_job *job = divide(0, 2);
    job->sources[MM_OPERAND_B] = (struct mm_source){.kind = MM_SOURCE_STORED, .stored = &b};
    submit(&jobs[0]);
    job_wait(&jobs[0], MM_OK);
    assert_int_equal(job->shares->of[1].job.product.whole.row, M / 2);
    expect_parts(job, 2);
}

static void shares_leave_parts(void **state) {
    for (unsigned devices = 2; devices <= FAKES_MAX; devices++) {
        open_devices((struct setting){0});
        struct mm_job *job = divide(0, devices);
        submit(&jobs[0]);
        job_wait(&jobs[0], MM_OK);
        expect_parts(job, devices);
        close_queue();
    }
}

/* All rows of C go to one device, if it has few rows. */
static void columns_are_not_cut(void **state) {
    open_devices((struct setting){0});
    struct mm_job *job = divide(0, 4);
    job->product.m = 1;
    job->product.n = job->product.c.cols = job->product.c.ld = 256;
    submit(&jobs[0]);
    job_wait(&jobs[0], MM_OK);
    assert_int_equal(job->shares->count, 0);
    mm_device_copy_release(job->stored_c);
    assert_int_equal(parts, 0);
}

/* Jobs of this device fail after they have stored a part. */
static void fail_end(unsigned index) {
    pthread_mutex_lock(&fakes[index].mutex);
    fakes[index].fail_end = true;
    pthread_mutex_unlock(&fakes[index].mutex);
}

static void part_moves_with_its_share(void **state) {
    open_devices((struct setting){.closed = true});
    struct mm_job *job = divide(0, 3);
    submit(&jobs[0]);
    wait_begun(&fakes[1], 1);
    fail_end(1);
    __atomic_store_n(&fakes[1].device.failed, 1, __ATOMIC_RELAXED);
    for (unsigned index = 0; index < FAKES_MAX; index++)
        open_gate(&fakes[index]);
    job_wait(&jobs[0], MM_OK);
    expect_parts(job, 3);
}

static void failed_product_leaves_nothing(void **state) {
    open_devices((struct setting){0});
    struct mm_job *job = divide(0, 4);
    for (unsigned index = 0; index < FAKES_MAX; index++)
        fail_end(index);
    submit(&jobs[0]);
    job_wait(&jobs[0], MM_DEVICE_FAILED);
    assert_null(job->stored_c);
    assert_int_equal(parts, 0);
}

/* A share has ended, and the others wait behind other jobs. */
static void cancelled_product_leaves_nothing(void **state) {
    open_devices((struct setting){.closed = true});
    for (unsigned index = 1; index <= FAKES_MAX; index++) {
        submit_product(&jobs[index], 2);
        wait_begun(&fakes[index - 1], 1);
    }
    struct mm_job *job = divide(0, 4);
    submit(&jobs[0]);
    open_gate(&fakes[0]);
    while (__atomic_load_n(&job->shares->left, __ATOMIC_ACQUIRE) > 3)
        sched_yield();
    assert_int_equal(parts, 1);
    assert_true(mm_queue_cancel(queue, jobs[0].work));
    assert_int_equal(parts, 0);
    for (unsigned index = 1; index < FAKES_MAX; index++)
        open_gate(&fakes[index]);
    wait_all(&jobs[1], FAKES_MAX);
}

static void slow_path_makes_parts_again(void **state) {
    open_devices((struct setting){.backend = &fake_planning});
    cuts = (struct mm_cuts){.rows = 32, .cols = N};
    falls_back = true;
    struct mm_job *job = divide(0, 4);
    job->variant = mm_backend_variant(&fake_planning, MM_MATMUL, "cut");
    submit(&jobs[0]);
    job_wait(&jobs[0], MM_OK);
    falls_back = false;
    assert_int_equal(slow_parts, 4);
    expect_parts(job, 4);
}

static void divide_by_all(unsigned index) {
    assert_true(index > 0 || __atomic_load_n(&parts, __ATOMIC_SEQ_CST) == 0); /* since the last round */
    (void)divide(index, FAKES_MAX);
}

static void release_parts(unsigned index) {
    mm_device_copy_release(jobs[index].job.stored_c);
}

static void every_part_is_released_once(void **state) {
    open_devices((struct setting){.lanes = 2, .jobs_max = 64});
    end_many(divide_by_all, release_parts);
    assert_int_equal(parts, 0);
}

/* --- reading ------------------------------------------------------------------------------------- */

enum { ELEMENTS = 5 * 7 * 6, PARTS = 3 };

static struct mm_device devices[PARTS] = {{.index = 0}, {.index = 1}, {.index = 2}};
static float elements[ELEMENTS];
static struct mm_device_copy copies[PARTS];

/* Makes a value of three parts that are not one after another in memory. */
static struct mm_stored value_of(size_t second, size_t third) {
    static float memory[ELEMENTS];
    const size_t firsts[] = {0, second, third, ELEMENTS}, at[] = {ELEMENTS - second, 0, third - second};
    for (size_t index = 0; index < ELEMENTS; index++)
        elements[index] = (float)index;
    for (unsigned index = 0; index < PARTS; index++) {
        copies[index] = (struct mm_device_copy){.device = &devices[index],
                                                .first = firsts[index] * sizeof(float),
                                                .data = memory + at[index],
                                                .read = read_part,
                                                .next_part = index < PARTS - 1 ? &copies[index + 1] : NULL};
        memcpy(memory + at[index], elements + firsts[index],
               (firsts[index + 1] - firsts[index]) * sizeof(float));
    }
    return (struct mm_stored){.dtype = MM_FLOAT32, .bytes = sizeof elements, .only_copy = copies};
}

static void windows_pass_the_borders_of_parts(void **state) {
    static const struct mm_window windows[] = {
        {5, 7, 6, 0, 7, 0, 6},      {5, 7, 6, 0, 7, 1, 4},     {5, 7, 6, 2, 3, 0, 6},
        {5, 7, 6, 6, 1, 5, 1},      {5, 7, 6, 1, 5, 2, 3},     {1, 35, 6, 8, 20, 1, 4},
        {1, 35, 6, 8, 20, 1, 4, 9}, {1, 35, 6, 3, 0, 1, 4},    {1, 1, 210, 0, 1, 0, 210},
        {1, 1, 210, 0, 1, 20, 150}, {1, 210, 1, 30, 100, 0, 1}};
    static const size_t borders[][2] = {{60, 120}, {61, 62}, {1, 209}, {63, 144}, {42, 180}};
    for (size_t index = 0; index < COUNT(windows) * COUNT(borders); index++) {
        const struct mm_window *window = &windows[index % COUNT(windows)];
        const size_t *border = borders[index / COUNT(windows)];
        const struct mm_stored value = value_of(border[0], border[1]);
        float expected[2 * ELEMENTS] = {0}, got[2 * ELEMENTS] = {0};
        mm_window_pack(window, MM_FLOAT32, elements, expected);
        assert_int_equal(mm_stored_read(&value, window, got, NULL), MM_OK);
        assert_memory_equal(got, expected, sizeof got);
    }
}

static void a_part_is_no_copy_of_the_value(void **state) {
    struct mm_device_copy whole = {.device = &devices[1]};
    struct mm_stored value = value_of(60, 120);
    for (unsigned index = 0; index < PARTS; index++)
        mm_stored_add_copy(&value, &copies[index]);
    for (unsigned index = 0; index < PARTS; index++) {
        assert_null(mm_stored_find_copy(&value, &devices[index]));
        assert_null(mm_stored_find_part(&value, (struct mm_stored_range){0, value.bytes}, &devices[index]));
    }
    assert_int_equal(mm_stored_absent_bytes(&value, (struct mm_stored_range){0, value.bytes}, &devices[0]),
                     (ELEMENTS - 60) * sizeof(float));
    assert_int_equal(mm_stored_absent_bytes(&value, (struct mm_stored_range){0, value.bytes}, &devices[2]),
                     120 * sizeof(float));
    copies[2].device = &devices[0];
    assert_int_equal(mm_stored_absent_bytes(&value, (struct mm_stored_range){0, value.bytes}, &devices[0]),
                     60 * sizeof(float));
    mm_stored_add_copy(&value, &whole);
    assert_ptr_equal(mm_stored_find_copy(&value, &devices[1]), &whole);
}

static void any_failed_device_loses_the_value(void **state) {
    const struct mm_window one = {1, 1, ELEMENTS, 0, 1, 0, 1};
    float got;
    for (unsigned index = 0; index < PARTS; index++) {
        const struct mm_stored value = value_of(60, 120);
        struct mm_error error;
        devices[index].backend = &mm_cpu_backend;
        devices[index].failed = 1;
        assert_int_equal(mm_stored_read(&value, &one, &got, &error), MM_DEVICE_FAILED);
        assert_non_null(strstr(error.detail, "a part of the matrix was only in the memory of cpu:"));
        devices[index].failed = 0;
        assert_int_equal(mm_stored_read(&value, &one, &got, &error), MM_OK);
    }
}

RUN_TESTS_BETWEEN(NULL, close_scene, shares_leave_parts, parts_are_even, columns_are_not_cut,
                  part_moves_with_its_share, failed_product_leaves_nothing, cancelled_product_leaves_nothing,
                  slow_path_makes_parts_again, every_part_is_released_once, windows_pass_the_borders_of_parts,
                  a_part_is_no_copy_of_the_value, any_failed_device_loses_the_value)
