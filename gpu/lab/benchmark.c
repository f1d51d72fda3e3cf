/* The request of a benchmark, its memory, and its figures. The measuring is benchmark_run.c's, and what is
 * right benchmark_judge.c's. */
#include "gpu/lab/benchmark_state.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where a matrix begins in its set, as device memory does. */
enum { ALIGNMENT = 256 };

/* What one run of a row is counted as. */
static double operations(const struct mm_benchmark_request *request) {
    const double elements = (double)request->m * (double)request->n;
    return request->op == MM_MATMUL ? 2.0 * elements * (double)request->k : 2.0 * elements;
}

static enum mm_status fail_limit(const char *field, uint64_t limit, struct mm_error *error) {
    if (error != NULL) {
        snprintf(error->field, sizeof error->field, "%s", field);
        error->limit = limit;
        error->has_limit = true;
    }
    return MM_TOO_LARGE;
}

/* Of rows × cols once it is transposed, where it is. */
static struct mm_matrix make_operand(enum mm_dtype dtype, size_t rows, size_t cols, bool transposed) {
    return transposed ? mm_matrix_dense(dtype, cols, rows, NULL) : mm_matrix_dense(dtype, rows, cols, NULL);
}

/* The views of one set, which lie nowhere yet. */
static struct mm_product make_product(const struct mm_benchmark_request *request) {
    struct mm_product product = {.a = mm_matrix_dense(request->dtype, request->m, request->n, NULL),
                                 .transpose_a = true};
    if (request->op == MM_MATMUL) {
        product.transpose_a = request->transpose_a;
        product.transpose_b = request->transpose_b;
        product.a = make_operand(request->dtype, request->m, request->k, request->transpose_a);
        product.b = make_operand(request->dtype, request->k, request->n, request->transpose_b);
        (void)mm_product_conform(&product, NULL);
    } else {
        mm_product_conform_transposition(&product);
    }
    product.c = mm_matrix_dense(request->dtype, product.m, product.n, NULL);
    return product;
}

static enum mm_status judge_bytes(const struct mm_benchmark_request *request, const struct mm_limits *limits,
                                  struct mm_error *error) {
    const struct mm_product product = make_product(request);
    const struct mm_matrix *const matrices[] = {&product.a, &product.b, &product.c};
    static const char *const names[] = {"a", "b", "c"};
    size_t total = 0;
    size_t judging = 0;
    for (size_t index = 0; index < 3; index++) {
        size_t bytes;
        enum mm_status status =
            mm_matrix_size(names[index], request->dtype, matrices[index]->rows, matrices[index]->cols,
                           matrices[index]->ld, limits, &bytes, error);
        if (status != MM_OK)
            return status;
        if (!mm_size_add(total, bytes, &total))
            total = SIZE_MAX;
    }
    if (!mm_benchmark_judging_bytes(request->op, &product, &judging) || !mm_size_add(total, judging, &total))
        total = SIZE_MAX;
    if (total <= limits->memory_bytes_max)
        return MM_OK;
    mm_fail(error, MM_TOO_LARGE,
            "the matrices and what judges them take %zu bytes, but the limit is %zu (--memory-budget)", total,
            limits->memory_bytes_max);
    return fail_limit("", limits->memory_bytes_max, error);
}

static enum mm_status judge_counts(const struct mm_benchmark_request *request, uint64_t repeats_max,
                                   struct mm_error *error) {
    const struct {
        const char *name;
        size_t value;
    } counts[] = {{"m", request->m},
                  {"n", request->n},
                  {"k", request->op == MM_MATMUL ? request->k : 1},
                  {"repeats", request->repeats}};
    for (size_t index = 0; index < sizeof counts / sizeof counts[0]; index++)
        if (counts[index].value == 0)
            return mm_fail_field(error, MM_BAD_REQUEST, counts[index].name, "%s is 0, but must be at least 1",
                                 counts[index].name);
    if (request->repeats <= repeats_max)
        return MM_OK;
    mm_fail(error, MM_TOO_LARGE,
            "repeats is %" PRIu64 "%s, but the limit is %" PRIu64 " (--benchmark-repeats)", request->repeats,
            request->repeats < MM_BENCHMARK_REPEATS_CUT ? "" : " or more", repeats_max);
    return fail_limit("repeats", repeats_max, error);
}

enum mm_status mm_benchmark_judge_size(const struct mm_benchmark_request *request,
                                       const struct mm_benchmark_limits *limits, struct mm_error *error) {
    enum mm_status status = judge_counts(request, limits->repeats_max, error);
    return status == MM_OK ? judge_bytes(request, limits->matrices, error) : status;
}

enum mm_status mm_benchmark_judge_work(const struct mm_benchmark_request *request,
                                       const struct mm_benchmark_limits *limits, struct mm_error *error) {
    const double run = operations(request);
    const double work = run * (double)request->repeats * (double)request->subject_count;
    assert(request->subject_count <= MM_BENCHMARK_ROWS_MAX);
    if (request->subject_count == 0)
        return mm_fail_field(error, MM_BAD_REQUEST, "variants", "there is no variant to measure");
    if (run > (double)limits->run_flops_max) {
        mm_fail(error, MM_TOO_LARGE,
                "one run takes %.6g operations, but the limit is %" PRIu64 " (--benchmark-run-flops)", run,
                limits->run_flops_max);
        return fail_limit("m", limits->run_flops_max, error);
    }
    if (work <= (double)limits->flops_max)
        return MM_OK;
    mm_fail(error, MM_TOO_LARGE,
            "%zu rows of %" PRIu64 " repeats take %.6g operations, but the limit is %" PRIu64
            " (--benchmark-flops)",
            request->subject_count, request->repeats, work, limits->flops_max);
    return fail_limit("repeats", limits->flops_max, error);
}

