/* The queue's promises on a device that tells when a lane is over: which products go together, that each has
 * its own end, and that none waits for another lane's. */
#include "queue_job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* One lane or more, none of which is over before it is opened. */
static struct mm_queue *open_async(struct fake_device *fake, unsigned lanes) {
    fake_device_init(fake, 0, lanes, false);
    fake->device.backend = &fake_async;
    return open_queue(fake, 1, 1000, SIZE_MAX);
}

/* A product that goes together with those of the same key; 0: alone. */
static void submit(struct mm_queue *queue, struct test_job *test, unsigned key) {
    test->job.backend = &fake_async;
    test->job.product.tile = key;
    assert_int_equal(mm_queue_submit(queue, &test->job, NULL), MM_OK);
}

static void init_and_submit(struct mm_queue *queue, struct test_job *test, unsigned key) {
    job_init(test, "naive", 2);
    submit(queue, test, key);
}

/* Keeps a lane busy, so that whoever comes has to wait. */
static void submit_first(struct mm_queue *queue, struct fake_device *fake, struct test_job *first) {
    init_and_submit(queue, first, 0);
    fake_device_wait_begun(fake, 1);
}

static void close_all(struct mm_queue *queue, struct fake_device *fake) {
    mm_queue_close(queue);
    fake_device_destroy(fake);
}

/* A product that waits, and what becomes of it. */
struct row {
    unsigned key;
    size_t n; /* columns; 0: such as always succeed */
    unsigned batched;
    enum mm_status status;
    bool is_late;
    bool is_large; /* of a MiB */
};

static void submit_row(struct mm_queue *queue, struct test_job *test, const struct row *row) {
    job_init(test, "naive", 2);
    test->job.deadline_ns = row->is_late ? 1 : 0;
    if (row->n != 0)
        test->job.product.n = row->n;
    if (row->is_large)
        test->job.product.a = mm_matrix_dense(MM_FLOAT32, 1, ((1 << 20) - 32) / 4, NULL);
    submit(queue, test, row->key);
}

/* Lets them wait for a lane that another keeps busy, then run. The counts are still in *fake afterwards. */
static void expect(struct fake_device *fake, const struct row *rows, size_t count) {
    enum { COUNT_MAX = 70 };
    static struct test_job first, jobs[COUNT_MAX];
    assert_true(count <= COUNT_MAX);
    struct mm_queue *queue = open_async(fake, 1);
    submit_first(queue, fake, &first);
    for (size_t index = 0; index < count; index++)
        submit_row(queue, &jobs[index], &rows[index]);
    assert_int_equal(mm_queue_jobs(queue), count + 1);
    __atomic_store_n(&done_calls, 0, __ATOMIC_SEQ_CST);
    fake_device_open_gate(fake);
    job_wait(&first);
    assert_int_equal(first.job.batched, 1);
    for (size_t index = 0; index < count; index++) {
        const struct mm_job *job = &jobs[index].job;
        job_wait(&jobs[index]);
        assert_int_equal(job->error.status, rows[index].status);
        if (job->error.status == MM_OK)
            assert_int_equal(job->batched, rows[index].batched);
    }
    assert_int_equal(mm_queue_jobs(queue), 0);
    assert_int_equal(fake->under_way, 0);
    close_all(queue, fake);
}

#define EXPECT(fake, rows) expect((fake), (rows), sizeof(rows) / sizeof *(rows))

static void those_that_wait_go_together_by_their_key(void **state) {
    static const struct row rows[] = {{.key = 5, .batched = 3}, {.key = 5, .batched = 3},
                                      {.key = 7, .batched = 2}, {.key = 5, .batched = 3},
                                      {.key = 7, .batched = 2}, {.key = 0, .batched = 1}};
    struct fake_device fake;
    (void)state;
    EXPECT(&fake, rows);
    assert_int_equal(fake.batches, 4);
    assert_int_equal(__atomic_load_n(&done_calls, __ATOMIC_SEQ_CST), 4);
}

static void a_batch_has_a_most(void **state) {
    struct row rows[MM_BATCH_MAX + 2];
    struct fake_device fake;
    (void)state;
    for (unsigned index = 0; index < MM_BATCH_MAX + 2; index++)
        rows[index] = (struct row){.key = 5, .batched = index < MM_BATCH_MAX ? MM_BATCH_MAX : 2};
    EXPECT(&fake, rows);
}

/* Two of a MiB each fill one, the third goes with the small one behind it. */
static void a_batch_has_a_most_of_bytes(void **state) {
    static const struct row rows[] = {{.key = 5, .is_large = true, .batched = 2},
                                      {.key = 5, .is_large = true, .batched = 2},
                                      {.key = 5, .is_large = true, .batched = 2},
                                      {.key = 5, .batched = 2}};
    struct fake_device fake;
    (void)state;
    EXPECT(&fake, rows);
}

