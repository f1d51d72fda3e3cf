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

/* Returns 0, or −1 when memory is out. */
static int put_text(json_t *problem, const char *key, const char *text) {
    return text[0] == '\0' ? 0 : mm_json_put(problem, key, mm_json_text(text));
}

static int put_known_count(json_t *problem, const char *key, bool is_known, uint64_t value) {
    return is_known ? mm_json_put(problem, key, mm_json_count(value)) : 0;
}

char *mm_problem_json(const struct mm_error *error, const char *request_id, size_t *length) {
    const bool lacks_memory = error->status == MM_NO_DEVICE_MEMORY;
    const char *code = mm_status_name(error->status);
    json_t *problem =
        json_pack("{s:s+, s:s, s:i, s:o, s:s, s:o}", "type", MM_PROBLEM_URN, code, "title",
                  mm_status_title(error->status), "status", (int)mm_problem_http(error->status), "detail",
                  mm_json_text(error->detail), "code", code, "request_id", mm_json_text(request_id));
    int failed = put_text(problem, "field", error->field);
    failed |= put_known_count(problem, "limit", error->has_limit, error->limit);
    failed |= put_text(problem, "expected", error->expected);
    failed |= put_text(problem, "got", error->got);
    failed |= put_known_count(problem, "line", error->line > 0, error->line);
    failed |= put_known_count(problem, "column", error->column > 0, error->column);
    failed |= put_known_count(problem, "needed_bytes", lacks_memory, error->needed_bytes);
    failed |= put_known_count(problem, "free_bytes", lacks_memory, error->free_bytes);
    return mm_json_print(mm_json_made(problem, failed), 0, length);
}
