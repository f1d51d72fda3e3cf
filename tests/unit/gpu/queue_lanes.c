/* The queue's promises on a device's lanes and its time: how many products run at once, who runs alone, and
 * how long those wait that come behind. */
#include "queue_job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static void lanes_are_filled_and_no_more(void **state) {
    struct fake_device fake;
    struct test_job jobs[8];
    (void)state;
    fake_device_init(&fake, 0, 3, false);
    struct mm_queue *queue = open_queue(&fake, 1, 8, SIZE_MAX);
    pthread_mutex_lock(&fake.mutex); /* no job begins before all of them wait */
    for (int index = 0; index < 8; index++) {
        job_init(&jobs[index], "auto", 2);
        assert_int_equal(mm_queue_submit(queue, &jobs[index].job, NULL), MM_OK);
    }
    pthread_mutex_unlock(&fake.mutex);
    fake_device_wait_begun(&fake, 3);
    for (int index = 0; index < 8;
         index++) { /* they end as they were begun, and others come in their place */
        fake_device_wait_begun(&fake, index < 5 ? 3 + (unsigned)index : 8);
        fake_device_let_pass(&fake, 1);
        job_wait(&jobs[index]);
        assert_string_equal(jobs[index].job.ran->name, "naive");
    }
    mm_queue_close(queue);
    assert_int_equal(fake.begun, 8);
    assert_int_equal(fake.most, 3);
    fake_device_destroy(&fake);
}

/* Each of two threads has two of four lanes, and either takes what comes. */
static void threads_share_the_lanes(void **state) {
    struct fake_device fake;
    struct test_job jobs[8];
    (void)state;
    fake_device_init(&fake, 0, 4, false);
    fake.device.thread_count = 2;
    struct mm_queue *queue = open_queue(&fake, 1, 8, SIZE_MAX);
    for (int index = 0; index < 8; index++) {
        job_init(&jobs[index], "naive", 2);
        assert_int_equal(mm_queue_submit(queue, &jobs[index].job, NULL), MM_OK);
    }
    fake_device_wait_begun(&fake, 2); /* each thread has begun one, and waits for it or begins another */
    fake_device_open_gate(&fake);
    for (int index = 0; index < 8; index++)
        job_wait(&jobs[index]);
    mm_queue_close(queue);
    assert_int_equal(fake.begun, 8);
    assert_in_range(fake.most, 2, 4);
    fake_device_destroy(&fake);
}

static void who_wants_all_runs_alone(void **state) {
    enum { COUNT = 60 };
    struct fake_device fake;
    static struct test_job jobs[COUNT];
    (void)state;
    fake_device_init(&fake, 0, 4, true);
    fake.device.thread_count = 4;
    struct mm_queue *queue = open_queue(&fake, 1, COUNT, SIZE_MAX);
    for (int index = 0; index < COUNT; index++) {
        job_init(&jobs[index], "naive", 2);
        jobs[index].job.product.n = index % 5 == 3 ? ALONE_N : 2;
        assert_int_equal(mm_queue_submit(queue, &jobs[index].job, NULL), MM_OK);
    }
    for (int index = 0; index < COUNT; index++)
        job_wait(&jobs[index]);
    mm_queue_close(queue);
    assert_int_equal(fake.begun, COUNT);
    assert_false(fake.was_shared);
    fake_device_destroy(&fake);
}

/* And then the others are woken: of those who came while it ran, all lanes are filled. */
static void nobody_runs_beside_who_wants_all(void **state) {
    const struct timespec pause = {.tv_nsec = 20 * 1000 * 1000}; /* for who would begin one */
    struct fake_device fake;
    struct test_job jobs[4];
    (void)state;
    fake_device_init(&fake, 0, 3, false);
    fake.device.thread_count = 3;
    struct mm_queue *queue = open_queue(&fake, 1, 8, SIZE_MAX);
    for (int index = 0; index < 4; index++) {
        job_init(&jobs[index], "naive", 2);
        jobs[index].job.product.n = index == 0 ? ALONE_N : 2;
        assert_int_equal(mm_queue_submit(queue, &jobs[index].job, NULL), MM_OK);
        if (index == 0)
            fake_device_wait_begun(&fake, 1);
    }
    nanosleep(&pause, NULL);
    assert_int_equal(fake_device_begun(&fake), 1);
    fake_device_let_pass(&fake, 1);
    fake_device_wait_begun(&fake, 4);
    fake_device_open_gate(&fake);
    for (int index = 0; index < 4; index++)
        job_wait(&jobs[index]);
    mm_queue_close(queue);
    assert_false(fake.was_shared);
    fake_device_destroy(&fake);
}

