/* Tests tasks, which run in slices on a device's worker thread. Products run between the slices. */
#include "scene.h"

#include <time.h>

static void products_run_between_slices(void **state) {
    struct test_job *task = &jobs[2];
    open_scene((struct setting){0});
    submit_task(task, 3);
    wait_for(&task->entered);
    const uint64_t entered_ns = mm_clock_ns();
    submit_product(&jobs[0], 2);
    submit_product(&jobs[1], 2);
    assert_int_equal(mm_queue_look(queue).wait_ns, 0);
    let_slices(task, 1);
    wait_all(jobs, 2);
    wait_for(&task->entered);
    assert_int_equal(mm_queue_look(queue).jobs, 1);
    let_slices(task, 2);
    job_wait(task, MM_OK);
    assert_int_equal(task->runs, 3);
    assert_true(task->begun[0] == 0 && task->begun[1] == 2 && task->begun[2] == 2);
    assert_int_equal(task->cancelled_runs, 0);
    assert_ptr_equal(task->work->device, &fake->device);
    assert_in_range(task->work->waited_ns, 1, entered_ns - task->work->queued_ns);
    assert_int_equal(mm_queue_look(queue).jobs, 0);
}

static void slice_runs_alone_on_its_device(void **state) {
    struct test_job *task = &jobs[6];
    open_scene((struct setting){.lanes = 3, .closed = true, .backend = &fake_async});
    pthread_mutex_lock(&fake->mutex); /* no product begins before all jobs wait */
    for (int index = 0; index < 6; index++) {
        submit_product(&jobs[index], 2);
        if (index == 1) {
            task_init(task, 2);
            let_slices(task, 2);
            submit(task);
        }
    }
    pthread_mutex_unlock(&fake->mutex);
    wait_begun(fake, 2); /* the other lane stays free, because the task is next */
    open_gate(fake);
    job_wait(task, MM_OK);
    wait_all(jobs, 6);
    assert_true(task->begun[0] == 2 && task->begun[1] == 6);
    assert_int_equal(task->beside, 0);
}

static void begun_task_does_not_count_as_waiting(void **state) {
    struct test_job *task = &jobs[3];
    open_scene((struct setting){.closed = true, .jobs_max = 1});
    submit_task(task, 2);
    wait_for(&task->entered);
    submit_product(&jobs[0], 2);
    let_slices(task, 1);
    wait_begun(fake, 1); /* the product runs, and the task waits */
    assert_int_equal(mm_queue_look(queue).jobs_waiting, 0);
    assert_int_equal(mm_queue_check_depth(queue, 0, NULL), MM_OK);
    assert_int_equal(mm_queue_look(queue).jobs, 2);
    submit_product(&jobs[1], 2);
    job_init(&jobs[2], "naive", 2);
    assert_int_equal(try_submit(&jobs[2], NULL), MM_BUSY);
    open_gate(fake);
    let_slices(task, 1);
    job_wait(task, MM_OK);
    wait_all(jobs, 2);
}

/* A task makes its device count as busy, so products go to the other device. */
static void products_avoid_devices_with_tasks(void **state) {
    struct test_job *task = &jobs[3];
    open_scene((struct setting){.devices = 2});
    close_gate(&fakes[1]);
    submit_task(task, 1);
    wait_for(&task->entered);
    for (int index = 0; index < 3; index++)
        submit_product(&jobs[index], 2);
    let_slices(task, 1);
    job_wait(task, MM_OK);
    open_gate(&fakes[1]);
    wait_all(jobs, 3);
    for (int index = 0; index < 3; index++)
        assert_ptr_equal(jobs[index].work->device, &fakes[1].device);
}

/* After each part, a long product goes to the end of the list and counts as waiting. */
static void products_run_between_parts_of_others(void **state) {
    const struct timespec piece = {.tv_nsec = 50000000};
    struct test_job *cut = &jobs[2];
    open_scene((struct setting){.closed = true, .jobs_max = 2});
    const uint64_t submitted_ns = mm_clock_ns();
    submit_product(cut, CUT_N);
    wait_begun(fake, 1);
    nanosleep(&piece, NULL);
    submit_product(&jobs[0], 2);
    submit_product(&jobs[1], 2);
    let_pass(fake, 1);
    wait_begun(fake, 2);
    assert_int_equal(mm_queue_look(queue).jobs_waiting, 2);
    assert_int_equal(mm_queue_check_depth(queue, 0, NULL), MM_BUSY);
    assert_int_equal(mm_queue_look(queue).jobs, 3);
    let_pass(fake, 2);
    wait_all(jobs, 2);
    assert_int_equal(cut->done_count, 0);
    open_gate(fake);
    job_wait(cut, MM_OK);
    assert_true(cut->work->waited_ns + (uint64_t)piece.tv_nsec <= mm_clock_ns() - submitted_ns);
    assert_int_equal(begun_by(fake), PIECES + 2);
    assert_int_equal(mm_queue_look(queue).jobs, 0);
}

