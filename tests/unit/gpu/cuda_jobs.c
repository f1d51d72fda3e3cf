/* Jobs on a CUDA device, alone and together (gpu/cuda/run.c, batch.c, memory.c, launch.c, copy.c), on a
 * made-up CUDA runtime. No GPU takes part. */
#include "fake_cuda.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { LANES = MM_CUDA_LANES };

static struct mm_cuda_device device;
static struct mm_path paths[LANES];
static struct mm_verification verifications[LANES];

/* --- variants and jobs --- */

static enum mm_status launch(const struct mm_product *product, struct mm_lane *lane, struct mm_error *error) {
    const struct mm_cuda_layout layout = {
        .kernel = product->transpose_a ? &fake_kernels.turned : &fake_kernels.plain,
        .batch_kernel = product->transpose_a ? &fake_kernels.turned_batch : &fake_kernels.plain_batch,
        .block_rows = FAKE_BLOCK,
        .block_cols = FAKE_BLOCK,
        .threads_x = FAKE_BLOCK,
        .threads_y = FAKE_BLOCK};
    return mm_cuda_launch(&layout, product, lane, error);
}

static enum mm_status launch_lonely(const struct mm_product *product, struct mm_lane *lane,
                                    struct mm_error *error) {
    const struct mm_cuda_layout layout = {
        .kernel = &fake_kernels.lonely, .block_rows = FAKE_BLOCK, .block_cols = FAKE_BLOCK};
    return mm_cuda_launch(&layout, product, lane, error);
}

static enum mm_status launch_nothing(const struct mm_product *product, struct mm_lane *lane,
                                     struct mm_error *error) {
    (void)product;
    (void)lane;
    return mm_fail(error, MM_UNSUPPORTED, "not here");
}

enum { SCRATCH_BYTES = 1000 };

/* Fills its scratch memory, and tells a path, as a kernel would. */
static enum mm_status launch_with_scratch(const struct mm_product *product, struct mm_lane *lane,
                                          struct mm_error *error) {
    const struct mm_cuda_layout layout = {.kernel = &fake_kernels.plain,
                                          .block_rows = FAKE_BLOCK,
                                          .block_cols = FAKE_BLOCK,
                                          .scratch_bytes = SCRATCH_BYTES};
    if (lane->purpose == MM_CUDA_RUN) {
        memset(lane->scratch, 0xa5, SCRATCH_BYTES);
        *lane->path = (struct mm_path){MM_PATH_REPAIRED, 3};
    }
    return mm_cuda_launch(&layout, product, lane, error);
}

static const struct mm_variant scratching = {.name = "scratching", .launch = launch_with_scratch};
static const struct mm_variant ours = {.name = "ours", .tile = FAKE_BLOCK, .launch = launch};
static const struct mm_variant whole = {.name = "whole", .multiple_of = 4, .launch = launch};
static const struct mm_variant alone = {.name = "alone", .launch = launch_lonely};
static const struct mm_variant refused = {.name = "refused", .launch = launch_nothing};

struct test_job {
    struct mm_job job;
    float a[2000];
    float b[2000];
    float c[2000];
};

static void fill(float *elements, size_t count, unsigned seed) {
    for (size_t index = 0; index < count; index++)
        elements[index] = (float)((index * 7 + seed) % 11) - 5.0F;
}

static void job_init(struct test_job *test, const struct mm_variant *ran, size_t m, size_t k, size_t n) {
    struct mm_product *product = &test->job.product;
    memset(test, 0, sizeof *test);
    fill(test->a, 2000, 3);
    fill(test->b, 2000, 5);
    fill(test->c, 2000, 1);
    product->a = mm_matrix_dense(MM_FLOAT32, m, k, test->a);
    product->b = mm_matrix_dense(MM_FLOAT32, k, n, test->b);
    product->c = mm_matrix_dense(MM_FLOAT32, m, n, test->c);
    assert_int_equal(mm_product_conform(product, NULL), MM_OK);
    test->job.ran = ran;
    test->job.is_locked = true;
    test->job.queued_bytes = (m * k + k * n + m * n) * sizeof(float);
}