/* And nobody goes past it meanwhile. */
static void who_wants_all_keeps_its_turn(void **state) {
    struct fake_device fake;
    struct test_job jobs[3];
    (void)state;
    fake_device_init(&fake, 0, 2, false);
    fake.device.thread_count = 2;
    struct mm_queue *queue = open_queue(&fake, 1, 8, SIZE_MAX);
    for (int index = 0; index < 3; index++)
        job_init(&jobs[index], "naive", 2);
    jobs[1].job.product.n = ALONE_N;
    assert_int_equal(mm_queue_submit(queue, &jobs[0].job, NULL), MM_OK);
    fake_device_wait_begun(&fake, 1);
    assert_int_equal(mm_queue_submit(queue, &jobs[1].job, NULL), MM_OK);
    assert_int_equal(mm_queue_submit(queue, &jobs[2].job, NULL), MM_OK);
    assert_int_equal(fake_device_begun(&fake), 1);
    fake_device_open_gate(&fake);
    for (int index = 0; index < 3; index++)
        job_wait(&jobs[index]);
    assert_true(jobs[1].job.span_ns[MM_SPAN_QUEUE] <=
                jobs[2].job.span_ns[MM_SPAN_QUEUE] + (jobs[2].job.queued_ns - jobs[1].job.queued_ns));
    mm_queue_close(queue);
    assert_false(fake.was_shared);
    fake_device_destroy(&fake);
}

enum { SECOND = 1000000000 };

/* A job with as much work as a rate is learned from. */
static void long_job_init(struct test_job *test, const char *variant, size_t m) {
    job_init(test, variant, m);
    test->job.product.k = 1 << 20;
}

static void pass(struct mm_queue *queue, uint64_t deadline_ns, size_t n, enum mm_status status) {
    struct test_job test;
    long_job_init(&test, "naive", 16);
    test.job.product.n = n;
    test.job.deadline_ns = deadline_ns;
    assert_int_equal(mm_queue_submit(queue, &test.job, NULL), MM_OK);
    job_wait(&test);
    assert_int_equal(test.job.error.status, status);
}

/* By what the first took, the others are foretold: in proportion, and nothing of another variant. */
static void the_wait_is_foretold_and_bounded(void **state) {
    struct fake_device fake;
    struct test_job jobs[6];
    struct mm_device *device = &fake.device;
    struct mm_queue *queue = NULL;
    struct mm_error error;
    const struct mm_queue_limits limits = {
        .jobs_max = 8, .bytes_max = SIZE_MAX, .wait_ns_max = UINT64_C(3) * SECOND};
    (void)state;
    fake_device_init(&fake, 1, 1, true);
    fake.kernel_ns = 2 * (uint64_t)SECOND;
    assert_int_equal(mm_queue_open(&device, 1, &limits, &queue, NULL), MM_OK);
    for (int index = 0; index < 6; index++)
        long_job_init(&jobs[index], index == 1 ? "second" : "naive", 16);
    assert_int_equal(mm_queue_submit(queue, &jobs[0].job, NULL), MM_OK);
    job_wait(&jobs[0]);
    assert_int_equal(mm_queue_wait_ns(queue), 0);
    fake_device_close_gate(&fake);
    assert_int_equal(mm_queue_submit(queue, &jobs[1].job, NULL), MM_OK);
    assert_int_equal(mm_queue_wait_ns(queue), 0);
    assert_int_equal(mm_queue_submit(queue, &jobs[2].job, NULL), MM_OK);
    assert_in_range(mm_queue_wait_ns(queue), 2 * (uint64_t)SECOND - 10, 2 * (uint64_t)SECOND + 10);
    assert_int_equal(mm_queue_submit(queue, &jobs[3].job, NULL), MM_OK);
    assert_in_range(mm_queue_wait_ns(queue), 4 * (uint64_t)SECOND - 10, 4 * (uint64_t)SECOND + 10);
    assert_int_equal(mm_queue_submit(queue, &jobs[4].job, &error), MM_BUSY);
    assert_non_null(strstr(error.detail, "will take 4 s"));
    assert_true(mm_queue_cancel(queue, &jobs[3].job));
    assert_in_range(mm_queue_wait_ns(queue), 2 * (uint64_t)SECOND - 10, 2 * (uint64_t)SECOND + 10);
    assert_int_equal(mm_queue_submit(queue, &jobs[4].job, NULL), MM_OK);
    fake_device_open_gate(&fake);
    job_wait(&jobs[1]);
    job_wait(&jobs[2]);
    job_wait(&jobs[4]);
    mm_queue_close(queue);
    fake_device_destroy(&fake);
}

static void the_busiest_device_is_foretold(void **state) {
    (void)state;
    for (int slow = 0; slow < 2; slow++) {
        struct fake_device fakes[2];
        struct test_job jobs[4];
        for (unsigned index = 0; index < 2; index++)
            fake_device_init(&fakes[index], index, 1, false);
        struct mm_queue *queue = open_queue(fakes, 2, 8, SIZE_MAX);
        for (int index = 0; index < 4;
             index++) { /* two by which is learned, and two that run and are foretold */
            struct fake_device *fake = &fakes[index % 2];
            long_job_init(&jobs[index], "naive", 16);
            fake->kernel_ns = (index % 2 == slow ? 5 : 2) * (uint64_t)SECOND;
            assert_int_equal(mm_queue_submit(queue, &jobs[index].job, NULL), MM_OK);
            fake_device_wait_begun(fake, 1 + (unsigned)index / 2);
            if (index == 1) {
                fake_device_let_pass(&fakes[0], 1);
                fake_device_let_pass(&fakes[1], 1);
                job_wait(&jobs[0]);
                job_wait(&jobs[1]);
            }
        }
        assert_in_range(mm_queue_wait_ns(queue), 5 * (uint64_t)SECOND - 10, 5 * (uint64_t)SECOND + 10);
        for (unsigned index = 0; index < 2; index++) {
            fake_device_open_gate(&fakes[index]);
            job_wait(&jobs[2 + index]);
        }
        mm_queue_close(queue);
        for (unsigned index = 0; index < 2; index++)
            fake_device_destroy(&fakes[index]);
    }
}

