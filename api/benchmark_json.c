/* A benchmark's reply as JSON. */
#include "api/access.h"
#include "api/benchmark.h"
#include "api/json_value.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int put(json_t *object, const char *key, json_t *value) {
    return json_object_set_new(object, key, value);
}

/* Six significant digits, which is more than a measurement has; what JSON has no number for is a string. */
static json_t *make_number(double value) {
    char text[32];
    if (!isfinite(value))
        return json_string(isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
    snprintf(text, sizeof text, "%.6g", value);
    return json_real(strtod(text, NULL));
}

static json_t *make_times(const struct mm_benchmark_row *row) {
    json_t *times = json_object();
    int failed = put(times, "min", json_real(row->min_ns / 1e6));
    failed |= put(times, "median", json_real(row->median_ns / 1e6));
    failed |= put(times, "max", json_real(row->max_ns / 1e6));
    if (failed == 0)
        return times;
    json_decref(times);
    return NULL;
}

static json_t *make_error(const struct mm_error *error) {
    json_t *object = json_object();
    int failed = put(object, "code", mm_json_text(mm_status_name(error->status)));
    failed |= put(object, "detail", mm_json_text(error->detail));
    if (failed == 0)
        return object;
    json_decref(object);
    return NULL;
}

static json_t *make_row(const struct mm_benchmark *benchmark, size_t index) {
    const struct mm_benchmark_op *op = mm_benchmark_op_of(benchmark);
    const struct mm_benchmark_subject *subject = &mm_benchmark_request(benchmark)->subjects[index];
    const struct mm_benchmark_row *row = &mm_benchmark_rows(benchmark)[index];
    const bool good = row->error.status == MM_OK;
    uint64_t loads = 0;
    json_t *object = json_object();
    int failed = put(object, "variant", mm_json_text(subject->variant->name));
    failed |= put(object, "backend", mm_json_text(subject->backend->name));
    failed |= put(object, "kernel_ms", good ? make_times(row) : json_null());
    failed |= put(object, op->rate, good ? make_number(mm_benchmark_rate(benchmark, row)) : json_null());
    failed |= put(object, op->of_yardstick,
                  good && row->of_yardstick > 0.0 ? make_number(row->of_yardstick) : json_null());
    if (op->has_relative_error)
        failed |= put(object, "relative_error", good ? make_number(row->relative_error) : json_null());
    failed |=
        put(object, "max_error", good && !isnan(row->max_error) ? make_number(row->max_error) : json_null());
    failed |= put(object, "global_loads",
                  good && mm_benchmark_loads(benchmark, index, &loads) ? mm_json_count(loads) : json_null());
    failed |= put(object, "repeats", mm_json_count(good ? row->repeats : 0));
    if (subject->tile > 0)
        failed |= put(object, "tile", mm_json_count(subject->tile));
    if (good && row->ran != subject->variant)
        failed |= put(object, "ran", mm_json_text(row->ran->name));
    failed |= put(object, "device", mm_json_text(row->device != NULL ? row->device->name : ""));
    if (!good)
        failed |= put(object, "error", make_error(&row->error));
    if (failed == 0)
        return object;
    json_decref(object);
    return NULL;
}

/* The text of a reply that was put together, or NULL where that failed. Fifteen significant digits print a
 * time of whole or half nanoseconds without a tail of noise. */
static char *finish(json_t *body, int failed, size_t *length) {
    char *text = failed == 0 ? mm_json_print(body, JSON_REAL_PRECISION(15), length) : NULL;
    json_decref(body);
    return text;
}

char *mm_benchmark_json(const struct mm_benchmark *benchmark, size_t *length) {
    const struct mm_benchmark_op *op = mm_benchmark_op_of(benchmark);
    const struct mm_benchmark_request *request = mm_benchmark_request(benchmark);
    char devices[512];
    json_t *body = json_object();
    json_t *rows = json_array();
    int failed = put(body, "op", mm_json_text(op->name));
    failed |= put(body, "m", mm_json_count(request->m));
    if (op->has_k)
        failed |= put(body, "k", mm_json_count(request->k));
    failed |= put(body, "n", mm_json_count(request->n));
    failed |= put(body, "dtype", mm_json_text(mm_dtype_name(request->dtype)));
    if (request->transpose_a)
        failed |= put(body, "transpose_a", json_true());
    if (request->transpose_b)
        failed |= put(body, "transpose_b", json_true());
    failed |= put(body, "rows", rows);
    for (size_t index = 0; index < request->subject_count && failed == 0; index++)
        failed |= json_array_append_new(rows, make_row(benchmark, index));
    mm_benchmark_devices(benchmark, devices, sizeof devices);
    failed |= put(body, "device", mm_json_text(devices));
    return finish(body, failed, length);
}

char *mm_benchmark_probe_json(const struct mm_probe_task *probe, size_t *length) {
    json_t *body = mm_access_report(&probe->probe, probe->device);
    return finish(body, body == NULL ? -1 : 0, length);
}
