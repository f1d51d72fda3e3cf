/* Tests benchmarks on a fake device: the order of runs, their operands, their results, and freed memory. */
#include "tests/kernels/benchmark_wrong.h"
#include "lab.h"

static void rows_run_in_turn(void **state) {
    enum { REPEATS = 4, WARM_UPS = 5, ROWS = 3 };
    const struct mm_benchmark_request request = lab_product(16, 16, 16, REPEATS, "naive blas tiled_8");
    lab_device.l2_bytes = 3 * 1024 * 2; /* 7 sets are needed to exceed three times the L2 cache */
    const struct mm_benchmark_row *rows = lab_run(&request);
    assert_int_equal(lab.runs, ROWS * (WARM_UPS + REPEATS));
    assert_int_equal(lab.held_bytes, 7 * 3 * 1024);
    for (unsigned index = 0; index < lab.runs; index++) {
        assert_ptr_equal(lab.variants[index], request.subjects[index % ROWS].variant);
        size_t set = (size_t)(lab.sets[index] - lab.sets[0]) / (3 * 1024);
        assert_int_equal(set, index < ROWS ? 0 : index % 7);
    }
    for (size_t row = 0; row < ROWS; row++)
        assert_int_equal(rows[row].set_count, 7);
}

static void expect_times(const struct mm_benchmark_row *row, double min, double median, double max) {
    assert_true(row->min_ns == min && row->median_ns == median && row->max_ns == max);
}

static void warm_up_runs_do_not_count(void **state) {
    struct mm_benchmark_request request = lab_product(16, 8, 4, 4, "naive blas");
    const struct mm_benchmark_row *rows = lab_run(&request);
    /* Runs 0 to 9 are warm-up runs. Runs 10, 12, 14 and 16 belong to the first row, and runs 11, 13, 15 and
     * 17 to the second. The last digits of a fake time are the number of the run. */
    assert_int_equal(rows[0].repeats, 4);
    expect_times(&rows[0], 1010.0, 1013.0, 1016.0);
    expect_times(&rows[1], 111.0, 114.0, 117.0);
    assert_true(rows[0].of_yardstick == 114.0 / 1013.0 && rows[1].of_yardstick == 1.0);
    assert_null(benchmark_copy(benchmark));
    assert_true(mm_benchmark_rate(benchmark, &rows[0]) == 2.0 * 16 * 8 * 4 / 1013.0);
    assert_ptr_equal(rows[0].device, &lab_device);
    assert_ptr_equal(rows[0].ran, request.subjects[0].variant);
    for (int row = 0; row < 2; row++)
        assert_true(rows[row].error.status == MM_OK && rows[row].max_error > 0.0 &&
                    rows[row].max_error < 0.5);
    request.repeats = 3; /* an odd number, so the median is one of the times */
    request.subject_count = 1;
    rows = lab_run(&request);
    expect_times(&rows[0], 1005.0, 1006.0, 1007.0);
    assert_true(rows[0].of_yardstick == 0.0);
}

static void device_failure_fails_all_rows(void **state) {
    static const enum mm_status statuses[] = {MM_NO_DEVICE_MEMORY, MM_INTERNAL, MM_DEVICE_FAILED};
    const struct mm_benchmark_request request = lab_product(16, 16, 16, 2, "naive loses_device blas");
    for (int trial = 0; trial < 3; trial++) {
        lab_reset(state);
        lab.no_memory = trial == 0;
        lab.no_fill = trial == 1;
        const struct mm_benchmark_row *rows = lab_run(&request);
        for (size_t row = 0; row < 3; row++)
            assert_int_equal(rows[row].error.status, statuses[trial]);
        assert_int_equal(lab.runs, trial == 2 ? 2 : 0);
    }
}

static void slow_rows_are_repeated_less(void **state) {
    const struct mm_benchmark_request request = lab_product(4, 4, 4, 3, "slow naive");
    lab.slow_ns = UINT64_C(1500000000); /* so slow that the first run is counted and not used as a warm-up */
    const struct mm_benchmark_row *rows = lab_run(&request);
    assert_true(rows[0].repeats == 3 && rows[1].repeats == 3);
    assert_int_equal(lab.runs, 3 + 5 + 3);
    assert_true(rows[0].min_ns == 1.5e9);
}

