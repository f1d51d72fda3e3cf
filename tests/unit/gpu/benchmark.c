/* Benchmarks on a made-up device: the order of runs and the rotation of sets, the figures, what is judged
 * right, the limits, and that memory is given back however it ends. */
#include "gpu/benchmark.h"
#include "gpu/cpu/cpu_backend.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

enum { RUNS_MAX = 4096, SET_MAX = 1 << 20 };

/* What the device was asked to run, and what it holds. */
static struct {
    const struct mm_variant *variants[RUNS_MAX];
    const char *sets[RUNS_MAX]; /* where A lay */
    unsigned runs;
    unsigned held; /* pieces of memory */
    size_t held_bytes;
    bool no_memory;
    bool no_fill;
    uint64_t slow_ns; /* what a run of `slow` takes by the device's clock */
} lab;

static struct mm_device lab_device;

static enum mm_status multiply(const struct mm_product *product, struct mm_lane *lane,
                               struct mm_error *error) {
    return mm_cpu_backend.variants[0].launch(product, lane, error);
}

/* Leaves the last element of C as it was. */
static enum mm_status drop_corner(const struct mm_product *product, struct mm_lane *lane,
                                  struct mm_error *error) {
    const size_t last = product->m * product->n - 1;
    float kept = 0.0F;
    memcpy(&kept, (float *)product->c.data + last, sizeof kept);
    enum mm_status status = multiply(product, lane, error);
    memcpy((float *)product->c.data + last, &kept, sizeof kept);
    return status;
}

/* Leaves the last step of k out. */
static enum mm_status drop_slab(const struct mm_product *product, struct mm_lane *lane,
                                struct mm_error *error) {
    struct mm_product less = *product;
    less.k--;
    return multiply(&less, lane, error);
}

static enum mm_status do_nothing(const struct mm_product *product, struct mm_lane *lane,
                                 struct mm_error *error) {
    (void)product;
    (void)lane;
    (void)error;
    return MM_OK;
}

static enum mm_status refuse(const struct mm_product *product, struct mm_lane *lane, struct mm_error *error) {
    (void)product;
    (void)lane;
    return mm_fail(error, MM_UNSUPPORTED, "not this shape");
}

static enum mm_status lose_device(const struct mm_product *product, struct mm_lane *lane,
                                  struct mm_error *error) {
    (void)product;
    (void)lane;
    __atomic_store_n(&lab_device.failed, 1, __ATOMIC_RELAXED);
    return mm_fail(error, MM_DEVICE_FAILED, "lost as told");
}

static enum mm_status transpose(const struct mm_product *product, struct mm_lane *lane,
                                struct mm_error *error) {
    const size_t bytes = mm_dtype_bytes(product->a.dtype);
    (void)lane;
    (void)error;
    for (size_t row = 0; row < product->m; row++)
        for (size_t col = 0; col < product->n; col++) {
            const size_t source =
                product->transpose_a ? col * product->a.ld + row : row * product->a.ld + col;
            memcpy((char *)product->c.data + (row * product->c.ld + col) * bytes,
                   (const char *)product->a.data + source * bytes, bytes);
        }
    return MM_OK;
}

/* The first row of C is as A's first, and not its first column. */
static enum mm_status transpose_wrongly(const struct mm_product *product, struct mm_lane *lane,
                                        struct mm_error *error) {
    enum mm_status status = transpose(product, lane, error);
    memcpy(product->c.data, product->a.data, product->n * mm_dtype_bytes(product->a.dtype));
    return status;
}

static enum mm_status sleep_long(const struct mm_product *product, struct mm_lane *lane,
                                 struct mm_error *error) {
    const struct timespec pause = {.tv_nsec = 700000000};
    nanosleep(&pause, NULL);
    return multiply(product, lane, error);
}

static const char *nowhere(const struct mm_device *device) {
    (void)device;
    return "no device has it";
}

enum { ALL_DTYPES = (1u << MM_DTYPE_COUNT) - 1 };
static const unsigned tiles[] = {4, 8, 0};
static const struct mm_variant variants[];

static const struct mm_variant *choose(const struct mm_device *device, const struct mm_product *product) {
    (void)device;
    (void)product;
    return &variants[1];
}

