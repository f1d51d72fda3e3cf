/* The watch's promises: who hangs is given up and those who wait for it are not lost, who has nothing to do
 * is proved anew, and each failure is told once. */
#include "queue_job.h"

#include "gpu/self_test.h"
#include "gpu/watch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

/* Nothing waits for these: the tests tell the watch what the time is. */
enum { REST = 1000000000, HANG = 5000000 };

/* What a device's known products come to, in place of gpu/self_test.c's, and how many rows were tried. */
static enum mm_status proves;
static unsigned rows_tried;

enum mm_status __wrap_mm_self_test_row(struct mm_device *device, size_t row, struct mm_error *error);

enum mm_status __wrap_mm_self_test_row(struct mm_device *device, size_t row, struct mm_error *error) {
    assert_true(row < device->backend->variant_count);
    __atomic_fetch_add(&rows_tried, 1, __ATOMIC_SEQ_CST);
    return proves == MM_OK ? MM_OK : mm_fail(error, proves, "row %zu", row);
}

struct scene {
    struct fake_device fakes[2];
    struct mm_device *devices[2];
    struct mm_queue *queue;
    struct mm_watch *watch;
};

static void open_scene_on(const struct mm_backend *backend, struct scene *scene, unsigned count,
                          bool open_gate, uint64_t hang_ns, uint64_t rest_ns) {
    const struct mm_watch_limits limits = {.hang_ns = hang_ns, .rest_ns = rest_ns};
    for (unsigned index = 0; index < count; index++) {
        fake_device_init(&scene->fakes[index], index, 1, open_gate);
        scene->fakes[index].device.backend = backend;
        scene->devices[index] = &scene->fakes[index].device;
    }
    scene->watch = mm_watch_open(scene->devices, count, &limits);
    assert_non_null(scene->watch);
    scene->queue = open_queue(scene->fakes, count, 8, SIZE_MAX);
    proves = MM_OK;
    rows_tried = 0;
}

static void open_scene(struct scene *scene, unsigned count, bool open_gate, uint64_t hang_ns,
                       uint64_t rest_ns) {
    open_scene_on(&fake_backend, scene, count, open_gate, hang_ns, rest_ns);
}

static void close_scene(struct scene *scene, unsigned count) {
    mm_queue_close(scene->queue);
    mm_watch_close(scene->watch);
    for (unsigned index = 0; index < count; index++)
        fake_device_destroy(&scene->fakes[index]);
}

static enum mm_status look(struct scene *scene, uint64_t now_ns, struct mm_error *error) {
    return mm_watch_look(scene->watch, scene->queue, now_ns, error);
}

/* The watch looks on, at a time at which nothing new begins, until so many proofs are over; what it tells
 * goes into *error. */
static unsigned await_proofs(struct scene *scene, uint64_t passed, uint64_t failed, uint64_t undone,
                             struct mm_error *error) {
    const struct timespec pause = {.tv_nsec = 100000};
    struct mm_watch_counts counts;
    unsigned told = 0;
    do {
        told += look(scene, 1, error) != MM_OK;
        nanosleep(&pause, NULL);
        counts = mm_watch_counts(scene->watch);
    } while (counts.passed + counts.failed + counts.undone < passed + failed + undone ||
             mm_queue_jobs(scene->queue) > 0);
    told += look(scene, 1, error) != MM_OK;
    counts = mm_watch_counts(scene->watch);
    assert_int_equal(counts.passed, passed);
    assert_int_equal(counts.failed, failed);
    assert_int_equal(counts.undone, undone);
    return told;
}

static void submit(struct scene *scene, struct test_job *test) {
    job_init(test, "naive", 2);
    assert_int_equal(mm_queue_submit(scene->queue, &test->job, NULL), MM_OK);
}

