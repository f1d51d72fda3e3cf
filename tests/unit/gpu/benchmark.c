/* Benchmarks on a made-up device: the order of runs and the rotation of sets, the figures, the limits, and
 * that memory is given back however it ends. What is judged right is benchmark_judge.c's. */
#include "lab.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static void rows_are_run_in_turn(void **state) {
    enum { REPEATS = 4, WARM_UPS = 5, ROWS = 3 };
    struct mm_benchmark_request request = lab_product_of(16, 16, 16, REPEATS);
    (void)state;
    lab_ask(&request, MM_MATMUL, "naive");
    lab_ask(&request, MM_MATMUL, "blas");
    lab_ask(&request, MM_MATMUL, "tiled_8");
    lab_device.l2_bytes = 3 * 1024 * 2; /* three times that is six sets, so that seven pass it */
    struct mm_benchmark *benchmark = lab_run(&request);
    assert_int_equal(lab.runs, ROWS * (WARM_UPS + REPEATS));
    assert_int_equal(lab.held_bytes, 7 * 3 * 1024);
    for (unsigned index = 0; index < lab.runs; index++) {
        assert_ptr_equal(lab.variants[index], request.subjects[index % ROWS].variant);
        size_t set = (size_t)(lab.sets[index] - lab.sets[0]) / (3 * 1024);
        assert_int_equal(set, index < ROWS ? 0 : index % 7);
    }
    for (size_t row = 0; row < ROWS; row++)
        assert_int_equal(mm_benchmark_rows(benchmark)[row].set_count, 7);
    mm_benchmark_close(benchmark);
}

static void figures_are_of_the_runs_that_count(void **state) {
    struct mm_benchmark_request request = lab_product_of(16, 8, 4, 4);
    (void)state;
    lab_ask(&request, MM_MATMUL, "naive");
    lab_ask(&request, MM_MATMUL, "blas");
    struct mm_benchmark *benchmark = lab_run(&request);
    const struct mm_benchmark_row *rows = mm_benchmark_rows(benchmark);
    /* Five warm-ups of two rows go before: the runs 10, 12, 14, 16 and 11, 13, 15, 17. */
    assert_int_equal(rows[0].repeats, 4);
    assert_true(rows[0].min_ns == 1010.0 && rows[0].median_ns == 1013.0 && rows[0].max_ns == 1016.0);
    assert_true(rows[1].min_ns == 111.0 && rows[1].median_ns == 114.0 && rows[1].max_ns == 117.0);
    assert_true(rows[0].of_yardstick == 114.0 / 1013.0);
    assert_null(mm_benchmark_copy(benchmark));
    assert_true(rows[1].of_yardstick == 1.0);
    assert_true(mm_benchmark_rate(benchmark, &rows[0]) == 2.0 * 16 * 8 * 4 / 1013.0);
    assert_ptr_equal(rows[0].device, &lab_device);
    assert_ptr_equal(rows[0].ran, request.subjects[0].variant);
    for (int row = 0; row < 2; row++)
        assert_true(rows[row].error.status == MM_OK && rows[row].max_error > 0.0 &&
                    rows[row].max_error < 0.5);
    mm_benchmark_close(benchmark);

    request.repeats = 3; /* a middle one */
    request.subject_count = 1;
    lab.runs = 0;
    benchmark = lab_run(&request);
    rows = mm_benchmark_rows(benchmark);
    assert_true(rows[0].min_ns == 1005.0 && rows[0].median_ns == 1006.0 && rows[0].max_ns == 1007.0);
    assert_true(rows[0].of_yardstick == 0.0);
    mm_benchmark_close(benchmark);
}

static void rows_fail_alone(void **state) {
    struct mm_benchmark_request request = lab_product_of(16, 16, 16, 2);
    (void)state;
    lab_ask(&request, MM_MATMUL, "refuses");
    lab_ask(&request, MM_MATMUL, "missing");
    lab_ask(&request, MM_MATMUL, "auto");
    struct mm_benchmark *benchmark = lab_run(&request);
    const struct mm_benchmark_row *rows = mm_benchmark_rows(benchmark);
    assert_int_equal(rows[0].error.status, MM_UNSUPPORTED);
    assert_string_equal(rows[0].error.detail, "not this shape");
    assert_int_equal(rows[1].error.status, MM_UNSUPPORTED);
    assert_non_null(strstr(rows[1].error.detail, "no device has it"));
    assert_int_equal(rows[2].error.status, MM_OK);
    assert_string_equal(rows[2].ran->name, "tiled_8");
    assert_int_equal(rows[2].repeats, 2);
    mm_benchmark_close(benchmark);
}

