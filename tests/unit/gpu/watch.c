/* Tests the watch, which finds devices that hang. Jobs that wait for such a device move to other devices.
 * Idle devices are tested again. Each failure is reported once. */
#include "gpu/queue/watch.h"
#include "gpu/queue/self_test.h"
#include "gpu/queue/worker.h"
#include "scene.h"

#include <time.h>

/* The watch does not read the clock. Each test tells it the time. */
enum { REST = 1000000000, HANG = 5000000 };

/* The fake result of a self-test, and how many variants the self-tests tried. */
static enum mm_status proves;
static unsigned rows_tried;

enum mm_status __wrap_mm_self_test_row(struct mm_device *device, size_t row, struct mm_error *error);

enum mm_status __wrap_mm_self_test_row(struct mm_device *device, size_t row, struct mm_error *error) {
    assert_true(row < device->backend->variant_count);
    __atomic_fetch_add(&rows_tried, 1, __ATOMIC_SEQ_CST);
    return proves == MM_OK ? MM_OK : mm_fail(error, proves, "row %zu", row);
}

static struct mm_watch *watch;
static struct mm_error told;

static void watch_scene(struct setting setting, uint64_t hang_ns, uint64_t rest_ns) {
    static struct mm_device *const devices[] = {&fakes[0].device, &fakes[1].device};
    const struct mm_watch_limits limits = {.hang_ns = hang_ns, .rest_ns = rest_ns};
    open_scene(setting);
    watch = mm_watch_open(devices, setting.devices == 0 ? 1 : setting.devices, &limits);
    assert_non_null(watch);
    proves = MM_OK;
    rows_tried = 0;
}

static int close_watch(void **state) {
    close_scene(state);
    mm_watch_close(watch);
    watch = NULL;
    return 0;
}

static enum mm_status look(uint64_t now_ns) {
    return mm_watch_look(watch, queue, now_ns, &told);
}

static void expect_quiet(uint64_t now_ns) {
    assert_int_equal(look(now_ns), MM_OK);
}

/* Runs the watch until the numbers of results and of reports equal the arguments. */
static void expect_proofs(uint64_t passed, uint64_t failed, uint64_t undone, unsigned times_told) {
    const struct timespec pause = {.tv_nsec = 100000};
    struct mm_watch_counts counts;
    unsigned times = 0;
    do {
        times += look(1) != MM_OK;
        nanosleep(&pause, NULL);
        counts = mm_watch_counts(watch);
    } while (counts.passed + counts.failed + counts.undone < passed + failed + undone ||
             mm_queue_look(queue).jobs > 0);
    times += look(1) != MM_OK;
    counts = mm_watch_counts(watch);
    assert_true(counts.passed == passed && counts.failed == failed && counts.undone == undone);
    assert_int_equal(times, times_told);
}

static void rest(void) {
    expect_quiet(mm_clock_ns() + REST);
}

static void fail_device(unsigned index) {
    __atomic_store_n(&fakes[index].device.failed, 1, __ATOMIC_RELAXED);
}

static void hung_device_is_reported_once(void **state) {
    watch_scene((struct setting){.closed = true}, HANG, 0);
    expect_quiet(1);
    submit_product(&jobs[0], 2);
    wait_begun(fake, 1);
    submit_product(&jobs[1], 2);
    expect_quiet(100); /* the time of the job begins */
    expect_quiet(100 + HANG);
    assert_false(mm_device_has_failed(&fake->device));
    assert_int_equal(look(101 + HANG), MM_DEVICE_FAILED);
    assert_non_null(strstr(told.detail, "fake:0 has been at one job for more than 0.005 s"));
    assert_true(mm_device_has_failed(&fake->device));
    job_wait(&jobs[1], MM_NOT_READY);
    job_init(&jobs[2], "naive", 2);
    assert_int_equal(try_submit(&jobs[2], NULL), MM_NOT_READY);
    expect_quiet(102 + 2 * (uint64_t)HANG);
    open_gate(fake);
    job_wait(&jobs[0], MM_OK);
}

/* The time of each job counts from its own start, even if the job uses the memory of an earlier job. */
static void device_with_ending_jobs_does_not_hang(void **state) {
    watch_scene((struct setting){.closed = true}, HANG, 0);
    for (unsigned index = 0; index < 3; index++) {
        struct test_job *test = &jobs[index % 2]; /* uses the first job's memory again */
        if (index < 2)
            job_init(test, "naive", 2);
        test->done_count = 0;
        submit(test);
        wait_begun(fake, index + 1);
        expect_quiet(1 + index * (uint64_t)HANG);
        let_pass(fake, 1);
        job_wait(test, MM_OK);
    }
}