static void who_hangs_is_given_up_once(void **state) {
    struct scene scene;
    struct test_job jobs[3];
    struct mm_error error;
    (void)state;
    open_scene(&scene, 1, false, HANG, 0);
    assert_int_equal(look(&scene, 1, &error), MM_OK);
    submit(&scene, &jobs[0]);
    fake_device_wait_begun(&scene.fakes[0], 1);
    submit(&scene, &jobs[1]);
    assert_int_equal(look(&scene, 100, &error), MM_OK); /* its time begins */
    assert_int_equal(look(&scene, 100 + HANG, &error), MM_OK);
    assert_false(mm_device_has_failed(scene.devices[0]));
    assert_int_equal(look(&scene, 101 + HANG, &error), MM_DEVICE_FAILED);
    assert_non_null(strstr(error.detail, "fake:0 has been at one job for more than 0.005 s"));
    assert_true(mm_device_has_failed(scene.devices[0]));
    job_wait(&jobs[1]);
    assert_int_equal(jobs[1].job.error.status, MM_NOT_READY);
    job_init(&jobs[2], "naive", 2);
    assert_int_equal(mm_queue_submit(scene.queue, &jobs[2].job, NULL), MM_NOT_READY);
    assert_int_equal(look(&scene, 102 + 2 * (uint64_t)HANG, &error), MM_OK);
    fake_device_open_gate(&scene.fakes[0]);
    job_wait(&jobs[0]);
    close_scene(&scene, 1);
}

/* Each job has its own time, also in the place of another. */
static void who_goes_on_does_not_hang(void **state) {
    struct scene scene;
    struct test_job jobs[2];
    struct mm_error error;
    (void)state;
    open_scene(&scene, 1, false, HANG, 0);
    for (unsigned index = 0; index < 3; index++) {
        if (index < 2)
            job_init(&jobs[index], "naive", 2);
        struct test_job *test = &jobs[index % 2]; /* the first once more */
        sem_init(&test->done, 0, 0);
        test->done_count = 0;
        assert_int_equal(mm_queue_submit(scene.queue, &test->job, NULL), MM_OK);
        fake_device_wait_begun(&scene.fakes[0], index + 1);
        assert_int_equal(look(&scene, 1 + index * (uint64_t)HANG, &error), MM_OK);
        fake_device_let_pass(&scene.fakes[0], 1);
        job_wait(test);
        assert_int_equal(test->job.error.status, MM_OK);
    }
    close_scene(&scene, 1);
}

/* The host's cores may be at one product for as long as it takes; and so may any device where there is no
 * limit. */
static void some_are_never_given_up(void **state) {
    struct mm_error error;
    (void)state;
    for (int is_host = 0; is_host < 2; is_host++) {
        struct scene scene;
        struct test_job job;
        open_scene_on(is_host != 0 ? &fake_host : &fake_backend, &scene, 1, false, is_host != 0 ? 1 : 0, 0);
        job_init(&job, "naive", 2);
        job.job.backend = scene.fakes[0].device.backend;
        assert_int_equal(mm_queue_submit(scene.queue, &job.job, NULL), MM_OK);
        fake_device_wait_begun(&scene.fakes[0], 1);
        assert_int_equal(look(&scene, 1, &error), MM_OK);
        assert_int_equal(look(&scene, 3, &error), MM_OK);
        fake_device_open_gate(&scene.fakes[0]);
        job_wait(&job);
        close_scene(&scene, 1);
    }
}

/* Of two devices one hangs: those who wait for it are computed by the other, and it is the one of the two
 * that is chosen from then on. */
static void who_waits_goes_to_the_other(void **state) {
    struct scene scene;
    struct test_job jobs[6];
    struct mm_error error;
    (void)state;
    open_scene(&scene, 2, false, HANG, 0);
    for (int index = 0; index < 6; index++) {
        submit(&scene, &jobs[index]);
        if (index < 2)
            fake_device_wait_begun(&scene.fakes[index], 1);
    }
    assert_int_equal(look(&scene, 1, &error), MM_OK);
    fake_device_let_pass(&scene.fakes[1], 1); /* the other goes on to its next */
    job_wait(&jobs[1]);
    fake_device_wait_begun(&scene.fakes[1], 2);
    assert_int_equal(look(&scene, 2 + HANG, &error), MM_DEVICE_FAILED);
    assert_non_null(strstr(error.detail, "fake:0"));
    fake_device_open_gate(&scene.fakes[1]);
    for (int index = 2; index < 6; index++) {
        job_wait(&jobs[index]);
        assert_int_equal(jobs[index].job.error.status, MM_OK);
        assert_ptr_equal(jobs[index].job.device, scene.devices[1]);
    }
    fake_device_open_gate(&scene.fakes[0]);
    job_wait(&jobs[0]);
    close_scene(&scene, 2);
}

