/* Runs products in tiles on a CUDA device. Without arguments, checks several types and shapes. With TYPE, M,
 * K, N and CSV, compares the time of a product that may use a quarter of the memory that it needs with the
 * forecast, and writes a timeline to the file CSV. Exits with 77 without a device. */
#include "gpu/device/backend.h"
#include "gpu/plan/tiling.h"

#include "gpu/clock.h"
#include "gpu/matrix/source.h"
#include "gpu/queue/self_test.h"
#include "gpu/store/stored.h"
#include "timeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096 };

/* Acquires locked memory. Fills it with random elements, or with 0xff if seed is 0. */
static struct mm_matrix make(enum mm_dtype dtype, size_t rows, size_t cols, uint64_t seed) {
    struct mm_matrix matrix = mm_matrix_dense(dtype, rows, cols, NULL);
    const struct mm_source source = {.kind = MM_SOURCE_UNIFORM, .seed = seed};
    const size_t bytes = mm_size_round_up(mm_matrix_bytes(&matrix), PAGE);
    matrix.data = aligned_alloc(PAGE, bytes);
    if (matrix.data == NULL || !mm_cuda_backend.page_locking->lock(matrix.data, bytes)) {
        printf("FAIL: no locked memory of %zu bytes\n", bytes);
        exit(1);
    }
    memset(matrix.data, 0xff, bytes);
    if (seed != 0)
        (void)mm_source_generate(&source, &matrix, 0, rows * cols, NULL);
    return matrix;
}

static void drop(struct mm_matrix *matrix) {
    mm_cuda_backend.page_locking->unlock(matrix->data);
    free(matrix->data);
}

static struct mm_job job_of(enum mm_dtype dtype, size_t m, size_t k, size_t n) {
    struct mm_job job = {.work.backend = &mm_cuda_backend, .verify = true, .is_locked = true};
    job.variant = mm_backend_variant(&mm_cuda_backend, MM_MATMUL, "auto");
    job.product.a = make(dtype, m, k, 1);
    job.product.b = make(dtype, k, n, 2);
    (void)mm_product_conform(MM_MATMUL, &job.product, NULL);
    job.product.c = make(mm_dtype_result(dtype), m, n, 0);
    return job;
}

static void drop_job(struct mm_job *job) {
    drop(&job->product.a);
    drop(&job->product.b);
    drop(&job->product.c);
}

/* Runs the job, and returns whether it is right. Sets *took_ns to the time outside of the check. */
static bool run(struct mm_device *device, struct mm_job *job, uint64_t *took_ns) {
    const uint64_t begun_ns = mm_clock_ns();
    if (mm_device_run(device, job) != MM_OK) {
        printf("FAIL: %s\n", job->work.error.detail);
        return false;
    }
    *took_ns = mm_clock_ns() - begun_ns - job->outcome.verification.took_ns;
    if (!job->verify || mm_verification_verdict(&job->outcome.verification) == MM_VERDICT_PASSED)
        return true;
    printf("FAIL: %s of %s, %zu x %zu x %zu in %zu tiles: a residual of %g in row %zu, the bound is %g\n",
           job->outcome.ran->name, mm_dtype_name(job->product.a.dtype), job->product.m, job->product.k,
           job->product.n, job->outcome.tiles, job->outcome.verification.residual,
           job->outcome.verification.row, job->outcome.verification.bound);
    return false;
}

/* Sums of whole numbers do not depend on tiles. */
static bool is_whole(enum mm_dtype dtype) {
    return dtype == MM_INT8 || dtype == MM_INT32;
}

/* Runs the job again. One operand is stored on the device `home`, the other one is generated. C must be the
 * same. C also stays on the device, and is reduced. */