static void one_of_a_batch_fails_alone(void **state) {
    static const struct row rows[] = {{.key = 5, .batched = 2},
                                      {.key = 5, .n = FAILING_N, .status = MM_DEVICE_FAILED},
                                      {.key = 5, .batched = 2}};
    struct fake_device fake;
    (void)state;
    EXPECT(&fake, rows);
    assert_int_equal(fake.batches, 2);
}

static void a_batch_that_fails_as_a_whole_leaves_its_lane_free(void **state) {
    static const struct row rows[] = {{.key = 5, .n = FAILING_N, .status = MM_DEVICE_FAILED},
                                      {.key = 5, .n = FAILING_N, .status = MM_DEVICE_FAILED},
                                      {.key = 0, .batched = 1}};
    struct fake_device fake;
    (void)state;
    EXPECT(&fake, rows);
}

static void who_is_late_costs_a_batch_nothing(void **state) {
    static const struct row rows[] = {{.key = 5, .batched = 2},
                                      {.key = 5, .is_late = true, .status = MM_TIMEOUT},
                                      {.key = 5, .batched = 2}};
    struct fake_device fake;
    (void)state;
    EXPECT(&fake, rows);
    assert_int_equal(fake.begun, 3);
}

static void no_batch_goes_past_who_wants_all(void **state) {
    static const struct row rows[] = {
        {.key = 5, .batched = 1}, {.key = 5, .n = ALONE_N, .batched = 1}, {.key = 5, .batched = 1}};
    struct fake_device fake;
    (void)state;
    EXPECT(&fake, rows);
    assert_false(fake.was_shared);
}

/* Of those that wait behind many others, none is looked for. */
static void a_batch_passes_over_so_many(void **state) {
    enum { OTHERS = 64 };
    struct row rows[OTHERS + 3];
    struct fake_device fake;
    (void)state;
    for (unsigned others = OTHERS; others <= OTHERS + 1; others++) {
        for (unsigned index = 0; index < others + 2; index++)
            rows[index] = (struct row){.batched = 1};
        rows[0].key = rows[others + 1].key = 5;
        rows[0].batched = rows[others + 1].batched = others == OTHERS ? 2 : 1;
        expect(&fake, rows, others + 2);
    }
}

static void who_is_cancelled_costs_a_batch_nothing(void **state) {
    struct fake_device fake;
    struct test_job jobs[4];
    (void)state;
    struct mm_queue *queue = open_async(&fake, 1);
    submit_first(queue, &fake, &jobs[0]);
    for (int index = 1; index < 4; index++)
        init_and_submit(queue, &jobs[index], 5);
    assert_true(mm_queue_cancel(queue, &jobs[2].job));
    fake_device_open_gate(&fake);
    job_wait(&jobs[0]);
    job_wait(&jobs[1]);
    job_wait(&jobs[3]);
    assert_int_equal(jobs[1].job.batched, 2);
    assert_int_equal(jobs[3].job.batched, 2);
    assert_int_equal(__atomic_load_n(&jobs[2].done_count, __ATOMIC_SEQ_CST), 0);
    assert_int_equal(fake.begun, 3);
    close_all(queue, &fake);
}

/* The first lane stays busy: what is over in the second is told, and what comes is begun there. */
static void lanes_end_in_any_order(void **state) {
    struct fake_device fake;
    struct test_job jobs[3];
    (void)state;
    struct mm_queue *queue = open_async(&fake, 2);
    submit_first(queue, &fake, &jobs[0]);
    for (unsigned index = 1; index < 3; index++) {
        init_and_submit(queue, &jobs[index], 0);
        fake_device_wait_begun(&fake, index + 1);
        fake_device_open_lane(&fake, 1);
        job_wait(&jobs[index]);
    }
    assert_int_equal(__atomic_load_n(&jobs[0].done_count, __ATOMIC_SEQ_CST), 0);
    fake_device_open_gate(&fake);
    job_wait(&jobs[0]);
    assert_int_equal(fake.most, 2);
    close_all(queue, &fake);
}

/* A thread that has long waited for its lane still begins who comes, and is ended by a close. */
static void who_comes_is_begun_beside_what_takes_long(void **state) {
    struct fake_device fake;
    struct test_job jobs[2];
    const struct timespec while_ = {.tv_nsec = 50000000};
    (void)state;
    struct mm_queue *queue = open_async(&fake, 2);
    submit_first(queue, &fake, &jobs[0]);
    nanosleep(&while_, NULL);
    init_and_submit(queue, &jobs[1], 0);
    fake_device_wait_begun(&fake, 2);
    fake_device_open_gate(&fake);
    close_all(queue, &fake);
    job_wait(&jobs[0]);
    job_wait(&jobs[1]);
}

