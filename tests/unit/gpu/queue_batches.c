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

static void those_that_wait_go_together_by_their_key(void **state) {
    static const unsigned keys[] = {0, 5, 5, 7, 5, 7, 0};
    static const unsigned batched[] = {1, 3, 3, 2, 3, 2, 1};
    struct fake_device fake;
    struct test_job jobs[7];
    (void)state;
    struct mm_queue *queue = open_async(&fake, 1);
    submit_first(queue, &fake, &jobs[0]);
    for (int index = 1; index < 7; index++)
        init_and_submit(queue, &jobs[index], keys[index]);
    assert_int_equal(mm_queue_jobs(queue), 7);
    __atomic_store_n(&done_calls, 0, __ATOMIC_SEQ_CST);
    fake_device_open_gate(&fake);
    for (int index = 0; index < 7; index++) {
        job_wait(&jobs[index]);
        assert_int_equal(jobs[index].job.error.status, MM_OK);
        assert_int_equal(jobs[index].job.batched, batched[index]);
    }
    assert_int_equal(mm_queue_jobs(queue), 0);
    assert_int_equal(fake.batches, 4);
    assert_int_equal(__atomic_load_n(&done_calls, __ATOMIC_SEQ_CST), 4);
    close_all(queue, &fake);
}

static void a_batch_has_a_most(void **state) {
    enum { COUNT = MM_BATCH_MAX + 3 };
    struct fake_device fake;
    static struct test_job jobs[COUNT];
    (void)state;
    struct mm_queue *queue = open_async(&fake, 1);
    submit_first(queue, &fake, &jobs[0]);
    for (int index = 1; index < COUNT; index++)
        init_and_submit(queue, &jobs[index], 5);
    fake_device_open_gate(&fake);
    for (int index = 0; index < COUNT; index++) {
        job_wait(&jobs[index]);
        assert_int_equal(jobs[index].job.batched, index == 0 ? 1 : index <= MM_BATCH_MAX ? MM_BATCH_MAX : 2);
    }
    close_all(queue, &fake);
}

/* Two of a MiB each fill one, the third goes with the small one behind it. */
static void a_batch_has_a_most_of_bytes(void **state) {
    static const unsigned batched[] = {1, 2, 2, 2, 2};
    struct fake_device fake;
    struct test_job jobs[5];
    (void)state;
    struct mm_queue *queue = open_async(&fake, 1);
    submit_first(queue, &fake, &jobs[0]);
    for (int index = 1; index < 5; index++) {
        job_init(&jobs[index], "naive", 2);
        if (index < 4)
            jobs[index].job.product.a = mm_matrix_dense(MM_FLOAT32, 1, ((1 << 20) - 32) / 4, NULL);
        submit(queue, &jobs[index], 5);
    }
    assert_int_equal(jobs[1].job.queued_bytes, 1 << 20);
    fake_device_open_gate(&fake);
    for (int index = 0; index < 5; index++) {
        job_wait(&jobs[index]);
        assert_int_equal(jobs[index].job.batched, batched[index]);
    }
    close_all(queue, &fake);
}

static void one_of_a_batch_fails_alone(void **state) {
    struct fake_device fake;
    struct test_job jobs[4];
    (void)state;
    struct mm_queue *queue = open_async(&fake, 1);
    submit_first(queue, &fake, &jobs[0]);
    for (int index = 1; index < 4; index++) {
        job_init(&jobs[index], "naive", 2);
        jobs[index].job.product.n = index == 2 ? FAILING_N : 2;
        submit(queue, &jobs[index], 5);
    }
    fake_device_open_gate(&fake);
    for (int index = 0; index < 4; index++) {
        job_wait(&jobs[index]);
        assert_int_equal(jobs[index].job.error.status, index == 2 ? MM_DEVICE_FAILED : MM_OK);
    }
    assert_int_equal(jobs[1].job.batched, 2);
    assert_int_equal(jobs[3].job.batched, 2);
    assert_int_equal(fake.batches, 2);
    assert_int_equal(fake.under_way, 0);
    close_all(queue, &fake);
}

