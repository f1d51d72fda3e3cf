/* Checks the request of a benchmark, divides its memory, and returns its results. */
#include "gpu/lab/benchmark_state.h"

#include "gpu/product/shape.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Matrices begin at multiples of ALIGNMENT, as in device memory. On the host, runs alternate between two
 * sets of matrices if two sets fit. */
enum { ALIGNMENT = 256, HOST_SETS = 2 };

static double operations(const struct mm_benchmark_request *request) {
    const double elements = (double)request->m * (double)request->n;
    return request->op == MM_MATMUL ? 2.0 * elements * (double)request->k : 2.0 * elements;
}

/* Returns the view of an operand, which is rows × cols after the optional transposition. */
static struct mm_matrix make_operand(enum mm_dtype dtype, size_t rows, size_t cols, bool transposed) {
    return transposed ? mm_matrix_dense(dtype, cols, rows, NULL) : mm_matrix_dense(dtype, rows, cols, NULL);
}

static struct mm_product make_product(const struct mm_benchmark_request *request) {
    struct mm_product product = {.a = mm_matrix_dense(request->dtype, request->m, request->n, NULL),
                                 .transpose_a = true};
    if (request->op == MM_MATMUL) {
        product.transpose_a = request->transpose_a;
        product.transpose_b = request->transpose_b;
        product.a = make_operand(request->dtype, request->m, request->k, request->transpose_a);
        product.b = make_operand(request->dtype, request->k, request->n, request->transpose_b);
    }
    (void)mm_product_conform(request->op, &product, NULL);
    product.c = mm_product_result(request->op, &product);
    if (request->op == MM_MATMUL)
        product.c.dtype = request->c_dtype;
    product.epilogue = request->epilogue;
    if (request->sources[MM_OPERAND_ADDEND].kind != MM_SOURCE_HOST)
        product.addend = product.c;
    if (request->sources[MM_OPERAND_BIAS].kind != MM_SOURCE_HOST)
        product.bias = mm_matrix_dense(request->c_dtype, 1, request->n, NULL);
    return product;
}

static bool has_given(const struct mm_benchmark_request *request) {
    return request->sources[MM_OPERAND_A].kind != MM_SOURCE_HOST;
}

static size_t check_bytes(const struct mm_benchmark_request *request, const struct mm_product *product) {
    const bool is_verified = request->op == MM_MATMUL && !mm_benchmark_has_activation(request);
    return is_verified ? mm_verify_bytes(product) : 0;
}

static size_t part_bytes(const struct mm_benchmark_request *request, const struct mm_product *product) {
    const size_t row_bytes = product->c.cols * mm_dtype_bytes(product->c.dtype);
    const size_t rows = mm_size_min(MM_BENCHMARK_PART_BYTES / row_bytes, product->c.rows);
    if (request->op == MM_MATMUL)
        return rows > 1 ? rows * row_bytes : row_bytes;
    return mm_size_min(mm_matrix_bytes(&product->c), MM_BENCHMARK_PART_BYTES);
}

enum mm_status mm_benchmark_check_size(const struct mm_benchmark_request *request,
                                       const struct mm_benchmark_limits *limits, struct mm_error *error) {
    const struct mm_product product = make_product(request);
    const size_t bytes_max = limits->matrices->memory_bytes_max;
    size_t bytes[MM_OPERANDS_MAX + 1];
    size_t total = check_bytes(request, &product);
    if (request->repeats > limits->repeats_max)
        return mm_fail_limit(error, "repeats", limits->repeats_max,
                             "repeats is more than the limit of %" PRIu64 " (--benchmark-repeats)",
                             limits->repeats_max);
    const enum mm_status status = mm_shape_sizes(&product, limits->matrices, bytes, error);
    if (status != MM_OK)
        return status;
    total += part_bytes(request, &product);
    for (size_t index = 0; index <= MM_OPERANDS_MAX; index++) {
        const size_t copied = has_given(request) && index < MM_OPERANDS_MAX ? bytes[index] : 0;
        if (!mm_size_add(total, bytes[index], &total) || !mm_size_add(total, copied, &total))
            total = SIZE_MAX;
    }
    if (total <= bytes_max)
        return MM_OK;
    return mm_fail_limit(
        error, "", bytes_max,
        "the matrices and their check take %zu bytes, but the limit is %zu (--memory-budget)", total,
        bytes_max);
}