#define MATMUL(variant, function) .name = variant, .dtypes = MM_DTYPE_BIT(MM_FLOAT32), .launch = function
#define TRANSPOSE(variant, function)                                                                         \
    .op = MM_TRANSPOSE, .name = variant, .dtypes = ALL_DTYPES, .launch = function
static const struct mm_variant variants[] = {
    {MATMUL("naive", multiply)},
    {MATMUL("tiled_8", multiply), .tile = 8},
    {MATMUL("dynamic", multiply), .tile = 4, .tiles = tiles},
    {MATMUL("blas", multiply)},
    {MATMUL("no_corner", drop_corner)},
    {MATMUL("no_slab", drop_slab)},
    {MATMUL("nothing", do_nothing)},
    {MATMUL("refuses", refuse)},
    {MATMUL("loses_device", lose_device)},
    {MATMUL("missing", multiply), .missing = nowhere},
    {MATMUL("slow", multiply)},
    {MATMUL("sleeps", sleep_long)},
    {.name = "auto", .dtypes = MM_DTYPE_BIT(MM_FLOAT32), .choose = choose},
    {TRANSPOSE("absent", transpose), .missing = nowhere},
    {TRANSPOSE("naive", transpose)},
    {TRANSPOSE("wrong", transpose_wrongly)},
};

static size_t memory_free(const struct mm_device *device) {
    return device->memory_bytes;
}

static enum mm_status acquire(struct mm_device *device, size_t bytes, void **memory, struct mm_error *error) {
    (void)device;
    if (lab.no_memory)
        return mm_fail(error, MM_NO_DEVICE_MEMORY, "none as told");
    lab.held++;
    lab.held_bytes = bytes;
    *memory = malloc(bytes);
    memset(*memory, 0, bytes);
    return MM_OK;
}

static void release(struct mm_device *device, void *memory) {
    (void)device;
    lab.held--;
    free(memory);
}

static enum mm_status copy(struct mm_device *device, void *to, const void *from, size_t bytes,
                           struct mm_error *error) {
    (void)device;
    (void)error;
    memcpy(to, from, bytes);
    return MM_OK;
}

static enum mm_status fill(struct mm_device *device, void *memory, size_t count, uint64_t seed,
                           struct mm_error *error) {
    (void)device;
    if (lab.no_fill)
        return mm_fail(error, MM_INTERNAL, "no numbers as told");
    return mm_cpu_backend.fill(NULL, memory, count, seed, error);
}

/* Time goes by numbers, so that the figures are known: blas takes 100 ns, a plain copy 200, all others 1000;
 * but the more, the more runs there were. */
static enum mm_status measure(struct mm_device *device, const struct mm_variant *variant,
                              const struct mm_product *product, uint64_t *kernel_ns, struct mm_error *error) {
    (void)device;
    assert_true(lab.runs < RUNS_MAX);
    assert_true(product->m > 0 && product->n > 0);
    if (variant->op == MM_TRANSPOSE)
        assert_int_equal(product->b.rows * product->b.cols, 0);
    *kernel_ns = strcmp(variant->name, "blas") == 0                      ? 100
                 : variant->op == MM_TRANSPOSE && !product->transpose_a  ? 200
                 : strcmp(variant->name, "slow") == 0 && lab.slow_ns > 0 ? lab.slow_ns
                                                                         : 1000;
    *kernel_ns += lab.runs;
    lab.variants[lab.runs] = variant;
    lab.sets[lab.runs++] = product->a.data;
    return variant->launch(product, NULL, error);
}

#define FUNCTIONS                                                                                            \
    .variants = variants, .variant_count = sizeof variants / sizeof variants[0], .memory_free = memory_free, \
    .acquire = acquire, .release = release, .upload = copy, .download = copy, .fill = fill,                  \
    .measure = measure
static const struct mm_backend lab_backend = {.name = "lab", FUNCTIONS};
static const struct mm_backend host_backend = {.name = "host", .is_host = true, FUNCTIONS};

static int reset(void **state) {
    (void)state;
    memset(&lab, 0, sizeof lab);
    lab_device = (struct mm_device){
        .backend = &lab_backend, .lane_count = 1, .name = "Lab", .memory_bytes = (size_t)1 << 30};
    return 0;
}