static void what_befalls_the_device_befalls_all(void **state) {
    struct mm_benchmark_request request = lab_product_of(16, 16, 16, 2);
    (void)state;
    lab_ask(&request, MM_MATMUL, "naive");
    lab_ask(&request, MM_MATMUL, "loses_device");
    lab_ask(&request, MM_MATMUL, "blas");
    for (int trial = 0; trial < 3; trial++) {
        lab_reset(NULL);
        lab.no_memory = trial == 0;
        lab.no_fill = trial == 1;
        const enum mm_status expected = trial == 0   ? MM_NO_DEVICE_MEMORY
                                        : trial == 1 ? MM_INTERNAL
                                                     : MM_DEVICE_FAILED;
        struct mm_benchmark *benchmark = lab_run(&request);
        const struct mm_benchmark_row *rows = mm_benchmark_rows(benchmark);
        for (size_t row = 0; row < 3; row++)
            assert_int_equal(rows[row].error.status, expected);
        assert_int_equal(lab.runs, trial == 2 ? 2 : 0);
        mm_benchmark_close(benchmark);
    }
}

static void slow_rows_are_repeated_less(void **state) {
    struct mm_benchmark_request request = lab_product_of(4, 4, 4, 3);
    (void)state;
    lab_ask(&request, MM_MATMUL, "slow");
    lab_ask(&request, MM_MATMUL, "naive");
    lab.slow_ns = UINT64_C(1500000000); /* its first run counts: then there are no warm-ups */
    struct mm_benchmark *benchmark = lab_run(&request);
    const struct mm_benchmark_row *rows = mm_benchmark_rows(benchmark);
    assert_int_equal(rows[0].repeats, 3);
    assert_int_equal(rows[1].repeats, 3);
    assert_int_equal(lab.runs, 3 + 5 + 3);
    assert_true(rows[0].min_ns == 1.5e9);
    mm_benchmark_close(benchmark);
}

/* Two warm-ups of 0.7 s each use the time up, so that the third run counts, and is the last. */
static void a_row_has_its_time(void **state) {
    struct mm_benchmark_request request = lab_product_of(4, 4, 4, 10);
    (void)state;
    lab_ask(&request, MM_MATMUL, "sleeps");
    lab_ask(&request, MM_MATMUL, "naive");
    struct mm_benchmark *benchmark = lab_run(&request);
    const struct mm_benchmark_row *rows = mm_benchmark_rows(benchmark);
    assert_int_equal(rows[0].repeats, 1);
    assert_int_equal(rows[1].repeats, 10);
    assert_int_equal(lab.runs, 3 + 5 + 10);
    mm_benchmark_close(benchmark);

    request.row_ns = UINT64_C(1000000000); /* by the end of the second run they are used up */
    request.subject_count = 1;
    lab.runs = 0;
    benchmark = lab_run(&request);
    assert_int_equal(mm_benchmark_rows(benchmark)[0].repeats, 1);
    assert_int_equal(lab.runs, 2);
    mm_benchmark_close(benchmark);
}

