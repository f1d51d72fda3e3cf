/* The CPU backend's seam: what it tells of its device, its memory, its refusals, and how `auto` chooses.
 * Whether products are right is the kernel harness's business (tests/kernels). */
#include "gpu/cpu/cpu_backend.h"
#include "gpu/job.h"
#include "gpu/verify.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static int open_cpu(void **state) {
    struct mm_device *device = NULL;
    struct mm_error error;
    if (mm_cpu_backend.open(0, &device, &error) != MM_OK)
        return -1;
    *state = device;
    return 0;
}

static int close_cpu(void **state) {
    mm_cpu_backend.close(*state);
    return 0;
}

static void tells_its_one_device(void **state) {
    const struct mm_device *device = *state;
    unsigned count = 0;
    assert_int_equal(mm_cpu_backend.count(&count, NULL), MM_OK);
    assert_int_equal(count, 1);
    assert_ptr_equal(device->backend, &mm_cpu_backend);
    assert_in_range(device->lane_count, 1, 16);
    assert_int_equal(device->thread_count, device->lane_count);
    assert_true(strlen(device->name) > 0);
    assert_null(strchr(device->name, '\n'));
    assert_true(device->memory_bytes > 0);
    size_t free_bytes = mm_cpu_backend.memory_free(device);
    assert_in_range(free_bytes, 1, device->memory_bytes);
}

static void has_no_second_device(void **state) {
    (void)state;
    struct mm_device *device = NULL;
    struct mm_error error;
    assert_int_equal(mm_cpu_backend.open(1, &device, &error), MM_NOT_READY);
    assert_non_null(strstr(error.detail, "1 was asked for"));
    assert_null(device);
}

static void lends_aligned_memory(void **state) {
    struct mm_device *device = *state;
    static const size_t sizes[] = {0, 1, 255, 256, 257, 1 << 20};
    for (size_t index = 0; index < sizeof sizes / sizeof *sizes; index++) {
        void *memory = NULL;
        assert_int_equal(mm_cpu_backend.acquire(device, sizes[index], &memory, NULL), MM_OK);
        assert_non_null(memory);
        assert_int_equal((uintptr_t)memory % 256, 0);
        memset(memory, 1, sizes[index]);
        mm_cpu_backend.release(device, memory);
    }
}

static void refuses_memory_past_the_installed(void **state) {
    struct mm_device *device = *state;
    const size_t sizes[] = {device->memory_bytes + 1, SIZE_MAX - 1, SIZE_MAX};
    for (size_t index = 0; index < sizeof sizes / sizeof *sizes; index++) {
        void *memory = &memory;
        struct mm_error error;
        assert_int_equal(mm_cpu_backend.acquire(device, sizes[index], &memory, &error), MM_NO_DEVICE_MEMORY);
        assert_true(error.needed_bytes == sizes[index]);
        assert_true(error.free_bytes > 0);
        assert_ptr_equal(memory, &memory);
    }
}

static void has_no_attributes(void **state) {
    struct mm_attributes attributes;
    struct mm_error error;
    assert_int_equal(mm_cpu_backend.attributes(*state, &mm_cpu_backend.variants[0], 0, &attributes, &error),
                     MM_UNSUPPORTED);
}

static void table_opens_with_the_reference(void **state) {
    (void)state;
    assert_string_equal(mm_cpu_backend.variants[0].name, "naive");
    static const char *const names[] = {"tiled_8", "tiled_16", "tiled_32", "blas", "auto"};
    for (size_t index = 0; index < sizeof names / sizeof *names; index++)
        assert_non_null(mm_backend_variant(&mm_cpu_backend, MM_MATMUL, names[index]));
}

static void auto_picks_a_row_that_runs(void **state) {
    struct mm_device *device = *state;
    const struct mm_variant *row = mm_backend_variant(&mm_cpu_backend, MM_MATMUL, "auto");
    static const size_t edges[] = {1, 2, 8, 40, 64, 1000, 2147483647};
    enum { EDGES = sizeof edges / sizeof *edges };
    for (size_t index = 0; index < EDGES * EDGES * EDGES; index++) {
        struct mm_product product = {.m = edges[index % EDGES],
                                     .n = edges[index / EDGES % EDGES],
                                     .k = index % 5 == 0 ? 0 : edges[index / EDGES / EDGES]};
        const struct mm_variant *chosen = row->choose(device, &product);
        assert_non_null(chosen);
        assert_null(chosen->choose);
        assert_null(mm_variant_missing(chosen, device));
    }
}

