/* Tests which products share a launch, on a fake device that reports when a lane has ended. */
#include "scene.h"
#include "gpu/store/store.h"

#include <time.h>

static void open_async(unsigned lanes) {
    open_scene((struct setting){.lanes = lanes, .closed = true, .backend = &fake_async, .jobs_max = 1000});
}

/* Submits a product with n columns. Products with the same key may share a launch, unless the key is 0. */
static void submit_keyed(unsigned index, unsigned key, size_t n) {
    job_init(&jobs[index], "naive", 2);
    jobs[index].job.product.n = n;
    jobs[index].job.product.tile = key;
    submit(&jobs[index]);
}

/* Keeps a lane busy, so later jobs wait. */
static void submit_first(void) {
    submit_keyed(0, 0, 2);
    wait_begun(fake, 1);
}

static int done_of(unsigned index) {
    return __atomic_load_n(&jobs[index].done_count, __ATOMIC_SEQ_CST);
}

/* A waiting product and its expected result. */
struct row {
    unsigned key, batched;
    size_t n; /* columns, which also choose a failure (scene.h); 0 for a product that succeeds */
    enum mm_status status;
    bool is_late, is_cancelled;
    bool is_large;  /* has operands of 1 MiB */
    bool is_stored; /* its operand A is stored on the device */
};

/* Lets the products wait for a busy lane. All jobs must take `batches` launches; 0 accepts any number. */
static void expect(unsigned batches, const struct row *rows, unsigned count) {
    static struct mm_stored value;
    open_async(1);
    submit_first();
    for (unsigned index = 1; index <= count; index++) {
        const struct row *row = &rows[index - 1];
        struct mm_product *product = &jobs[index].job.product;
        job_init(&jobs[index], "naive", 2);
        jobs[index].work->deadline_ns = row->is_late ? 1 : 0;
        product->n = row->n != 0 ? row->n : 2;
        product->tile = row->key;
        if (row->is_large)
            product->a = mm_matrix_dense(MM_FLOAT32, 1, ((1 << 20) - 32) / 4, NULL);
        if (row->is_stored)
            jobs[index].job.sources[MM_OPERAND_A] =
                (struct mm_source){.kind = MM_SOURCE_STORED, .stored = &value};
        submit(&jobs[index]);
    }
    assert_int_equal(mm_queue_look(queue).jobs, count + 1);
    for (unsigned index = 1; index <= count; index++)
        assert_true(!rows[index - 1].is_cancelled || mm_queue_cancel(queue, jobs[index].work));
    __atomic_store_n(&done_calls, 0, __ATOMIC_SEQ_CST);
    open_gate(fake);
    job_wait(&jobs[0], MM_OK);
    assert_int_equal(jobs[0].job.outcome.batched, 1);
    for (unsigned index = 1; index <= count; index++) {
        if (rows[index - 1].is_cancelled)
            continue;
        job_wait(&jobs[index], rows[index - 1].status);
        if (rows[index - 1].status == MM_OK)
            assert_int_equal(jobs[index].job.outcome.batched, rows[index - 1].batched);
    }
    assert_int_equal(mm_queue_look(queue).jobs, 0);
    close_queue();
    for (unsigned index = 1; index <= count; index++)
        assert_int_equal(done_of(index), !rows[index - 1].is_cancelled);
    assert_int_equal(fake->under_way, 0);
    assert_false(fake->was_shared);
    if (batches != 0)
        assert_int_equal(fake->batches, batches);
}

#define TOGETHER(key, count)                                                                                 \
    { key, count }
#define FAILING                                                                                              \
    { 5, 0, FAILING_N, MM_DEVICE_FAILED }
#define LARGE                                                                                                \
    { 5, 2, .is_large = true }
#define STORED                                                                                               \
    { 5, 3, .is_large = true, .is_stored = true }

static void waiting_jobs_are_batched(void **state) {
    static const struct {
        unsigned batches, count;
        struct row rows[6];
    } cases[] = {
        {4, 6, {TOGETHER(5, 3), TOGETHER(5, 3), TOGETHER(7, 2), TOGETHER(5, 3), TOGETHER(7, 2), {0, 1}}},
        /* Two products of 1 MiB fill a launch. The third shares a launch with the small product behind it. */
        {3, 4, {LARGE, LARGE, LARGE, TOGETHER(5, 2)}},
        {2, 3, {STORED, STORED, STORED}}, /* stored operands are not copied, so their size does not count */
        /* A product that fails alone leaves the others unharmed. If all fail, the lane is free again. */
        {2, 3, {TOGETHER(5, 2), FAILING, TOGETHER(5, 2)}},
        {3, 3, {FAILING, FAILING, {0, 1}}},
        /* A late or cancelled product does not delay a batch. */
        {2, 3, {TOGETHER(5, 2), {5, 0, 0, MM_TIMEOUT, .is_late = true}, TOGETHER(5, 2)}},
        {2, 3, {TOGETHER(5, 2), {5, .is_cancelled = true}, TOGETHER(5, 2)}},
        /* No product overtakes one that needs the device alone. */
        {4, 3, {TOGETHER(5, 1), {5, 1, ALONE_N}, TOGETHER(5, 1)}},
    };
    for (size_t index = 0; index < COUNT(cases); index++) {
        expect(cases[index].batches, cases[index].rows, cases[index].count);
        assert_true(index > 0 || __atomic_load_n(&done_calls, __ATOMIC_SEQ_CST) == 4);
    }
}

