/* A reply is right when everything is that the contract says of it: status, headers, form, and every
 * element. Members and headers that the contract does not name are left alone. */
#include "tests/load/check.h"

#include "tests/load/scan.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const char *const spans[] = {"receive", "decode",   "queue",  "upload",
                                    "kernel",  "download", "encode", "total"};

enum { SPAN_COUNT = sizeof spans / sizeof spans[0], VALUE_BYTES = 512 };

/* What the envelope of a JSON reply says. */
struct envelope {
    size_t rows;
    size_t cols;
    char dtype[VALUE_BYTES];
    char variant[VALUE_BYTES];
    char backend[VALUE_BYTES];
    char device[VALUE_BYTES];
    float *c; /* the product's m×n elements; NULL where it has none */
    unsigned seen;
};

/* What a problem says. */
struct problem {
    char code[VALUE_BYTES];
    char request_id[VALUE_BYTES];
    char detail[VALUE_BYTES];
    size_t status;
    unsigned seen;
};

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
    const char *at = header == NULL ? "" : header;
    double ms[SPAN_COUNT];
    for (size_t span = 0; span < SPAN_COUNT; span++) {
        char name[32];
        char *end;
        size_t length = (size_t)snprintf(name, sizeof name, "%s%s;dur=", span > 0 ? ", " : "", spans[span]);
        if (strncmp(at, name, length) != 0)
            return fail(verdict, "Server-Timing is '%s', with no %s where it is due", header, spans[span]);
        at += length;
        ms[span] = strtod(at, &end);
        if (end == at || !(ms[span] >= 0) || isinf(ms[span]))
            return fail(verdict, "Server-Timing is '%s', with a bad %s", header, spans[span]);
        at = end;
    }
    if (*at != '\0')
        return fail(verdict, "Server-Timing is '%s', with '%s' behind total", header, at);
    for (size_t span = 0; span < SPAN_COUNT; span++)
        if (ms[span] > ms[SPAN_COUNT - 1] + 1)
            return fail(verdict, "Server-Timing is '%s': %s is longer than total", header, spans[span]);
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
static void scan_matrix(struct mm_load_scan *scan, size_t m, size_t n, float *c) {
    mm_load_scan_expect(scan, '[');
    for (size_t row = 0; row < m && !scan->failed; row++) {
        if (row > 0)
            mm_load_scan_expect(scan, ',');
        mm_load_scan_expect(scan, '[');
        for (size_t col = 0; col < n; col++) {
            const char *number;
            if ((col > 0 && !mm_load_scan_expect(scan, ',')) || !mm_load_scan_number(scan, &number))
                return;
            c[row * n + col] = strtof(number, NULL);
        }
        mm_load_scan_expect(scan, ']');
    }
    mm_load_scan_expect(scan, ']');
}

static void scan_shape(struct mm_load_scan *scan, struct envelope *envelope) {
    if (mm_load_scan_expect(scan, '[') && mm_load_scan_count(scan, &envelope->rows) &&
        mm_load_scan_expect(scan, ',') && mm_load_scan_count(scan, &envelope->cols))
        mm_load_scan_expect(scan, ']');
}

/* The eight spans and nothing else, each a number. */
static void scan_timing(struct mm_load_scan *scan) {
    unsigned seen = 0;
    mm_load_scan_expect(scan, '{');
    for (bool first = true; mm_load_scan_more(scan, '}', &first);) {
        char name[VALUE_BYTES];
        char expected[32];
        const char *number;
        if (!mm_load_scan_name(scan, name, sizeof name) || !mm_load_scan_number(scan, &number))
            return;
        for (unsigned span = 0; span < SPAN_COUNT; span++) {
            snprintf(expected, sizeof expected, "%s_ms", spans[span]);
            if (strcmp(name, expected) == 0)
                seen |= 1U << span;
        }
    }
    scan->failed = scan->failed || seen != (1U << SPAN_COUNT) - 1;
}

/* The members of the envelope, by their place in `seen`. */
enum member { C, SHAPE, DTYPE, VARIANT, BACKEND, DEVICE, GFLOPS, BATCHED, TIMING, MEMBER_COUNT };

static const char *const members[] = {"c",      "shape",  "dtype",   "variant", "backend",
                                      "device", "gflops", "batched", "timing"};