static void ask(struct mm_benchmark_request *request, enum mm_op op, const char *variant) {
    const struct mm_variant *found = mm_backend_variant(&lab_backend, op, variant);
    assert_non_null(found);
    request->subjects[request->subject_count++] =
        (struct mm_benchmark_subject){.backend = &lab_backend, .variant = found};
}

static struct mm_benchmark_request product_of(size_t m, size_t k, size_t n, unsigned repeats) {
    return (struct mm_benchmark_request){
        .op = MM_MATMUL, .m = m, .k = k, .n = n, .dtype = MM_FLOAT32, .repeats = repeats};
}

/* Runs the next backend's task to its end; false where there is none. */
static bool run_next(struct mm_benchmark *benchmark, struct mm_device *device) {
    struct mm_job job = {.backend = NULL};
    struct mm_error error = {.status = MM_OK};
    if (!mm_benchmark_next(benchmark, &job))
        return false;
    assert_non_null(job.task);
    assert_null(job.variant);
    assert_ptr_equal(job.backend, device->backend);
    while (job.task->run(job.task, device, false, &error) == MM_TASK_AGAIN)
        continue;
    assert_int_equal(error.status, MM_OK);
    assert_int_equal(lab.held, 0);
    return true;
}

static struct mm_benchmark *run(const struct mm_benchmark_request *request) {
    struct mm_benchmark *benchmark = mm_benchmark_open(request, SET_MAX);
    assert_non_null(benchmark);
    assert_true(run_next(benchmark, &lab_device));
    assert_false(run_next(benchmark, &lab_device));
    return benchmark;
}

static void rows_are_run_in_turn(void **state) {
    enum { REPEATS = 4, WARM_UPS = 5, ROWS = 3 };
    struct mm_benchmark_request request = product_of(16, 16, 16, REPEATS);
    (void)state;
    ask(&request, MM_MATMUL, "naive");
    ask(&request, MM_MATMUL, "blas");
    ask(&request, MM_MATMUL, "tiled_8");
    lab_device.l2_bytes = 3 * 1024 * 2; /* three times that is six sets, so that seven pass it */
    struct mm_benchmark *benchmark = run(&request);
    assert_int_equal(lab.runs, ROWS * (WARM_UPS + REPEATS));
    assert_int_equal(lab.held_bytes, 7 * 3 * 1024);
    for (unsigned index = 0; index < lab.runs; index++) {
        assert_ptr_equal(lab.variants[index], request.subjects[index % ROWS].variant);
        size_t set = (size_t)(lab.sets[index] - lab.sets[0]) / (3 * 1024);
        assert_int_equal(set, index < ROWS ? 0 : index % 7);
    }
    mm_benchmark_close(benchmark);
}

static void figures_are_of_the_runs_that_count(void **state) {
    struct mm_benchmark_request request = product_of(16, 8, 4, 4);
    (void)state;
    ask(&request, MM_MATMUL, "naive");
    ask(&request, MM_MATMUL, "blas");
    struct mm_benchmark *benchmark = run(&request);
    const struct mm_benchmark_row *rows = mm_benchmark_rows(benchmark);
    /* Five warm-ups of two rows go before: the runs 10, 12, 14, 16 and 11, 13, 15, 17. */
    assert_int_equal(rows[0].repeats, 4);
    assert_true(rows[0].min_ns == 1010.0 && rows[0].median_ns == 1013.0 && rows[0].max_ns == 1016.0);
    assert_true(rows[1].min_ns == 111.0 && rows[1].median_ns == 114.0 && rows[1].max_ns == 117.0);
    assert_true(rows[0].of_yardstick == 114.0 / 1013.0);
    assert_true(rows[1].of_yardstick == 1.0);
    assert_true(mm_benchmark_rate(benchmark, &rows[0]) == 2.0 * 16 * 8 * 4 / 1013.0);
    assert_ptr_equal(rows[0].device, &lab_device);
    assert_ptr_equal(rows[0].ran, &variants[0]);
    for (int row = 0; row < 2; row++)
        assert_true(rows[row].error.status == MM_OK && rows[row].max_error > 0.0 &&
                    rows[row].max_error < 0.5);
    mm_benchmark_close(benchmark);

    request.repeats = 3; /* a middle one */
    request.subject_count = 1;
    lab.runs = 0;
    benchmark = run(&request);
    rows = mm_benchmark_rows(benchmark);
    assert_true(rows[0].min_ns == 1005.0 && rows[0].median_ns == 1006.0 && rows[0].max_ns == 1007.0);
    assert_true(rows[0].of_yardstick == 0.0);
    mm_benchmark_close(benchmark);
}

