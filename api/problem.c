/* Problem details, and the one table from statuses to HTTP. */
#include "api/problem.h"

#include "api/json/json_value.h"

#include <assert.h>

static const unsigned short http[MM_STATUS_COUNT] = {
    [MM_OK] = 200,
    [MM_BAD_REQUEST] = 400,
    [MM_UNAUTHORIZED] = 401,
    [MM_FORBIDDEN] = 403,
    [MM_NOT_FOUND] = 404,
    [MM_METHOD_NOT_ALLOWED] = 405,
    [MM_NOT_ACCEPTABLE] = 406,
    [MM_REQUEST_TIMEOUT] = 408,
    [MM_LENGTH_REQUIRED] = 411,
    [MM_TOO_LARGE] = 413,
    [MM_UNSUPPORTED_MEDIA_TYPE] = 415,
    [MM_BAD_SHAPE] = 422,
    [MM_UNSUPPORTED] = 422,
    [MM_BUSY] = 429,
    [MM_INTERNAL] = 500,
    [MM_DEVICE_FAILED] = 500,
    [MM_STOPPING] = 503,
    [MM_NOT_READY] = 503,
    [MM_TIMEOUT] = 504,
    [MM_NO_DEVICE_MEMORY] = 507,
};

unsigned mm_problem_http(enum mm_status status) {
    assert(status < MM_STATUS_COUNT && http[status] != 0);
    return http[status];
}

bool mm_problem_passes(enum mm_status status) {
    return status == MM_BUSY || status == MM_STOPPING || status == MM_NOT_READY;
}

char *mm_problem_json(const struct mm_error *error, const char *request_id, size_t *length) {
    const char *code = mm_status_name(error->status);
    json_t *problem =
        json_pack("{s:s+, s:s, s:i, s:o, s:s, s:o}", "type", MM_PROBLEM_URN, code, "title",
                  mm_status_title(error->status), "status", (int)mm_problem_http(error->status), "detail",
                  mm_json_text(error->detail), "code", code, "request_id", mm_json_text(request_id));
    int failed = mm_json_put_known_text(problem, "field", error->field);
    if (error->has_limit)
        failed |= mm_json_put(problem, "limit", mm_json_count(error->limit));
    failed |= mm_json_put_known_text(problem, "expected", error->expected);
    failed |= mm_json_put_known_text(problem, "got", error->got);
    failed |= mm_json_put_known_count(problem, "line", error->line);
    failed |= mm_json_put_known_count(problem, "column", error->column);
    if (error->status == MM_NO_DEVICE_MEMORY) {
        failed |= mm_json_put(problem, "needed_bytes", mm_json_count(error->needed_bytes));
        failed |= mm_json_put(problem, "free_bytes", mm_json_count(error->free_bytes));
    }
    return mm_json_print(mm_json_made(problem, failed), 0, length);
}