static void loads_are_predicted(void **state) {
    /* m, k, n, and for T of 1, 8, 4, and 8 by choice: m·k·⌈n/T⌉ + k·n·⌈m/T⌉ */
    static const struct {
        size_t m, k, n;
        uint64_t loads[4];
    } cases[] = {
        {16, 16, 16, {8192, 1024, 2048, 1024}},
        {17, 3, 5, {510, 96, 177, 96}},
        {1, 1, 1, {2, 2, 2, 2}},
    };
    (void)state;
    for (size_t which = 0; which < sizeof cases / sizeof cases[0]; which++) {
        struct mm_benchmark_request request =
            lab_product_of(cases[which].m, cases[which].k, cases[which].n, 1);
        uint64_t loads = 0;
        lab_ask(&request, MM_MATMUL, "naive");
        lab_ask(&request, MM_MATMUL, "tiled_8");
        lab_ask(&request, MM_MATMUL, "dynamic");
        lab_ask(&request, MM_MATMUL, "dynamic");
        request.subjects[3].tile = 8;
        lab_ask(&request, MM_MATMUL, "auto");
        lab_ask(&request, MM_MATMUL, "blas");
        lab_ask(&request, MM_MATMUL, "missing");
        lab.runs = 0;
        struct mm_benchmark *benchmark = lab_run(&request);
        for (size_t row = 0; row < 4; row++) {
            assert_true(mm_benchmark_loads(benchmark, row, &loads));
            assert_int_equal(loads, cases[which].loads[row]);
        }
        assert_true(mm_benchmark_loads(benchmark, 4, &loads)); /* what ran is tiled_8 */
        assert_int_equal(loads, cases[which].loads[1]);
        assert_false(mm_benchmark_loads(benchmark, 5, &loads));
        assert_false(mm_benchmark_loads(benchmark, 6, &loads));
        mm_benchmark_close(benchmark);
    }
}

static void transpositions_are_compared_with_a_copy(void **state) {
    enum { M = 37, N = 19 };
    (void)state;
    for (unsigned dtype = 0; dtype < MM_DTYPE_COUNT; dtype++) {
        struct mm_benchmark_request request = {
            .op = MM_TRANSPOSE, .m = M, .n = N, .dtype = (enum mm_dtype)dtype, .repeats = 1};
        uint64_t loads = 0;
        lab_ask(&request, MM_TRANSPOSE, "wrong");
        lab_ask(&request, MM_TRANSPOSE, "naive");
        lab.runs = 0;
        struct mm_benchmark *benchmark = lab_run(&request);
        const struct mm_benchmark_row *rows = mm_benchmark_rows(benchmark);
        assert_int_equal(lab.runs, 3 * 6);
        /* The runs that count are 15 and 16, and 17 is the copy's. */
        assert_true(rows[0].median_ns == 1015.0 && rows[1].median_ns == 1016.0);
        assert_true(rows[1].of_yardstick == 217.0 / 1016.0);
        const struct mm_benchmark_row *copy = mm_benchmark_copy(benchmark);
        assert_true(copy->median_ns == 217.0 && copy->of_yardstick == 1.0 && copy->repeats == 1);
        assert_true(mm_benchmark_rate(benchmark, &rows[1]) ==
                    2.0 * M * N * (double)mm_dtype_bytes((enum mm_dtype)dtype) / 1016.0);
        assert_true(rows[1].max_error == 0.0);
        assert_true(rows[0].max_error == (M - 1.0) / (M * N)); /* all of the first row but the corner */
        assert_true(mm_benchmark_loads(benchmark, 1, &loads));
        assert_int_equal(loads, M * N);
        mm_benchmark_close(benchmark);
    }
}

