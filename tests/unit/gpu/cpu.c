/* Tests the CPU backend: memory, errors, the choice of `auto`, products in parts, and the self-test. */
#include "gpu/device/backend.h"
#include "gpu/queue/job.h"
#include "gpu/queue/self_test.h"
#include "tests/unit/unit.h"

#include <math.h>

enum { EDGE_MAX = 600, LD = EDGE_MAX + 3 };

static float a[EDGE_MAX * LD], b[EDGE_MAX * LD], whole[EDGE_MAX * LD], pieces_of[EDGE_MAX * LD];

static int open_cpu(void **state) {
    struct mm_device *device = NULL;
    if (mm_cpu_backend.open(0, &device, NULL) != MM_OK ||
        mm_cpu_backend.fill(device, a, MM_FLOAT32, EDGE_MAX * LD, 1, NULL) != MM_OK ||
        mm_cpu_backend.fill(device, b, MM_FLOAT32, EDGE_MAX * LD, 2, NULL) != MM_OK)
        return -1;
    *state = device;
    return 0;
}

static int close_cpu(void **state) {
    mm_cpu_backend.close(*state);
    return 0;
}

static void has_no_second_device(void **state) {
    struct mm_device *device = NULL;
    struct mm_error error;
    assert_int_equal(mm_cpu_backend.open(1, &device, &error), MM_NOT_READY);
    assert_non_null(strstr(error.detail, "1 was asked for"));
    assert_null(device);
}

static void memory_is_aligned(void **state) {
    struct mm_device *device = *state;
    static const size_t sizes[] = {0, 1, 255, 256, 257, 1 << 20};
    for (size_t index = 0; index < COUNT(sizes); index++) {
        void *memory = NULL;
        assert_int_equal(mm_cpu_backend.acquire(device, sizes[index], &memory, NULL), MM_OK);
        assert_non_null(memory);
        assert_int_equal((uintptr_t)memory % 256, 0);
        memset(memory, 1, sizes[index]);
        mm_cpu_backend.release(device, memory);
    }
}

static void more_than_the_installed_memory_is_refused(void **state) {
    struct mm_device *device = *state;
    const size_t sizes[] = {device->memory_bytes + 1, SIZE_MAX - 1, SIZE_MAX};
    for (size_t index = 0; index < COUNT(sizes); index++) {
        void *memory = &memory;
        struct mm_error error;
        assert_int_equal(mm_cpu_backend.acquire(device, sizes[index], &memory, &error), MM_NO_DEVICE_MEMORY);
        assert_true(error.needed_bytes == sizes[index]);
        assert_true(error.free_bytes > 0);
        assert_ptr_equal(memory, &memory);
    }
}

static void auto_chooses_a_variant_that_runs(void **state) {
    struct mm_device *device = *state;
    const struct mm_variant *row = mm_backend_variant(&mm_cpu_backend, MM_MATMUL, "auto");
    static const size_t edges[] = {1, 2, 8, 40, 64, 1000, 2147483647};
    enum { EDGES = COUNT(edges) };
    for (size_t index = 0; index < EDGES * EDGES * EDGES; index++) {
        struct mm_product product = {.m = edges[index % EDGES],
                                     .n = edges[index / EDGES % EDGES],
                                     .k = index % 5 == 0 ? 0 : edges[index / EDGES / EDGES]};
        const struct mm_variant *chosen = row->choose[product.a.dtype](device, &product);
        assert_non_null(chosen);
        assert_false(mm_variant_is_auto(chosen));
        assert_null(mm_variant_missing(chosen, device, product.a.dtype));
    }
}

/* The BLAS library has sizes of type int. These sizes are larger. The operands are never read. */
static void blas_refuses_sizes_above_int_max(void **state) {
    const struct mm_variant *blas = mm_backend_variant(&mm_cpu_backend, MM_MATMUL, "blas");
    if (mm_variant_missing(blas, *state, MM_FLOAT32) != NULL)
        skip();
    size_t big = (size_t)1 << 31;
    float element = 1.0F;
    struct mm_product product = {.m = 1, .n = 1, .k = big};
    product.a = mm_matrix_dense(MM_FLOAT32, 1, big, &element);
    product.b = mm_matrix_dense(MM_FLOAT32, big, 1, &element);
    product.c = mm_matrix_dense(MM_FLOAT32, 1, 1, &element);
    struct mm_job job = {.product = product, .work.backend = &mm_cpu_backend, .variant = blas};
    assert_int_equal(mm_device_run(*state, &job), MM_UNSUPPORTED);
    assert_int_equal(job.work.error.status, MM_UNSUPPORTED);
    assert_non_null(strstr(job.work.error.detail, "2147483648"));
}