enum mm_status mm_benchmark_check_work(const struct mm_benchmark_request *request,
                                       const struct mm_benchmark_limits *limits, struct mm_error *error) {
    const double run = operations(request);
    size_t row_count = 0;
    assert(request->subject_count >= 1 && request->subject_count <= MM_BENCHMARK_ROWS_MAX);
    for (size_t index = 0; index < request->subject_count; index++)
        row_count += !request->subjects[index].is_model;
    const double work = run * (double)request->repeats * (double)row_count;
    if (row_count == 0)
        return MM_OK;
    if (run > (double)limits->run_flops_max)
        return mm_fail_limit(error, "m", limits->run_flops_max,
                             "one run takes %.6g operations, but the limit is %" PRIu64
                             " (--benchmark-run-flops)",
                             run, limits->run_flops_max);
    if (work <= (double)limits->flops_max)
        return MM_OK;
    return mm_fail_limit(error, "repeats", limits->flops_max,
                         "%zu rows of %" PRIu64 " repeats take %.6g operations, but the limit is %" PRIu64
                         " (--benchmark-flops)",
                         row_count, request->repeats, work, limits->flops_max);
}

/* Returns the offset of an operand in a set of matrices, or of C if the index is MM_OPERANDS_MAX. */
static size_t offset_of(const struct mm_product *product, unsigned index) {
    size_t offset = 0;
    for (unsigned before = 0; before < index; before++)
        offset += mm_size_round_up(mm_matrix_bytes(mm_product_operand(product, before)), ALIGNMENT);
    return offset;
}

static size_t given_bytes(const struct mm_benchmark_request *request, const struct mm_product *product) {
    return has_given(request) ? offset_of(product, MM_OPERANDS_MAX) : 0;
}

static void lay_out_sets(struct mm_benchmark *benchmark, size_t bytes_max) {
    const struct mm_product *product = &benchmark->product;
    for (unsigned index = 0; index < MM_PRODUCT_MATRICES; index++)
        benchmark->offsets[index] = offset_of(product, index);
    benchmark->set_bytes =
        benchmark->offsets[MM_OPERANDS_MAX] + mm_size_round_up(mm_matrix_bytes(&product->c), ALIGNMENT);
    benchmark->host_set_count = bytes_max / HOST_SETS >= benchmark->set_bytes ? HOST_SETS : 1;
}

/* Divides the memory that follows the struct into the times of the rows, the memory of the check, the given
 * operands, and a buffer for a part of C. */
static void divide_memory(struct mm_benchmark *benchmark) {
    const struct mm_benchmark_request *request = &benchmark->request;
    struct mm_product *product = &benchmark->product;
    const size_t given = given_bytes(request, product);
    double *times_ns = benchmark->times_ns;
    for (size_t row = 0; row < benchmark->row_count; row++, times_ns += request->repeats)
        benchmark->row_states[row].times_ns = times_ns;
    benchmark->check_memory = times_ns;
    benchmark->part = (char *)benchmark->check_memory + check_bytes(request, product) + given;
    benchmark->part_bytes = part_bytes(request, product);
    if (!has_given(request))
        return;
    benchmark->given = benchmark->part - given;
    for (unsigned index = 0; index < MM_OPERANDS_MAX; index++)
        mm_product_place_operand(product, index, benchmark->given + benchmark->offsets[index]);
}

/* Sets the errors of models that do not support the shape. */
static void fail_models(struct mm_benchmark *benchmark) {
    const struct mm_benchmark_request *request = &benchmark->request;
    for (size_t row = 0; row < request->subject_count; row++)
        if (request->subjects[row].is_model)
            (void)mm_variant_check_shape(request->subjects[row].variant, &benchmark->product,
                                         &benchmark->rows[row].error);
}

static void prepare_check(struct mm_benchmark *benchmark) {
    const struct mm_benchmark_request *request = &benchmark->request;
    assert((mm_dtype_results(request->dtype) & MM_DTYPE_BIT(request->c_dtype)) != 0);
    benchmark->seed = mm_verify_seed();
    for (unsigned index = 0; index <= MM_OPERAND_B; index++)
        benchmark->streams[index] =
            mm_random_skip(MM_BENCHMARK_SEED, benchmark->offsets[index] / mm_dtype_bytes(request->dtype));
    if (!has_given(request) || mm_benchmark_has_activation(request))
        mm_sample_place(&benchmark->sample, request->m, request->n, request->k);
}

