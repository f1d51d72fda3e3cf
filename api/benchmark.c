/* What benchmarks' requests and replies share: the operations, the media types and the formats. */
#include "api/benchmark.h"

#include "api/media.h"

#include <stdio.h>
#include <string.h>

static const struct mm_benchmark_op ops[] = {
    {"matmul", true, MM_MATMUL, true, true, "gflops", "GFLOP/s", "of_blas", "blas"},
    {"transpose", true, MM_TRANSPOSE, false, false, "gigabytes_per_second", "GB/s", "of_copy", "copy"},
    {.name = "shared_access"},
};

static const struct mm_benchmark_format formats[] = {
    {"application/json", "application/json", mm_benchmark_json, mm_benchmark_probe_json},
    {"text/plain", "text/plain; charset=utf-8", mm_benchmark_text, mm_benchmark_probe_text},
};

enum { OP_COUNT = sizeof ops / sizeof ops[0], FORMAT_COUNT = sizeof formats / sizeof formats[0] };

const struct mm_benchmark_op *mm_benchmark_ops(size_t *count) {
    *count = OP_COUNT;
    return ops;
}

const struct mm_benchmark_op *mm_benchmark_op_of(const struct mm_benchmark *benchmark) {
    const struct mm_benchmark_op *op = ops;
    while (!op->has_variants || op->op != mm_benchmark_request(benchmark)->op)
        op++;
    return op;
}

/* A backend's rows ran on one device, so that there are never more of these than backends. */
void mm_benchmark_devices(const struct mm_benchmark *benchmark, char *text, size_t bytes) {
    const struct mm_benchmark_row *rows = mm_benchmark_rows(benchmark);
    size_t length = 0;
    text[0] = '\0';
    for (size_t row = 0; row < mm_benchmark_request(benchmark)->subject_count; row++) {
        bool is_new = rows[row].device != NULL;
        for (size_t before = 0; before < row; before++)
            is_new = is_new && rows[before].device != rows[row].device;
        if (is_new && length < bytes)
            length += (size_t)snprintf(text + length, bytes - length, "%s%s", length > 0 ? ", " : "",
                                       rows[row].device->name);
    }
}

enum mm_status mm_benchmark_judge_type(const char *content_type, bool body_seen, char first,
                                       struct mm_error *error) {
    const bool untyped = content_type == NULL || content_type[strspn(content_type, " \t")] == '\0' ||
                         mm_media_is(content_type, "application/x-www-form-urlencoded");
    if (untyped ? !body_seen || first == '{' : mm_media_is(content_type, "application/json"))
        return MM_OK;
    if (untyped)
        return mm_fail_field(
            error, MM_UNSUPPORTED_MEDIA_TYPE, "Content-Type",
            "the body has no type of its own and no '{' at its start. Spoken is "
            "application/json: for instance curl -d '{\"m\": 1024, \"k\": 1024, \"n\": 1024}' URL");
    mm_fail_field(error, MM_UNSUPPORTED_MEDIA_TYPE, "Content-Type",
                  "the body's type is '%.100s', but only this is spoken: application/json", content_type);
    if (error != NULL)
        snprintf(error->got, sizeof error->got, "%s", content_type);
    return MM_UNSUPPORTED_MEDIA_TYPE;
}

enum mm_status mm_benchmark_choose_format(const char *accept, const struct mm_benchmark_format **format,
                                          struct mm_error *error) {
    int best_weight = 0;
    *format = NULL;
    for (size_t index = 0; index < FORMAT_COUNT; index++) {
        const int weight = mm_media_weight(accept, formats[index].media_type);
        if (weight <= best_weight)
            continue;
        best_weight = weight;
        *format = &formats[index];
    }
    if (*format != NULL)
        return MM_OK;
    return mm_fail_field(error, MM_NOT_ACCEPTABLE, "Accept",
                         "Accept is '%.100s', but the reply can only be one of: %s, %s",
                         accept != NULL ? accept : "", formats[0].media_type, formats[1].media_type);
}
