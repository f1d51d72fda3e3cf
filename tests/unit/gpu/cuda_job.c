/* Jobs on a made-up CUDA device. */
#include "cuda_job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

struct mm_cuda_device device;
static struct mm_path paths[LANES];
static struct mm_verification verifications[LANES];

static enum mm_status launch(const struct mm_product *product, struct mm_lane *lane, struct mm_error *error) {
    const struct mm_cuda_layout layout = {
        .kernel = product->transpose_a ? &fake_kernels.turned : &fake_kernels.plain,
        .batch_kernel = product->transpose_a ? &fake_kernels.turned_batch : &fake_kernels.plain_batch,
        .block_rows = FAKE_BLOCK,
        .block_cols = FAKE_BLOCK,
        .threads_x = FAKE_BLOCK,
        .threads_y = FAKE_BLOCK,
        .part_depth = fake_part_depth(product->k)};
    return mm_cuda_launch(&layout, product, lane, error);
}

static enum mm_status launch_lonely(const struct mm_product *product, struct mm_lane *lane,
                                    struct mm_error *error) {
    const struct mm_cuda_layout layout = {
        .kernel = &fake_kernels.lonely, .block_rows = FAKE_BLOCK, .block_cols = FAKE_BLOCK};
    return mm_cuda_launch(&layout, product, lane, error);
}

const struct mm_variant ours = {.name = "ours", .tile = FAKE_BLOCK, .launch = launch};
const struct mm_variant alone = {.name = "alone", .launch = launch_lonely};

static void fill(float *elements, size_t count, unsigned seed) {
    for (size_t index = 0; index < count; index++)
        elements[index] = (float)((index * 7 + seed) % 11) - 5.0F;
}

void job_init(struct test_job *test, const struct mm_variant *ran, size_t m, size_t k, size_t n) {
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

void set_key(struct test_job *test) {
    test->job.batch_key = mm_cuda_batch_key(&device.head, test->job.ran, &test->job);
}

/* That C is the product, and what lies behind it as it was. */
void expect_product(const struct test_job *test) {
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

int reset(void **state) {
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

int drop(void **state) {
    (void)state;
    mm_cuda_trim(&device);
    assert_int_equal(fake_cuda.memory_used, 0);
    return 0;
}

void run(unsigned lane, struct mm_job *const *jobs, unsigned count) {
    mm_cuda_begin(&device.head, lane, jobs, count);
    mm_cuda_end(&device.head, lane, jobs, count);
}

void run_square(unsigned lane, size_t edge, enum mm_status expected) {
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
