/* Problem details, and the one switch from statuses to HTTP. */
#include "api/problem.h"

#include "api/json_value.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

unsigned mm_problem_http(enum mm_status status) {
    switch (status) {
    case MM_OK:
        return 200;
    case MM_BAD_REQUEST:
        return 400;
    case MM_UNAUTHORIZED:
        return 401;
    case MM_NOT_FOUND:
        return 404;
    case MM_METHOD_NOT_ALLOWED:
        return 405;
    case MM_NOT_ACCEPTABLE:
        return 406;
    case MM_REQUEST_TIMEOUT:
        return 408;
    case MM_LENGTH_REQUIRED:
        return 411;
    case MM_TOO_LARGE:
        return 413;
    case MM_UNSUPPORTED_MEDIA_TYPE:
        return 415;
    case MM_BAD_SHAPE:
    case MM_UNSUPPORTED:
        return 422;
    case MM_BUSY:
        return 429;
    case MM_INTERNAL:
    case MM_DEVICE_FAILED:
        return 500;
    case MM_STOPPING:
    case MM_NOT_READY:
        return 503;
    case MM_TIMEOUT:
        return 504;
    case MM_NO_DEVICE_MEMORY:
        return 507;
    case MM_STATUS_COUNT:
        break;
    }
    assert(status < MM_STATUS_COUNT);
    return 500;
}

bool mm_problem_passes(enum mm_status status) {
    return status == MM_BUSY || status == MM_STOPPING || status == MM_NOT_READY;
}

/* Each returns 0, or −1 when memory is out, like the Jansson function it calls. */
static int put_text(json_t *problem, const char *key, const char *text) {
    return text[0] == '\0' ? 0 : json_object_set_new(problem, key, mm_json_text(text));
}

static int put_count(json_t *problem, const char *key, uint64_t value) {
    return json_object_set_new(problem, key, mm_json_count(value));
}

static int put_all(json_t *problem, const struct mm_error *error, const char *request_id) {
    const char *code = mm_status_name(error->status);
    char type[64];
    snprintf(type, sizeof type, "urn:matmuld:problem:%s", code);
    int failed = put_text(problem, "type", type);
    failed |= put_text(problem, "title", mm_status_title(error->status));
    failed |= put_count(problem, "status", mm_problem_http(error->status));
    failed |= json_object_set_new(problem, "detail", mm_json_text(error->detail));
    failed |= put_text(problem, "code", code);
    failed |= json_object_set_new(problem, "request_id", mm_json_text(request_id));
    failed |= put_text(problem, "field", error->field);
    if (error->has_limit)
        failed |= put_count(problem, "limit", error->limit);
    failed |= put_text(problem, "expected", error->expected);
    failed |= put_text(problem, "got", error->got);
    if (error->line > 0)
        failed |= put_count(problem, "line", error->line);
    if (error->column > 0)
        failed |= put_count(problem, "column", error->column);
    if (error->status == MM_NO_DEVICE_MEMORY) {
        failed |= put_count(problem, "needed_bytes", error->needed_bytes);
        failed |= put_count(problem, "free_bytes", error->free_bytes);
    }
    return failed;
}

char *mm_problem_json(const struct mm_error *error, const char *request_id, size_t *length) {
    json_t *problem = json_object();
    char *text = NULL;
    if (problem != NULL && put_all(problem, error, request_id) == 0)
        text = mm_json_print(problem, 0, length);
    json_decref(problem);
    return text;
}