static void backends_have_their_turn(void **state) {
    /* A·B·x and B·x in doubles, x in floats, and C, which is but a piece. */
    const size_t judging = (16 + 16) * 8 + 16 * 4 + 1024;
    struct mm_benchmark_request request = lab_product_of(16, 16, 16, 1);
    struct mm_device host = {
        .backend = &lab_host_backend, .lane_count = 1, .name = "Host", .memory_bytes = (size_t)1 << 30};
    (void)state;
    lab_ask(&request, MM_MATMUL, "naive");
    lab_ask(&request, MM_MATMUL, "blas");
    lab_ask(&request, MM_MATMUL, "naive");
    request.subjects[0].backend = request.subjects[1].backend = &lab_host_backend;
    struct mm_benchmark *benchmark = mm_benchmark_open(&request, LAB_MEMORY_MAX);
    assert_int_equal(mm_benchmark_host_bytes(benchmark), 2 * 3 * 1024 + judging);
    assert_true(lab_run_next(benchmark, &host));
    assert_int_equal(lab.runs, 2 * 2); /* one warm-up */
    assert_int_equal(lab.held_bytes, 2 * 3 * 1024);
    assert_true(lab_run_next(benchmark, &lab_device));
    assert_int_equal(lab.runs, 2 * 2 + 6);
    assert_false(lab_run_next(benchmark, &lab_device));
    const struct mm_benchmark_row *rows = mm_benchmark_rows(benchmark);
    assert_ptr_equal(rows[0].device, &host);
    assert_ptr_equal(rows[2].device, &lab_device);
    assert_true(rows[0].of_yardstick > 0.0);
    assert_true(rows[2].of_yardstick == 0.0); /* it has no blas beside it */
    assert_true(rows[2].max_error < 0.5);
    mm_benchmark_close(benchmark);

    benchmark = mm_benchmark_open(&request, judging + 2 * 3 * 1024 - 1); /* no room for a second set */
    assert_int_equal(mm_benchmark_host_bytes(benchmark), 3 * 1024 + judging);
    mm_benchmark_close(benchmark);
    benchmark = mm_benchmark_open(&request, judging + 2 * 3 * 1024);
    assert_int_equal(mm_benchmark_host_bytes(benchmark), 2 * 3 * 1024 + judging);
    mm_benchmark_close(benchmark);
    benchmark = mm_benchmark_open(&request, judging - 1); /* one is always taken */
    assert_int_equal(mm_benchmark_host_bytes(benchmark), 3 * 1024 + judging);
    mm_benchmark_close(benchmark);
    request.subjects[0].backend = request.subjects[1].backend = &lab_backend;
    benchmark = mm_benchmark_open(&request, LAB_MEMORY_MAX);
    assert_int_equal(mm_benchmark_host_bytes(benchmark), judging);
    mm_benchmark_close(benchmark);
}

static void a_cancelled_benchmark_gives_memory_back(void **state) {
    struct mm_benchmark_request request = lab_product_of(64, 64, 64, 1000);
    struct mm_job job = {.backend = NULL};
    struct mm_error error = {.status = MM_STOPPING};
    (void)state;
    for (int index = 0; index < 40; index++)
        lab_ask(&request, MM_MATMUL, "naive");
    struct mm_benchmark *benchmark = mm_benchmark_open(&request, LAB_MEMORY_MAX);
    assert_true(mm_benchmark_next(benchmark, &job));
    assert_int_equal(job.task->run(job.task, &lab_device, false, &error), MM_TASK_AGAIN);
    assert_int_equal(lab.held, 1);
    assert_int_equal(job.task->run(job.task, &lab_device, true, &error), MM_TASK_OVER);
    assert_int_equal(lab.held, 0);
    assert_int_equal(error.status, MM_STOPPING);
    mm_benchmark_close(benchmark);
}

/* Refused before it began, or broken off: the other backend's figures stay, and so does a row's own failure.
 */
static void a_job_that_came_to_nothing_tells_its_rows(void **state) {
    struct mm_benchmark_request request = lab_product_of(64, 64, 64, 200);
    struct mm_device host = {.backend = &lab_host_backend, .name = "Host", .memory_bytes = (size_t)1 << 30};
    (void)state;
    lab_ask(&request, MM_MATMUL, "naive");
    lab_ask(&request, MM_MATMUL, "refuses");
    for (int index = 0; index < 40; index++)
        lab_ask(&request, MM_MATMUL, "naive");
    request.subjects[0].backend = &lab_host_backend;
    for (int begun = 0; begun < 2; begun++) {
        struct mm_job job = {.backend = NULL};
        struct mm_error error = {.status = MM_OK};
        struct mm_benchmark *benchmark = mm_benchmark_open(&request, LAB_MEMORY_MAX);
        assert_true(lab_run_next(benchmark, &host));
        assert_true(mm_benchmark_next(benchmark, &job));
        if (begun != 0) {
            assert_int_equal(job.task->run(job.task, &lab_device, false, &error), MM_TASK_AGAIN);
            assert_int_equal(job.task->run(job.task, &lab_device, true, &error), MM_TASK_OVER);
        }
        mm_fail(&error, MM_NOT_READY, "it came to nothing");
        mm_benchmark_refuse(benchmark, &error);
        assert_false(mm_benchmark_next(benchmark, &job));
        const struct mm_benchmark_row *rows = mm_benchmark_rows(benchmark);
        assert_true(rows[0].error.status == MM_OK && rows[0].median_ns > 0.0);
        assert_int_equal(rows[1].error.status, begun != 0 ? MM_UNSUPPORTED : MM_NOT_READY);
        for (size_t row = 2; row < request.subject_count; row++)
            assert_string_equal(rows[row].error.detail, "it came to nothing");
        mm_benchmark_close(benchmark);
    }
}