static void a_batch_that_fails_as_a_whole_leaves_its_lane_free(void **state) {
    struct fake_device fake;
    struct test_job jobs[4];
    (void)state;
    struct mm_queue *queue = open_async(&fake, 1);
    submit_first(queue, &fake, &jobs[0]);
    for (int index = 1; index < 4; index++) {
        job_init(&jobs[index], "naive", 2);
        jobs[index].job.product.n = index < 3 ? FAILING_N : 2;
        submit(queue, &jobs[index], index < 3 ? 5 : 0);
    }
    fake_device_open_gate(&fake);
    for (int index = 0; index < 4; index++) {
        job_wait(&jobs[index]);
        assert_int_equal(jobs[index].job.error.status, index == 1 || index == 2 ? MM_DEVICE_FAILED : MM_OK);
    }
    close_all(queue, &fake);
}

static void a_batch_costs_nothing_for_who_is_cancelled_or_late(void **state) {
    struct fake_device fake;
    struct test_job jobs[5];
    (void)state;
    struct mm_queue *queue = open_async(&fake, 1);
    submit_first(queue, &fake, &jobs[0]);
    for (int index = 1; index < 5; index++) {
        job_init(&jobs[index], "naive", 2);
        jobs[index].job.deadline_ns = index == 3 ? 1 : 0;
        submit(queue, &jobs[index], 5);
    }
    assert_true(mm_queue_cancel(queue, &jobs[1].job));
    fake_device_open_gate(&fake);
    for (int index = 0; index < 5; index++) {
        if (index == 1)
            continue;
        job_wait(&jobs[index]);
        assert_int_equal(jobs[index].job.error.status, index == 3 ? MM_TIMEOUT : MM_OK);
        assert_int_equal(jobs[index].job.batched, index == 0 || index == 3 ? 1 : 2);
    }
    assert_int_equal(__atomic_load_n(&jobs[1].done_count, __ATOMIC_SEQ_CST), 0);
    assert_int_equal(fake.begun, 3);
    close_all(queue, &fake);
}

static void no_batch_goes_past_who_wants_all(void **state) {
    struct fake_device fake;
    struct test_job jobs[4];
    (void)state;
    struct mm_queue *queue = open_async(&fake, 1);
    submit_first(queue, &fake, &jobs[0]);
    for (int index = 1; index < 4; index++) {
        job_init(&jobs[index], "naive", 2);
        jobs[index].job.product.n = index == 2 ? ALONE_N : 2;
        submit(queue, &jobs[index], 5);
    }
    fake_device_open_gate(&fake);
    for (int index = 0; index < 4; index++) {
        job_wait(&jobs[index]);
        assert_int_equal(jobs[index].job.batched, 1);
    }
    assert_false(fake.was_shared);
    close_all(queue, &fake);
}

/* Of those that wait behind many others, none is looked for. */
static void a_batch_passes_over_so_many(void **state) {
    enum { OTHERS = 64 };
    struct fake_device fake;
    static struct test_job jobs[OTHERS + 5];
    (void)state;
    for (unsigned others = OTHERS; others <= OTHERS + 1; others++) {
        struct mm_queue *queue = open_async(&fake, 1);
        submit_first(queue, &fake, &jobs[0]);
        init_and_submit(queue, &jobs[1], 5);
        for (unsigned index = 2; index < others + 2; index++)
            init_and_submit(queue, &jobs[index], 0);
        init_and_submit(queue, &jobs[others + 2], 5);
        fake_device_open_gate(&fake);
        for (unsigned index = 0; index < others + 3; index++)
            job_wait(&jobs[index]);
        assert_int_equal(jobs[1].job.batched, others == OTHERS ? 2 : 1);
        assert_int_equal(jobs[others + 2].job.batched, jobs[1].job.batched);
        close_all(queue, &fake);
    }
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
        cmocka_unit_test(a_batch_costs_nothing_for_who_is_cancelled_or_late),
        cmocka_unit_test(no_batch_goes_past_who_wants_all),
        cmocka_unit_test(a_batch_passes_over_so_many),
        cmocka_unit_test(lanes_end_in_any_order),
        cmocka_unit_test(who_comes_is_begun_beside_what_takes_long),
        cmocka_unit_test(who_finds_no_memory_is_begun_again_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
