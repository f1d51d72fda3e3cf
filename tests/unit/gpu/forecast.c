/* Tests the forecast of a job's time, which learns from the best times of kernels and copies. */
#include "gpu/device/backend.h"
#include "gpu/cpu/variants.h"
#include "gpu/queue/self_test.h"
#include "tests/unit/unit.h"

enum { US = 1000, TELLING = 1000000 /* least work that sets the first rate */ };

static const struct mm_variant variants[MM_FORECAST_VARIANTS_MAX + 2] = {
    {.name = "one", .launch[MM_FLOAT32] = mm_cpu_naive}, {.name = "two"}};
static const struct mm_backend backend = {
    .name = "made up", .is_host = true, .variants = variants, .variant_count = COUNT(variants)};

/* Returns a matrix of this many bytes. Its elements do not exist, because nothing reads them. */
static struct mm_matrix matrix_of(size_t bytes) {
    static float element;
    return mm_matrix_dense(MM_FLOAT32, bytes / sizeof(float), 1, &element);
}

/* Returns a job with `work` operations and work / 50 bytes. */
static struct mm_job job_of(size_t work, unsigned row) {
    return (struct mm_job){.work.backend = &backend,
                           .outcome.ran = &variants[row],
                           .product = {.m = work / 2, .n = 1, .k = 1, .c = matrix_of(work / 50)}};
}

static struct mm_device device;
static struct mm_job job; /* has the least work that sets a first rate */

static int set_up(void **state) {
    device = (struct mm_device){.backend = &backend};
    job = job_of(TELLING, 0);
    return 0;
}

/* Lets the forecast learn from a job that took this long. */
static void learn(uint64_t kernel_us) {
    job.outcome.span_ns[MM_SPAN_KERNEL] = kernel_us * US;
    mm_forecast_learn(&device, &job);
}

static void expect_us(double us, const struct mm_job *asked, unsigned row) {
    const double ns = mm_forecast_ns(&device, asked, &variants[row]);
    if (ns != us * US)
        fail_msg("%g us, not %g", ns / US, us);
}

static void shortest_time_counts(void **state) {
    const struct mm_job larger = job_of(4 * TELLING, 0);
    expect_us(0.0, &job, 0); /* nothing was measured */
    learn(3000);
    expect_us(3000.0, &job, 0);
    expect_us(0.0, &job, 1);
    learn(2000);
    learn(9000);
    learn(0); /* nothing ran */
    expect_us(8000.0, &larger, 0);
}

/* Only a job that copies nothing from the host tells how fast copies from other devices are. A job that
 * copies from other devices does not tell how fast kernels are. */
static void copies_from_other_devices_have_their_rate(void **state) {
    job.outcome.peer_bytes = 10 * TELLING;
    job.outcome.span_ns[MM_SPAN_UPLOAD] = 100 * US;
    job.outcome.uploaded_bytes = TELLING;
    learn(0);
    assert_true(device.forecast.peer_ns == 0.0);
    job.outcome.uploaded_bytes = 0;
    learn(3000); /* kernels may have waited for copies */
    assert_true(device.forecast.peer_ns == 0.01);
    assert_true(mm_forecast_kernel_ns(&device, &variants[0], &job.product) == 0.0);
}

/* Products with vectors move many bytes per operation. Large products must not look slow because of them. */
static void products_with_vectors_set_only_the_copy_rate(void **state) {
    const struct mm_job large = job_of(4 * TELLING, 0);
    struct mm_job thin = job;
    thin.product.c = matrix_of(2 * TELLING);
    for (int is_assumed = 0; is_assumed < 2; is_assumed++) {
        set_up(state);
        if (is_assumed)
            mm_forecast_assume(&device, &variants[0], &job.product, 1000.0 * US);
        job = thin;
        learn(is_assumed ? 1000 : 0); /* the time that its operations take */
        expect_us(is_assumed ? 1000.0 : 0.0, &thin, 0);
        learn(20000);
        expect_us(is_assumed ? 4000.0 : 800.0, &large, 0); /* without an assumed rate, only its bytes count */
        expect_us(20000.0, &thin, 0);
        assert_true(mm_forecast_kernel_ns(&device, &variants[0], &thin.product) == 20000.0 * US);
        learn(10000);
        learn(30000);
        thin.product.c = matrix_of(4 * TELLING);
        expect_us(20000.0, &thin, 0);
        thin.product.c = matrix_of(2 * TELLING);
        job = large;
        learn(12000); /* the first wide product, slower than assumed */
        expect_us(12000.0, &large, 0);
        expect_us(10000.0, &thin, 0);
        job = thin;
        learn(2000); /* any product corrects both rates */
        expect_us(8000.0, &large, 0);
        expect_us(2000.0, &thin, 0);
    }
}