static struct mm_matrix matrix_of(float *data, size_t rows, size_t cols, bool transposed) {
    struct mm_matrix matrix =
        mm_matrix_dense(MM_FLOAT32, transposed ? cols : rows, transposed ? rows : cols, data);
    matrix.ld = LD;
    return matrix;
}

static struct mm_product product_of(enum mm_op op, size_t m, size_t k, size_t n, unsigned flags, float *c) {
    const bool turns_a = (flags & 1) != 0;
    const bool turns_b = (flags & 2) != 0;
    struct mm_product product = {.transpose_a = turns_a, .transpose_b = turns_b};
    product.a = matrix_of(a, m, op == MM_MATMUL ? k : n, turns_a);
    product.b = matrix_of(b, k, n, turns_b);
    assert_int_equal(mm_product_conform(op, &product, NULL), MM_OK);
    product.c = matrix_of(c, m, n, false);
    return product;
}

/* Computes the product in parts of about `elements` elements. Returns the number of parts. */
static unsigned run_in_pieces(const struct mm_device *device, const struct mm_variant *variant,
                              const struct mm_product *product, double elements) {
    struct mm_progress pieces = {.element_ns = (double)MM_PART_NS / elements};
    unsigned count = 0;
    bool more = true;
    while (more) {
        const struct mm_product piece = mm_progress_next(&pieces, device, variant, product);
        const double took_ns = (double)MM_PART_NS / elements * (double)piece.m * (double)piece.n;
        assert_true(variant->cut != 0 &&
                    (piece.m % variant->cut == 0 || piece.m == product->m - pieces.row) &&
                    (piece.n % variant->cut == 0 || piece.n == product->n - pieces.col));
        assert_int_equal(variant->launch[MM_FLOAT32](&piece, NULL, NULL), MM_OK);
        more = mm_progress_end(&pieces, product, (uint64_t)took_ns + 1);
        count++;
    }
    return count;
}

static void expect_same(const struct mm_device *device, const struct mm_variant *variant, size_t m, size_t k,
                        size_t n, unsigned flags, double elements, unsigned count) {
    const struct mm_product expected = product_of(variant->op, m, k, n, flags, whole);
    const struct mm_product cut = product_of(variant->op, m, k, n, flags, pieces_of);
    memset(whole, 0xff, sizeof whole);
    memset(pieces_of, 0xff, sizeof pieces_of);
    assert_int_equal(variant->launch[MM_FLOAT32](&expected, NULL, NULL), MM_OK);
    const unsigned counted = run_in_pieces(device, variant, &cut, elements);
    if (count != 0)
        assert_int_equal(counted, count);
    assert_true(counted > 1);
    if (strcmp(variant->name, "blas") != 0) {
        assert_memory_equal(pieces_of, whole, sizeof whole);
        return;
    }
    for (size_t row = 0; row < m; row++)
        for (size_t col = 0; col < n; col++)
            assert_true(fabsf(pieces_of[row * LD + col] - whole[row * LD + col]) <= 1e-5F * (float)k);
}

/* Parts give the same bits as the whole product, except with blas. A part has whole rows of C, or only some
 * columns of one row if a row is too long. */
static void parts_give_the_same_bits(void **state) {
    const struct mm_device *device = *state;
    for (size_t row = 0; row < mm_cpu_backend.variant_count; row++) {
        const struct mm_variant *variant = &mm_cpu_backend.variants[row];
        if (mm_variant_is_auto(variant) || mm_variant_missing(variant, device, MM_FLOAT32) != NULL)
            continue;
        for (unsigned flags = 0; flags < 4; flags++) {
            if (variant->cut > 32) {
                expect_same(device, variant, 600, 33, 5, flags, 1500, 3);
                expect_same(device, variant, 5, 33, 600, flags, 1500, 3);
                continue;
            }
            expect_same(device, variant, 101, 33, 67, flags, 40 * 67, 0);
            expect_same(device, variant, 101, 33, 67, flags, 33, 0);
            expect_same(device, variant, 1, 50, 200, flags, 70, 0);
            expect_same(device, variant, 200, 50, 1, flags, 70, 0);
        }
    }
}