/* Where zeros would pass, a right result is not told to be right, and a wrong one still to be wrong. */
static void nothing_is_said_of_what_zeros_would_pass(void **state) {
    (void)state;
    struct mm_benchmark_request request = product_of(2, (size_t)1 << 18, 2, 1);
    ask(&request, MM_MATMUL, "naive");
    ask(&request, MM_MATMUL, "nothing");
    lab.runs = 0;
    struct mm_benchmark *benchmark = run(&request);
    const struct mm_benchmark_row *rows = mm_benchmark_rows(benchmark);
    assert_int_equal(rows[0].error.status, MM_OK);
    assert_true(isnan(rows[0].max_error));
    assert_true(isinf(rows[1].max_error));
    mm_benchmark_close(benchmark);
}

static void wrong_results_are_found(void **state) {
    static const size_t shapes[][3] = {{16, 16, 16}, {33, 7, 65}, {300, 200, 400}, {1, 64, 1}};
    static const char *const wrong[] = {"no_corner", "no_slab", "nothing"};
    (void)state;
    for (size_t shape = 0; shape < sizeof shapes / sizeof shapes[0]; shape++) {
        struct mm_benchmark_request request =
            product_of(shapes[shape][0], shapes[shape][1], shapes[shape][2], 1);
        ask(&request, MM_MATMUL, "naive"); /* which leaves the right result in place */
        for (size_t which = 0; which < 3; which++)
            ask(&request, MM_MATMUL, wrong[which]);
        ask(&request, MM_MATMUL, "naive");
        lab.runs = 0;
        struct mm_benchmark *benchmark = run(&request);
        const struct mm_benchmark_row *rows = mm_benchmark_rows(benchmark);
        for (size_t row = 0; row < request.subject_count; row++) {
            assert_int_equal(rows[row].error.status, MM_OK);
            const bool is_right = row == 0 || row == 4;
            if (is_right != (rows[row].max_error <= 1.0))
                fail_msg("%zu: %s has an error of %g", shape, request.subjects[row].variant->name,
                         rows[row].max_error);
        }
        assert_true(isinf(rows[1].max_error) && isinf(rows[3].max_error));
        mm_benchmark_close(benchmark);
    }
}

static void rows_fail_alone(void **state) {
    struct mm_benchmark_request request = product_of(16, 16, 16, 2);
    (void)state;
    ask(&request, MM_MATMUL, "refuses");
    ask(&request, MM_MATMUL, "missing");
    ask(&request, MM_MATMUL, "auto");
    struct mm_benchmark *benchmark = run(&request);
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
    struct mm_benchmark_request request = product_of(16, 16, 16, 2);
    (void)state;
    ask(&request, MM_MATMUL, "naive");
    ask(&request, MM_MATMUL, "loses_device");
    ask(&request, MM_MATMUL, "blas");
    for (int trial = 0; trial < 3; trial++) {
        reset(NULL);
        lab.no_memory = trial == 0;
        lab.no_fill = trial == 1;
        const enum mm_status expected = trial == 0   ? MM_NO_DEVICE_MEMORY
                                        : trial == 1 ? MM_INTERNAL
                                                     : MM_DEVICE_FAILED;
        struct mm_benchmark *benchmark = run(&request);
        const struct mm_benchmark_row *rows = mm_benchmark_rows(benchmark);
        for (size_t row = 0; row < 3; row++)
            assert_int_equal(rows[row].error.status, expected);
        assert_int_equal(lab.runs, trial == 2 ? 2 : 0);
        mm_benchmark_close(benchmark);
    }
}