static void set_key(struct test_job *test) {
    test->job.batch_key = mm_cuda_batch_key(&device.head, test->job.ran, &test->job);
}

/* That C is the product, and what lies behind it as it was. */
static void expect_product(const struct test_job *test) {
    const struct mm_product *product = &test->job.product;
    struct test_job expected = *test;
    assert_int_equal(test->job.error.status, MM_OK);
    fill(expected.c, 2000, 1);
    expected.job.product.a.data = expected.a;
    expected.job.product.b.data = expected.b;
    expected.job.product.c.data = expected.c;
    fake_compute(&expected.job.product, product->transpose_a);
    assert_memory_equal(test->c, expected.c, sizeof test->c);
}

static int reset(void **state) {
    (void)state;
    memset(&fake_cuda, 0, sizeof fake_cuda);
    memset(&device, 0, sizeof device);
    fake_cuda.memory_max = (size_t)1 << 20;
    device.head = (struct mm_device){.name = "Card", .memory_bytes = (size_t)1 << 20};
    device.reads_locked_pages = true;
    device.pitch_bytes_max = 1 << 20;
    for (unsigned index = 0; index < LANES; index++) {
        device.lanes[index].device = &device;
        device.lanes[index].path = &paths[index];
        device.lanes[index].verification = &verifications[index];
        for (uintptr_t mark = 0; mark < MM_CUDA_MARKS; mark++) /* their times: 0, 1, 3 and 6 ms */
            device.lanes[index].marks[mark] = (cudaEvent_t)(1 + mark * (mark + 1) / 2);
    }
    return 0;
}

static int drop(void **state) {
    (void)state;
    mm_cuda_trim(&device);
    assert_int_equal(fake_cuda.memory_used, 0);
    return 0;
}

static void run(unsigned lane, struct mm_job *const *jobs, unsigned count) {
    mm_cuda_begin(&device.head, lane, jobs, count);
    mm_cuda_end(&device.head, lane, jobs, count);
}

static void run_square(unsigned lane, size_t edge, enum mm_status expected) {
    struct test_job test;
    struct mm_job *job = &test.job;
    job_init(&test, &ours, edge, edge, edge);
    mm_cuda_begin(&device.head, lane, &job, 1);
    assert_int_equal(job->error.status, expected);
    if (expected != MM_OK)
        return;
    mm_cuda_end(&device.head, lane, &job, 1);
    expect_product(&test);
}

/* --- tests --- */

/* Rows of A and of C have an end that is not theirs. */
static void one_alone_is_copied_there_and_back(void **state) {
    struct test_job test;
    struct mm_job *job = &test.job;
    (void)state;
    job_init(&test, &ours, 9, 20, 31);
    job->is_locked = false;
    job->product.a.ld = 23;
    job->product.c.ld = 40;
    set_key(&test);
    assert_int_equal(job->batch_key, 0);
    run(1, &job, 1);
    expect_product(&test);
    assert_int_equal(job->batched, 1);
    assert_int_equal(job->uploaded_bytes, (9 * 20 + 20 * 31) * 4);
    assert_int_equal(job->downloaded_bytes, 9 * 31 * 4);
    assert_int_equal(job->span_ns[MM_SPAN_UPLOAD], 1000000);
    assert_int_equal(job->span_ns[MM_SPAN_KERNEL], 2000000);
    assert_int_equal(job->span_ns[MM_SPAN_DOWNLOAD], 3000000);
    assert_true(mm_job_rate(job) == 2.0 * 9 * 20 * 31 / 2e6);
    assert_int_equal(fake_cuda.launches, 1);
    assert_int_equal(fake_cuda.copies, 3);
}