/* If a part takes twice the expected time, the next part is halved. Without a rate, there is one part. */
static void part_sizes_follow_the_time(void **state) {
    struct mm_device device = *(const struct mm_device *)*state;
    const struct mm_variant *naive = &mm_cpu_backend.variants[0];
    const struct mm_product product = product_of(MM_MATMUL, 100, 10, 10, 0, whole);
    struct mm_progress pieces = {.row = 0};
    memset(&device.forecast, 0, sizeof device.forecast);
    assert_int_equal(mm_progress_next(&pieces, &device, naive, &product).m, 100);
    mm_forecast_assume(&device, naive, &product, 5.0 * (double)MM_PART_NS);
    assert_int_equal(mm_progress_next(&pieces, &device, naive, &product).m, 20);
    assert_true(mm_progress_end(&pieces, &product, 2 * MM_PART_NS));
    assert_int_equal(mm_progress_next(&pieces, &device, naive, &product).m, 10);
    assert_int_equal(pieces.row, 20);
    assert_true(mm_progress_end(&pieces, &product, MM_PART_NS / 10));
    assert_int_equal(mm_progress_next(&pieces, &device, naive, &product).m, 70);
    assert_false(mm_progress_end(&pieces, &product, 1));
    assert_true(pieces.spent_ns == 2 * MM_PART_NS + MM_PART_NS / 10 + 1);
    struct mm_variant uncut = *naive;
    uncut.cut = 0;
    pieces = (struct mm_progress){.element_ns = (double)MM_PART_NS};
    assert_int_equal(mm_progress_next(&pieces, &device, &uncut, &product).m, 100);
}

static void all_parts_of_a_job_are_computed(void **state) {
    struct mm_device *device = *state;
    const struct mm_variant *naive = &mm_cpu_backend.variants[0];
    struct mm_job job = {.work.backend = &mm_cpu_backend, .variant = naive};
    job.product = product_of(MM_MATMUL, 101, 33, 67, 0, pieces_of);
    assert_int_equal(mm_job_plan(&job, device, NULL), MM_OK);
    memset(pieces_of, 0xff, sizeof pieces_of);
    memset(whole, 0xff, sizeof whole);
    const struct mm_product expected = product_of(MM_MATMUL, 101, 33, 67, 0, whole);
    assert_int_equal(naive->launch[MM_FLOAT32](&expected, NULL, NULL), MM_OK);
    mm_forecast_assume(device, naive, &job.product, 5000.0 * (double)MM_PART_NS);
    struct mm_job *const jobs[] = {&job};
    mm_cpu_backend.begin(device, 0, jobs, 1);
    mm_cpu_backend.end(device, 0, jobs, 1);
    assert_true(job.more);
    const uint64_t first_ns = job.outcome.span_ns[MM_SPAN_KERNEL];
    assert_int_equal(mm_device_run(device, &job), MM_OK); /* starts from the beginning */
    assert_false(job.more);
    assert_true(job.outcome.span_ns[MM_SPAN_KERNEL] > first_ns);
    assert_memory_equal(pieces_of, whole, sizeof whole);
}

static enum mm_status do_nothing(const struct mm_product *product, struct mm_lane *lane,
                                 struct mm_error *error) {
    return MM_OK;
}

static void self_test_tries_each_type_of_a_row(void **state) {
    const struct mm_variant *naive = mm_backend_variant(&mm_cpu_backend, MM_TRANSPOSE, "naive");
    struct mm_variant row = *naive;
    struct mm_backend backend = mm_cpu_backend;
    struct mm_device device = *(struct mm_device *)*state;
    struct mm_error error;
    device.backend = &backend;
    backend.variants = &row;
    backend.variant_count = 1;
    assert_int_equal(mm_self_test(&device, &error), MM_OK);
    for (unsigned dtype = 0; dtype < MM_DTYPE_COUNT; dtype++) {
        row.launch[dtype] = do_nothing;
        assert_int_equal(mm_self_test(&device, &error), MM_DEVICE_FAILED);
        row = *naive;
    }
    row = mm_cpu_backend.variants[0];
    assert_int_equal(mm_self_test(&device, &error), MM_OK);
    for (unsigned dtype = 0; dtype < MM_DTYPE_COUNT; dtype++) {
        row.launch[dtype] = do_nothing;
        assert_int_equal(mm_self_test(&device, &error), MM_DEVICE_FAILED);
        row = mm_cpu_backend.variants[0];
    }
    row.launch[MM_FLOAT32] = do_nothing;
    row.wrong_on_purpose = true;
    assert_int_equal(mm_self_test(&device, &error), MM_OK);
}

RUN_TESTS_BETWEEN(open_cpu, close_cpu, has_no_second_device, memory_is_aligned,
                  more_than_the_installed_memory_is_refused, auto_chooses_a_variant_that_runs,
                  blas_refuses_sizes_above_int_max, parts_give_the_same_bits, part_sizes_follow_the_time,
                  all_parts_of_a_job_are_computed, self_test_tries_each_type_of_a_row)
