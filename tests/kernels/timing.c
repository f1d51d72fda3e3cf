/* Times the rows of one device by the domain's benchmark (gpu/lab/benchmark.h), so that the command measures
 * as the service does. What people are shown is table.c's business. */
#include "tests/kernels/harness.h"
#include "tests/kernels/benchmark_wrong.h"

#include <assert.h>
#include <limits.h>

/* Of a transposition the shape is that of the result. The copy is the benchmark's own, and no subject. */
static struct mm_benchmark_request make_request(const struct timed_row *rows, size_t count,
                                                struct shape shape, const struct timing *timing) {
    const bool multiplies = timing->op == MM_MATMUL;
    struct mm_benchmark_request request = {.op = timing->op,
                                           .m = multiplies ? shape.m : shape.n,
                                           .n = multiplies ? shape.n : shape.m,
                                           .k = multiplies ? shape.k : 0,
                                           .dtype = timing->dtype,
                                           .transpose_a = timing->transpose_a,
                                           .transpose_b = timing->transpose_b,
                                           .repeats = timing->repeats,
                                           .row_ns = (uint64_t)timing->seconds * 1000000000};
    for (size_t index = 0; index < count; index++) {
        if (rows[index].copies)
            continue;
        assert(request.subject_count < MM_BENCHMARK_ROWS_MAX);
        request.subjects[request.subject_count++] =
            (struct mm_benchmark_subject){.backend = rows[index].device->backend,
                                          .variant = rows[index].variant,
                                          .tile = rows[index].chosen_tile};
    }
    return request;
}

/* What the matrices may take of the host's memory; the benchmark itself sees to that of other devices. */
static size_t memory_bytes_max(const struct mm_device *device) {
    return device->backend->is_host ? device->backend->memory_free(device) / 2 : SIZE_MAX;
}

static enum mm_status open_benchmark(const struct mm_device *device,
                                     const struct mm_benchmark_request *request,
                                     struct mm_benchmark **benchmark, struct mm_error *error) {
    const struct mm_limits matrices = {.dimension_max = SIZE_MAX,
                                       .memory_bytes_max = memory_bytes_max(device)};
    const struct mm_benchmark_limits limits = {.matrices = &matrices, .repeats_max = UINT_MAX};
    enum mm_status status = mm_benchmark_judge_size(request, &limits, error);
    if (status != MM_OK)
        return status;
    *benchmark = mm_benchmark_open(request, matrices.memory_bytes_max);
    return *benchmark != NULL ? MM_OK : mm_fail(error, MM_INTERNAL, "no memory for the benchmark");
}

static void run(struct mm_benchmark *benchmark, struct mm_device *device) {
    struct mm_job job = {0};
    while (mm_benchmark_next(benchmark, &job))
        while (job.task->run(job.task, device, false, &job.error) == MM_TASK_AGAIN)
            continue;
}

static void tell(const struct mm_benchmark *benchmark, struct timed_row *rows, size_t count) {
    const struct mm_benchmark_row *next = mm_benchmark_rows(benchmark);
    const struct mm_benchmark_row *copy = next + mm_benchmark_request(benchmark)->subject_count;
    for (size_t index = 0; index < count; index++) {
        struct timed_row *row = &rows[index];
        struct mm_error none;
        row->figures = row->copies ? *copy : *next++;
        row->rate = mm_benchmark_rate(benchmark, &row->figures);
        row->wrong = benchmark_is_wrong(benchmark, &row->figures);
        const struct mm_backend *backend = row->device->backend;
        if (row->copies || row->figures.error.status != MM_OK || backend->attributes == NULL ||
            backend->attributes(row->device, row->figures.ran, row->chosen_tile, &row->attributes, &none) !=
                MM_OK)
            row->attributes = (struct mm_attributes){0};
    }
}

void timing_run(struct timed_row *rows, size_t count, struct shape shape, const struct timing *timing) {
    const struct mm_benchmark_request request = make_request(rows, count, shape, timing);
    struct mm_device *device = rows[0].device;
    struct mm_benchmark *benchmark = NULL;
    struct mm_error error = {0};
    if (open_benchmark(device, &request, &benchmark, &error) == MM_OK) {
        run(benchmark, device);
        tell(benchmark, rows, count);
    } else {
        for (size_t index = 0; index < count; index++)
            rows[index].figures = (struct mm_benchmark_row){.error = error};
    }
    mm_benchmark_close(benchmark);
}
