/* A reply is right when everything is that the contract says of it: status, headers, form, and every
 * element. Members and headers that the contract does not name are left alone. */
#include "tests/load/check.h"

#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const char *const spans[] = {"receive", "decode",   "queue",  "upload",
                                    "kernel",  "download", "encode", "total"};

enum { SPAN_COUNT = sizeof spans / sizeof spans[0] };

__attribute__((format(printf, 2, 3))) static bool fail(struct mm_load_verdict *verdict, const char *format,
                                                       ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(verdict->problem, sizeof verdict->problem, format, arguments);
    va_end(arguments);
    return false;
}

static bool header_is(const struct mm_load_reply *reply, const char *name, const char *expected,
                      struct mm_load_verdict *verdict) {
    const char *value = mm_load_header(reply, name);
    if (value != NULL && strcmp(value, expected) == 0)
        return true;
    return fail(verdict, "%s is '%s', expected '%s'", name, value == NULL ? "(absent)" : value, expected);
}

/* All spans, in their order, none negative, none longer than all of them together but for a
 * millisecond, since a device measures by its own clock. */
static bool check_timing(const struct mm_load_reply *reply, struct mm_load_verdict *verdict) {
    const char *header = mm_load_header(reply, "Server-Timing");
    double ms[SPAN_COUNT];
    int end = 0;
    if (header == NULL ||
        sscanf(header,
               "receive;dur=%lf, decode;dur=%lf, queue;dur=%lf, upload;dur=%lf, kernel;dur=%lf, "
               "download;dur=%lf, encode;dur=%lf, total;dur=%lf%n",
               &ms[0], &ms[1], &ms[2], &ms[3], &ms[4], &ms[5], &ms[6], &ms[7], &end) != SPAN_COUNT ||
        header[end] != '\0' || isinf(ms[SPAN_COUNT - 1]))
        return fail(verdict, "Server-Timing is '%s'", header == NULL ? "(absent)" : header);
    for (size_t span = 0; span < SPAN_COUNT; span++)
        if (!(ms[span] >= 0 && ms[span] <= ms[SPAN_COUNT - 1] + 1))
            return fail(verdict, "Server-Timing is '%s': %s is negative or longer than total", header,
                        spans[span]);
    return true;
}

/* The headers of a product. */
static bool check_headers(const struct mm_load_request *request, const struct mm_load_reply *reply,
                          const struct mm_load_catalogue *catalogue, struct mm_load_verdict *verdict) {
    const struct mm_load_variant *asked = request->variant;
    const char *ran = mm_load_header(reply, "Matmul-Variant");
    const char *device = mm_load_header(reply, "Matmul-Device");
    char shape[64];
    snprintf(shape, sizeof shape, "%zu, %zu", request->product.m, request->product.n);
    if (!header_is(reply, "Matmul-Shape", shape, verdict) ||
        !header_is(reply, "Matmul-Dtype", "float32", verdict) ||
        !header_is(reply, "Matmul-Backend", asked->backend, verdict) || !check_timing(reply, verdict))
        return false;
    if (device == NULL || device[0] == '\0')
        return fail(verdict, "Matmul-Device is absent");
    if (strcmp(asked->name, "auto") != 0)
        return header_is(reply, "Matmul-Variant", asked->name, verdict);
    if (ran == NULL || strcmp(ran, "auto") == 0 ||
        mm_load_catalogue_find(catalogue, ran, asked->backend) == NULL)
        return fail(verdict, "Matmul-Variant is '%s' for auto, which is none that runs",
                    ran == NULL ? "" : ran);
    return true;
}

/* Nested rows of exactly m×n numbers. */
static bool read_matrix(const json_t *rows, size_t m, size_t n, float *c) {
    if (json_array_size(rows) != m)
        return false;
    for (size_t row = 0; row < m; row++) {
        const json_t *cols = json_array_get(rows, row);
        if (json_array_size(cols) != n)
            return false;
        for (size_t col = 0; col < n; col++) {
            const json_t *number = json_array_get(cols, col);
            if (!json_is_number(number))
                return false;
            c[row * n + col] = (float)json_number_value(number);
        }
    }
    return true;
}

static bool has_spans(const json_t *timing) {
    char name[32];
    for (size_t span = 0; span < SPAN_COUNT; span++) {
        snprintf(name, sizeof name, "%s_ms", spans[span]);
        if (!json_is_number(json_object_get(timing, name)))
            return false;
    }
    return true;
}

static bool check_envelope(const struct mm_load_product *product, const struct mm_load_reply *reply,
                           json_t *root, float *c, struct mm_load_verdict *verdict) {
    const char *dtype, *variant, *backend, *device;
    json_int_t rows, cols, batched;
    double gflops;
    json_t *elements, *timing;
    json_error_t fault;
    if (json_unpack_ex(root, &fault, 0, "{s:o, s:[I, I!], s:s, s:s, s:s, s:s, s:F, s:I, s:o}", "c", &elements,
                       "shape", &rows, &cols, "dtype", &dtype, "variant", &variant, "backend", &backend,
                       "device", &device, "gflops", &gflops, "batched", &batched, "timing", &timing) != 0)
        return fail(verdict, "the reply is not the JSON expected: %s: '%.200s'", fault.text,
                    reply->body.data);
    if (rows != (json_int_t)product->m || cols != (json_int_t)product->n || strcmp(dtype, "float32") != 0)
        return fail(verdict, "the reply says %lld×%lld of %s", (long long)rows, (long long)cols, dtype);
    if (batched < 1 || !has_spans(timing) || !read_matrix(elements, product->m, product->n, c))
        return fail(verdict, "a bad batched, timing or c: '%.200s'", reply->body.data);
    return header_is(reply, "Matmul-Variant", variant, verdict) &&
           header_is(reply, "Matmul-Backend", backend, verdict) &&
           header_is(reply, "Matmul-Device", device, verdict);
}