/* The same where a device fails otherwise: its own thread finds that out. */
static void who_waits_for_a_failed_one_goes_to_the_other(void **state) {
    struct scene scene;
    struct test_job jobs[6];
    (void)state;
    open_scene(&scene, 2, false, 0, 0);
    for (int index = 0; index < 6; index++) {
        submit(&scene, &jobs[index]);
        if (index < 2)
            fake_device_wait_begun(&scene.fakes[index], 1);
    }
    __atomic_store_n(&scene.devices[0]->failed, 1, __ATOMIC_RELAXED);
    fake_device_open_gate(&scene.fakes[0]);
    fake_device_open_gate(&scene.fakes[1]);
    for (int index = 0; index < 6; index++) {
        job_wait(&jobs[index]);
        assert_int_equal(jobs[index].job.error.status, MM_OK);
        if (index > 0)
            assert_ptr_equal(jobs[index].job.device, scene.devices[1]);
    }
    assert_int_equal(fake_device_begun(&scene.fakes[0]), 1);
    close_scene(&scene, 2);
}

/* A variant that the other device has not ends as before. */
static void who_cannot_go_elsewhere_is_told(void **state) {
    struct scene scene;
    struct test_job jobs[2];
    (void)state;
    open_scene(&scene, 2, false, 0, 0);
    for (int index = 0; index < 2; index++) {
        job_init(&jobs[index], "second", 2);
        assert_int_equal(mm_queue_submit(scene.queue, &jobs[index].job, NULL), MM_OK);
        fake_device_wait_begun(&scene.fakes[1], 1);
    }
    __atomic_store_n(&scene.devices[1]->failed, 1, __ATOMIC_RELAXED);
    fake_device_open_gate(&scene.fakes[1]);
    job_wait(&jobs[0]);
    job_wait(&jobs[1]);
    assert_int_equal(jobs[1].job.error.status, MM_NOT_READY);
    fake_device_open_gate(&scene.fakes[0]);
    close_scene(&scene, 2);
}

static void who_rests_is_proved(void **state) {
    struct scene scene;
    struct mm_error error;
    (void)state;
    const uint64_t opened_ns = mm_clock_ns();
    open_scene(&scene, 2, true, 0, REST);
    assert_int_equal(look(&scene, opened_ns + REST - 1, &error), MM_OK); /* not yet */
    assert_int_equal(mm_queue_jobs(scene.queue), 0);
    assert_int_equal(rows_tried, 0);
    assert_int_equal(look(&scene, mm_clock_ns() + REST, &error), MM_OK);
    assert_int_equal(await_proofs(&scene, 2, 0, 0, &error), 0);
    assert_int_equal(rows_tried, 2 * fake_backend.variant_count);
    assert_int_equal(look(&scene, mm_clock_ns() + REST, &error), MM_OK);
    assert_int_equal(await_proofs(&scene, 4, 0, 0, &error), 0);
    close_scene(&scene, 2);
}

static void who_works_is_left_alone(void **state) {
    struct scene scene;
    struct test_job job;
    struct mm_error error;
    (void)state;
    open_scene(&scene, 1, false, 0, REST);
    submit(&scene, &job);
    assert_int_equal(look(&scene, mm_clock_ns() + REST, &error), MM_OK);
    assert_int_equal(mm_queue_jobs(scene.queue), 1);
    fake_device_open_gate(&scene.fakes[0]);
    job_wait(&job);
    while (mm_queue_jobs(scene.queue) > 0)
        continue;
    assert_int_equal(rows_tried, 0);
    mm_queue_stop(scene.queue);
    assert_int_equal(look(&scene, mm_clock_ns() + REST, &error), MM_OK);
    assert_int_equal(mm_queue_jobs(scene.queue), 0);
    close_scene(&scene, 1);
}

static void who_has_failed_is_left_alone(void **state) {
    struct scene scene;
    struct mm_error error;
    (void)state;
    open_scene(&scene, 1, true, HANG, REST);
    __atomic_store_n(&scene.devices[0]->failed, 1, __ATOMIC_RELAXED);
    assert_int_equal(look(&scene, mm_clock_ns() + REST, &error), MM_OK);
    assert_int_equal(await_proofs(&scene, 0, 0, 0, &error), 0);
    close_scene(&scene, 1);
}