static void time_of_a_row_is_limited(void **state) {
    struct mm_benchmark_request request = lab_product(4, 4, 4, 10, "naive");
    request.row_ns = 1;
    assert_int_equal(lab_run(&request)[0].repeats, 1);
    assert_int_equal(lab.runs, 1); /* the only run is no warm-up */
}

static uint64_t loads_of(size_t row) {
    return mm_benchmark_traffic(benchmark, row).figures[MM_GLOBAL_LOADS];
}

/* The expected number of loads is m·k·⌈n/T⌉ + k·n·⌈m/T⌉ for tiles of T×T. T is 1, 8, 4 and 8. In the last row
 * T is 8, because `auto` runs tiled_8. */
static void loads_are_predicted(void **state) {
    static const struct {
        size_t m, k, n;
        uint64_t loads[5];
    } cases[] = {{16, 16, 16, {8192, 1024, 2048, 1024, 1024}},
                 {17, 3, 5, {510, 96, 177, 96, 96}},
                 {1, 1, 1, {2, 2, 2, 2, 2}}};
    for (size_t which = 0; which < COUNT(cases); which++) {
        struct mm_benchmark_request request = lab_product(cases[which].m, cases[which].k, cases[which].n, 1,
                                                          "naive tiled_8 dynamic dynamic auto blas missing");
        request.subjects[3].tile = 8;
        for (size_t row = 0; row < request.subject_count; row++)
            request.subjects[row].backend = &lab_host_backend;
        lab_open(&request);
        assert_true(lab_run_next(&lab_host));
        const struct mm_benchmark_row *rows = mm_benchmark_rows(benchmark);
        assert_string_equal(rows[4].ran->name, "tiled_8");
        assert_int_equal(rows[6].error.status, MM_UNSUPPORTED);
        assert_non_null(strstr(rows[6].error.detail, "no device has it"));
        for (size_t row = 0; row < 5; row++)
            assert_int_equal(loads_of(row), cases[which].loads[row]);
        assert_int_equal(loads_of(5), MM_TRAFFIC_UNKNOWN);
        assert_int_equal(loads_of(6), MM_TRAFFIC_UNKNOWN);
    }
}

static void transpositions_are_compared_with_a_copy(void **state) {
    enum { M = 37, N = 19 };
    for (unsigned dtype = 0; dtype < MM_DTYPE_COUNT; dtype++) {
        const struct mm_benchmark_request request =
            lab_transposition(M, N, (enum mm_dtype)dtype, "naive naive");
        const struct mm_benchmark_row *rows = lab_run(&request);
        const struct mm_benchmark_row *copy = benchmark_copy(benchmark);
        assert_int_equal(lab.runs, 3 * 6);
        /* Runs 15 and 16 belong to the rows, and run 17 to the plain copy. */
        assert_true(rows[0].median_ns == 1015.0 && rows[1].median_ns == 1016.0);
        assert_true(rows[1].of_yardstick == 217.0 / 1016.0);
        assert_true(copy->median_ns == 217.0 && copy->of_yardstick == 1.0 && copy->repeats == 1);
        assert_true(mm_benchmark_rate(benchmark, &rows[1]) ==
                    2.0 * M * N * (double)mm_dtype_bytes((enum mm_dtype)dtype) / 1016.0);
        assert_true(rows[1].max_error == 0.0);
        assert_int_equal(loads_of(1), MM_TRAFFIC_UNKNOWN);
    }
}

static void expect_host_bytes(const struct mm_benchmark_request *request, size_t memory_max, size_t bytes) {
    struct mm_benchmark *opened = mm_benchmark_open(request, memory_max);
    assert_int_equal(mm_benchmark_host_bytes(opened), bytes);
    mm_benchmark_close(opened);
}

