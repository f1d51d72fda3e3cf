/* What benchmarks on a made-up device find wrong, and that judging is done in steps, between which a
 * benchmark may be cancelled. */
#include "lab.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* Upper estimate of the relative error of sums of k random terms of either sign, added one after the other in
 * float32: each addition rounds by at most u of the sum so far, u/√3 in the mean, and that grows as a root.
 */
static double error_of_float32(size_t k) {
    return 0x1p-24 * sqrt((double)k / 6.0);
}

/* Where zeros would pass, the bound says nothing of a right result, and the whole of it still does. */
static void nothing_is_said_of_what_zeros_would_pass(void **state) {
    const size_t k = (size_t)1 << 18;
    (void)state;
    struct mm_benchmark_request request = lab_product_of(2, k, 2, 1);
    lab_ask(&request, MM_MATMUL, "naive");
    lab_ask(&request, MM_MATMUL, "no_slab_16");
    lab_ask(&request, MM_MATMUL, "nothing");
    struct mm_benchmark *benchmark = lab_run(&request);
    const struct mm_benchmark_row *rows = mm_benchmark_rows(benchmark);
    assert_int_equal(rows[0].error.status, MM_OK);
    assert_true(isnan(rows[0].max_error) && isnan(rows[1].max_error));
    assert_true(rows[0].relative_error > 0.0 && rows[0].relative_error < 3.0 * error_of_float32(k));
    assert_true(rows[1].relative_error > 1e-3);
    assert_true(isinf(rows[2].max_error) && isinf(rows[2].relative_error));
    mm_benchmark_close(benchmark);
}

static void wrong_results_are_found(void **state) {
    static const size_t shapes[][3] = {{16, 16, 16}, {33, 7, 65}, {300, 200, 400}, {1, 64, 1}};
    static const char *const wrong[] = {"no_corner", "no_slab", "nothing"};
    (void)state;
    for (size_t shape = 0; shape < sizeof shapes / sizeof shapes[0]; shape++) {
        struct mm_benchmark_request request =
            lab_product_of(shapes[shape][0], shapes[shape][1], shapes[shape][2], 1);
        lab_ask(&request, MM_MATMUL, "naive"); /* which leaves the right result in place */
        for (size_t which = 0; which < 3; which++)
            lab_ask(&request, MM_MATMUL, wrong[which]);
        lab_ask(&request, MM_MATMUL, "naive");
        lab.runs = 0;
        struct mm_benchmark *benchmark = lab_run(&request);
        const struct mm_benchmark_row *rows = mm_benchmark_rows(benchmark);
        for (size_t row = 0; row < request.subject_count; row++) {
            assert_int_equal(rows[row].error.status, MM_OK);
            const bool is_right = row == 0 || row == 4;
            if (is_right != (rows[row].max_error <= 1.0) || is_right != (rows[row].relative_error < 1e-6))
                fail_msg("%zu: %s has errors of %g and %g", shape, request.subjects[row].variant->name,
                         rows[row].max_error, rows[row].relative_error);
        }
        assert_true(isinf(rows[1].max_error) && isinf(rows[3].max_error));
        assert_true(isinf(rows[1].relative_error) && isinf(rows[3].relative_error));
        mm_benchmark_close(benchmark);
    }
}

/* All of a benchmark's rows, of which those that are named first are wrong. */
static void expect_wrong(const struct mm_benchmark *benchmark, size_t wrong_count) {
    const struct mm_benchmark_request *request = mm_benchmark_request(benchmark);
    const struct mm_benchmark_row *rows = mm_benchmark_rows(benchmark);
    for (size_t row = 0; row < request->subject_count; row++) {
        assert_int_equal(rows[row].error.status, MM_OK);
        if (mm_benchmark_is_wrong(benchmark, &rows[row]) != (row < wrong_count))
            fail_msg("%zu×%zu×%zu, %s: errors of %g and %g", request->m, request->k, request->n,
                     request->subjects[row].variant->name, rows[row].max_error, rows[row].relative_error);
    }
}

/* Of operands stored in each way, right results are found right, and those of the other way wrong, by the
 * sample and by the whole. The last shape is sampled. */
static void stored_transposes_are_told_apart(void **state) {
    static const size_t shapes[][3] = {{2, 3, 2}, {33, 7, 65}, {65, 33, 7}, {300, 200, 400}};
    (void)state;
    for (size_t which = 0; which < 4 * sizeof shapes / sizeof shapes[0]; which++) {
        const size_t *shape = shapes[which / 4];
        struct mm_benchmark_request request = lab_product_of(shape[0], shape[1], shape[2], 1);
        request.transpose_a = which % 2 != 0;
        request.transpose_b = which / 2 % 2 != 0;
        lab_ask(&request, MM_MATMUL, "mistakes_a");
        lab_ask(&request, MM_MATMUL, "mistakes_b");
        lab_ask(&request, MM_MATMUL, "naive");
        lab_ask(&request, MM_MATMUL, "tiled_8");
        lab.runs = 0;
        struct mm_benchmark *benchmark = lab_run(&request);
        const struct mm_benchmark_row *rows = mm_benchmark_rows(benchmark);
        expect_wrong(benchmark, 2);
        for (size_t row = 0; row < 2; row++)
            assert_true(rows[row].max_error > 1.0 && rows[row].relative_error > 0.1);
        for (size_t row = 2; row < 4; row++)
            assert_true(rows[row].max_error < 1.0 && rows[row].relative_error < 1e-6);
        mm_benchmark_close(benchmark);
    }
}