static void slow_rows_are_repeated_less(void **state) {
    struct mm_benchmark_request request = product_of(4, 4, 4, 3);
    (void)state;
    ask(&request, MM_MATMUL, "slow");
    ask(&request, MM_MATMUL, "naive");
    lab.slow_ns = UINT64_C(1500000000); /* its first run counts: then there are no warm-ups */
    struct mm_benchmark *benchmark = run(&request);
    const struct mm_benchmark_row *rows = mm_benchmark_rows(benchmark);
    assert_int_equal(rows[0].repeats, 3);
    assert_int_equal(rows[1].repeats, 3);
    assert_int_equal(lab.runs, 3 + 5 + 3);
    assert_true(rows[0].min_ns == 1.5e9);
    mm_benchmark_close(benchmark);
}

/* Two warm-ups of 0.7 s each use the time up, so that the third run counts, and is the last. */
static void a_row_has_its_time(void **state) {
    struct mm_benchmark_request request = product_of(4, 4, 4, 10);
    (void)state;
    ask(&request, MM_MATMUL, "sleeps");
    ask(&request, MM_MATMUL, "naive");
    struct mm_benchmark *benchmark = run(&request);
    const struct mm_benchmark_row *rows = mm_benchmark_rows(benchmark);
    assert_int_equal(rows[0].repeats, 1);
    assert_int_equal(rows[1].repeats, 10);
    assert_int_equal(lab.runs, 3 + 5 + 10);
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
        struct mm_benchmark_request request = product_of(cases[which].m, cases[which].k, cases[which].n, 1);
        uint64_t loads = 0;
        ask(&request, MM_MATMUL, "naive");
        ask(&request, MM_MATMUL, "tiled_8");
        ask(&request, MM_MATMUL, "dynamic");
        ask(&request, MM_MATMUL, "dynamic");
        request.subjects[3].tile = 8;
        ask(&request, MM_MATMUL, "auto");
        ask(&request, MM_MATMUL, "blas");
        ask(&request, MM_MATMUL, "missing");
        lab.runs = 0;
        struct mm_benchmark *benchmark = run(&request);
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
        ask(&request, MM_TRANSPOSE, "wrong");
        ask(&request, MM_TRANSPOSE, "naive");
        lab.runs = 0;
        struct mm_benchmark *benchmark = run(&request);
        const struct mm_benchmark_row *rows = mm_benchmark_rows(benchmark);
        assert_int_equal(lab.runs, 3 * 6);
        /* The runs that count are 15 and 16, and 17 is the copy's. */
        assert_true(rows[0].median_ns == 1015.0 && rows[1].median_ns == 1016.0);
        assert_true(rows[1].of_yardstick == 217.0 / 1016.0);
        assert_true(mm_benchmark_rate(benchmark, &rows[1]) ==
                    2.0 * M * N * (double)mm_dtype_bytes((enum mm_dtype)dtype) / 1016.0);
        assert_true(rows[1].max_error == 0.0);
        /* All of the first row but the corner is wrong; of 37 in a row, 16 wide, some are looked at twice. */
        assert_true(rows[0].max_error > 0.04 && rows[0].max_error < 0.06);
        assert_true(mm_benchmark_loads(benchmark, 1, &loads));
        assert_int_equal(loads, M * N);
        mm_benchmark_close(benchmark);
    }
}

static void backends_have_their_turn(void **state) {
    struct mm_benchmark_request request = product_of(16, 16, 16, 1);
    struct mm_device host = {
        .backend = &host_backend, .lane_count = 1, .name = "Host", .memory_bytes = (size_t)1 << 30};
    (void)state;
    ask(&request, MM_MATMUL, "naive");
    ask(&request, MM_MATMUL, "blas");
    ask(&request, MM_MATMUL, "naive");
    request.subjects[0].backend = request.subjects[1].backend = &host_backend;
    struct mm_benchmark *benchmark = mm_benchmark_open(&request, SET_MAX);
    assert_int_equal(mm_benchmark_host_bytes(benchmark), 2 * 3 * 1024);
    assert_true(run_next(benchmark, &host));
    assert_int_equal(lab.runs, 2 * 2); /* one warm-up */
    assert_int_equal(lab.held_bytes, 2 * 3 * 1024);
    assert_true(run_next(benchmark, &lab_device));
    assert_int_equal(lab.runs, 2 * 2 + 6);
    assert_false(run_next(benchmark, &lab_device));
    const struct mm_benchmark_row *rows = mm_benchmark_rows(benchmark);
    assert_ptr_equal(rows[0].device, &host);
    assert_ptr_equal(rows[2].device, &lab_device);
    assert_true(rows[0].of_yardstick > 0.0);
    assert_true(rows[2].of_yardstick == 0.0); /* it has no blas beside it */
    assert_true(rows[2].max_error < 0.5);
    mm_benchmark_close(benchmark);

    benchmark = mm_benchmark_open(&request, 2 * 3 * 1024 - 1); /* no room for a second set */
    assert_int_equal(mm_benchmark_host_bytes(benchmark), 3 * 1024);
    mm_benchmark_close(benchmark);
    request.subjects[0].backend = request.subjects[1].backend = &lab_backend;
    benchmark = mm_benchmark_open(&request, SET_MAX);
    assert_int_equal(mm_benchmark_host_bytes(benchmark), 0);
    mm_benchmark_close(benchmark);
}

