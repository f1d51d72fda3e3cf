/* Writes a benchmark's reply as JSON. */
#include "api/lab/benchmark.h"
#include "api/number/float_text.h"
#include "api/json/json_value.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Rounds to six significant digits, because measurements are not more precise. An infinity becomes a string,
 * because JSON has no infinities. */
static json_t *make_number(double value) {
    char text[32];
    if (isnan(value))
        return json_null();
    if (!isfinite(value))
        return json_string(mm_float_word(value));
    snprintf(text, sizeof text, "%.6g", value);
    return json_real(strtod(text, NULL));
}

static json_t *make_times(const struct mm_benchmark_row *row) {
    return json_pack("{s:f, s:f, s:f}", "min", row->min_ns / 1e6, "median", row->median_ns / 1e6, "max",
                     row->max_ns / 1e6);
}

static json_t *make_count(uint64_t figure) {
    return figure == MM_TRAFFIC_UNKNOWN ? json_null() : mm_json_count(figure);
}

/* Adds the predicted memory traffic. On the host, adds only the loads, because caches hide other traffic. */
static int put_traffic(json_t *object, const struct mm_benchmark *benchmark, const struct mm_traffic *traffic,
                       bool is_host) {
    const double intensity = mm_benchmark_intensity(benchmark, traffic);
    const unsigned count = is_host ? MM_GLOBAL_LOADS + 1 : MM_TRAFFIC_COUNT;
    int failed = 0;
    for (enum mm_traffic_figure figure = 0; figure < count; figure++)
        failed |= mm_json_put(object, mm_traffic_name(figure), make_count(traffic->figures[figure]));
    if (!is_host && mm_benchmark_request(benchmark)->op == MM_MATMUL)
        failed |= mm_json_put(object, "arithmetic_intensity",
                              intensity > 0.0 ? make_number(intensity) : json_null());
    return failed;
}

static json_t *make_row(const struct mm_benchmark *benchmark, size_t index) {
    const struct mm_benchmark_op *op = mm_benchmark_op_of(benchmark);
    const struct mm_benchmark_subject *subject = &mm_benchmark_request(benchmark)->subjects[index];
    const struct mm_benchmark_row *row = &mm_benchmark_rows(benchmark)[index];
    const bool good = row->error.status == MM_OK && row->ran != NULL;
    const bool has_ratio = good && row->of_yardstick > 0.0;
    const struct mm_traffic traffic = mm_benchmark_traffic(benchmark, index);
    json_t *object =
        json_pack("{s:s, s:s, s:b, s:o, s:o, s:o}", "variant", subject->variant->name, "backend",
                  subject->backend->name, "measured", good, "kernel_ms", good ? make_times(row) : json_null(),
                  op->rate, good ? make_number(mm_benchmark_rate(benchmark, row)) : json_null(),
                  op->of_yardstick, has_ratio ? make_number(row->of_yardstick) : json_null());
    int failed = 0;
    if (op->op == MM_MATMUL)
        failed |=
            mm_json_put(object, "relative_error", good ? make_number(row->relative_error) : json_null());
    failed |= mm_json_put(object, "max_error", good ? make_number(row->max_error) : json_null());
    failed |= put_traffic(object, benchmark, &traffic, subject->backend->is_host);
    failed |= mm_json_put(object, "repeats", mm_json_count(good ? row->repeats : 0));
    if (subject->tile > 0)
        failed |= mm_json_put(object, "tile", mm_json_count(subject->tile));
    if (good && row->ran != subject->variant)
        failed |= mm_json_put(object, "ran", json_string(row->ran->name));
    failed |= mm_json_put(object, "device", mm_json_text(row->device != NULL ? row->device->name : ""));
    if (row->error.status != MM_OK)
        failed |= mm_json_put(object, "error",
                              json_pack("{s:s, s:o}", "code", mm_status_name(row->error.status), "detail",
                                        mm_json_text(row->error.detail)));
    return mm_json_finish(object, failed);
}

static json_t *make_scale(enum mm_dtype sum, const union mm_scale *scale) {
    switch (sum) {
    case MM_FLOAT32:
        return make_number((double)scale->of_float);
    case MM_FLOAT64:
        return make_number(scale->of_double);
    case MM_INT32:
        return json_integer((int32_t)scale->of_uint32_t);
    default:
        return json_integer((int64_t)scale->of_uint64_t);
    }
}

static json_t *make_epilogue(const struct mm_benchmark_request *request) {
    const struct mm_epilogue *epilogue = &request->epilogue;
    const enum mm_dtype sum = mm_dtype_sum(request->dtype);
    return json_pack("{s:o, s:o, s:b, s:s}", "alpha", make_scale(sum, &epilogue->alpha), "beta",
                     make_scale(sum, &epilogue->beta), "bias",
                     request->sources[MM_OPERAND_BIAS].kind != MM_SOURCE_HOST, "activation",
                     mm_activation_name(epilogue->activation));
}

char *mm_benchmark_json(const struct mm_benchmark *benchmark, size_t *length) {
    const struct mm_benchmark_op *op = mm_benchmark_op_of(benchmark);
    const struct mm_benchmark_request *request = mm_benchmark_request(benchmark);
    char devices[512];
    json_t *rows = json_array();
    json_t *body = json_pack("{s:s, s:o}", "op", op->name, "m", mm_json_count(request->m));
    int failed = op->op == MM_MATMUL ? mm_json_put(body, "k", mm_json_count(request->k)) : 0;
    failed |= mm_json_put(body, "n", mm_json_count(request->n));
    failed |= mm_json_put(body, "dtype", json_string(mm_dtype_name(request->dtype)));
    if (op->op == MM_MATMUL)
        failed |= mm_json_put(body, "result_dtype", json_string(mm_dtype_name(request->c_dtype)));
    if (request->transpose_a)
        failed |= mm_json_put(body, "transpose_a", json_true());
    if (request->transpose_b)
        failed |= mm_json_put(body, "transpose_b", json_true());
    if (request->epilogue.is_set)
        failed |= mm_json_put(body, "epilogue", make_epilogue(request));
    failed |= mm_json_put(body, "rows", rows);
    for (size_t index = 0; index < request->subject_count && failed == 0; index++)
        failed |= json_array_append_new(rows, make_row(benchmark, index));
    mm_benchmark_devices(benchmark, devices, sizeof devices);
    failed |= mm_json_put(body, "device", mm_json_text(devices));
    /* 15 digits hide the rounding errors of times in nanoseconds. */
    return mm_json_print(mm_json_finish(body, failed), JSON_REAL_PRECISION(15), length);
}