/* A job with little work or a very short time sets no rate, because a delay would distort it. */
static void small_jobs_set_no_rate(void **state) {
    static const struct {
        size_t work, uploaded_bytes, large;
        unsigned us;
    } cases[] = {{0, 0, TELLING, 5000},
                 {TELLING - 4, TELLING - 1, 4000 * (size_t)TELLING, 9000},
                 {TELLING, TELLING, TELLING, 49}};
    for (size_t index = 0; index < COUNT(cases); index++) {
        const struct mm_job large = job_of(cases[index].large, 0);
        job = job_of(cases[index].work, 0);
        job.outcome.uploaded_bytes = cases[index].uploaded_bytes;
        job.outcome.span_ns[MM_SPAN_UPLOAD] = cases[index].us * US;
        learn(cases[index].us);
        expect_us(0.0, &large, 0);
    }
    job.outcome.span_ns[MM_SPAN_KERNEL] = job.outcome.span_ns[MM_SPAN_UPLOAD] = 50 * US - 1;
    mm_forecast_learn(&device, &job);
    expect_us(0.0, &job, 0);
    learn(50);
    expect_us(50.0, &job, 0);
}

static void every_job_can_improve_a_rate(void **state) {
    const struct mm_job large = job;
    job.outcome.uploaded_bytes = TELLING;
    job.outcome.span_ns[MM_SPAN_UPLOAD] = 9000 * US;
    learn(9000);
    job = job_of(TELLING / 10, 0);
    job.outcome.uploaded_bytes = TELLING / 10;
    job.outcome.span_ns[MM_SPAN_UPLOAD] = 30 * US;
    learn(20);
    expect_us(200.0 + 300.0 / 50, &large, 0);
}

/* The forecast includes the time of a check. */
static void checks_take_their_time(void **state) {
    const struct mm_job unchecked = job;
    job.product.c = matrix_of(TELLING);
    job.outcome.verification.took_ns = 700 * US;
    mm_forecast_learn(&device, &job); /* this job has no check */
    job.verify = true;
    expect_us(0.0, &job, 0);
    mm_forecast_learn(&device, &job);
    expect_us(700.0, &job, 0);
    expect_us(0.0, &unchecked, 0);
}

static const struct mm_variant transpose = {.name = "turns", .op = MM_TRANSPOSE};
static const struct mm_backend moves = {.name = "moves", .variants = &transpose, .variant_count = 1};

/* A product with k = 0 only writes zeros, so it sets no rate. */
static void product_without_k_sets_no_rate(void **state) {
    job.product.k = 0;
    job.product.c = matrix_of(TELLING);
    learn(60);
    expect_us(0.0, &job, 0);
    device.backend = job.work.backend = &moves;
    job.outcome.ran = &transpose;
    learn(60);
    assert_true(mm_forecast_ns(&device, &job, &transpose) == 60.0 * US);
}

/* Variants beyond the end of the table share its last rate. */
static void variants_beyond_the_table_share_a_rate(void **state) {
    job = job_of(TELLING, MM_FORECAST_VARIANTS_MAX);
    learn(3000);
    assert_true(device.forecast.copy_ns == 0.0);
    expect_us(3000.0, &job, MM_FORECAST_VARIANTS_MAX + 1);
    expect_us(0.0, &job, 0);
}

static void copies_count_by_their_bytes(void **state) {
    job = job_of(TELLING, 1);
    job.outcome.uploaded_bytes = 4 * TELLING;
    job.outcome.downloaded_bytes = TELLING;
    job.outcome.span_ns[MM_SPAN_UPLOAD] = 700 * US;
    job.outcome.span_ns[MM_SPAN_DOWNLOAD] = 300 * US;
    learn(4000);
    expect_us(4000.0 + 4.0, &job, 1);
    expect_us(4.0, &job, 0);
}

/* The spans of tiles overlap. */
static void products_in_tiles_set_no_rate(void **state) {
    job.outcome.tiles = 4;
    job.outcome.uploaded_bytes = TELLING;
    job.outcome.span_ns[MM_SPAN_UPLOAD] = 700 * US;
    learn(3000);
    expect_us(0.0, &job, 0);
}

/* A first job far slower than the assumed rate is ignored. Otherwise large products would be rejected. */
static void a_rate_is_assumed_first(void **state) {
    for (int is_far = 0; is_far < 2; is_far++) {
        set_up(state);
        mm_forecast_assume(&device, &variants[0], &job.product, 1000.0 * US);
        expect_us(1000.0, &job, 0);
        /* 33 ms is far slower than assumed. Less than 50 µs is faster, but too short to count. */
        job.outcome.span_ns[MM_SPAN_KERNEL] = is_far ? 33000 * US : 50 * US - 1;
        mm_forecast_learn(&device, &job);
        expect_us(1000.0, &job, 0);
        learn(is_far ? 31000 : 3000);
        expect_us(is_far ? 31000.0 : 3000.0, &job, 0);
    }
}

/* Every second run is delayed. */
static enum mm_status measure(struct mm_device *used, const struct mm_plan *plan,
                              const struct mm_product *product, uint64_t *kernel_ns, struct mm_error *error) {
    static unsigned runs;
    *kernel_ns = ++runs % 2 == 0 ? 100000 * US : 1000 * US;
    return MM_OK;
}

