/* Small transpositions that go together (gpu/cuda/batch.c, transpose.c), on a made-up CUDA runtime. No GPU
 * takes part. */
#include "fake_cuda.h"
#include "gpu/cuda/transpose.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { JOBS = 4, ELEMENTS_MAX = 1000 };

static struct mm_cuda_device device;
static struct mm_path path;

static enum mm_status launch(const struct mm_product *product, struct mm_lane *lane, struct mm_error *error) {
    const struct mm_cuda_layout layout = {.kernel = &fake_kernels.lonely,
                                          .batch_kernel = &fake_kernels.transposing_batch,
                                          .block_rows = FAKE_BLOCK,
                                          .block_cols = FAKE_BLOCK,
                                          .threads_x = FAKE_BLOCK,
                                          .threads_y = FAKE_BLOCK,
                                          .reads_once = true};
    return mm_cuda_transpose(&layout, product, lane, error);
}

static const struct mm_variant ours = {
    .name = "ours", .op = MM_TRANSPOSE, .tile = FAKE_BLOCK, .launch = launch};

struct test_job {
    struct mm_job job;
    uint64_t a[ELEMENTS_MAX];
    uint64_t c[ELEMENTS_MAX];
};

/* C becomes m×n, of bits that mean something else as numbers. */
static void job_init(struct test_job *test, enum mm_dtype dtype, bool transposed, size_t m, size_t n) {
    struct mm_product *product = &test->job.product;
    memset(test, 0, sizeof *test);
    for (size_t index = 0; index < ELEMENTS_MAX; index++)
        test->a[index] = UINT64_C(0x7ff4000000000001) + index;
    product->a = mm_matrix_dense(dtype, transposed ? n : m, transposed ? m : n, test->a);
    product->c = mm_matrix_dense(dtype, m, n, test->c);
    product->transpose_a = transposed;
    mm_product_conform_transposition(product);
    test->job.ran = &ours;
    test->job.is_locked = true;
    test->job.queued_bytes = 2 * m * n * mm_dtype_bytes(dtype);
    test->job.batch_key = mm_cuda_batch_key(&device.head, &ours, &test->job);
}

static int reset(void **state) {
    (void)state;
    memset(&fake_cuda, 0, sizeof fake_cuda);
    memset(&device, 0, sizeof device);
    device.reads_locked_pages = true;
    device.lanes[0].device = &device;
    device.lanes[0].path = &path;
    for (uintptr_t mark = 0; mark < MM_CUDA_MARKS; mark++) /* their times: 0, 1, 3 and 6 ms */
        device.lanes[0].marks[mark] = (cudaEvent_t)(1 + mark * (mark + 1) / 2);
    return 0;
}

static void elements_of_any_kind_may_go_together(void **state) {
    struct test_job test;
    (void)state;
    for (int dtype = 0; dtype < MM_DTYPE_COUNT; dtype++) {
        job_init(&test, (enum mm_dtype)dtype, true, 4, 12);
        assert_int_not_equal(test.job.batch_key, 0);
    }
}

static void what_is_only_copied_goes_alone(void **state) {
    struct test_job test;
    (void)state;
    job_init(&test, MM_FLOAT64, false, 4, 12);
    assert_int_equal(test.job.batch_key, 0);
}

/* However many blocks they take: each element is read once. */
static void a_batch_is_one_launch_where_the_matrices_lie(void **state) {
    static const size_t shapes[JOBS][2] = {{17, 20}, {31, 32}, {33, 30}, {17, 48}};
    static struct test_job tests[JOBS];
    struct mm_job *jobs[JOBS];
    double bytes = 0.0;
    (void)state;
    for (unsigned index = 0; index < JOBS; index++) {
        job_init(&tests[index], MM_FLOAT64, true, shapes[index][0], shapes[index][1]);
        jobs[index] = &tests[index].job;
        assert_int_not_equal(jobs[index]->batch_key, 0);
        assert_int_equal(jobs[index]->batch_key, jobs[0]->batch_key);
        bytes += (double)jobs[index]->queued_bytes;
    }
    mm_cuda_begin(&device.head, 0, jobs, JOBS);
    mm_cuda_end(&device.head, 0, jobs, JOBS);
    for (unsigned index = 0; index < JOBS; index++) {
        const size_t m = shapes[index][0];
        const size_t n = shapes[index][1];
        const struct test_job *test = &tests[index];
        assert_int_equal(test->job.error.status, MM_OK);
        for (size_t element = 0; element < ELEMENTS_MAX; element++)
            assert_int_equal(test->c[element], element < m * n ? test->a[element % n * m + element / n] : 0);
        assert_int_equal(test->job.batched, JOBS);
        assert_int_equal(test->job.uploaded_bytes + test->job.downloaded_bytes, 0);
        assert_int_equal(test->job.span_ns[MM_SPAN_UPLOAD], 0);
        assert_true(mm_job_rate(&test->job) == bytes / 2e6);
    }
    assert_int_equal(fake_cuda.batches, 1);
    assert_int_equal(fake_cuda.gathers + fake_cuda.copies + fake_cuda.launches, 0);
    assert_int_equal(fake_cuda.grid.x, 3);
    assert_int_equal(fake_cuda.grid.y, 3);
    assert_int_equal(fake_cuda.grid.z, JOBS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(elements_of_any_kind_may_go_together, reset),
        cmocka_unit_test_setup(what_is_only_copied_goes_alone, reset),
        cmocka_unit_test_setup(a_batch_is_one_launch_where_the_matrices_lie, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