static void a_cancelled_benchmark_gives_memory_back(void **state) {
    struct mm_benchmark_request request = product_of(64, 64, 64, 1000);
    struct mm_job job = {.backend = NULL};
    struct mm_error error = {.status = MM_STOPPING};
    (void)state;
    for (int index = 0; index < 40; index++)
        ask(&request, MM_MATMUL, "naive");
    struct mm_benchmark *benchmark = mm_benchmark_open(&request, SET_MAX);
    assert_true(mm_benchmark_next(benchmark, &job));
    assert_int_equal(job.task->run(job.task, &lab_device, false, &error), MM_TASK_AGAIN);
    assert_int_equal(lab.held, 1);
    assert_int_equal(job.task->run(job.task, &lab_device, true, &error), MM_TASK_OVER);
    assert_int_equal(lab.held, 0);
    assert_int_equal(error.status, MM_STOPPING);
    mm_benchmark_close(benchmark);
}

static void sets_fit_into_half_of_the_memory(void **state) {
    struct mm_benchmark_request request = product_of(16, 16, 16, 1);
    (void)state;
    ask(&request, MM_MATMUL, "naive");
    lab_device.l2_bytes = 1 << 20;
    lab_device.memory_bytes = 2 * 5 * 3 * 1024;
    mm_benchmark_close(run(&request));
    assert_int_equal(lab.held_bytes, 5 * 3 * 1024);
    lab_device.memory_bytes = 2 * 3 * 1024 - 1; /* one is more than half */
    lab.held_bytes = 0;
    struct mm_benchmark *benchmark = run(&request);
    assert_int_equal(lab.held_bytes, 0);
    assert_int_equal(mm_benchmark_rows(benchmark)[0].error.status, MM_NO_DEVICE_MEMORY);
    assert_int_equal(mm_benchmark_rows(benchmark)[0].error.needed_bytes, 3 * 1024);
    mm_benchmark_close(benchmark);
    lab_device.l2_bytes = (size_t)1 << 40;
    lab_device.memory_bytes = (size_t)1 << 50;
    request = product_of(1, 1, 1, 1);
    ask(&request, MM_MATMUL, "naive");
    mm_benchmark_close(run(&request));
    assert_int_equal(lab.held_bytes, 65536 * 3 * 256);
}

static enum mm_status judge(const struct mm_benchmark_request *request,
                            const struct mm_benchmark_limits *limits, struct mm_error *error) {
    enum mm_status status = mm_benchmark_judge_size(request, limits, error);
    return status == MM_OK ? mm_benchmark_judge_work(request, limits, error) : status;
}