/* The row is judged by its figures alone: at the edges of what is right, of shapes with 16 elements and with
 * fewer. What has failed is not wrong. */
static void wrong_is_what_passes_a_bound(void **state) {
    const double infinite = (double)INFINITY;
    const double none = (double)NAN;
    static const size_t k = 40000; /* the root of which is 200 */
    const struct {
        size_t elements, k;
        double max_error, relative_error;
        bool wrong;
    } cases[] = {
        {16, 1, 0.0, 0.0, false},      {16, 1, 1.0, 1e-6, false},     {16, 1, 1.0001, 0.0, true},
        {16, 1, infinite, 0.0, true},  {16, 1, 0.5, 1.01e-6, true},   {16, 100, 0.5, 1e-6, false},
        {16, k, none, 1.99e-5, false}, {16, k, none, 2.01e-5, true},  {16, k, 0.5, infinite, true},
        {15, k, none, 2.01e-5, false}, {15, k, none, infinite, true}, {15, 1, 1.0001, 0.0, true},
    };
    (void)state;
    for (size_t which = 0; which < sizeof cases / sizeof cases[0]; which++) {
        struct mm_benchmark_request request = lab_product_of(cases[which].elements, cases[which].k, 1, 1);
        struct mm_benchmark_row row = {.max_error = cases[which].max_error,
                                       .relative_error = cases[which].relative_error};
        struct mm_benchmark *benchmark = mm_benchmark_open(&request, LAB_MEMORY_MAX);
        if (mm_benchmark_is_wrong(benchmark, &row) != cases[which].wrong)
            fail_msg("case %zu", which);
        row.error.status = MM_UNSUPPORTED;
        assert_false(mm_benchmark_is_wrong(benchmark, &row));
        mm_benchmark_close(benchmark);
    }
}

/* What lies where no sample is taken. */
static void wrong_insides_are_found(void **state) {
    enum { EDGE = 512, K = 48, TILE = 16 };
    struct mm_benchmark_request request = lab_product_of(EDGE, K, EDGE, 1);
    (void)state;
    lab_ask(&request, MM_MATMUL, "no_tile");
    lab_ask(&request, MM_MATMUL, "zero_tile");
    lab_ask(&request, MM_MATMUL, "a_nan");
    lab_ask(&request, MM_MATMUL, "swaps");
    lab_ask(&request, MM_MATMUL, "naive");
    struct mm_benchmark *benchmark = lab_run(&request);
    const struct mm_benchmark_row *rows = mm_benchmark_rows(benchmark);
    for (size_t row = 0; row < request.subject_count; row++)
        assert_int_equal(rows[row].error.status, MM_OK);
    for (size_t row = 0; row < 3; row++)
        assert_true(rows[row].max_error < 1.0); /* as far as the sample sees */
    assert_true(isinf(rows[0].relative_error));
    assert_true(isinf(rows[2].relative_error));
    /* The tile's part of the norm; and two columns' of 512, twice, since each is away and another is there.
     */
    const double tile = (double)TILE / EDGE;
    const double columns = sqrt(4.0 / EDGE);
    assert_true(rows[1].relative_error > 0.7 * tile && rows[1].relative_error < 1.4 * tile);
    assert_true(rows[3].relative_error > 0.05 * columns && rows[3].relative_error < 2.0 * columns);
    assert_true(rows[4].relative_error > 1e-9 && rows[4].relative_error < 2.0 * error_of_float32(K));
    expect_wrong(benchmark, 4);
    mm_benchmark_close(benchmark);
}

/* Sixteen steps of 20,000 are within the worst that float32 may do. */
static void a_slab_of_many_is_missed(void **state) {
    enum { EDGE = 8, K = 20000 };
    struct mm_benchmark_request request = lab_product_of(EDGE, K, EDGE, 1);
    (void)state;
    lab_ask(&request, MM_MATMUL, "naive");
    lab_ask(&request, MM_MATMUL, "no_slab_16");
    struct mm_benchmark *benchmark = lab_run(&request);
    const struct mm_benchmark_row *rows = mm_benchmark_rows(benchmark);
    const double slab = sqrt(16.0 / K);
    assert_true(rows[0].max_error < 1.0 && rows[1].max_error < 1.0);
    assert_true(rows[0].relative_error > 0.0 && rows[0].relative_error < 3.0 * error_of_float32(K));
    assert_true(rows[1].relative_error > 0.5 * slab && rows[1].relative_error < 2.0 * slab);
    assert_true(!mm_benchmark_is_wrong(benchmark, &rows[0]) && mm_benchmark_is_wrong(benchmark, &rows[1]));
    mm_benchmark_close(benchmark);
}