static bool check_again(struct mm_device *device, struct mm_device *home, const struct mm_job *first,
                        enum mm_operand_index is_stored) {
    const enum mm_operand_index is_generated = is_stored == MM_OPERAND_A ? MM_OPERAND_B : MM_OPERAND_A;
    struct mm_job again = *first, *job = &again;
    const struct mm_product product = job->product;
    const struct mm_matrix *from = mm_product_operand(&product, is_stored), *c = &product.c;
    const struct mm_window all = {1, c->rows, c->cols, 0, c->rows, 0, c->cols, 0, 0};
    const struct mm_shape shape = {2, {from->rows, from->cols}};
    const size_t c_bytes = mm_matrix_bytes(c);
    struct mm_reduction expected = mm_reduction_none();
    struct mm_reduction_progress done = {0};
    struct mm_device_copy *copy = NULL;
    void *before = malloc(c_bytes), *stored = malloc(c_bytes);
    uint64_t ignored_ns;
    if (before == NULL || stored == NULL ||
        mm_cuda_backend.acquire_copy(home, mm_matrix_bytes(from), &copy, NULL) != MM_OK ||
        copy->write(copy, 0, from->data, mm_matrix_bytes(from), NULL) != MM_OK)
        return false;
    memcpy(before, c->data, c_bytes);
    memset(c->data, 0xff, c_bytes);
    struct mm_stored *value = mm_stored_make(&shape, from->dtype, NULL, copy);
    mm_stored_add_copy(value, copy);
    job->sources[is_stored] = (struct mm_source){.kind = MM_SOURCE_STORED, .stored = value};
    job->sources[is_generated] = (struct mm_source){.kind = MM_SOURCE_UNIFORM, .seed = 1 + is_generated};
    job->product.a.data = job->product.b.data = NULL;
    job->part = &all;
    job->reduces = job->stores_c = true;
    job->device_bytes_max = /* C, and half of what the job needs besides C and the stored operand */
        c_bytes +
        (mm_matrix_bytes(mm_product_operand(&product, is_generated)) + job->plan.workspace_bytes) / 2;
    bool is_right = run(device, job, &ignored_ns) && job->outcome.tiles >= 2;
    is_right = is_right && job->outcome.uploaded_bytes == 0 && memcmp(c->data, before, c_bytes) == 0 &&
               job->stored_c->read(job->stored_c, &all, c->dtype, stored, NULL) == MM_OK &&
               memcmp(stored, before, c_bytes) == 0;
    (void)mm_reduce_part(&expected, &done, &all, c->dtype, before, SIZE_MAX);
    const struct mm_reduction *got = &job->outcome.reduction;
    is_right = is_right && memcmp(&got->whole_sum, &expected.whole_sum, sizeof got->whole_sum) == 0 &&
               memcmp(&got->whole_trace, &expected.whole_trace, sizeof got->whole_trace) == 0;
    if (!is_right)
        printf("FAIL: operand %d stored on device %u, the other one generated, %s, %zu x %zu x %zu in %zu "
               "tiles\n",
               (int)is_stored, home->index, mm_dtype_name(from->dtype), product.m, product.k, product.n,
               job->outcome.tiles);
    if (job->stored_c != NULL)
        job->stored_c->release(job->stored_c);
    mm_stored_free(value);
    free(before);
    free(stored);
    return is_right;
}

/* `other` is a second device, or NULL. */
static bool check(struct mm_device *device, struct mm_device *other) {
    static const enum mm_dtype dtypes[] = {MM_FLOAT32,       MM_BFLOAT16, MM_FLOAT64,
                                           MM_FLOAT8_E4M3FN, MM_INT8,     MM_INT32};
    static const size_t shapes[][3] = {
        {3000, 2100, 2500}, {2049, 4099, 1027}, {100, 9000, 5000}, {5000, 9000, 96}};
    bool is_right = true;
    for (size_t dtype = 0; dtype < sizeof dtypes / sizeof *dtypes; dtype++)
        for (size_t shape = 0; shape < sizeof shapes / sizeof *shapes; shape++) {
            struct mm_job job = job_of(dtypes[dtype], shapes[shape][0], shapes[shape][1], shapes[shape][2]);
            uint64_t ignored_ns;
            job.device_bytes_max = mm_product_bytes(&job.product) / 2;
            bool passed = run(device, &job, &ignored_ns);
            if (passed && job.outcome.tiles < 2)
                printf("FAIL: %zu tiles\n", job.outcome.tiles);
            passed = passed && job.outcome.tiles >= 2;
            for (unsigned index = MM_OPERAND_A; index <= MM_OPERAND_B && is_whole(dtypes[dtype]); index++)
                passed = passed && check_again(device, device, &job, index) &&
                         (other == NULL || check_again(device, other, &job, index));
            is_right = is_right && passed;
            drop_job(&job);
        }
    return is_right;
}