static void limits_are_judged_at_their_edges(void **state) {
    const struct mm_limits matrices = {
        .dimension_max = 1000, .body_bytes_max = 0, .memory_bytes_max = 4 * (20 * 30 + 30 * 10 + 20 * 10)};
    const struct mm_benchmark_limits limits = {.matrices = &matrices,
                                               .repeats_max = 7,
                                               .flops_max = 2 * 7 * 2 * 20 * 30 * 10,
                                               .run_flops_max = 2 * 20 * 30 * 10};
    struct mm_error error;
    struct mm_benchmark_request request = product_of(20, 30, 10, 7);
    (void)state;
    ask(&request, MM_MATMUL, "naive");
    ask(&request, MM_MATMUL, "blas");
    assert_int_equal(judge(&request, &limits, &error), MM_OK);

    request.repeats = 8;
    assert_int_equal(judge(&request, &limits, &error), MM_TOO_LARGE);
    assert_string_equal(error.field, "repeats");
    assert_true(error.has_limit && error.limit == 7);
    request.repeats = 0;
    assert_int_equal(judge(&request, &limits, &error), MM_BAD_REQUEST);
    assert_string_equal(error.field, "repeats");
    request.repeats = 7;

    ask(&request, MM_MATMUL, "naive"); /* a row more than the work that is allowed */
    assert_int_equal(judge(&request, &limits, &error), MM_TOO_LARGE);
    assert_true(error.has_limit && error.limit == limits.flops_max);
    assert_non_null(strstr(error.detail, "3 rows of 7 repeats come to 252000 operations"));
    request.subject_count = 0;
    assert_int_equal(judge(&request, &limits, &error), MM_BAD_REQUEST);
    assert_string_equal(error.field, "variants");
    request.subject_count = 1;
    request.subjects[0].backend = &host_backend; /* counted a thousandfold */
    assert_int_equal(judge(&request, &limits, &error), MM_TOO_LARGE);
    request.subjects[0].backend = &lab_backend;

    request.repeats = 1;
    request.n = 11; /* a run of more than is allowed, though all of them are not */
    const struct mm_limits wide = {.dimension_max = 1000, .memory_bytes_max = SIZE_MAX};
    const struct mm_benchmark_limits of_a_run = {.matrices = &wide,
                                                 .repeats_max = 7,
                                                 .flops_max = limits.flops_max,
                                                 .run_flops_max = limits.run_flops_max};
    assert_int_equal(judge(&request, &of_a_run, &error), MM_TOO_LARGE);
    assert_true(error.has_limit && error.limit == limits.run_flops_max);
    request.n = 10;
    assert_int_equal(judge(&request, &of_a_run, &error), MM_OK);
    request.repeats = 7;

    request.m = 21; /* 4·(30 + 10) bytes more */
    assert_int_equal(judge(&request, &limits, &error), MM_TOO_LARGE);
    assert_true(error.has_limit && error.limit == matrices.memory_bytes_max);
    request = product_of(1001, 1, 1, 1);
    ask(&request, MM_MATMUL, "naive");
    assert_int_equal(judge(&request, &limits, &error), MM_TOO_LARGE);
    assert_int_equal(error.limit, 1000);
    for (int zero = 0; zero < 3; zero++) {
        request = product_of(zero != 0, zero != 1, zero != 2, 1);
        ask(&request, MM_MATMUL, "naive");
        assert_int_equal(judge(&request, &limits, &error), MM_BAD_REQUEST);
        assert_string_equal(error.field, zero == 0 ? "m" : zero == 1 ? "k" : "n");
    }
    request = (struct mm_benchmark_request){
        .op = MM_TRANSPOSE, .m = 10, .n = 20, .dtype = MM_FLOAT64, .repeats = 1};
    ask(&request, MM_TRANSPOSE, "naive");
    assert_int_equal(judge(&request, &limits, &error), MM_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(rows_are_run_in_turn, reset),
        cmocka_unit_test_setup(figures_are_of_the_runs_that_count, reset),
        cmocka_unit_test_setup(wrong_results_are_found, reset),
        cmocka_unit_test_setup(nothing_is_said_of_what_zeros_would_pass, reset),
        cmocka_unit_test_setup(rows_fail_alone, reset),
        cmocka_unit_test_setup(what_befalls_the_device_befalls_all, reset),
        cmocka_unit_test_setup(slow_rows_are_repeated_less, reset),
        cmocka_unit_test_setup(a_row_has_its_time, reset),
        cmocka_unit_test_setup(loads_are_predicted, reset),
        cmocka_unit_test_setup(transpositions_are_compared_with_a_copy, reset),
        cmocka_unit_test_setup(backends_have_their_turn, reset),
        cmocka_unit_test_setup(a_cancelled_benchmark_gives_memory_back, reset),
        cmocka_unit_test_setup(sets_fit_into_half_of_the_memory, reset),
        cmocka_unit_test_setup(limits_are_judged_at_their_edges, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