/* Behind the matrices, which stay as they are. What was told is not told of the next. */
static void scratch_memory_lies_beside_the_matrices(void **state) {
    struct test_job test;
    struct mm_job *job = &test.job;
    (void)state;
    job_init(&test, &scratching, 9, 20, 31);
    run(1, &job, 1);
    expect_product(&test);
    assert_int_equal(job->path.kind, MM_PATH_REPAIRED);
    assert_int_equal(job->path.repaired, 3);
    assert_true(fake_cuda.memory_used >= (9 * 20 + 20 * 31 + 9 * 31) * 4 + SCRATCH_BYTES);
    job_init(&test, &ours, 9, 20, 31);
    run(1, &job, 1);
    expect_product(&test);
    assert_int_equal(job->path.kind, MM_PATH_NONE);
}

static uint64_t key_of(const struct mm_variant *ran, void (*change)(struct test_job *test)) {
    struct test_job test;
    job_init(&test, ran, 4, 8, 12);
    if (change != NULL)
        change(&test);
    set_key(&test);
    return test.job.batch_key;
}

static void transpose(struct test_job *test) {
    test->job.product.transpose_a = true;
    test->job.product.a = mm_matrix_dense(MM_FLOAT32, 8, 4, test->a);
}

static void choose_tile(struct test_job *test) {
    test->job.product.tile = 8;
}

static void unlock(struct test_job *test) {
    test->job.is_locked = false;
}

static void pad_a(struct test_job *test) {
    test->job.product.a.ld++;
}

static void pad_b(struct test_job *test) {
    test->job.product.b.ld++;
}

static void pad_c(struct test_job *test) {
    test->job.product.c.ld++;
}

static void use_doubles(struct test_job *test) {
    test->job.product.a.dtype = MM_FLOAT64;
}

static void fill_most(struct test_job *test) {
    test->job.queued_bytes = 1 << 20;
}

static void pass_most(struct test_job *test) {
    test->job.queued_bytes = (1 << 20) + 1;
}

/* Of so many blocks of 16 along an edge, without depth and data. */
static void set_blocks(struct test_job *test, size_t rows, size_t cols) {
    struct mm_product *product = &test->job.product;
    product->m = 16 * rows;
    product->n = 16 * cols;
    product->k = 0;
    product->a = mm_matrix_dense(MM_FLOAT32, product->m, 0, NULL);
    product->b = mm_matrix_dense(MM_FLOAT32, 0, product->n, NULL);
    product->c = mm_matrix_dense(MM_FLOAT32, product->m, product->n, NULL);
}

static void fill_rows(struct test_job *test) {
    set_blocks(test, 32768, 1);
}

static void pass_rows(struct test_job *test) {
    set_blocks(test, 32769, 1);
}

static void fill_cols(struct test_job *test) {
    set_blocks(test, 1, 32768);
}

static void pass_cols(struct test_job *test) {
    set_blocks(test, 1, 32769);
}

static void make_odd(struct test_job *test) {
    test->job.product.k = 7;
}

static void those_of_one_kernel_have_one_key(void **state) {
    const uint64_t key = key_of(&ours, NULL);
    (void)state;
    assert_int_not_equal(key, 0);
    assert_int_equal(key_of(&ours, make_odd), key);
    assert_int_equal(key_of(&ours, fill_most), key);
    assert_int_not_equal(key_of(&ours, fill_rows), 0);
    assert_int_not_equal(key_of(&ours, fill_rows), key);
    assert_int_not_equal(key_of(&ours, fill_cols), key_of(&ours, fill_rows));
    assert_int_not_equal(key_of(&ours, fill_cols), 0);
    assert_int_not_equal(key_of(&ours, transpose), 0);
    assert_int_not_equal(key_of(&ours, transpose), key);
    assert_int_not_equal(key_of(&ours, choose_tile), 0);
    assert_int_not_equal(key_of(&ours, choose_tile), key);
}

static void who_cannot_go_together_has_no_key(void **state) {
    void (*const changes[])(struct test_job *) = {unlock,      pad_a,     pad_b,     pad_c,
                                                  use_doubles, pass_most, pass_rows, pass_cols};
    (void)state;
    for (size_t index = 0; index < sizeof changes / sizeof changes[0]; index++)
        assert_int_equal(key_of(&ours, changes[index]), 0);
    assert_int_not_equal(key_of(&whole, NULL), 0);
    assert_int_equal(key_of(&whole, make_odd), 0);
    assert_int_equal(key_of(&alone, NULL), 0);
    assert_int_equal(key_of(&refused, NULL), 0);
    device.reads_locked_pages = false;
    assert_int_equal(key_of(&ours, NULL), 0);
}