static void backends_run_one_after_another(void **state) {
    /* The check needs vectors, sums, a row in float64 and a part of C. */
    const size_t judging = (4 * 16 + 5 * (16 + 16 + 1) + 16) * 8 + 1024, times = 3 * 1 * 8, set = 3 * 1024;
    struct mm_benchmark_request request = lab_product(16, 16, 16, 1, "naive blas naive");
    request.subjects[0].backend = request.subjects[1].backend = &lab_host_backend;
    lab_open(&request);
    assert_int_equal(mm_benchmark_host_bytes(benchmark), 2 * set + judging + times);
    assert_true(lab_run_next(&lab_host));
    assert_int_equal(lab.runs, 2 * 2); /* a warm-up and a counted run of each row */
    assert_int_equal(lab.held_bytes, 2 * set);
    assert_true(lab_run_next(&lab_device));
    assert_int_equal(lab.runs, 2 * 2 + 6);
    assert_false(lab_run_next(&lab_device));
    const struct mm_benchmark_row *rows = mm_benchmark_rows(benchmark);
    assert_ptr_equal(rows[0].device, &lab_host);
    assert_ptr_equal(rows[2].device, &lab_device);
    assert_true(rows[0].of_yardstick > 0.0);
    assert_true(rows[2].of_yardstick == 0.0); /* blas is not among the rows */
    assert_true(rows[2].max_error < 0.5);
    const size_t beside = judging + times;
    expect_host_bytes(&request, beside + 2 * set, 2 * set + beside);
    expect_host_bytes(&request, beside + 2 * set - 1,
                      set + beside);                       /* one byte too little for a second set */
    expect_host_bytes(&request, beside - 1, set + beside); /* one set is always allowed */
    request.subjects[0].backend = request.subjects[1].backend = &lab_backend;
    expect_host_bytes(&request, LAB_MEMORY_MAX, judging + times);
    /* Operands that are not random are also copied. */
    request.sources[MM_OPERAND_A].kind = request.sources[MM_OPERAND_B].kind = MM_SOURCE_IDENTITY;
    expect_host_bytes(&request, LAB_MEMORY_MAX, 2048 + judging + times);
}

/* If one backend fails or is cancelled, the results of the other backend remain. */
static void failed_backend_fails_only_its_rows(void **state) {
    struct mm_benchmark_request request = lab_product(64, 64, 64, 200, "naive refuses");
    for (int index = 0; index < 40; index++)
        lab_ask(&request, "naive");
    request.subjects[0].backend = &lab_host_backend;
    for (int begun = 0; begun < 3; begun++) {
        struct mm_device *device = begun < 2 ? &lab_device : NULL; /* NULL if the device hangs */
        struct mm_task task = {.shares = false};
        struct mm_error error = {.status = MM_OK};
        lab_open(&request);
        assert_true(lab_run_next(&lab_host));
        assert_true(mm_benchmark_next_task(benchmark, &task));
        if (begun != 0) {
            assert_int_equal(task.run(&task, &lab_device, false), MM_TASK_AGAIN);
            assert_int_equal(lab.held, 1);
            assert_int_equal(task.run(&task, device, true), MM_TASK_OVER);
            assert_int_equal(lab.held, device == NULL);
            if (device == NULL)
                free(lab.memory);
        }
        mm_fail(&error, MM_NOT_READY, "the backend failed");
        mm_benchmark_fail_rows(benchmark, &error);
        assert_false(mm_benchmark_next_task(benchmark, &task));
        const struct mm_benchmark_row *rows = mm_benchmark_rows(benchmark);
        assert_true(rows[0].error.status == MM_OK && rows[0].median_ns > 0.0);
        assert_int_equal(rows[1].error.status, begun != 0 ? MM_UNSUPPORTED : MM_NOT_READY);
        for (size_t row = 2; row < request.subject_count; row++)
            assert_string_equal(rows[row].error.detail, "the backend failed");
    }
}