/* Runs the product as a whole, from which the forecast learns, and then in tiles. */
static bool measure(struct mm_device *device, struct mm_job *job, const char *csv) {
    uint64_t whole_ns = 0, took_ns = 0;
    for (unsigned turn = 0; turn < 2; turn++)
        if (!run(device, job, &whole_ns))
            return false;
    mm_forecast_learn(device, job);
    const uint64_t *spans = job->outcome.span_ns;
    const struct mm_product product = mm_product_dense(&job->product);
    const struct mm_plan plan = job->plan;
    const size_t share = (mm_product_bytes(&product) + plan.workspace_bytes) / 4;
    printf("whole: %.1f ms; upload %.1f, %s %.1f, download %.1f\n", (double)whole_ns / 1e6,
           (double)spans[MM_SPAN_UPLOAD] / 1e6, job->outcome.ran->name, (double)spans[MM_SPAN_KERNEL] / 1e6,
           (double)spans[MM_SPAN_DOWNLOAD] / 1e6);
    struct mm_tiling tiling;
    if (!mm_cuda_backend.find_tiles(job, &plan, share, &tiling))
        return false;
    const struct mm_tiling_times forecast = mm_tiling_forecast(&tiling, &plan, &product);
    const double longer_ns =
        forecast.kernel_ns > forecast.upload_ns ? forecast.kernel_ns : forecast.upload_ns;
    printf("forecast in %zu MiB: %zu x %zu, slots %u and %u: %.1f ms; kernel %.1f, upload %.1f, first %.1f, "
           "last %.1f\n",
           share >> 20, tiling.rows, tiling.cols, tiling.a_slots, tiling.b_slots, forecast.ns / 1e6,
           forecast.kernel_ns / 1e6, forecast.upload_ns / 1e6, forecast.first_ns / 1e6,
           forecast.last_ns / 1e6);
    job->device_bytes_max = share;
    static const char *const turns[] = {"checked", "timed", "with timeline"};
    for (unsigned turn = 0; turn < 3; turn++) { /* checks and the timeline's events take time */
        job->verify = turn == 0;
        if (turn == 2)
            timeline_begin();
        if (!run(device, job, &took_ns))
            return false;
        printf("%s: %.1f ms in %zu tiles, %.2f GB uploaded; before the first %.1f, kernels %.1f, after the "
               "last %.1f; %.3f of the bound\n",
               turns[turn], (double)took_ns / 1e6, job->outcome.tiles,
               (double)job->outcome.uploaded_bytes / 1e9, (double)spans[MM_SPAN_UPLOAD] / 1e6,
               (double)spans[MM_SPAN_KERNEL] / 1e6, (double)spans[MM_SPAN_DOWNLOAD] / 1e6,
               (longer_ns + forecast.first_ns + forecast.last_ns) / (double)took_ns);
    }
    printf("%d lines in %s\n", timeline_write(csv), csv);
    return true;
}

static size_t number(const char *text) {
    return strtoul(text, NULL, 10);
}

int main(int argc, char **argv) {
    struct mm_device *device = NULL, *other = NULL;
    struct mm_error error = {.status = MM_OK};
    enum mm_dtype dtype = 0;
    if (mm_cuda_backend.open(0, &device, &error) != MM_OK) {
        printf("skipped: %s\n", error.detail);
        return 77;
    }
    bool is_right = mm_self_test_rates(device, &error) == MM_OK;
    if (argc != 6) {
        (void)mm_cuda_backend.open(1, &other, &error);
        printf("%s\n", other == NULL ? "no second device" : "with a second device");
        is_right = is_right && check(device, other);
    } else {
        while (dtype + 1 < MM_DTYPE_COUNT && strcmp(mm_dtype_name(dtype), argv[1]) != 0)
            dtype++;
        struct mm_job job = job_of(dtype, number(argv[2]), number(argv[3]), number(argv[4]));
        is_right = is_right && measure(device, &job, argv[5]);
        drop_job(&job);
    }
    if (other != NULL)
        mm_cuda_backend.close(other);
    mm_cuda_backend.close(device);
    printf("%s\n", is_right ? "right" : "FAIL");
    return is_right ? 0 : 1;
}