static void sets_fit_into_half_of_the_memory(void **state) {
    struct mm_benchmark_request request = lab_product_of(16, 16, 16, 1);
    (void)state;
    lab_ask(&request, MM_MATMUL, "naive");
    lab_device.l2_bytes = 1 << 20;
    lab_device.memory_bytes = 2 * 5 * 3 * 1024;
    mm_benchmark_close(lab_run(&request));
    assert_int_equal(lab.held_bytes, 5 * 3 * 1024);
    lab_device.memory_bytes = 2 * 3 * 1024 - 1; /* one is more than half */
    lab.held_bytes = 0;
    struct mm_benchmark *benchmark = lab_run(&request);
    assert_int_equal(lab.held_bytes, 0);
    assert_int_equal(mm_benchmark_rows(benchmark)[0].error.status, MM_NO_DEVICE_MEMORY);
    assert_int_equal(mm_benchmark_rows(benchmark)[0].error.needed_bytes, 3 * 1024);
    mm_benchmark_close(benchmark);
    lab_device.l2_bytes = (size_t)1 << 40;
    lab_device.memory_bytes = (size_t)1 << 50;
    request = lab_product_of(1, 1, 1, 1);
    lab_ask(&request, MM_MATMUL, "naive");
    mm_benchmark_close(lab_run(&request));
    assert_int_equal(lab.held_bytes, (size_t)524288 * 3 * 256);
}

static enum mm_status judge(const struct mm_benchmark_request *request,
                            const struct mm_benchmark_limits *limits, struct mm_error *error) {
    enum mm_status status = mm_benchmark_judge_size(request, limits, error);
    return status == MM_OK ? mm_benchmark_judge_work(request, limits, error) : status;
}

