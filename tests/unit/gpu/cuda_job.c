#include "cuda_job.h"

#include "gpu/cuda/lane.h"
#include "gpu/store/stored.h"

struct mm_cuda_device device;

enum mm_status plan_ours(const struct mm_product *product, struct mm_plan *plan, struct mm_error *error) {
    const bool transposed = product->transpose_a;
    plan->layout = (struct mm_layout){.kernel = transposed ? &fake_kernels.transposed : &fake_kernels.plain,
                                      .batch_kernel = transposed ? &fake_kernels.transposed_batch
                                                                 : &fake_kernels.plain_batch,
                                      .block_rows = FAKE_BLOCK,
                                      .block_cols = FAKE_BLOCK,
                                      .threads_x = FAKE_BLOCK,
                                      .threads_y = FAKE_BLOCK,
                                      .split_depth = fake_split_depth(product->k)};
    return MM_OK;
}

static enum mm_status plan_alone(const struct mm_product *product, struct mm_plan *plan,
                                 struct mm_error *error) {
    plan->layout = (struct mm_layout){
        .kernel = &fake_kernels.lonely, .block_rows = FAKE_BLOCK, .block_cols = FAKE_BLOCK};
    return MM_OK;
}

const struct mm_variant ours = {
    .name = "ours", .tile = FAKE_BLOCK, .converts = true, .plan[MM_FLOAT32] = plan_ours};
const struct mm_variant alone = {.name = "alone", .plan[MM_FLOAT32] = plan_alone};

/* Fills the workspace and sets a path, as a real kernel does. */
static enum mm_status launch_with_workspace(const struct mm_plan *plan, const struct mm_product *product,
                                            struct mm_lane *lane, struct mm_error *error) {
    memset(lane->scratch, 0xa5, plan->workspace_bytes);
    *lane->path = (struct mm_path){MM_PATH_REPAIRED, 3};
    return mm_cuda_launch(plan, product, lane, error);
}

static enum mm_status plan_scratching(const struct mm_product *product, struct mm_plan *plan,
                                      struct mm_error *error) {
    plan->launch = launch_with_workspace;
    plan->layout =
        (struct mm_layout){.kernel = &fake_kernels.plain, .block_rows = FAKE_BLOCK, .block_cols = FAKE_BLOCK};
    plan->workspace_bytes = WORKSPACE_BYTES;
    return MM_OK;
}

const struct mm_variant scratching = {.name = "scratching", .plan[MM_FLOAT32] = plan_scratching};

static void fill(float *elements, unsigned seed) {
    for (size_t index = 0; index < ELEMENTS_MAX; index++)
        elements[index] = (float)((index * 7 + seed) % 11) - 5.0F;
}

void job_init(struct test_job *test, const struct mm_variant *variant, size_t m, size_t k, size_t n) {
    struct mm_product *product = &test->job.product;
    memset(test, 0, sizeof *test);
    fill(test->a, 3);
    fill(test->b, 5);
    fill(test->c, 1);
    product->a = mm_matrix_dense(MM_FLOAT32, m, k, test->a);
    product->b = mm_matrix_dense(MM_FLOAT32, k, n, test->b);
    product->c = mm_matrix_dense(MM_FLOAT32, m, n, test->c);
    assert_int_equal(mm_product_conform(MM_MATMUL, product, NULL), MM_OK);
    test->job.variant = variant;
    test->job.work.bytes = (m * k + k * n + m * n) * sizeof(float);
    plan_job(test);
    test->job.is_locked = true;
}

void plan_job(struct test_job *test) {
    struct mm_error error = {0};
    (void)mm_job_plan(&test->job, &device.head, &error);
    if (error.status != MM_OK)
        test->job.work.batch_key = 0;
    mm_job_begin(&test->job, &device.head);
}

void transpose_job(struct test_job *test) {
    struct mm_product *product = &test->job.product;
    product->transpose_a = true;
    product->a = mm_matrix_dense(MM_FLOAT32, product->k, product->m, test->a);
    plan_job(test);
}

void expect_product(const struct test_job *test) {
    static struct test_job expected;
    expected = *test;
    assert_int_equal(test->job.work.error.status, MM_OK);
    fill(expected.c, 1);
    expected.job.product.a.data = expected.a;
    expected.job.product.b.data = expected.b;
    expected.job.product.c.data = expected.c;
    fake_compute(&expected.job.product, test->job.product.transpose_a);
    assert_memory_equal(test->c, expected.c, sizeof test->c);
}