enum { SHAPES = 4 };

/* Of so many blocks along either edge, with depth and without. */
static const struct {
    struct {
        size_t m;
        size_t k;
        size_t n;
        bool gathered;
    } shapes[SHAPES];
    unsigned grid_x;
    unsigned grid_y;
} batches[] = {
    {{{1, 1, 1, false}, {16, 32, 16, false}, {16, 33, 16, true}, {2, 0, 2, false}}, 1, 1},
    {{{17, 9, 20, true}, {30, 0, 40, false}, {33, 40, 33, true}, {17, 1, 17, true}}, 3, 3},
    {{{1, 5, 17, true}, {16, 2, 48, true}, {3, 0, 33, false}, {4, 7, 31, true}}, 3, 1},
};

static void run_batch(size_t which, bool turns) {
    static struct test_job tests[SHAPES];
    struct mm_job *jobs[SHAPES];
    double flops = 0.0;
    run_square(2, 3, MM_OK); /* by copies, before */
    fake_cuda.launches = fake_cuda.copies = 0;
    for (unsigned index = 0; index < SHAPES; index++) {
        const size_t m = batches[which].shapes[index].m;
        const size_t k = batches[which].shapes[index].k;
        job_init(&tests[index], &ours, m, k, batches[which].shapes[index].n);
        jobs[index] = &tests[index].job;
        jobs[index]->product.transpose_a = turns;
        if (turns)
            jobs[index]->product.a = mm_matrix_dense(MM_FLOAT32, k, m, tests[index].a);
        set_key(&tests[index]);
        assert_int_not_equal(jobs[index]->batch_key, 0);
        assert_int_equal(jobs[index]->batch_key, jobs[0]->batch_key);
        flops += mm_product_flops(&jobs[index]->product);
    }
    run(2, jobs, SHAPES);
    for (unsigned index = 0; index < SHAPES; index++) {
        const struct mm_product *product = &jobs[index]->product;
        expect_product(&tests[index]);
        assert_int_equal(jobs[index]->batched, SHAPES);
        assert_true(mm_job_rate(jobs[index]) == flops / 2e6);
        assert_int_equal(jobs[index]->uploaded_bytes, batches[which].shapes[index].gathered
                                                          ? (product->m + product->n) * product->k * 4
                                                          : 0);
        assert_int_equal(jobs[index]->downloaded_bytes, 0);
        assert_int_equal(jobs[index]->span_ns[MM_SPAN_UPLOAD], 1000000);
        assert_int_equal(jobs[index]->span_ns[MM_SPAN_KERNEL], 2000000);
        assert_int_equal(jobs[index]->span_ns[MM_SPAN_DOWNLOAD], 0);
    }
    assert_int_equal(fake_cuda.batches, 1);
    assert_int_equal(fake_cuda.gathers, 1);
    assert_int_equal(fake_cuda.launches + fake_cuda.copies, 0);
    assert_int_equal(fake_cuda.grid.x, batches[which].grid_x);
    assert_int_equal(fake_cuda.grid.y, batches[which].grid_y);
    assert_int_equal(fake_cuda.grid.z, SHAPES);
}

static void a_batch_is_one_launch_where_the_matrices_lie(void **state) {
    for (size_t which = 0; which < sizeof batches / sizeof batches[0]; which++) {
        for (int turns = 0; turns < 2; turns++) {
            reset(state);
            run_batch(which, turns != 0);
            drop(state);
        }
    }
}

static uint64_t key_of_shape(size_t m, size_t n) {
    struct test_job test;
    job_init(&test, &ours, m, 1, n);
    set_key(&test);
    return test.job.batch_key;
}

