/* Jobs that a CUDA device does together (gpu/cuda/batch.c), on a made-up CUDA runtime. No GPU takes part. */
#include "cuda_job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static enum mm_status launch_nothing(const struct mm_product *product, struct mm_lane *lane,
                                     struct mm_error *error) {
    (void)product;
    (void)lane;
    return mm_fail(error, MM_UNSUPPORTED, "not here");
}

static enum mm_status launch_whole(const struct mm_product *product, struct mm_lane *lane,
                                   struct mm_error *error) {
    return ours.launch(product, lane, error);
}

static const struct mm_variant whole = {.name = "whole", .multiple_of = 4, .launch = launch_whole};
static const struct mm_variant refused = {.name = "refused", .launch = launch_nothing};

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

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_DEVICE(those_of_one_kernel_have_one_key),
        WITH_DEVICE(who_cannot_go_together_has_no_key),
        WITH_DEVICE(a_batch_is_one_launch_where_the_matrices_lie),
        WITH_DEVICE(those_of_other_outlines_have_another_key),
        WITH_DEVICE(a_full_batch_is_launched),
        WITH_DEVICE(what_may_go_together_goes_so_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
