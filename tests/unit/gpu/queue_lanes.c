/* Tests how many products run at once, which run alone, and how long others must wait. */
#include "scene.h"

#include <unistd.h>

#include <time.h>

static void jobs_fill_all_lanes(void **state) {
    open_scene((struct setting){.lanes = 3, .closed = true});
    pthread_mutex_lock(&fake->mutex); /* no job begins before all wait */
    for (int index = 0; index < 8; index++) {
        job_init(&jobs[index], "auto", 2);
        submit(&jobs[index]);
    }
    pthread_mutex_unlock(&fake->mutex);
    for (unsigned index = 0; index < 8; index++) { /* when a job ends, the next one begins */
        wait_begun(fake, index < 5 ? 3 + index : 8);
        let_pass(fake, 1);
    }
    wait_all(jobs, 8);
    assert_string_equal(jobs[0].job.outcome.ran->name, "naive");
    assert_int_equal(begun_by(fake), 8);
    assert_int_equal(fake->most, 3);
}

/* When the job that runs alone has ended, waiting jobs fill all lanes. */
static void no_job_runs_beside_a_job_that_runs_alone(void **state) {
    const struct timespec pause = {.tv_nsec = 20 * 1000 * 1000}; /* a job could begin in this time */
    open_scene((struct setting){.lanes = 3, .closed = true});
    submit_product(&jobs[0], ALONE_N);
    wait_begun(fake, 1);
    for (int index = 1; index < 4; index++)
        submit_product(&jobs[index], 2);
    nanosleep(&pause, NULL);
    assert_int_equal(begun_by(fake), 1);
    let_pass(fake, 1);
    wait_begun(fake, 4);
    open_gate(fake);
    wait_all(jobs, 4);
    assert_false(fake->was_shared);
}

/* No job may overtake a job that must run alone. */
static void job_that_runs_alone_is_not_overtaken(void **state) {
    const struct mm_work *alone = &jobs[1].job.work, *behind = &jobs[2].job.work;
    open_scene((struct setting){.lanes = 2, .closed = true});
    submit_product(&jobs[0], 2);
    wait_begun(fake, 1);
    submit_product(&jobs[1], ALONE_N);
    submit_product(&jobs[2], 2);
    assert_int_equal(begun_by(fake), 1);
    open_gate(fake);
    wait_all(jobs, 3);
    assert_true(alone->waited_ns <= behind->waited_ns + (behind->queued_ns - alone->queued_ns));
    assert_false(fake->was_shared);
}

/* A job that must run alone moves from a failed device to a larger device, where it need not run alone. */
static void job_that_runs_alone_moves_after_a_failure(void **state) {
    open_scene((struct setting){.devices = 2, .closed = true});
    fakes[1].device.memory_bytes = 1;
    for (int index = 0; index < 4; index++) { /* the first two run, the others wait for the first device */
        job_init(&jobs[index], "naive", index == 1 ? 1000 : 2);
        jobs[index].job.product.n = index == 2 ? ALONE_N : 2;
        submit(&jobs[index]);
        if (index < 2)
            wait_begun(&fakes[index], 1);
    }
    __atomic_store_n(&fakes[0].device.failed, 1, __ATOMIC_RELAXED);
    open_gate(&fakes[0]);
    open_gate(&fakes[1]);
    wait_all(jobs, 4);
    for (int index = 0; index < 4; index++)
        assert_int_equal(jobs[index].work->device->index, index == 0 ? 0 : 1);
}

#define SECOND UINT64_C(1000000000)

static void expect_wait(uint64_t seconds) {
    assert_in_range(mm_queue_look(queue).wait_ns, seconds * SECOND - 10, seconds * SECOND + 10);
}

/* Makes a job with enough work to set a rate. */
static struct test_job *long_job(unsigned index, const char *variant, size_t n) {
    job_init(&jobs[index], variant, 16);
    jobs[index].job.product.k = 1 << 20;
    jobs[index].job.product.n = n;
    return &jobs[index];
}

/* An ended job predicts the times of other jobs of its variant, in proportion to their work. */
static void waiting_time_is_predicted_and_limited(void **state) {
    struct mm_error error;
    struct mm_device *const device = &fakes[1].device;
    const struct mm_queue_limits limits = {.jobs_max = 8, .wait_ns_max = 3 * SECOND};
    set_fakes((struct setting){0});
    fakes[1].kernel_ns = 2 * SECOND;
    assert_int_equal(mm_queue_open(&device, 1, &limits, &queue, NULL), MM_OK);
    submit(long_job(0, "naive", 2));
    job_wait(&jobs[0], MM_OK);
    assert_int_equal(mm_queue_look(queue).wait_ns, 0);
    close_gate(&fakes[1]);
    submit(long_job(1, "second", 2));
    assert_int_equal(mm_queue_look(queue).wait_ns, 0);
    submit(long_job(2, "naive", 2));
    expect_wait(2);
    submit(long_job(3, "naive", 2));
    expect_wait(4);
    assert_int_equal(try_submit(long_job(4, "naive", 2), &error), MM_BUSY);
    assert_non_null(strstr(error.detail, "will take 4 s"));
    assert_true(mm_queue_cancel(queue, jobs[3].work));
    expect_wait(2);
    submit(&jobs[4]);
    open_gate(&fakes[1]);
    job_wait(&jobs[1], MM_OK);
    job_wait(&jobs[2], MM_OK);
    job_wait(&jobs[4], MM_OK);
}