/* A batch has at most MM_BATCH_MAX products. The search for more products skips at most 64 others. */
static void batch_size_is_limited(void **state) {
    enum { OTHERS = 64 };
    struct row rows[OTHERS + 3];
    for (unsigned index = 0; index < MM_BATCH_MAX + 2; index++)
        rows[index] = (struct row){.key = 5, .batched = index < MM_BATCH_MAX ? MM_BATCH_MAX : 2};
    expect(3, rows, MM_BATCH_MAX + 2);
    for (unsigned others = OTHERS; others <= OTHERS + 1; others++) {
        for (unsigned index = 0; index < others + 2; index++)
            rows[index] = (struct row){.batched = 1};
        rows[0].key = rows[others + 1].key = 5;
        rows[0].batched = rows[others + 1].batched = others == OTHERS ? 2 : 1;
        expect(0, rows, others + 2);
    }
}

static void lanes_end_in_any_order(void **state) {
    open_async(2);
    submit_first();
    for (unsigned index = 1; index < 3; index++) {
        submit_keyed(index, 0, 2);
        wait_begun(fake, index + 1);
        open_lane(fake, 1);
        job_wait(&jobs[index], MM_OK);
    }
    assert_int_equal(done_of(0), 0);
    open_gate(fake);
    job_wait(&jobs[0], MM_OK);
    assert_int_equal(fake->most, 2);
}

/* While a lane computes for long, the other lane still gets new jobs. Small jobs wait briefly for others. */
static void new_jobs_begin_beside_a_long_one(void **state) {
    const struct timespec while_ = {.tv_nsec = 50000000};
    for (unsigned key = 0; key <= 5; key += 5) {
        open_async(2);
        submit_keyed(0, key, 2);
        wait_begun(fake, 1);
        if (key == 0)
            nanosleep(&while_, NULL);
        submit_keyed(1, key, 2);
        wait_begun(fake, 2);
        open_gate(fake);
        close_queue();
        wait_all(jobs, 2);
        assert_int_equal(fake->batches, 2);
    }
}

/* When job 0 ends, both waiting jobs begin. Job 2 must not wait for job 1, which ends much later. */
static void waiting_jobs_do_not_wait_for_a_small_one(void **state) {
    open_async(2);
    submit_keyed(0, 0, ALONE_N);
    wait_begun(fake, 1);
    submit_keyed(1, 5, 2);
    submit_keyed(2, 0, 2);
    let_pass(fake, 1);
    wait_begun(fake, 3);
    open_gate(fake);
    wait_all(jobs, 3);
}

/* When a job that needs the device alone is cancelled, the jobs behind it begin. */
static void cancelled_job_lets_others_begin(void **state) {
    const struct timespec while_ = {.tv_nsec = 20000000}; /* time for the thread to look at all jobs */
    open_async(2);
    submit_first();
    submit_keyed(1, 0, ALONE_N);
    submit_keyed(2, 0, 2);
    nanosleep(&while_, NULL);
    assert_true(mm_queue_cancel(queue, jobs[1].work));
    wait_begun(fake, 2);
    open_gate(fake);
    job_wait(&jobs[0], MM_OK);
    job_wait(&jobs[2], MM_OK);
}

/* If a job finds no memory while another job runs, it begins again alone. Until then, the job may become late
 * or be cancelled, or its device may fail. */
static void job_without_memory_begins_again_alone(void **state) {
    enum { IN_TIME, LATE, CANCELLED, DEVICE_FAILED };
    static const struct {
        enum mm_status status;
        unsigned begun;
    } ways[] = {[IN_TIME] = {MM_OK, 3},
                [LATE] = {MM_TIMEOUT, 2},
                [CANCELLED] = {MM_STOPPING, 2},
                [DEVICE_FAILED] = {MM_NOT_READY, 2}};
    const struct timespec while_ = {.tv_nsec = 20000000}; /* time to begin the job again */
    for (int way = 0; way <= DEVICE_FAILED; way++) {
        open_async(2);
        submit_first();
        pthread_mutex_lock(&fake->mutex);
        fake->makes_late = way == LATE;
        pthread_mutex_unlock(&fake->mutex);
        submit_keyed(1, 0, NO_MEMORY_N);
        wait_begun(fake, 2);
        nanosleep(&while_, NULL);
        assert_int_equal(done_of(1), 0);
        if (way == CANCELLED)
            assert_false(mm_queue_cancel(queue, jobs[1].work));
        if (way == DEVICE_FAILED)
            __atomic_store_n(&fake->device.failed, 1, __ATOMIC_RELAXED);
        open_gate(fake);
        job_wait(&jobs[0], MM_OK);
        job_wait(&jobs[1], ways[way].status);
        assert_int_equal(begun_by(fake), ways[way].begun);
        close_queue();
    }
}

static void job_without_memory_fails_if_alone(void **state) {
    open_async(2);
    fake->has_no_memory = true;
    submit_keyed(0, 0, NO_MEMORY_N);
    job_wait(&jobs[0], MM_NO_DEVICE_MEMORY);
    assert_int_equal(begun_by(fake), 1);
}

RUN_TESTS_BETWEEN(NULL, close_scene, waiting_jobs_are_batched, batch_size_is_limited, lanes_end_in_any_order,
                  new_jobs_begin_beside_a_long_one, waiting_jobs_do_not_wait_for_a_small_one,
                  cancelled_job_lets_others_begin, job_without_memory_begins_again_alone,
                  job_without_memory_fails_if_alone)