/* Such as may go together wait for each other's launch, but not for a long one. */
static void small_ones_are_begun_beside_what_takes_long(void **state) {
    struct fake_device fake;
    struct test_job jobs[2];
    (void)state;
    struct mm_queue *queue = open_async(&fake, 2);
    init_and_submit(queue, &jobs[0], 5);
    fake_device_wait_begun(&fake, 1);
    init_and_submit(queue, &jobs[1], 5);
    fake_device_wait_begun(&fake, 2);
    fake_device_open_gate(&fake);
    job_wait(&jobs[0]);
    job_wait(&jobs[1]);
    assert_int_equal(fake.batches, 2);
    close_all(queue, &fake);
}

/* Those that have come by the time when a small one is begun as well. */
static void nobody_in_the_list_waits_for_a_long_small_one(void **state) {
    struct fake_device fake;
    struct test_job jobs[3];
    (void)state;
    struct mm_queue *queue = open_async(&fake, 2);
    job_init(&jobs[0], "naive", 2);
    jobs[0].job.product.n = ALONE_N;
    submit(queue, &jobs[0], 0);
    fake_device_wait_begun(&fake, 1);
    init_and_submit(queue, &jobs[1], 5);
    init_and_submit(queue, &jobs[2], 0);
    fake_device_let_pass(&fake, 1);
    fake_device_wait_begun(&fake, 3);
    fake_device_open_gate(&fake);
    for (int index = 0; index < 3; index++)
        job_wait(&jobs[index]);
    close_all(queue, &fake);
}

/* Whom nobody goes past is cancelled: who stands behind is begun. */
static void a_cancel_lets_others_begin(void **state) {
    struct fake_device fake;
    struct test_job jobs[3];
    const struct timespec while_ = {.tv_nsec = 20000000}; /* in which the thread has looked at all of them */
    (void)state;
    struct mm_queue *queue = open_async(&fake, 2);
    submit_first(queue, &fake, &jobs[0]);
    job_init(&jobs[1], "naive", 2);
    jobs[1].job.product.n = ALONE_N;
    submit(queue, &jobs[1], 0);
    init_and_submit(queue, &jobs[2], 0);
    nanosleep(&while_, NULL);
    assert_true(mm_queue_cancel(queue, &jobs[1].job));
    fake_device_wait_begun(&fake, 2);
    fake_device_open_gate(&fake);
    job_wait(&jobs[0]);
    job_wait(&jobs[2]);
    close_all(queue, &fake);
}

/* Beside another there is no memory for it; and where there is none by itself either, it fails. */
static void who_finds_no_memory_is_begun_again_alone(void **state) {
    struct fake_device fake;
    struct test_job jobs[3];
    (void)state;
    struct mm_queue *queue = open_async(&fake, 2);
    submit_first(queue, &fake, &jobs[0]);
    job_init(&jobs[1], "naive", 2);
    jobs[1].job.product.n = HUNGRY_N;
    submit(queue, &jobs[1], 0);
    fake_device_wait_begun(&fake, 2);
    assert_int_equal(__atomic_load_n(&jobs[1].done_count, __ATOMIC_SEQ_CST), 0);
    fake_device_open_gate(&fake);
    job_wait(&jobs[0]);
    job_wait(&jobs[1]);
    assert_int_equal(jobs[1].job.error.status, MM_OK);
    assert_int_equal(fake_device_begun(&fake), 3);
    fake.is_starved = true;
    job_init(&jobs[2], "naive", 2);
    jobs[2].job.product.n = HUNGRY_N;
    submit(queue, &jobs[2], 0);
    job_wait(&jobs[2]);
    assert_int_equal(jobs[2].job.error.status, MM_NO_DEVICE_MEMORY);
    close_all(queue, &fake);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(those_that_wait_go_together_by_their_key),
        cmocka_unit_test(a_batch_has_a_most),
        cmocka_unit_test(a_batch_has_a_most_of_bytes),
        cmocka_unit_test(one_of_a_batch_fails_alone),
        cmocka_unit_test(a_batch_that_fails_as_a_whole_leaves_its_lane_free),
        cmocka_unit_test(who_is_late_costs_a_batch_nothing),
        cmocka_unit_test(who_is_cancelled_costs_a_batch_nothing),
        cmocka_unit_test(no_batch_goes_past_who_wants_all),
        cmocka_unit_test(a_batch_passes_over_so_many),
        cmocka_unit_test(lanes_end_in_any_order),
        cmocka_unit_test(who_comes_is_begun_beside_what_takes_long),
        cmocka_unit_test(small_ones_are_begun_beside_what_takes_long),
        cmocka_unit_test(nobody_in_the_list_waits_for_a_long_small_one),
        cmocka_unit_test(a_cancel_lets_others_begin),
        cmocka_unit_test(who_finds_no_memory_is_begun_again_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