void expect_spans_ms(const struct mm_job *job, uint64_t upload, uint64_t kernel, uint64_t download) {
    assert_int_equal(job->outcome.span_ns[MM_SPAN_UPLOAD], upload * 1000000);
    assert_int_equal(job->outcome.span_ns[MM_SPAN_KERNEL], kernel * 1000000);
    assert_int_equal(job->outcome.span_ns[MM_SPAN_DOWNLOAD], download * 1000000);
}

/* Sets handles of streams and events. Lanes have stream 0. */
static void set_copier(void) {
    uintptr_t event = FAKE_EVENTS / 4;
    struct mm_cuda_copier *copier = &device.copier;
    copier->upload = (cudaStream_t)1;
    copier->download = (cudaStream_t)2;
    for (unsigned slot = 0; slot < MM_TILING_SLOTS_MAX; slot++) {
        struct mm_cuda_slot *const slots[] = {&copier->a[slot], &copier->b[slot],
                                              &copier->c[slot % MM_TILING_C_SLOTS]};
        for (unsigned index = 0; index < COUNT(slots); index++) {
            slots[index]->ready = (cudaEvent_t)event++;
            slots[index]->used = (cudaEvent_t)event++;
        }
    }
    for (unsigned index = 0; index < MM_CUDA_TILES_AHEAD; index++) { /* checks take 1 ms */
        copier->computed[index] = (cudaEvent_t)event++;
        copier->checked[index] = (cudaEvent_t)event++;
    }
    assert_true(event <= FAKE_EVENTS);
    fake_forget();
}

int reset(void **state) {
    static const struct mm_backend backend = {.name = "made up",
                                              .variants = &ours,
                                              .variant_count = 1,
                                              .plan = mm_cuda_plan,
                                              .schedule = mm_cuda_schedule};
    static struct mm_path paths[LANES];
    static struct mm_verification verifications[LANES];
    static struct mm_reduction reductions[LANES];
    memset(&fake_cuda, 0, sizeof fake_cuda);
    memset(&device, 0, sizeof device);
    fake_cuda.memory_max = fake_cuda.pitch_max = (size_t)1 << 20;
    fake_cuda.dynamic_max = 48 << 10;
    device.head = (struct mm_device){.backend = &backend, .name = "Card", .memory_bytes = (size_t)1 << 20};
    device.reads_locked_pages = true;
    device.pitch_bytes_max = 1 << 20;
    device.direct.device = &device;
    set_copier();
    for (unsigned index = 0; index < LANES; index++) {
        device.lanes[index].device = &device;
        device.lanes[index].path = &paths[index];
        device.lanes[index].verification = &verifications[index];
        device.lanes[index].reduction = &reductions[index];
        for (uintptr_t mark = 0; mark < MM_CUDA_MARKS; mark++) /* fake times: 0, 1, 3 and 6 ms */
            device.lanes[index].marks[mark] = (cudaEvent_t)(1 + mark * (mark + 1) / 2);
    }
    return 0;
}

int drop(void **state) {
    mm_cuda_trim(&device);
    assert_int_equal(fake_cuda.memory_used, 0);
    assert_int_equal(fake_cuda.streams, 0);
    return 0;
}

void release_copies(struct mm_stored *value) {
    struct mm_device_copy *copy;
    while ((copy = value->copies) != NULL) {
        value->copies = copy->next;
        copy->release(copy);
    }
    assert_int_equal(device.copy_bytes, 0);
    assert_int_equal(fake_cuda.events, 0);
}

void run(unsigned lane, struct mm_job *const *jobs, unsigned count) {
    mm_cuda_begin(&device.head, lane, jobs, count);
    mm_cuda_end(&device.head, lane, jobs, count);
}

void run_square(unsigned lane, size_t edge, enum mm_status expected) {
    static struct test_job test;
    struct mm_job *job = &test.job;
    job_init(&test, &ours, edge, edge, edge);
    mm_cuda_begin(&device.head, lane, &job, 1);
    assert_int_equal(job->work.error.status, expected);
    if (expected != MM_OK)
        return;
    mm_cuda_end(&device.head, lane, &job, 1);
    expect_product(&test);
}