/* Else a tall one and a wide one would be launched as large ones. */
static void those_of_other_outlines_have_another_key(void **state) {
    (void)state;
    assert_int_equal(key_of_shape(1, 1), key_of_shape(16, 16));
    assert_int_not_equal(key_of_shape(1, 1), key_of_shape(17, 1));
    assert_int_not_equal(key_of_shape(17, 1), key_of_shape(1, 17));
    assert_int_equal(key_of_shape(17, 1), key_of_shape(48, 1));
    assert_int_not_equal(key_of_shape(48, 1), key_of_shape(49, 1));
    assert_int_equal(key_of_shape(49, 1), key_of_shape(112, 1));
    assert_int_not_equal(key_of_shape(1, 48), key_of_shape(1, 49));
}

/* Once it is over, others find all of the device's memory. */
static void the_largest_leave_nothing_taken(void **state) {
    (void)state;
    device.head.memory_bytes = 8 * 3 * 40 * 40 * 4;
    run_square(0, 41, MM_OK);
    assert_int_equal(fake_cuda.memory_used, 0);
    run_square(0, 20, MM_OK);
    assert_int_not_equal(fake_cuda.memory_used, 0);
}

static void a_full_batch_is_launched(void **state) {
    static struct test_job tests[MM_BATCH_MAX];
    struct mm_job *jobs[MM_BATCH_MAX];
    (void)state;
    for (unsigned index = 0; index < MM_BATCH_MAX; index++) {
        job_init(&tests[index], &ours, 17, 3, 17);
        set_key(&tests[index]);
        jobs[index] = &tests[index].job;
    }
    run(0, jobs, MM_BATCH_MAX);
    for (unsigned index = 0; index < MM_BATCH_MAX; index++)
        expect_product(&tests[index]);
}

static void what_may_go_together_goes_so_alone(void **state) {
    struct test_job test;
    struct mm_job *job = &test.job;
    (void)state;
    job_init(&test, &ours, 5, 5, 5);
    set_key(&test);
    run(0, &job, 1);
    expect_product(&test);
    assert_int_equal(job->batched, 1);
    assert_int_equal(job->span_ns[MM_SPAN_UPLOAD], 0);
    assert_int_equal(job->span_ns[MM_SPAN_KERNEL], 2000000);
    assert_int_equal(fake_cuda.batches, 1);
    assert_int_equal(fake_cuda.gathers + fake_cuda.copies + fake_cuda.taken, 0);
}

static void a_lane_keeps_its_workspace(void **state) {
    (void)state;
    run_square(0, 20, MM_OK);
    run_square(0, 20, MM_OK);
    run_square(0, 3, MM_OK);
    run_square(0, 22, MM_OK); /* there is half as much again */
    assert_int_equal(fake_cuda.taken, 1);
    run_square(0, 40, MM_OK);
    assert_int_equal(fake_cuda.taken, 2);
    run_square(1, 3, MM_OK);
    assert_int_equal(fake_cuda.taken, 3);
}

/* Room for one and a half of the large ones: with it, and without what there might be besides. */
static void lanes_without_jobs_give_their_workspaces(void **state) {
    const size_t bytes = 3 * ((44 * 44 * 4 + 255) / 256 * 256);
    struct test_job test;
    struct mm_job *job = &test.job;
    (void)state;
    fake_cuda.memory_max = bytes + 100;
    run_square(0, 44, MM_OK);
    run_square(1, 44, MM_OK);
    assert_int_equal(fake_cuda.memory_used, bytes);
    assert_int_equal(mm_cuda_memory_free(&device.head), bytes + 100);

    job_init(&test, &ours, 40, 40, 40);
    mm_cuda_begin(&device.head, 1, &job, 1);
    assert_int_equal(job->error.status, MM_OK);
    assert_false(mm_cuda_memory_free(&device.head) > 100);
    run_square(0, 44, MM_NO_DEVICE_MEMORY);
    mm_cuda_end(&device.head, 1, &job, 1);
    expect_product(&test);
    run_square(0, 44, MM_OK);
}