struct mm_benchmark *mm_benchmark_open(const struct mm_benchmark_request *request, size_t memory_bytes_max) {
    const size_t row_count = request->subject_count + (request->op == MM_TRANSPOSE);
    struct mm_benchmark *benchmark =
        calloc(1, sizeof *benchmark + row_count * request->repeats * sizeof benchmark->times_ns[0]);
    if (benchmark == NULL)
        return NULL;
    benchmark->task.run = mm_benchmark_run;
    benchmark->request = *request;
    if (request->row_ns == 0)
        benchmark->request.row_ns = MM_BENCHMARK_ROW_NS;
    benchmark->memory_bytes_max = memory_bytes_max;
    benchmark->row_count = row_count;
    for (size_t row = 0; row < row_count; row++)
        benchmark->courses[row].times_ns = benchmark->times_ns + row * request->repeats;
    benchmark->product = make_product(request);
    benchmark->b_offset = mm_size_round_up(mm_matrix_bytes(&benchmark->product.a), ALIGNMENT);
    benchmark->c_offset =
        benchmark->b_offset + mm_size_round_up(mm_matrix_bytes(&benchmark->product.b), ALIGNMENT);
    benchmark->set_bytes =
        benchmark->c_offset + mm_size_round_up(mm_matrix_bytes(&benchmark->product.c), ALIGNMENT);
    const bool is_sized =
        mm_benchmark_judging_bytes(request->op, &benchmark->product, &benchmark->judging_bytes);
    assert(is_sized); /* as it was when the request was judged */
    (void)is_sized;
    benchmark->operands = (struct mm_random_product){
        .a_seed = MM_BENCHMARK_SEED,
        .b_seed = mm_random_skip(MM_BENCHMARK_SEED, benchmark->b_offset / sizeof(float)),
        .transpose_a = request->transpose_a,
        .transpose_b = request->transpose_b,
        .m = request->m,
        .k = request->k,
        .n = request->n,
    };
    if (request->op == MM_MATMUL)
        mm_sample_place(&benchmark->sample, request->m, request->n, request->k);
    return benchmark;
}

void mm_benchmark_close(struct mm_benchmark *benchmark) {
    assert(benchmark == NULL || benchmark->memory == NULL);
    if (benchmark != NULL)
        free(benchmark->judging);
    free(benchmark);
}

size_t mm_benchmark_host_bytes(const struct mm_benchmark *benchmark) {
    const struct mm_benchmark_request *request = &benchmark->request;
    for (size_t index = 0; index < request->subject_count; index++)
        if (request->subjects[index].backend->is_host)
            return mm_benchmark_host_sets(benchmark) * benchmark->set_bytes + benchmark->judging_bytes;
    return benchmark->judging_bytes;
}

bool mm_benchmark_next(struct mm_benchmark *benchmark, struct mm_job *job) {
    const struct mm_benchmark_request *request = &benchmark->request;
    const struct mm_backend *next = NULL;
    for (size_t index = 0; index < request->subject_count; index++) {
        const struct mm_backend *backend = request->subjects[index].backend;
        if (next == NULL && !benchmark->was_asked[index])
            next = backend;
        benchmark->was_asked[index] = benchmark->was_asked[index] || backend == next;
    }
    if (next == NULL)
        return false;
    benchmark->backend = next;
    benchmark->stage = MM_BENCHMARK_TAKE;
    job->product = (struct mm_product){.m = request->m, .n = request->n, .k = request->k};
    benchmark->task.shares = next->is_host;
    job->task = &benchmark->task;
    job->backend = next;
    job->variant = NULL;
    return true;
}

void mm_benchmark_refuse(struct mm_benchmark *benchmark, const struct mm_error *error) {
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

/* C is cut into strips `tile` wide, for each of which an operand of rows × depth elements is read once. */
static bool strips(size_t rows, size_t depth, size_t across, size_t tile, uint64_t *elements) {
    uint64_t once;
    return !__builtin_mul_overflow(rows, depth, &once) &&
           !__builtin_mul_overflow(once, mm_size_divide_up(across, tile), elements);
}

bool mm_benchmark_loads(const struct mm_benchmark *benchmark, size_t row, uint64_t *elements) {
    const struct mm_benchmark_request *request = &benchmark->request;
    const struct mm_variant *ran = benchmark->rows[row].ran;
    uint64_t of_a, of_b;
    if (ran == NULL || strcmp(ran->name, MM_BENCHMARK_YARDSTICK) == 0)
        return false;
    if (request->op == MM_TRANSPOSE)
        return strips(request->m, request->n, 1, 1, elements);
    unsigned tile = request->subjects[row].tile > 0 ? request->subjects[row].tile : ran->tile;
    if (tile == 0)
        tile = 1;
    return strips(request->m, request->k, request->n, tile, &of_a) &&
           strips(request->n, request->k, request->m, tile, &of_b) &&
           !__builtin_add_overflow(of_a, of_b, elements);
}