static void sets_fit_into_half_of_the_memory(void **state) {
    struct mm_benchmark_request request = lab_product(16, 16, 16, 1, "naive");
    lab_device.l2_bytes = 1 << 20;
    lab_device.memory_bytes = 2 * 5 * 3 * 1024;
    lab_run(&request);
    assert_int_equal(lab.held_bytes, 5 * 3 * 1024);
    lab_device.memory_bytes = 2 * 3 * 1024 - 1; /* half of this is too little for a set */
    lab.held_bytes = 0;
    const struct mm_error *error = &lab_run(&request)[0].error;
    assert_int_equal(lab.held_bytes, 0);
    assert_int_equal(error->status, MM_NO_DEVICE_MEMORY);
    assert_int_equal(error->needed_bytes, 3 * 1024);
    lab_device.l2_bytes = (size_t)1 << 40;
    lab_device.memory_bytes = (size_t)1 << 50;
    request = lab_product(1, 1, 1, 1, "naive");
    lab_run(&request);
    assert_int_equal(lab.held_bytes, (size_t)524288 * 3 * 256);
}

/* The device's rates predict each row's time. A row above the time limit fails, and the others still run. */
static void only_slow_rows_are_rejected(void **state) {
    struct mm_benchmark_request request = lab_product(16, 16, 16, 2, "naive blas tiled_8");
    request.kernel_ms_max = 7;
    const struct mm_matrix edge_16 = mm_matrix_dense(MM_FLOAT32, 16, 16, NULL);
    const struct mm_product square = {.m = 16,
                                      .n = 16,
                                      .k = 65536, /* the forecast counts at least 65536 elements of C */
                                      .a = edge_16,
                                      .b = edge_16,
                                      .c = edge_16};
    mm_forecast_assume(&lab_device, request.subjects[0].variant, &square, 8.1e6 * 16);
    mm_forecast_assume(&lab_device, request.subjects[1].variant, &square, 6.9e6 * 16);
    const struct mm_benchmark_row *rows = lab_run(&request);
    assert_int_equal(rows[0].error.status, MM_TOO_LARGE);
    assert_true(rows[0].error.has_limit && rows[0].error.limit == 7);
    assert_int_equal(rows[1].error.status, MM_OK);
    assert_int_equal(rows[1].repeats, 2);
    assert_int_equal(rows[2].error.status, MM_OK); /* the row has no rate, so its time is unknown */
}

/* The time of a long run on the host is the sum of its parts. Other jobs may run between parts. */
static void long_runs_are_divided_into_parts(void **state) {
    enum { EDGE = 40, REPEATS = 2, RUNS = 1 + REPEATS };
    struct mm_benchmark_request request = lab_product(EDGE, EDGE, EDGE, REPEATS, "cuts naive");
    const struct mm_product square = {.m = EDGE, .n = EDGE, .k = EDGE};
    request.subjects[0].backend = request.subjects[1].backend = &lab_host_backend;
    lab_device.backend = &lab_host_backend;
    mm_forecast_assume(&lab_device, request.subjects[0].variant, &square, 4.0 * (double)MM_PART_NS);
    const struct mm_benchmark_row *rows = lab_run(&request);
    assert_int_equal(rows[0].error.status, MM_OK);
    assert_int_equal(rows[0].repeats, REPEATS);
    assert_true(rows[0].max_error < 1.0);
    assert_true(rows[0].min_ns >= 2000.0 && rows[1].max_ns < 2000.0);
    assert_int_equal(lab.runs, RUNS * 2 + RUNS); /* each run of `cuts` has two parts */
}

RUN_TESTS_BETWEEN(lab_reset, lab_close, rows_run_in_turn, warm_up_runs_do_not_count,
                  device_failure_fails_all_rows, slow_rows_are_repeated_less, only_slow_rows_are_rejected,
                  long_runs_are_divided_into_parts, time_of_a_row_is_limited, loads_are_predicted,
                  transpositions_are_compared_with_a_copy, backends_run_one_after_another,
                  failed_backend_fails_only_its_rows, sets_fit_into_half_of_the_memory)