static void a_launch_that_fails_fails_all_and_leaves_the_lane_well(void **state) {
    struct test_job tests[2];
    struct mm_job *jobs[2] = {&tests[0].job, &tests[1].job};
    (void)state;
    for (int index = 0; index < 2; index++) {
        job_init(&tests[index], &ours, 17, 17, 17);
        set_key(&tests[index]);
    }
    fake_cuda.launch_fails = cudaErrorInvalidValue;
    mm_cuda_begin(&device.head, 0, jobs, 2);
    for (int index = 0; index < 2; index++)
        assert_int_equal(jobs[index]->error.status, MM_INTERNAL);
    assert_false(device.lanes[0].is_busy);
    fake_cuda.launch_fails = cudaSuccess;
    run_square(0, 17, MM_OK);
}

static void what_fails_later_fails_all(void **state) {
    struct test_job tests[2];
    struct mm_job *jobs[2] = {&tests[0].job, &tests[1].job};
    (void)state;
    for (int index = 0; index < 2; index++) {
        job_init(&tests[index], &ours, 3, 3, 3);
        set_key(&tests[index]);
    }
    mm_cuda_begin(&device.head, 0, jobs, 2);
    fake_cuda.is_late = true;
    assert_false(mm_cuda_is_over(&device.head, 0));
    fake_cuda.is_late = false;
    assert_true(mm_cuda_is_over(&device.head, 0));
    fake_cuda.event_fails = cudaErrorIllegalAddress;
    assert_true(mm_cuda_is_over(&device.head, 0));
    mm_cuda_end(&device.head, 0, jobs, 2);
    for (int index = 0; index < 2; index++)
        assert_int_equal(jobs[index]->error.status, MM_INTERNAL);
}

static void the_largest_run_alone(void **state) {
    struct test_job test;
    (void)state;
    job_init(&test, &ours, 40, 40, 40);
    device.head.memory_bytes = 8 * 3 * 40 * 40 * 4;
    assert_false(mm_cuda_wants_all(&device.head, &ours, &test.job));
    device.head.memory_bytes -= 8;
    assert_true(mm_cuda_wants_all(&device.head, &ours, &test.job));
    device.head.memory_bytes += 8 * SCRATCH_BYTES;
    assert_false(mm_cuda_wants_all(&device.head, &ours, &test.job));
    assert_true(mm_cuda_wants_all(&device.head, &scratching, &test.job));
}

/* Of matrices whose rows are longer, so that what is checked is what lies on the device. */
static void check_job(struct test_job *test, const struct mm_variant *ran) {
    struct mm_job *job = &test->job;
    job_init(test, ran, 9, 20, 31);
    job->verify = true;
    job->product.a.ld = 23;
    job->product.c.ld = 40;
    run(1, &job, 1);
}

static void a_check_is_in_no_span(void **state) {
    struct test_job test;
    struct mm_job *job = &test.job;
    (void)state;
    check_job(&test, &ours);
    expect_product(&test);
    assert_int_equal(fake_cuda.checks, 1);
    assert_true(job->verification.is_done);
    assert_int_equal(mm_verification_verdict(&job->verification), MM_VERDICT_PASSED);
    assert_int_equal(job->verification.rows_judged, 9);
    assert_int_equal(job->verification.took_ns, 4000000);
    assert_int_equal(job->span_ns[MM_SPAN_UPLOAD], 1000000);
    assert_int_equal(job->span_ns[MM_SPAN_KERNEL], 2000000);
    assert_int_equal(job->span_ns[MM_SPAN_DOWNLOAD], 3000000);
    assert_int_equal(job->downloaded_bytes, 9 * 31 * 4);
    assert_int_equal(device.lanes[1].last, MM_CUDA_VERIFIED);
    job_init(&test, &alone, 9, 20, 31); /* the next of this lane asks for none */
    run(1, &job, 1);
    assert_false(job->verification.is_done);
    assert_int_equal(fake_cuda.checks, 1);
    assert_int_equal(device.lanes[1].last, MM_CUDA_DOWNLOADED);
}