static void one_delayed_run_does_not_set_the_rate(void **state) {
    struct mm_backend measured = mm_cpu_backend;
    measured.variants = variants;
    measured.variant_count = 1;
    measured.measure = measure;
    const struct mm_matrix square = mm_matrix_dense(MM_FLOAT32, 64, 64, NULL);
    struct mm_product product = {.a = square, .b = square, .c = square};
    struct mm_error error;
    device = (struct mm_device){.backend = &measured, .memory_bytes = SIZE_MAX};
    assert_int_equal(mm_product_conform(MM_MATMUL, &product, NULL), MM_OK);
    assert_int_equal(mm_self_test_rates(&device, &error), MM_OK);
    assert_in_range((uint64_t)mm_forecast_kernel_ns(&device, &variants[0], &product), 1990 * US, 2010 * US);
}

/* At 1 ns per operation or byte, a product takes 2·e³ ns and a transposition 2·e²·bytes ns for an edge e. */
static void slow_products_are_refused_with_the_largest_size(void **state) {
    struct mm_device mover = {.backend = &moves};
    const struct mm_product product = {.m = 1000, .n = 500, .k = 1};
    const struct mm_product larger = {.m = 1000, .n = 501, .k = 1};
    const struct mm_matrix square = mm_matrix_dense(MM_FLOAT64, 1000, 1000, NULL);
    const struct mm_product transposition = {.m = 1000, .n = 1000, .a = square, .c = square};
    struct mm_error error;
    assert_int_equal(mm_forecast_check(&device, &variants[0], &larger, 1, NULL), MM_OK); /* no rate */
    device.forecast.kernel_ns[0][MM_FLOAT32] = mover.forecast.kernel_ns[0][MM_FLOAT64] = 1.0;
    assert_int_equal(mm_forecast_check(&device, &variants[0], &larger, 0, NULL), MM_OK); /* no limit */
    assert_int_equal(mm_forecast_check(&device, &variants[0], &product, 1, NULL), MM_OK);
    assert_int_equal(mm_forecast_check(&device, &variants[0], &larger, 1, &error), MM_TOO_LARGE);
    assert_string_equal(error.field, "variant");
    assert_true(error.has_limit && error.limit == 1);
    assert_string_equal(error.detail,
                        "one would take about 0.001 s for this, but the limit is 1 ms "
                        "(--max-kernel-ms), enough for squares of an "
                        "edge up to 79"); /* 2·79³ ns are less than 1 ms, and 2·80³ ns are more */
    assert_int_equal(mm_forecast_check(&mover, &transpose, &transposition, 7, &error), MM_TOO_LARGE);
    assert_non_null(strstr(error.detail, "an edge up to 661")); /* 16·661² ns are less than 7 ms */
}

static void deep_product_with_small_result_is_slow_on_a_gpu(void **state) {
    static const struct mm_backend gpu = {.name = "gpu", .variants = variants, .variant_count = 2};
    const struct mm_product small = {.m = 16, .n = 16, .k = 1000};
    const struct mm_product large = {.m = 256, .n = 256, .k = 1000};
    device.backend = &gpu;
    device.forecast.kernel_ns[0][MM_FLOAT32] = 1.0;
    assert_true(mm_forecast_kernel_ns(&device, &variants[0], &small) == 2.0 * 65536 * 1000);
    assert_true(mm_forecast_kernel_ns(&device, &variants[0], &large) == 2.0 * 65536 * 1000);
    device.backend = &backend;
    assert_true(mm_forecast_kernel_ns(&device, &variants[0], &small) == 2.0 * 256 * 1000);
}

/* The products of a stack run together on a GPU, but each adds some time. */
static void all_products_of_a_stack_count(void **state) {
    static const struct mm_backend gpu = {.name = "gpu", .variants = variants, .variant_count = 2};
    static const struct mm_stack stack = {.count = 1000}, tiny = {.count = 1000000};
    const struct mm_product product = {.m = 16, .n = 16, .k = 100, .stack = &stack};
    const struct mm_product small = {.m = 1, .n = 1, .k = 1, .stack = &tiny};
    device.backend = &gpu;
    device.forecast.kernel_ns[0][MM_FLOAT32] = 1.0;
    assert_in_range((uint64_t)mm_forecast_kernel_ns(&device, &variants[0], &product), 51200000, 52000000);
    assert_in_range((uint64_t)mm_forecast_kernel_ns(&device, &variants[0], &small), 100000000, 300000000);
}

RUN_TESTS_BETWEEN(set_up, NULL, shortest_time_counts, copies_from_other_devices_have_their_rate,
                  products_with_vectors_set_only_the_copy_rate, small_jobs_set_no_rate,
                  every_job_can_improve_a_rate, checks_take_their_time, product_without_k_sets_no_rate,
                  variants_beyond_the_table_share_a_rate, copies_count_by_their_bytes,
                  products_in_tiles_set_no_rate, a_rate_is_assumed_first,
                  one_delayed_run_does_not_set_the_rate, slow_products_are_refused_with_the_largest_size,
                  deep_product_with_small_result_is_slow_on_a_gpu, all_products_of_a_stack_count)