/* Products may take any time on the host, and on a device without a time limit. */
static void host_and_unlimited_devices_never_hang(void **state) {
    for (int is_host = 0; is_host < 2; is_host++) {
        const struct mm_backend *backend = is_host != 0 ? &fake_host : &fake_backend;
        watch_scene((struct setting){.closed = true, .backend = backend}, is_host != 0 ? 1 : 0, 0);
        submit_product(&jobs[0], 2);
        wait_begun(fake, 1);
        expect_quiet(1);
        expect_quiet(3);
        open_gate(fake);
        job_wait(&jobs[0], MM_OK);
        if (is_host == 0)
            close_watch(state);
    }
}

/* The first of two devices hangs or fails. Its waiting jobs and all later jobs move to the other device. */
static void waiting_jobs_move_to_the_other_device(void **state) {
    for (int hangs = 0; hangs < 2; hangs++) {
        watch_scene((struct setting){.devices = 2, .closed = true}, hangs ? HANG : 0, 0);
        for (int index = 0; index < 6; index++) {
            submit_product(&jobs[index], 2);
            if (index < 2)
                wait_begun(&fakes[index], 1);
        }
        expect_quiet(1);
        let_pass(&fakes[1], 1); /* the other device continues with its next job */
        job_wait(&jobs[1], MM_OK);
        wait_begun(&fakes[1], 2);
        if (hangs) {
            assert_int_equal(look(2 + HANG), MM_DEVICE_FAILED);
            assert_non_null(strstr(told.detail, "fake:0"));
        } else {
            fail_device(0);
            open_gate(&fakes[0]);
        }
        open_gate(&fakes[1]);
        for (int index = 2; index < 6; index++) {
            job_wait(&jobs[index], MM_OK);
            assert_ptr_equal(jobs[index].work->device, &fakes[1].device);
        }
        open_gate(&fakes[0]);
        job_wait(&jobs[0], MM_OK);
        assert_int_equal(begun_by(&fakes[0]), 1);
        close_watch(state);
    }
}

/* The task waits for its next slice while the device hangs in a product. */
static void begun_task_fails_when_its_device_hangs(void **state) {
    struct test_job *task = &jobs[0];
    watch_scene((struct setting){.closed = true}, HANG, 0);
    submit_task(task, 2);
    wait_for(&task->entered);
    submit_product(&jobs[1], 2);
    let_slices(task, 1);
    wait_begun(fake, 1);
    expect_quiet(1);
    assert_int_equal(look(2 + HANG), MM_DEVICE_FAILED);
    job_wait(task, MM_NOT_READY);
    assert_int_equal(task->cancelled_runs, 1);
    assert_true(task->device_was_lost);
    assert_int_equal(mm_queue_look(queue).jobs, 1);
    assert_int_equal(mm_queue_look(queue).jobs_waiting, 0);
    open_gate(fake);
    job_wait(&jobs[1], MM_OK);
}

/* A job that is cancelled while it moves to the other device does not run there. */
static void job_cancelled_while_moving_does_not_run(void **state) {
    watch_scene((struct setting){.devices = 2, .closed = true}, 0, 0);
    for (unsigned index = 0; index < 2; index++) {
        submit_product(&jobs[index], 2);
        wait_begun(&fakes[index], 1);
    }
    job_init(&jobs[2], "naive", 2);
    mm_queue_prepare(queue, jobs[2].work);
    assert_false(mm_queue_cancel(queue, jobs[2].work)); /* no worker has the job */
    assert_true(mm_worker_pass_on(queue, jobs[2].work, NULL));
    open_gate(&fakes[0]);
    open_gate(&fakes[1]);
    job_wait(&jobs[2], MM_STOPPING);
    wait_all(jobs, 2);
    assert_int_equal(begun_by(&fakes[0]) + begun_by(&fakes[1]), 2);
}

/* The job fails, because the other device does not have the job's variant. */
static void job_without_another_device_fails(void **state) {
    watch_scene((struct setting){.devices = 2, .closed = true}, 0, 0);
    for (int index = 0; index < 2; index++) {
        job_init(&jobs[index], "second", 2);
        submit(&jobs[index]);
        wait_begun(&fakes[1], 1);
    }
    fail_device(1);
    open_gate(&fakes[1]);
    job_wait(&jobs[0], MM_OK);
    job_wait(&jobs[1], MM_NOT_READY);
}