/* For want of memory it is tried again; a row that does not run is told, and tried again; a wrong one is
 * told, and the device has failed. */
static void what_a_proof_found_is_told_once(void **state) {
    struct scene scene;
    struct mm_error error;
    (void)state;
    open_scene(&scene, 1, true, 0, REST);
    proves = MM_NO_DEVICE_MEMORY;
    assert_int_equal(look(&scene, mm_clock_ns() + REST, &error), MM_OK);
    assert_int_equal(await_proofs(&scene, 0, 0, 1, &error), 0);
    proves = MM_INTERNAL;
    assert_int_equal(look(&scene, mm_clock_ns() + REST, &error), MM_OK);
    assert_int_equal(await_proofs(&scene, 0, 0, 2, &error), 1);
    assert_int_equal(error.status, MM_INTERNAL);
    assert_false(mm_device_has_failed(scene.devices[0]));
    proves = MM_DEVICE_FAILED;
    assert_int_equal(look(&scene, mm_clock_ns() + REST, &error), MM_OK);
    assert_int_equal(await_proofs(&scene, 0, 1, 2, &error), 1);
    assert_int_equal(error.status, MM_DEVICE_FAILED);
    assert_string_equal(error.detail, "the self-test of fake:0 failed: row 0");
    assert_true(mm_device_has_failed(scene.devices[0]));
    assert_int_equal(look(&scene, mm_clock_ns() + REST, &error), MM_OK);
    assert_int_equal(mm_queue_jobs(scene.queue), 0);
    close_scene(&scene, 1);
}

/* Between two rows of a proof a caller has the device. */
static void a_proof_waits_for_callers(void **state) {
    struct scene scene;
    struct test_job job;
    struct mm_error error;
    (void)state;
    open_scene(&scene, 1, false, 0, REST);
    assert_int_equal(look(&scene, mm_clock_ns() + REST, &error), MM_OK);
    while (mm_queue_jobs(scene.queue) > 0)
        continue;
    assert_int_equal(rows_tried, 1);
    submit(&scene, &job);
    fake_device_wait_begun(&scene.fakes[0], 1);
    for (int count = 0; count < 3; count++)
        assert_int_equal(look(&scene, mm_clock_ns() + 2 * (uint64_t)REST, &error), MM_OK);
    assert_int_equal(mm_queue_jobs(scene.queue), 1);
    fake_device_open_gate(&scene.fakes[0]);
    job_wait(&job);
    assert_int_equal(await_proofs(&scene, 1, 0, 0, &error), 0);
    assert_int_equal(rows_tried, fake_backend.variant_count);
    close_scene(&scene, 1);
}

/* A process that was stopped for longer than a device may hang does not know that it does. */
static void a_pause_is_no_hang(void **state) {
    const uint64_t pause_ns = 2000000000;
    struct scene scene;
    struct test_job job;
    struct mm_error error;
    (void)state;
    open_scene(&scene, 1, false, HANG, 0);
    submit(&scene, &job);
    fake_device_wait_begun(&scene.fakes[0], 1);
    assert_int_equal(look(&scene, 1, &error), MM_OK);
    assert_int_equal(look(&scene, 1 + pause_ns, &error), MM_OK);
    assert_int_equal(look(&scene, 1 + pause_ns + HANG, &error), MM_OK);
    assert_int_equal(look(&scene, 2 + pause_ns + HANG, &error), MM_DEVICE_FAILED);
    fake_device_open_gate(&scene.fakes[0]);
    job_wait(&job);
    close_scene(&scene, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_hangs_is_given_up_once),
        cmocka_unit_test(who_goes_on_does_not_hang),
        cmocka_unit_test(some_are_never_given_up),
        cmocka_unit_test(who_waits_goes_to_the_other),
        cmocka_unit_test(who_waits_for_a_failed_one_goes_to_the_other),
        cmocka_unit_test(who_cannot_go_elsewhere_is_told),
        cmocka_unit_test(who_rests_is_proved),
        cmocka_unit_test(who_works_is_left_alone),
        cmocka_unit_test(who_has_failed_is_left_alone),
        cmocka_unit_test(a_proof_waits_for_callers),
        cmocka_unit_test(a_pause_is_no_hang),
        cmocka_unit_test(what_a_proof_found_is_told_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