static void waiting_time_of_the_busiest_device_counts(void **state) {
    for (int slow = 0; slow < 2; slow++) {
        open_scene((struct setting){.devices = 2, .closed = true});
        for (unsigned index = 0; index < 4; index++) { /* two jobs set the rates, and two are predicted */
            struct fake_device *used = &fakes[index % 2];
            used->kernel_ns = (index % 2 == (unsigned)slow ? 5 : 2) * SECOND;
            submit(long_job(index, "naive", 2));
            wait_begun(used, 1 + index / 2);
            if (index == 1) {
                let_pass(&fakes[0], 1);
                let_pass(&fakes[1], 1);
                wait_all(jobs, 2);
            }
        }
        expect_wait(5);
        open_gate(&fakes[0]);
        open_gate(&fakes[1]);
        wait_all(jobs + 2, 2);
        close_queue();
    }
}

/* Two threads divide the predicted waiting time, except for jobs that must run alone. */
static void threads_divide_the_waiting_time(void **state) {
    for (int is_alone = 0; is_alone < 2; is_alone++) {
        const size_t n = is_alone ? ALONE_N : 2;
        open_scene((struct setting){.lanes = 2});
        fake->kernel_ns = 2 * SECOND;
        submit(long_job(0, "naive", n));
        job_wait(&jobs[0], MM_OK);
        close_gate(fake);
        submit(long_job(0, "naive", n));
        submit(long_job(1, "naive", n));
        expect_wait(is_alone ? 4 : 2);
        open_gate(fake);
        wait_all(jobs, 2);
        close_queue();
    }
}

/* Failed jobs set no rate. Without a limit any waiting time is accepted. */
static void waiting_time_may_be_unknown_or_unlimited(void **state) {
    open_scene((struct setting){0});
    fake->kernel_ns = UINT64_MAX / 2;
    fake->fail_end = true;
    submit(long_job(0, "naive", 2));
    job_wait(&jobs[0], MM_DEVICE_FAILED);
    fake->fail_end = false;
    close_gate(fake);
    submit(long_job(0, "naive", 2));
    assert_int_equal(mm_queue_look(queue).wait_ns, 0);
    let_pass(fake, 1);
    job_wait(&jobs[0], MM_OK);
    submit(long_job(1, "naive", 2));
    long_job(2, "naive", 2)->job.product.m = 9;
    submit(&jobs[2]);
    assert_int_equal(mm_queue_look(queue).wait_ns, SECOND * SECOND);
    open_gate(fake);
    wait_all(jobs + 1, 2);
    assert_int_equal(mm_queue_look(queue).wait_ns, 0);
}

/* Job 0 must be reported before the only thread computes job 1, which waits for the gate. */
static void ended_jobs_are_reported_before_the_next_computes(void **state) {
    open_scene((struct setting){.closed = true});
    submit_product(&jobs[0], 2);
    wait_begun(fake, 1);
    submit_product(&jobs[1], SLOW_N);
    let_pass(fake, 1);
    job_wait(&jobs[0], MM_OK);
    open_gate(fake);
    job_wait(&jobs[1], MM_OK);
}

/* The failing device has three jobs of 5 s. One job ends, and one moves to the other device, where it takes 5
 * ms. So 5 s remain. */
static void waiting_time_falls_after_a_failure(void **state) {
    open_scene((struct setting){.devices = 2, .lanes = 2, .closed = true});
    fakes[0].kernel_ns = 10 * SECOND;
    fakes[1].kernel_ns = SECOND / 100;
    for (unsigned index = 0; index < 2; index++) { /* so both devices have a rate */
        submit(long_job(index, "naive", 2));
        wait_begun(&fakes[index], 1);
    }
    open_gate(&fakes[0]);
    open_gate(&fakes[1]);
    wait_all(jobs, 2);
    close_gate(&fakes[0]);
    close_gate(&fakes[1]);
    submit(long_job(2, "naive", 2));
    wait_begun(&fakes[0], 2);
    for (unsigned index = 3; index < 8; index++)
        submit(long_job(index, "naive", 2));
    wait_begun(&fakes[0], 3);
    wait_begun(&fakes[1], 3);
    expect_wait(15);
    __atomic_store_n(&fakes[0].device.failed, 1, __ATOMIC_RELAXED);
    let_pass(&fakes[0], 1);
    for (int tries = 0; tries < 10000 && mm_queue_look(queue).wait_ns > 5 * SECOND + 10; tries++)
        usleep(1000);
    expect_wait(5);
    open_gate(&fakes[0]);
    open_gate(&fakes[1]);
    for (unsigned index = 2; index < 8; index++)
        wait_for(&jobs[index].done);
}

RUN_TESTS_BETWEEN(NULL, close_scene, waiting_time_falls_after_a_failure,
                  ended_jobs_are_reported_before_the_next_computes, jobs_fill_all_lanes,
                  no_job_runs_beside_a_job_that_runs_alone, job_that_runs_alone_is_not_overtaken,
                  job_that_runs_alone_moves_after_a_failure, waiting_time_is_predicted_and_limited,
                  waiting_time_of_the_busiest_device_counts, threads_divide_the_waiting_time,
                  waiting_time_may_be_unknown_or_unlimited)