/* Of two threads each has half of what waits, but for those that run alone. */
static void threads_share_the_wait(void **state) {
    (void)state;
    for (int is_alone = 0; is_alone < 2; is_alone++) {
        const size_t n = is_alone ? ALONE_N : 2;
        const uint64_t expected_ns = (is_alone ? 4 : 2) * (uint64_t)SECOND;
        struct fake_device fake;
        struct test_job jobs[2];
        fake_device_init(&fake, 0, 2, true);
        fake.device.thread_count = 2;
        fake.kernel_ns = 2 * (uint64_t)SECOND;
        struct mm_queue *queue = open_queue(&fake, 1, 8, SIZE_MAX);
        pass(queue, 0, n, MM_OK);
        fake_device_close_gate(&fake);
        for (int index = 0; index < 2; index++) {
            long_job_init(&jobs[index], "naive", 16);
            jobs[index].job.product.n = n;
            assert_int_equal(mm_queue_submit(queue, &jobs[index].job, NULL), MM_OK);
        }
        assert_in_range(mm_queue_wait_ns(queue), expected_ns - 10, expected_ns + 10);
        fake_device_open_gate(&fake);
        for (int index = 0; index < 2; index++)
            job_wait(&jobs[index]);
        mm_queue_close(queue);
        fake_device_destroy(&fake);
    }
}

/* Nothing is learned of who fails, at the end or by its deadline; and without a limit any wait is taken. */
static void a_wait_may_be_unknown_or_endless(void **state) {
    struct fake_device fake;
    struct test_job jobs[3];
    (void)state;
    fake_device_init(&fake, 0, 1, true);
    fake.kernel_ns = UINT64_MAX / 2;
    struct mm_queue *queue = open_queue(&fake, 1, 8, SIZE_MAX);
    fake.fail_end = true;
    pass(queue, 0, 2, MM_DEVICE_FAILED);
    fake.fail_end = false;
    fake_device_close_gate(&fake);
    for (int index = 0; index < 3; index++) {
        long_job_init(&jobs[index], "naive", index < 2 ? 16 : 9);
        assert_int_equal(mm_queue_submit(queue, &jobs[index].job, NULL), MM_OK);
        if (index > 0)
            continue;
        assert_int_equal(mm_queue_wait_ns(queue), 0);
        fake_device_let_pass(&fake, 1);
        job_wait(&jobs[0]);
    }
    assert_int_equal(mm_queue_wait_ns(queue), (uint64_t)SECOND * SECOND);
    fake_device_open_gate(&fake);
    job_wait(&jobs[1]);
    job_wait(&jobs[2]);
    assert_int_equal(mm_queue_wait_ns(queue), 0); /* though sums of such numbers are rounded */
    mm_queue_close(queue);
    fake_device_destroy(&fake);
}

/* The second is under way on the only thread until the gate opens. */
static void what_is_over_is_told_before_the_thread_computes(void **state) {
    struct fake_device fake;
    struct test_job jobs[2];
    (void)state;
    fake_device_init(&fake, 0, 1, false);
    struct mm_queue *queue = open_queue(&fake, 1, 8, SIZE_MAX);
    for (int index = 0; index < 2; index++)
        job_init(&jobs[index], "naive", 2);
    jobs[1].job.product.n = SLOW_N;
    assert_int_equal(mm_queue_submit(queue, &jobs[0].job, NULL), MM_OK);
    fake_device_wait_begun(&fake, 1);
    assert_int_equal(mm_queue_submit(queue, &jobs[1].job, NULL), MM_OK);
    fake_device_let_pass(&fake, 1);
    job_wait(&jobs[0]);
    fake_device_open_gate(&fake);
    job_wait(&jobs[1]);
    mm_queue_close(queue);
    fake_device_destroy(&fake);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_over_is_told_before_the_thread_computes),
        cmocka_unit_test(lanes_are_filled_and_no_more),
        cmocka_unit_test(threads_share_the_lanes),
        cmocka_unit_test(who_wants_all_runs_alone),
        cmocka_unit_test(nobody_runs_beside_who_wants_all),
        cmocka_unit_test(who_wants_all_keeps_its_turn),
        cmocka_unit_test(the_wait_is_foretold_and_bounded),
        cmocka_unit_test(the_busiest_device_is_foretold),
        cmocka_unit_test(threads_share_the_wait),
        cmocka_unit_test(a_wait_may_be_unknown_or_endless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