static void limits_are_judged_at_their_edges(void **state) {
    const struct mm_limits matrices = {.dimension_max = 1000,
                                       .body_bytes_max = 0,
                                       .memory_bytes_max =
                                           4 * (20 * 30 + 30 * 10 + 2 * 20 * 10) + 8 * (20 + 30) + 4 * 10};
    const struct mm_benchmark_limits limits = {.matrices = &matrices,
                                               .repeats_max = 7,
                                               .flops_max =
                                                   UINT64_C(2) * 7 * 2 * 30 * MM_BENCHMARK_ELEMENTS_MIN,
                                               .run_flops_max = 2 * 30 * MM_BENCHMARK_ELEMENTS_MIN};
    struct mm_error error;
    struct mm_benchmark_request request = lab_product_of(20, 30, 10, 7);
    (void)state;
    lab_ask(&request, MM_MATMUL, "naive");
    lab_ask(&request, MM_MATMUL, "blas");
    assert_int_equal(judge(&request, &limits, &error), MM_OK);

    request.repeats = 8;
    assert_int_equal(judge(&request, &limits, &error), MM_TOO_LARGE);
    assert_string_equal(error.field, "repeats");
    assert_true(error.has_limit && error.limit == 7);
    request.repeats = 4294967297;
    assert_int_equal(judge(&request, &limits, &error), MM_TOO_LARGE);
    assert_string_equal(error.detail, "repeats is 4294967297, but the limit is 7");
    request.repeats = MM_BENCHMARK_REPEATS_CUT;
    assert_int_equal(judge(&request, &limits, &error), MM_TOO_LARGE);
    assert_string_equal(error.detail, "repeats is 9007199254740992 or more, but the limit is 7");
    request.repeats = 0;
    assert_int_equal(judge(&request, &limits, &error), MM_BAD_REQUEST);
    assert_string_equal(error.field, "repeats");
    request.repeats = 7;

    lab_ask(&request, MM_MATMUL, "naive"); /* a row more than the work that is allowed */
    assert_int_equal(judge(&request, &limits, &error), MM_TOO_LARGE);
    assert_true(error.has_limit && error.limit == limits.flops_max);
    assert_non_null(strstr(error.detail, "3 rows of 7 repeats come to 8.25754e+07 operations"));
    request.subject_count = 0;
    assert_int_equal(judge(&request, &limits, &error), MM_BAD_REQUEST);
    assert_string_equal(error.field, "variants");
    request.subject_count = 1;
    request.subjects[0].backend = &lab_host_backend; /* counted a thousandfold */
    assert_int_equal(judge(&request, &limits, &error), MM_TOO_LARGE);
    request.subjects[0].backend = &lab_backend;

    request.repeats = 1;
    request.k = 31; /* a run of more than is allowed, though all of them are not */
    const struct mm_limits wide = {.dimension_max = 1000, .memory_bytes_max = SIZE_MAX};
    const struct mm_benchmark_limits of_a_run = {.matrices = &wide,
                                                 .repeats_max = 7,
                                                 .flops_max = limits.flops_max,
                                                 .run_flops_max = limits.run_flops_max};
    assert_int_equal(judge(&request, &of_a_run, &error), MM_TOO_LARGE);
    assert_true(error.has_limit && error.limit == limits.run_flops_max);
    request.k = 30;
    request.m = request.n = 256; /* so many elements does a C count as at least */
    assert_int_equal(judge(&request, &of_a_run, &error), MM_OK);
    request.m = 257;
    assert_int_equal(judge(&request, &of_a_run, &error), MM_TOO_LARGE);
    assert_non_null(strstr(error.detail, "one run comes to 3.94752e+06 operations"));
    request.m = 20;
    request.n = 10;
    request.repeats = 7;

    request.m = 21; /* 4·(30 + 2·10) + 8 bytes more */
    assert_int_equal(judge(&request, &limits, &error), MM_TOO_LARGE);
    assert_true(error.has_limit && error.limit == matrices.memory_bytes_max);
    request = lab_product_of(1001, 1, 1, 1);
    lab_ask(&request, MM_MATMUL, "naive");
    assert_int_equal(judge(&request, &limits, &error), MM_TOO_LARGE);
    assert_int_equal(error.limit, 1000);
    for (int zero = 0; zero < 3; zero++) {
        request = lab_product_of(zero != 0, zero != 1, zero != 2, 1);
        lab_ask(&request, MM_MATMUL, "naive");
        assert_int_equal(judge(&request, &limits, &error), MM_BAD_REQUEST);
        assert_string_equal(error.field, zero == 0 ? "m" : zero == 1 ? "k" : "n");
    }
    request = (struct mm_benchmark_request){
        .op = MM_TRANSPOSE, .m = 10, .n = 20, .dtype = MM_FLOAT64, .repeats = 1};
    lab_ask(&request, MM_TRANSPOSE, "naive");
    assert_int_equal(judge(&request, &limits, &error), MM_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(rows_are_run_in_turn, lab_reset),
        cmocka_unit_test_setup(figures_are_of_the_runs_that_count, lab_reset),
        cmocka_unit_test_setup(rows_fail_alone, lab_reset),
        cmocka_unit_test_setup(what_befalls_the_device_befalls_all, lab_reset),
        cmocka_unit_test_setup(slow_rows_are_repeated_less, lab_reset),
        cmocka_unit_test_setup(a_row_has_its_time, lab_reset),
        cmocka_unit_test_setup(loads_are_predicted, lab_reset),
        cmocka_unit_test_setup(transpositions_are_compared_with_a_copy, lab_reset),
        cmocka_unit_test_setup(backends_have_their_turn, lab_reset),
        cmocka_unit_test_setup(a_cancelled_benchmark_gives_memory_back, lab_reset),
        cmocka_unit_test_setup(a_job_that_came_to_nothing_tells_its_rows, lab_reset),
        cmocka_unit_test_setup(sets_fit_into_half_of_the_memory, lab_reset),
        cmocka_unit_test_setup(limits_are_judged_at_their_edges, lab_reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
