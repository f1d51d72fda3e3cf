/* Tests how the queue shares a device between clients. */
#include "scene.h"

enum { MS = 1000000, PRODUCT_MS = 10, OPERATIONS = 2 * 2 * 2 * 2 };

/* Opens the scene. Each product is expected to take PRODUCT_MS. */
static void open_fair_scene(struct setting setting) {
    setting.closed = true;
    setting.jobs_max = 100;
    open_scene(setting);
    fake->device.forecast.kernel_ns[0][MM_FLOAT32] = (double)PRODUCT_MS * MS / OPERATIONS;
}

/* Lets the remaining jobs end, so a test that has failed does not hang. */
static int end_scene(void **state) {
    open_gate(fake);
    return close_scene(state);
}

static void submit_of(unsigned client, struct test_job *test) {
    job_init(test, "naive", 2);
    test->work->client = client;
    submit(test);
}

/* Asserts that the work ends in this order. The first job runs already. */
static void expect_order(const char *order) {
    unsigned begun = begun_by(fake);
    for (const char *next = order; *next != '\0'; next++) {
        struct test_job *test = &jobs[*next - '0'];
        let_pass(fake, 1);
        if (next[1] != '\0')
            wait_begun(fake, ++begun); /* `done` of the earlier job was called before */
        else
            job_wait(test, MM_OK);
        assert_int_equal(test->done_count, 1);
    }
}

static void clients_take_turns(void **state) {
    open_fair_scene((struct setting){0});
    for (int index = 0; index < 4; index++)
        submit_of(1, &jobs[index]);
    wait_begun(fake, 1);
    for (int index = 4; index < 7; index++)
        submit_of(2, &jobs[index]);
    submit_of(3, &jobs[7]);
    expect_order("04715263");
}

/* While the device was idle, nobody waited, so earlier use does not count. */
static void earlier_use_does_not_count(void **state) {
    open_fair_scene((struct setting){0});
    for (int index = 0; index < 3; index++)
        submit_of(1, &jobs[index]);
    wait_begun(fake, 1);
    expect_order("012");
    submit_of(2, &jobs[3]);
    wait_begun(fake, 4);
    submit_of(2, &jobs[4]);
    submit_of(2, &jobs[5]);
    submit_of(1, &jobs[6]);
    expect_order("3645");
}

static void cancelled_work_uses_no_time(void **state) {
    open_fair_scene((struct setting){0});
    submit_of(1, &jobs[0]);
    wait_begun(fake, 1);
    for (int index = 1; index < 4; index++)
        submit_of(1, &jobs[index]);
    for (int index = 4; index < 7; index++)
        submit_of(2, &jobs[index]);
    for (int index = 1; index < 4; index++)
        assert_true(mm_queue_cancel(queue, jobs[index].work));
    submit_of(1, &jobs[7]);
    expect_order("04576");
}

/* A slice of a task counts as 50 ms, so five products of another client run between two slices. */
static void turns_depend_on_the_time_of_the_work(void **state) {
    struct test_job *task = &jobs[20];
    open_fair_scene((struct setting){0});
    open_gate(fake);
    task_init(task, 3);
    task->work->client = 1;
    submit(task);
    wait_for(&task->entered);
    for (int index = 0; index < 20; index++)
        submit_of(2, &jobs[index]);
    let_slices(task, 3);
    job_wait(task, MM_OK);
    wait_all(jobs, 20);
    assert_int_equal(task->begun[0], 0);
    assert_int_equal(task->begun[1], 6); /* the sixth has the turn of the slice, and was submitted earlier */
    assert_int_equal(task->begun[2], 11);
}

/* A client that has no place left, or would wait too long, does not keep others out. */
static void limits_hold_for_each_client(void **state) {
    struct mm_error error;
    open_fair_scene((struct setting){.client_jobs_max = 2, .wait_ns_max = 15 * MS});
    submit_of(1, &jobs[0]);
    wait_begun(fake, 1);
    submit_of(1, &jobs[1]);
    job_init(&jobs[2], "naive", 2);
    jobs[2].work->client = 1;
    assert_int_equal(try_submit(&jobs[2], &error), MM_BUSY); /* 20 ms are before it */
    assert_non_null(strstr(error.detail, "--queue-wait-ms"));
    submit_of(2, &jobs[3]);
    expect_order("031");
    close_scene(NULL);
    open_fair_scene((struct setting){.client_jobs_max = 2});
    for (int index = 0; index < 3; index++) {
        submit_of(1, &jobs[index]);
        wait_begun(fake, 1);
    }
    submit_of(2, &jobs[3]);
    job_init(&jobs[4], "naive", 2);
    jobs[4].work->client = 1;
    assert_int_equal(mm_queue_check_depth(queue, 1, &error), MM_BUSY);
    assert_int_equal(mm_queue_check_depth(queue, 2, &error), MM_OK);
    assert_int_equal(try_submit(&jobs[4], &error), MM_BUSY);
    assert_non_null(strstr(error.detail, "--jobs-per-key"));
    open_gate(fake);
    wait_all(jobs, 4);
}

RUN_TESTS_BETWEEN(NULL, end_scene, clients_take_turns, earlier_use_does_not_count,
                  cancelled_work_uses_no_time, turns_depend_on_the_time_of_the_work,
                  limits_hold_for_each_client)