static json_t *parse(const struct mm_load_reply *reply) {
    return json_loadb(reply->body.data, reply->body.length, JSON_REJECT_DUPLICATES, NULL);
}

/* Fills c, which has room for the product. */
static bool check_json(const struct mm_load_request *request, const struct mm_load_reply *reply, float *c,
                       struct mm_load_verdict *verdict) {
    json_t *root = parse(reply);
    const bool good = check_envelope(&request->product, reply, root, c, verdict);
    json_decref(root);
    return good;
}

static bool check_raw(const struct mm_load_request *request, const struct mm_load_reply *reply, float *c,
                      struct mm_load_verdict *verdict) {
    size_t bytes = request->product.m * request->product.n * sizeof *c;
    if (reply->body.length != bytes)
        return fail(verdict, "the reply has %zu bytes, expected %zu", reply->body.length, bytes);
    memcpy(c, reply->body.data, bytes);
    return true;
}

static bool check_product(const struct mm_load_request *request, const struct mm_load_reply *reply,
                          const struct mm_load_catalogue *catalogue, struct mm_load_verdict *verdict) {
    bool json = request->reply_form == MM_LOAD_JSON;
    if (reply->status != 200)
        return fail(verdict, "status %u, expected 200: %.300s", reply->status, reply->body.data);
    if (!header_is(reply, "Content-Type", json ? "application/json" : "application/octet-stream", verdict) ||
        !check_headers(request, reply, catalogue, verdict))
        return false;
    float *c = mm_load_allocate(request->product.m * request->product.n * sizeof *c);
    bool good = json ? check_json(request, reply, c, verdict) : check_raw(request, reply, c, verdict);
    good = good && mm_load_product_check(&request->product, c, verdict->problem, sizeof verdict->problem);
    free(c);
    return good;
}

/* The form of any problem; gives its code. */
static bool check_members(const struct mm_load_request *request, const struct mm_load_reply *reply,
                          json_t *root, struct mm_load_verdict *verdict) {
    const char *type, *title, *detail, *code, *request_id;
    json_int_t status;
    if (json_unpack(root, "{s:s, s:s, s:s, s:s, s:s, s:I}", "type", &type, "title", &title, "detail", &detail,
                    "code", &code, "request_id", &request_id, "status", &status) != 0 ||
        type[0] == '\0' || title[0] == '\0' || detail[0] == '\0')
        return fail(verdict, "this is no problem of the contract's form: '%.300s'", reply->body.data);
    verdict->code = mm_load_code_find(code);
    if (verdict->code == MM_LOAD_CODE_COUNT || mm_load_codes[verdict->code].status != reply->status ||
        status != (json_int_t)reply->status)
        return fail(verdict, "status %u does not go with '%.300s'", reply->status, reply->body.data);
    if (strcmp(request_id, request->id) != 0)
        return fail(verdict, "the problem's request_id is '%s'", request_id);
    return true;
}

static bool check_problem(const struct mm_load_request *request, const struct mm_load_reply *reply,
                          struct mm_load_verdict *verdict) {
    if (!header_is(reply, "Content-Type", "application/problem+json", verdict))
        return false;
    json_t *root = parse(reply);
    const bool good = check_members(request, reply, root, verdict);
    json_decref(root);
    return good;
}

static bool is_put_off(const struct mm_load_reply *reply) {
    return reply->status == 429 || reply->status == 503;
}

static bool check_put_off(const struct mm_load_request *request, const struct mm_load_reply *reply,
                          struct mm_load_verdict *verdict) {
    const char *seconds = mm_load_header(reply, "Retry-After");
    if (!check_problem(request, reply, verdict))
        return false;
    if (seconds == NULL || seconds[0] == '\0' || seconds[strspn(seconds, "0123456789")] != '\0')
        return fail(verdict, "status %u with Retry-After '%s'", reply->status,
                    seconds == NULL ? "" : seconds);
    return true;
}

static bool check_refusal(const struct mm_load_request *request, const struct mm_load_reply *reply,
                          struct mm_load_verdict *verdict) {
    if (!check_problem(request, reply, verdict))
        return false;
    if (strcmp(mm_load_codes[verdict->code].name, request->refusal->code) != 0)
        return fail(verdict, "code %s, expected %s: %.300s", mm_load_codes[verdict->code].name,
                    request->refusal->code, reply->body.data);
    if (reply->status == 405 && mm_load_header(reply, "Allow") == NULL)
        return fail(verdict, "status 405 without Allow");
    return true;
}

void mm_load_check(const struct mm_load_request *request, const struct mm_load_reply *reply,
                   const struct mm_load_catalogue *catalogue, struct mm_load_verdict *verdict) {
    bool good;
    verdict->code = 0;
    verdict->outcome = is_put_off(reply) ? MM_LOAD_PUT_OFF : MM_LOAD_RIGHT;
    if (!header_is(reply, "X-Request-Id", request->id, verdict))
        good = false;
    else if (verdict->outcome == MM_LOAD_PUT_OFF)
        good = check_put_off(request, reply, verdict);
    else if (request->refusal != NULL)
        good = check_refusal(request, reply, verdict);
    else
        good = check_product(request, reply, catalogue, verdict);
    if (!good)
        verdict->outcome = MM_LOAD_WRONG;
}