/* A task that shares its device runs beside a product. */
static void a_task_may_share_the_device(void **state) {
    struct test_job *task = &jobs[0];
    open_scene((struct setting){.lanes = 2});
    task_init(task, 1);
    task->task.shares = true;
    submit(task);
    wait_for(&task->entered);
    submit_product(&jobs[1], 2);
    job_wait(&jobs[1], MM_OK);
    assert_int_equal(task->done_count, 0);
    let_slices(task, 1);
    job_wait(task, MM_OK);
}

static void task_needs_a_worker_of_its_backend(void **state) {
    open_scene((struct setting){.backend = &fake_host});
    task_init(&jobs[0], 1);
    jobs[0].work->backend = &fake_backend;
    assert_int_equal(try_submit(&jobs[0], NULL), MM_UNSUPPORTED);
}

static void *submit_many(void *argument) {
    for (unsigned round = 0; round < 500; round++) {
        struct test_job test;
        if (round % 3 == 0)
            job_init(&test, "auto", 1 + round % 7);
        else
            task_init(&test, round % 3);
        let_slices(&test, round % 3);
        const enum mm_status status = try_submit(&test, NULL);
        assert_true(status == MM_OK || status == MM_BUSY);
        if (status != MM_OK)
            continue;
        if (round % 5 == 0 && mm_queue_cancel(queue, test.work))
            continue;
        wait_for(&test.done);
        assert_int_equal(test.done_count, 1);
        assert_true(test.work->error.status == MM_OK || round % 5 == 0);
    }
    return NULL;
}

static void many_threads_submit(void **state) {
    pthread_t threads[8];
    open_scene((struct setting){.devices = 3, .lanes = 2, .jobs_max = 4});
    for (size_t index = 0; index < COUNT(threads); index++)
        assert_int_equal(pthread_create(&threads[index], NULL, submit_many, NULL), 0);
    for (size_t index = 0; index < COUNT(threads); index++)
        pthread_join(threads[index], NULL);
    assert_int_equal(mm_queue_look(queue).jobs, 0);
}

/* Checks the number of slices. Also checks whether the task was called once more to release its resources. */
static void expect_runs(const struct test_job *task, unsigned runs, unsigned cancelled_runs) {
    assert_int_equal(task->runs, runs);
    assert_int_equal(task->cancelled_runs, cancelled_runs);
}

static void cancelled_task_ends_before_waiting_jobs(void **state) {
    struct test_job *task = &jobs[2];
    open_scene((struct setting){.closed = true});
    submit_task(task, 3);
    wait_for(&task->entered);
    submit_product(&jobs[0], 2);
    submit_product(&jobs[1], 2);
    let_slices(task, 1);
    wait_begun(fake, 1); /* the first product runs, and the second and the task wait */
    assert_false(mm_queue_cancel(queue, task->work));
    assert_false(mm_queue_cancel(queue, task->work));
    open_gate(fake);
    job_wait(task, MM_STOPPING);
    wait_all(jobs, 2);
    expect_runs(task, 1, 1);
    assert_int_equal(task->begun_at_end, 1);
}

/* A task that is cancelled after its first slice is called once more to release its resources. */
static void a_task_ends_after_its_slice(void **state) {
    enum { CANCELLED, LATE, FAILING, STOPPED, DEVICE_FAILED };
    static const struct {
        enum mm_status status, behind;
        unsigned runs, cancelled_runs;
    } ways[] = {[CANCELLED] = {MM_STOPPING, MM_OK, 1, 1},
                [LATE] = {MM_TIMEOUT, MM_TIMEOUT, 1, 1},
                [FAILING] = {MM_INTERNAL, MM_OK, 1, 0},
                [STOPPED] = {MM_OK, MM_OK, 2, 0},
                [DEVICE_FAILED] = {MM_NOT_READY, MM_NOT_READY, 1, 1}};
    struct test_job *task = &jobs[0], *behind = &jobs[1];
    for (int way = 0; way <= DEVICE_FAILED; way++) {
        open_scene((struct setting){0});
        task_init(task, 2);
        task->becomes_late = way == LATE;
        task->fails = way == FAILING;
        submit(task);
        wait_for(&task->entered);
        task_init(behind, 1);
        behind->work->deadline_ns = way == LATE ? 1 : 0;
        submit(behind);
        if (way == CANCELLED)
            assert_false(mm_queue_cancel(queue, task->work));
        if (way == STOPPED)
            mm_queue_stop(queue);
        if (way == DEVICE_FAILED)
            __atomic_store_n(&fake->device.failed, 1, __ATOMIC_RELAXED);
        let_slices(task, 2);
        let_slices(behind, 1);
        job_wait(task, ways[way].status);
        job_wait(behind, ways[way].behind);
        expect_runs(task, ways[way].runs, ways[way].cancelled_runs);
        expect_runs(behind, ways[way].behind == MM_OK ? 1 : 0, 0);
        close_queue();
    }
}