static enum mm_status launch_and_spoil(const struct mm_product *product, struct mm_lane *lane,
                                       struct mm_error *error) {
    const enum mm_status status = launch(product, lane, error);
    if (lane->purpose == MM_CUDA_RUN)
        ((float *)product->c.data)[product->n + 3] += 1.0F; /* element 3 of row 1 */
    return status;
}

static void what_was_computed_wrongly_fails_its_check_alone(void **state) {
    static const struct mm_variant spoilt = {.name = "spoilt", .launch = launch_and_spoil};
    struct test_job test;
    (void)state;
    check_job(&test, &spoilt);
    assert_int_equal(test.job.error.status, MM_OK);
    assert_int_equal(mm_verification_verdict(&test.job.verification), MM_VERDICT_FAILED);
    assert_int_equal(test.job.verification.row, 1);
    assert_true(test.job.verification.residual == 1.0);
}

static void a_check_that_cannot_be_done_fails_the_job(void **state) {
    struct test_job test;
    struct mm_job *job = &test.job;
    (void)state;
    job_init(&test, &ours, 9, 20, 31);
    job->verify = true;
    fake_cuda.check_fails = cudaErrorInvalidValue;
    mm_cuda_begin(&device.head, 0, &job, 1);
    assert_int_equal(job->error.status, MM_INTERNAL);
    assert_false(device.lanes[0].is_busy);
    fake_cuda.check_fails = cudaSuccess;
    run_square(0, 17, MM_OK);
}

static void who_wants_a_check_goes_alone(void **state) {
    struct test_job test;
    (void)state;
    job_init(&test, &ours, 5, 5, 5);
    set_key(&test);
    assert_int_not_equal(test.job.batch_key, 0);
    test.job.verify = true;
    set_key(&test);
    assert_int_equal(test.job.batch_key, 0);
}

/* What a check takes is the job's too: 8 bytes less than that, and it runs alone. */
static void a_check_counts_in_the_memory_of_its_job(void **state) {
    struct test_job test;
    (void)state;
    job_init(&test, &ours, 40, 40, 40);
    device.head.memory_bytes = 8 * 3 * 40 * 40 * 4;
    assert_false(mm_cuda_wants_all(&device.head, &ours, &test.job));
    test.job.verify = true;
    assert_true(mm_cuda_wants_all(&device.head, &ours, &test.job));
    device.head.memory_bytes += 8 * mm_cuda_verify_bytes(&test.job.product);
    assert_false(mm_cuda_wants_all(&device.head, &ours, &test.job));
    device.head.memory_bytes -= 8;
    assert_true(mm_cuda_wants_all(&device.head, &ours, &test.job));
}

#define WITH_DEVICE(test) cmocka_unit_test_setup_teardown(test, reset, drop)

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_DEVICE(one_alone_is_copied_there_and_back),
        WITH_DEVICE(scratch_memory_lies_beside_the_matrices),
        WITH_DEVICE(those_of_one_kernel_have_one_key),
        WITH_DEVICE(who_cannot_go_together_has_no_key),
        WITH_DEVICE(those_of_other_outlines_have_another_key),
        WITH_DEVICE(the_largest_leave_nothing_taken),
        WITH_DEVICE(a_batch_is_one_launch_where_the_matrices_lie),
        WITH_DEVICE(a_full_batch_is_launched),
        WITH_DEVICE(what_may_go_together_goes_so_alone),
        WITH_DEVICE(a_lane_keeps_its_workspace),
        WITH_DEVICE(lanes_without_jobs_give_their_workspaces),
        WITH_DEVICE(a_launch_that_fails_fails_all_and_leaves_the_lane_well),
        WITH_DEVICE(what_fails_later_fails_all),
        WITH_DEVICE(the_largest_run_alone),
        WITH_DEVICE(a_check_is_in_no_span),
        WITH_DEVICE(what_was_computed_wrongly_fails_its_check_alone),
        WITH_DEVICE(a_check_that_cannot_be_done_fails_the_job),
        WITH_DEVICE(who_wants_a_check_goes_alone),
        WITH_DEVICE(a_check_counts_in_the_memory_of_its_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