/* Sizes that the library's int cannot hold; the operands are never read. */
static void blas_refuses_sizes_past_an_int(void **state) {
    const struct mm_variant *blas = mm_backend_variant(&mm_cpu_backend, MM_MATMUL, "blas");
    if (mm_variant_missing(blas, *state) != NULL)
        skip();
    size_t big = (size_t)1 << 31;
    float element = 1.0F;
    struct mm_product product = {.m = 1, .n = 1, .k = big};
    product.a = mm_matrix_dense(MM_FLOAT32, 1, big, &element);
    product.b = mm_matrix_dense(MM_FLOAT32, big, 1, &element);
    product.c = mm_matrix_dense(MM_FLOAT32, 1, 1, &element);
    struct mm_job job = {.product = product, .backend = &mm_cpu_backend, .variant = blas, .ran = blas};
    assert_int_equal(mm_device_run(*state, &job), MM_UNSUPPORTED);
    assert_int_equal(job.error.status, MM_UNSUPPORTED);
    assert_non_null(strstr(job.error.detail, "2147483648"));
}

static void a_job_tells_its_time(void **state) {
    float a[] = {1.0F, 2.0F, 3.0F, 4.0F};
    float b[] = {5.0F, 6.0F, 7.0F, 8.0F};
    float c[] = {0.0F, 0.0F, 0.0F, 0.0F};
    struct mm_job job = {.backend = &mm_cpu_backend, .ran = &mm_cpu_backend.variants[0]};
    job.product = (struct mm_product){.m = 2, .n = 2, .k = 2};
    job.product.a = mm_matrix_dense(MM_FLOAT32, 2, 2, a);
    job.product.b = mm_matrix_dense(MM_FLOAT32, 2, 2, b);
    job.product.c = mm_matrix_dense(MM_FLOAT32, 2, 2, c);
    job.span_ns[MM_SPAN_UPLOAD] = 1;
    job.span_ns[MM_SPAN_DOWNLOAD] = 1;
    assert_int_equal(mm_device_run(*state, &job), MM_OK);
    const float expected[] = {19.0F, 22.0F, 43.0F, 50.0F};
    assert_memory_equal(c, expected, sizeof c);
    assert_int_equal(job.error.status, MM_OK);
    assert_int_equal(job.batched, 1);
    assert_int_equal(job.span_ns[MM_SPAN_UPLOAD], 0);
    assert_int_equal(job.span_ns[MM_SPAN_DOWNLOAD], 0);
    assert_false(job.verification.is_done);
}

/* A job that is to be checked, of which C comes out as it is told. */
static struct mm_verification check_job(struct mm_device *device, const struct mm_variant *ran) {
    float a[] = {1.0F, 2.0F, 3.0F, 4.0F};
    float b[] = {5.0F, 6.0F, 7.0F, 8.0F};
    float c[4];
    double memory[64];
    struct mm_job job = {.backend = &mm_cpu_backend, .ran = ran, .verify = true, .verify_memory = memory};
    job.product = (struct mm_product){.m = 2, .n = 2, .k = 2};
    job.product.a = mm_matrix_dense(MM_FLOAT32, 2, 2, a);
    job.product.b = mm_matrix_dense(MM_FLOAT32, 2, 2, b);
    job.product.c = mm_matrix_dense(MM_FLOAT32, 2, 2, c);
    assert_in_range(mm_verify_bytes(&job.product), 1, sizeof memory);
    assert_int_equal(mm_device_run(device, &job), MM_OK);
    assert_true(job.verification.is_done);
    return job.verification;
}

static enum mm_status compute_zeros(const struct mm_product *product, struct mm_lane *lane,
                                    struct mm_error *error) {
    (void)lane;
    (void)error;
    memset(product->c.data, 0, mm_matrix_bytes(&product->c));
    return MM_OK;
}

static void a_job_is_checked_where_that_was_asked_for(void **state) {
    const struct mm_variant zeros = {.name = "zeros", .launch = compute_zeros};
    const struct mm_verification good = check_job(*state, &mm_cpu_backend.variants[0]);
    const struct mm_verification bad = check_job(*state, &zeros);
    assert_int_equal(mm_verification_verdict(&good), MM_VERDICT_PASSED);
    assert_int_equal(good.rows_judged, 2);
    assert_int_equal(mm_verification_verdict(&bad), MM_VERDICT_FAILED);
    assert_true(good.seed != bad.seed);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tells_its_one_device),
        cmocka_unit_test(has_no_second_device),
        cmocka_unit_test(lends_aligned_memory),
        cmocka_unit_test(refuses_memory_past_the_installed),
        cmocka_unit_test(has_no_attributes),
        cmocka_unit_test(table_opens_with_the_reference),
        cmocka_unit_test(auto_picks_a_row_that_runs),
        cmocka_unit_test(blas_refuses_sizes_past_an_int),
        cmocka_unit_test(a_job_tells_its_time),
        cmocka_unit_test(a_job_is_checked_where_that_was_asked_for),
    };
    return cmocka_run_group_tests(tests, open_cpu, close_cpu);
}