static void a_last_slice_cannot_be_cancelled(void **state) {
    struct test_job *last = &jobs[0];
    open_scene((struct setting){0});
    submit_task(last, 1); /* the task ends by itself and releases its resources */
    wait_for(&last->entered);
    assert_false(mm_queue_cancel(queue, last->work));
    let_slices(last, 1);
    job_wait(last, MM_OK);
    expect_runs(last, 1, 0);
    assert_false(mm_queue_cancel(queue, last->work)); /* it has already ended */
    for (int round = 0; round < 2; round++) {         /* the late cancel must have no effect */
        last->runs = 0;
        last->done_count = 0;
        last->slices = 2;
        submit(last);
        let_slices(last, 2);
        job_wait(last, MM_OK);
        expect_runs(last, 2, 0);
        assert_int_equal(mm_queue_look(queue).jobs, 0);
    }
}

/* A product in parts ends between two parts if it is cancelled or late, or if the queue closes. */
static void product_ends_between_two_parts(void **state) {
    enum { CANCELLED, CANCELLED_IN_THE_LIST, LATE, ABORTED, LAST };
    static const struct {
        enum mm_status status;
        unsigned begun;
    } ways[] = {{MM_STOPPING, 1}, {MM_STOPPING, 2}, {MM_TIMEOUT, 1}, {MM_STOPPING, 1}, {MM_OK, PIECES}};
    struct test_job *cut = &jobs[0], *other = &jobs[1];
    for (int way = 0; way <= LAST; way++) {
        open_scene((struct setting){.closed = true});
        job_init(cut, "naive", 2);
        cut->job.product.n = CUT_N;
        fake->makes_late = way == LATE;
        submit(cut);
        wait_begun(fake, 1);
        if (way == CANCELLED_IN_THE_LIST) {
            submit_product(other, 2);
            let_pass(fake, 1);
            wait_begun(fake, 2);
        }
        if (way == LAST) {
            let_pass(fake, PIECES - 1);
            wait_begun(fake, PIECES);
        }
        if (way == ABORTED)
            mm_queue_abort(queue, MM_STOPPING, "aborted by the test");
        else if (way != LATE)
            assert_false(mm_queue_cancel(queue, cut->work));
        open_gate(fake);
        job_wait(cut, ways[way].status);
        if (way == CANCELLED_IN_THE_LIST)
            job_wait(other, MM_OK);
        assert_int_equal(begun_by(fake), ways[way].begun);
        assert_int_equal(mm_queue_look(queue).jobs, 0);
        close_queue();
    }
}

/* The first task has begun, and the second waits. */
static void abort_ends_tasks(void **state) {
    open_scene((struct setting){.closed = true});
    submit_task(&jobs[0], 3);
    wait_for(&jobs[0].entered);
    submit_product(&jobs[2], 2);
    submit_task(&jobs[1], 3);
    let_slices(&jobs[0], 1);
    wait_begun(fake, 1);
    mm_queue_stop(queue);
    mm_queue_abort(queue, MM_STOPPING, "stopped");
    job_wait(&jobs[1], MM_STOPPING);
    expect_runs(&jobs[1], 0, 0);
    assert_int_equal(mm_queue_look(queue).jobs, 2);
    open_gate(fake);
    job_wait(&jobs[0], MM_STOPPING);
    expect_runs(&jobs[0], 1, 1);
    job_wait(&jobs[2], MM_OK);
}

static void *close_it(void *open) {
    mm_queue_close(open);
    return NULL;
}

static void close_ends_tasks(void **state) {
    struct mm_error error = {.status = MM_OK};
    pthread_t closer;
    open_scene((struct setting){0});
    submit_task(&jobs[0], 100);
    wait_for(&jobs[0].entered);
    assert_int_equal(pthread_create(&closer, NULL, close_it, queue), 0);
    task_init(&jobs[1], 1);
    /* Submits tasks, and cancels the accepted ones, until the queue has stopped. */
    while (try_submit(&jobs[1], &error) == MM_OK)
        assert_true(mm_queue_cancel(queue, jobs[1].work));
    assert_int_equal(error.status, MM_STOPPING);
    let_slices(&jobs[0], 1);
    pthread_join(closer, NULL);
    queue = NULL;
    job_wait(&jobs[0], MM_STOPPING);
    expect_runs(&jobs[0], 1, 1);
}

RUN_TESTS_BETWEEN(NULL, close_scene, task_needs_a_worker_of_its_backend, products_run_between_slices,
                  slice_runs_alone_on_its_device, begun_task_does_not_count_as_waiting,
                  products_avoid_devices_with_tasks, products_run_between_parts_of_others,
                  a_task_may_share_the_device, many_threads_submit, cancelled_task_ends_before_waiting_jobs,
                  a_task_ends_after_its_slice, a_last_slice_cannot_be_cancelled,
                  product_ends_between_two_parts, abort_ends_tasks, close_ends_tasks)