static void idle_devices_are_self_tested(void **state) {
    const uint64_t opened_ns = mm_clock_ns();
    watch_scene((struct setting){.devices = 2}, 0, REST);
    expect_quiet(opened_ns + REST - 1); /* too early by 1 ns */
    assert_int_equal(mm_queue_look(queue).jobs + rows_tried, 0);
    rest();
    expect_proofs(2, 0, 0, 0);
    assert_int_equal(rows_tried, 2 * fake_backend.variant_count);
    rest();
    expect_proofs(4, 0, 0, 0);
}

static void busy_and_failed_devices_are_not_self_tested(void **state) {
    watch_scene((struct setting){.closed = true}, HANG, REST);
    submit_product(&jobs[0], 2);
    rest();
    assert_int_equal(mm_queue_look(queue).jobs, 1);
    open_gate(fake);
    job_wait(&jobs[0], MM_OK);
    while (mm_queue_look(queue).jobs > 0)
        continue;
    assert_int_equal(rows_tried, 0);
    fail_device(0);
    rest();
    expect_proofs(0, 0, 0, 0);
    __atomic_store_n(&fake->device.failed, 0, __ATOMIC_RELAXED);
    mm_queue_stop(queue);
    rest();
    assert_int_equal(mm_queue_look(queue).jobs, 0);
}

/* If a self-test finds no memory, it is repeated. If a variant cannot run, this is reported and the test is
 * repeated. If a result is wrong, this is reported and the device counts as failed. */
static void self_test_results_are_reported_once(void **state) {
    watch_scene((struct setting){0}, 0, REST);
    proves = MM_NO_DEVICE_MEMORY;
    rest();
    expect_proofs(0, 0, 1, 0);
    proves = MM_INTERNAL;
    rest();
    expect_proofs(0, 0, 2, 1);
    assert_int_equal(told.status, MM_INTERNAL);
    assert_false(mm_device_has_failed(&fake->device));
    proves = MM_DEVICE_FAILED;
    rest();
    expect_proofs(0, 1, 2, 1);
    assert_int_equal(told.status, MM_DEVICE_FAILED);
    assert_string_equal(told.detail, "the self-test of fake:0 failed: row 0");
    assert_true(mm_device_has_failed(&fake->device));
    rest();
    assert_int_equal(mm_queue_look(queue).jobs, 0);
}

/* The device serves jobs between two variants of a self-test. */
static void self_test_waits_for_jobs(void **state) {
    watch_scene((struct setting){.closed = true}, 0, REST);
    rest();
    while (mm_queue_look(queue).jobs > 0)
        continue;
    assert_int_equal(rows_tried, 1);
    submit_product(&jobs[0], 2);
    wait_begun(fake, 1);
    for (int count = 0; count < 3; count++)
        expect_quiet(mm_clock_ns() + 2 * (uint64_t)REST);
    assert_int_equal(mm_queue_look(queue).jobs, 1);
    open_gate(fake);
    job_wait(&jobs[0], MM_OK);
    expect_proofs(1, 0, 0, 0);
    assert_int_equal(rows_tried, fake_backend.variant_count);
}

/* After the whole process was paused, the watch must not conclude that a device hangs. */
static void pause_of_the_process_is_no_hang(void **state) {
    const uint64_t pause_ns = 2000000000;
    watch_scene((struct setting){.closed = true}, HANG, 0);
    submit_product(&jobs[0], 2);
    wait_begun(fake, 1);
    expect_quiet(1);
    expect_quiet(1 + pause_ns);
    expect_quiet(1 + pause_ns + HANG);
    assert_int_equal(look(2 + pause_ns + HANG), MM_DEVICE_FAILED);
    open_gate(fake);
    job_wait(&jobs[0], MM_OK);
}

RUN_TESTS_BETWEEN(NULL, close_watch, hung_device_is_reported_once, device_with_ending_jobs_does_not_hang,
                  host_and_unlimited_devices_never_hang, waiting_jobs_move_to_the_other_device,
                  begun_task_fails_when_its_device_hangs, job_cancelled_while_moving_does_not_run,
                  job_without_another_device_fails, idle_devices_are_self_tested,
                  busy_and_failed_devices_are_not_self_tested, self_test_waits_for_jobs,
                  pause_of_the_process_is_no_hang, self_test_results_are_reported_once)