struct mm_benchmark *mm_benchmark_open(const struct mm_benchmark_request *request, size_t memory_bytes_max) {
    const struct mm_product product = make_product(request);
    const size_t row_count = request->subject_count + (request->op == MM_TRANSPOSE);
    const size_t times_bytes = row_count * request->repeats * sizeof(double);
    const size_t checking_bytes =
        check_bytes(request, &product) + given_bytes(request, &product) + part_bytes(request, &product);
    struct mm_benchmark *benchmark = calloc(1, sizeof *benchmark + times_bytes + checking_bytes);
    if (benchmark == NULL)
        return NULL;
    benchmark->request = *request;
    if (request->row_ns == 0)
        benchmark->request.row_ns = MM_BENCHMARK_ROW_NS;
    benchmark->row_count = row_count;
    benchmark->product = product;
    benchmark->check_bytes = checking_bytes;
    lay_out_sets(benchmark, memory_bytes_max - mm_size_min(memory_bytes_max, checking_bytes + times_bytes));
    divide_memory(benchmark);
    fail_models(benchmark);
    if (request->op == MM_MATMUL)
        prepare_check(benchmark);
    return benchmark;
}

void mm_benchmark_close(struct mm_benchmark *benchmark) {
    assert(benchmark == NULL || benchmark->memory == NULL);
    free(benchmark);
}

size_t mm_benchmark_host_bytes(const struct mm_benchmark *benchmark) {
    const struct mm_benchmark_request *request = &benchmark->request;
    const size_t times_bytes = benchmark->row_count * request->repeats * sizeof benchmark->times_ns[0];
    const size_t bytes = benchmark->check_bytes + times_bytes;
    for (size_t index = 0; index < request->subject_count; index++)
        if (request->subjects[index].backend->is_host)
            return bytes + benchmark->host_set_count * benchmark->set_bytes;
    return bytes;
}

bool mm_benchmark_next_task(struct mm_benchmark *benchmark, struct mm_task *task) {
    const struct mm_benchmark_request *request = &benchmark->request;
    const struct mm_backend *next = NULL;
    for (size_t index = 0; index < request->subject_count; index++) {
        const struct mm_backend *backend = request->subjects[index].backend;
        if (request->subjects[index].is_model)
            continue;
        if (next == NULL && !benchmark->was_asked[index])
            next = backend;
        benchmark->was_asked[index] = benchmark->was_asked[index] || backend == next;
    }
    if (next == NULL)
        return false;
    benchmark->backend = next;
    task->work.kind = MM_WORK_TASK;
    task->work.backend = next;
    task->shares = next->is_host;
    task->subject = benchmark;
    task->run = mm_benchmark_run;
    return true;
}

void mm_benchmark_fail_rows(struct mm_benchmark *benchmark, const struct mm_error *error) {
    for (size_t index = 0; index < benchmark->request.subject_count; index++) {
        struct mm_benchmark_row *row = &benchmark->rows[index];
        if (benchmark->request.subjects[index].backend == benchmark->backend && row->error.status == MM_OK)
            row->error = *error;
    }
}

const struct mm_benchmark_request *mm_benchmark_request(const struct mm_benchmark *benchmark) {
    return &benchmark->request;
}

const struct mm_benchmark_row *mm_benchmark_rows(const struct mm_benchmark *benchmark) {
    return benchmark->rows;
}

double mm_benchmark_rate(const struct mm_benchmark *benchmark, const struct mm_benchmark_row *row) {
    const struct mm_benchmark_request *request = &benchmark->request;
    double work = operations(request);
    if (request->op == MM_TRANSPOSE)
        work *= (double)mm_dtype_bytes(request->dtype);
    return row->median_ns > 0.0 ? work / row->median_ns : 0.0;
}

const struct mm_plan *mm_benchmark_plan(const struct mm_benchmark *benchmark, size_t row) {
    return &benchmark->row_states[row].plan;
}

struct mm_traffic mm_benchmark_traffic(const struct mm_benchmark *benchmark, size_t row) {
    const struct mm_benchmark_request *request = &benchmark->request;
    const struct mm_benchmark_subject *subject = &request->subjects[row];
    const struct mm_variant *variant = subject->is_model ? subject->variant : benchmark->rows[row].ran;
    struct mm_traffic traffic, known = mm_traffic_unknown();
    if (variant == NULL || benchmark->rows[row].error.status != MM_OK || variant->traffic == NULL ||
        !variant->traffic(&benchmark->product, subject->tile > 0 ? subject->tile : variant->tile, &traffic))
        return known;
    if (!subject->backend->is_host)
        return traffic;
    known.figures[MM_GLOBAL_LOADS] = traffic.figures[MM_GLOBAL_LOADS];
    return known;
}

double mm_benchmark_intensity(const struct mm_benchmark *benchmark, const struct mm_traffic *traffic) {
    const struct mm_benchmark_request *request = &benchmark->request;
    return request->op == MM_MATMUL ? mm_traffic_intensity(traffic, operations(request)) : 0.0;
}
