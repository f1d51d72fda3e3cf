/* Defines the tables of operations and of reply formats, and checks a request's Content-Type. */
#include "api/lab/benchmark.h"

#include "api/lab/access.h"
#include "api/media.h"
#include "api/problem.h"
#include "api/text.h"

#include <string.h>

static const struct mm_benchmark_op ops[] = {
    {"matmul", MM_BENCHMARK_OF_VARIANTS, MM_MATMUL, "gflops", "GFLOP/s", "of_blas", "blas"},
    {"transpose", MM_BENCHMARK_OF_VARIANTS, MM_TRANSPOSE, "gigabytes_per_second", "GB/s", "of_copy", "copy"},
    {.name = "shared_access", .kind = MM_BENCHMARK_OF_ACCESSES},
    {.name = "occupancy", .kind = MM_BENCHMARK_OF_OCCUPANCY},
};

static const struct mm_benchmark_format formats[] = {
    {"application/json", "application/json", mm_benchmark_json, mm_access_json, mm_occupancy_json},
    {"text/plain", "text/plain; charset=utf-8", mm_benchmark_text, mm_access_table, mm_occupancy_table},
};

enum { OP_COUNT = sizeof ops / sizeof ops[0], FORMAT_COUNT = sizeof formats / sizeof formats[0] };

const struct mm_benchmark_op *mm_benchmark_ops(size_t *count) {
    *count = OP_COUNT;
    return ops;
}

const struct mm_benchmark_op *mm_benchmark_op_of(const struct mm_benchmark *benchmark) {
    const struct mm_benchmark_op *op = ops;
    while (op->kind != MM_BENCHMARK_OF_VARIANTS || op->op != mm_benchmark_request(benchmark)->op)
        op++;
    return op;
}

void mm_benchmark_devices(const struct mm_benchmark *benchmark, char *text, size_t bytes) {
    const struct mm_benchmark_row *rows = mm_benchmark_rows(benchmark);
    text[0] = '\0';
    for (size_t row = 0; row < mm_benchmark_request(benchmark)->subject_count; row++) {
        bool is_new = rows[row].device != NULL;
        for (size_t before = 0; before < row; before++)
            is_new = is_new && rows[before].device != rows[row].device;
        if (is_new)
            mm_list_add(text, bytes, rows[row].device->name);
    }
}

enum mm_status mm_benchmark_check_type(const char *content_type, bool body_seen, char first,
                                       struct mm_error *error) {
    static const char *const types[] = {"application/json"};
    size_t found;
    if (!mm_media_untyped(content_type))
        return mm_media_find(content_type, types, 1, &found, error);
    if (!body_seen || first == '{')
        return MM_OK;
    return mm_fail_field(error, MM_UNSUPPORTED_MEDIA_TYPE, "Content-Type",
                         "the body has no Content-Type that names a format and no '{' at its start, but must "
                         "be %s; send: " MM_CURL "/v1/benchmark -d '" MM_BENCHMARK_EXAMPLE "'",
                         types[0]);
}

enum mm_status mm_benchmark_choose_format(const char *accept, const struct mm_benchmark_format **format,
                                          struct mm_error *error) {
    const char *types[FORMAT_COUNT];
    size_t chosen = 0;
    for (size_t index = 0; index < FORMAT_COUNT; index++)
        types[index] = formats[index].media_type;
    const enum mm_status status = mm_media_choose(accept, types, FORMAT_COUNT, NULL, &chosen, error);
    *format = &formats[chosen];
    return status;
}