/* Elements of 4 bytes are one piece, those of 8 are two. */
static void misplaced_elements_are_found(void **state) {
    enum { M = 300, N = 200 };
    static const enum mm_dtype dtypes[] = {MM_FLOAT32, MM_FLOAT64, MM_INT32, MM_INT64};
    (void)state;
    for (size_t which = 0; which < sizeof dtypes / sizeof dtypes[0]; which++) {
        struct mm_benchmark_request request = {
            .op = MM_TRANSPOSE, .m = M, .n = N, .dtype = dtypes[which], .repeats = 1};
        lab_ask(&request, MM_TRANSPOSE, "naive");
        lab_ask(&request, MM_TRANSPOSE, "misplaces");
        lab_ask(&request, MM_TRANSPOSE, "nothing");
        lab_ask(&request, MM_TRANSPOSE, "naive");
        lab.runs = 0;
        struct mm_benchmark *benchmark = lab_run(&request);
        const struct mm_benchmark_row *rows = mm_benchmark_rows(benchmark);
        for (size_t row = 0; row < request.subject_count; row++)
            assert_true(rows[row].error.status == MM_OK && rows[row].relative_error == 0.0);
        assert_true(rows[0].max_error == 0.0 && rows[3].max_error == 0.0);
        assert_true(rows[1].max_error == 2.0 / (M * N));
        assert_true(rows[2].max_error == 1.0);
        for (size_t row = 0; row < request.subject_count; row++)
            assert_true(mm_benchmark_is_wrong(benchmark, &rows[row]) == (row == 1 || row == 2));
        mm_benchmark_close(benchmark);
    }
}

static void copies_that_fail_fail_their_row(void **state) {
    struct mm_benchmark_request request = lab_product_of(16, 16, 16, 1);
    (void)state;
    for (int row = 0; row < 3; row++)
        lab_ask(&request, MM_MATMUL, "naive");
    lab.failing_copy = 1;
    struct mm_benchmark *benchmark = lab_run(&request);
    const struct mm_benchmark_row *rows = mm_benchmark_rows(benchmark);
    assert_int_equal(rows[0].error.status, MM_INTERNAL); /* the first upload, before it ran */
    assert_int_equal(rows[1].error.status, MM_INTERNAL); /* the first download, after it did */
    assert_int_equal(rows[2].error.status, MM_OK);
    assert_true(rows[2].relative_error < 1e-6);
    assert_int_equal(lab.runs, 1 + 6);
    mm_benchmark_close(benchmark);
}

/* Each copy takes longer than a slice, so that no slice may do more than one. */
static void judging_may_be_cancelled_anywhere(void **state) {
    enum { PIECES = 4 }; /* of 512 · 512 · 4 bytes */
    struct mm_benchmark_request request = lab_product_of(512, 4, 512, 1);
    (void)state;
    lab_ask(&request, MM_MATMUL, "naive");
    for (unsigned last = 1; last < 2 * PIECES; last += 2) {
        struct mm_job job = {.backend = NULL};
        struct mm_error error = {.status = MM_STOPPING};
        lab_reset(NULL);
        lab.copy_ns = (long)MM_TASK_SLICE_NS + 5000000;
        struct mm_benchmark *benchmark = mm_benchmark_open(&request, LAB_MEMORY_MAX);
        assert_true(mm_benchmark_next(benchmark, &job));
        for (unsigned copies = 0; copies < last; copies = lab.uploads + lab.downloads) {
            assert_int_equal(job.task->run(job.task, &lab_device, false, &error), MM_TASK_AGAIN);
            assert_in_range(lab.uploads + lab.downloads, copies, copies + 1);
        }
        assert_int_equal(lab.uploads, last < PIECES ? last : PIECES);
        assert_int_equal(lab.runs, last > PIECES);
        assert_int_equal(lab.held, 1);
        assert_int_equal(job.task->run(job.task, &lab_device, true, &error), MM_TASK_OVER);
        assert_int_equal(lab.held, 0);
        mm_benchmark_close(benchmark);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(wrong_results_are_found, lab_reset),
        cmocka_unit_test_setup(stored_transposes_are_told_apart, lab_reset),
        cmocka_unit_test_setup(wrong_is_what_passes_a_bound, lab_reset),
        cmocka_unit_test_setup(wrong_insides_are_found, lab_reset),
        cmocka_unit_test_setup(a_slab_of_many_is_missed, lab_reset),
        cmocka_unit_test_setup(nothing_is_said_of_what_zeros_would_pass, lab_reset),
        cmocka_unit_test_setup(misplaced_elements_are_found, lab_reset),
        cmocka_unit_test_setup(copies_that_fail_fail_their_row, lab_reset),
        cmocka_unit_test_setup(judging_may_be_cancelled_anywhere, lab_reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