static void scan_member(struct mm_load_scan *scan, const char *name, const struct mm_load_product *product,
                        struct envelope *envelope) {
    const char *number;
    size_t count;
    unsigned member = 0;
    while (member < MEMBER_COUNT && strcmp(members[member], name) != 0)
        member++;
    if (envelope->seen & 1U << member)
        scan->failed = true;
    envelope->seen |= 1U << member;
    switch (member) {
    case C:
        scan_matrix(scan, product->m, product->n, envelope->c);
        break;
    case SHAPE:
        scan_shape(scan, envelope);
        break;
    case DTYPE:
        mm_load_scan_string(scan, envelope->dtype, sizeof envelope->dtype);
        break;
    case VARIANT:
        mm_load_scan_string(scan, envelope->variant, sizeof envelope->variant);
        break;
    case BACKEND:
        mm_load_scan_string(scan, envelope->backend, sizeof envelope->backend);
        break;
    case DEVICE:
        mm_load_scan_string(scan, envelope->device, sizeof envelope->device);
        break;
    case GFLOPS:
        mm_load_scan_number(scan, &number);
        break;
    case BATCHED:
        if (mm_load_scan_count(scan, &count) && count == 0)
            scan->failed = true;
        break;
    case TIMING:
        scan_timing(scan);
        break;
    default:
        mm_load_scan_skip(scan);
    }
}

/* Fills envelope->c, which has room for the product. */
static bool check_json(const struct mm_load_request *request, const struct mm_load_reply *reply, float *c,
                       struct mm_load_verdict *verdict) {
    const struct mm_load_product *product = &request->product;
    struct mm_load_scan scan = mm_load_scan_start(reply->body.data, reply->body.length);
    struct envelope envelope = {.c = c};
    char name[VALUE_BYTES];
    mm_load_scan_expect(&scan, '{');
    for (bool first = true; mm_load_scan_more(&scan, '}', &first);)
        if (mm_load_scan_name(&scan, name, sizeof name))
            scan_member(&scan, name, product, &envelope);
    if (!mm_load_scan_done(&scan))
        return fail(verdict, "the reply is not the JSON expected from byte %zu on: '%.200s'",
                    (size_t)(scan.at - reply->body.data), reply->body.data);
    if ((~envelope.seen & ((1U << MEMBER_COUNT) - 1)) != 0)
        return fail(verdict, "the reply lacks a member: '%.200s'", reply->body.data);
    if (envelope.rows != product->m || envelope.cols != product->n || strcmp(envelope.dtype, "float32") != 0)
        return fail(verdict, "the reply says %zu×%zu of %s", envelope.rows, envelope.cols, envelope.dtype);
    return header_is(reply, "Matmul-Variant", envelope.variant, verdict) &&
           header_is(reply, "Matmul-Backend", envelope.backend, verdict) &&
           header_is(reply, "Matmul-Device", envelope.device, verdict);
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

static void scan_problem(struct mm_load_scan *scan, struct problem *problem) {
    char name[VALUE_BYTES];
    char text[VALUE_BYTES];
    mm_load_scan_expect(scan, '{');
    for (bool first = true; mm_load_scan_more(scan, '}', &first);) {
        if (!mm_load_scan_name(scan, name, sizeof name))
            return;
        if (strcmp(name, "code") == 0)
            mm_load_scan_string(scan, problem->code, sizeof problem->code);
        else if (strcmp(name, "request_id") == 0)
            mm_load_scan_string(scan, problem->request_id, sizeof problem->request_id);
        else if (strcmp(name, "detail") == 0)
            mm_load_scan_string(scan, problem->detail, sizeof problem->detail);
        else if (strcmp(name, "status") == 0)
            mm_load_scan_count(scan, &problem->status);
        else if (strcmp(name, "type") == 0 || strcmp(name, "title") == 0)
            problem->seen += mm_load_scan_string(scan, text, sizeof text) && text[0] != '\0';
        else
            mm_load_scan_skip(scan);
    }
}

/* The form of any problem; gives its code. */
static bool check_problem(const struct mm_load_request *request, const struct mm_load_reply *reply,
                          struct mm_load_verdict *verdict) {
    struct mm_load_scan scan = mm_load_scan_start(reply->body.data, reply->body.length);
    struct problem problem = {0};
    if (!header_is(reply, "Content-Type", "application/problem+json", verdict))
        return false;
    scan_problem(&scan, &problem);
    if (!mm_load_scan_done(&scan) || problem.seen != 2 || problem.detail[0] == '\0')
        return fail(verdict, "this is no problem of the contract's form: '%.300s'", reply->body.data);
    verdict->code = mm_load_code_find(problem.code);
    if (verdict->code == MM_LOAD_CODE_COUNT || mm_load_codes[verdict->code].status != reply->status ||
        problem.status != reply->status)
        return fail(verdict, "status %u does not go with '%.300s'", reply->status, reply->body.data);
    if (strcmp(problem.request_id, request->id) != 0)
        return fail(verdict, "the problem's request_id is '%s'", problem.request_id);
    return true;
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
