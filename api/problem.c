/* Writes problem details (RFC 9457), and defines the table of HTTP statuses. */
#include "api/problem.h"

#include "api/json/json_value.h"

#include <assert.h>

const struct mm_http mm_http_table[MM_HTTP_COUNT] = {
    {200, NULL, {MM_OK}},
    {201, NULL, {MM_OK}},
    {204, NULL, {MM_OK}},
    {304, NULL, {MM_OK}},
    {400, "BadRequest", {MM_BAD_REQUEST}},
    {401, "Unauthorized", {MM_UNAUTHORIZED}},
    {403, "Forbidden", {MM_FORBIDDEN}},
    {404, "NotFound", {MM_NOT_FOUND, MM_NO_SUCH_MATRIX}},
    {405, "MethodNotAllowed", {MM_METHOD_NOT_ALLOWED}},
    {406, "NotAcceptable", {MM_NOT_ACCEPTABLE}},
    {408, "RequestTimeout", {MM_REQUEST_TIMEOUT}},
    {411, "LengthRequired", {MM_LENGTH_REQUIRED}},
    {412, "PreconditionFailed", {MM_PRECONDITION_FAILED}},
    {413, "TooLarge", {MM_TOO_LARGE}},
    {415, "UnsupportedMediaType", {MM_UNSUPPORTED_MEDIA_TYPE}},
    {422, "Unprocessable", {MM_BAD_SHAPE, MM_UNSUPPORTED}},
    {429, "Busy", {MM_BUSY}},
    {499, NULL, {MM_OK}},
    {500, "Failed", {MM_INTERNAL, MM_DEVICE_FAILED}},
    {503, "Unavailable", {MM_STOPPING, MM_NOT_READY}},
    {504, "Timeout", {MM_TIMEOUT}},
    {507, "NoMemory", {MM_NO_DEVICE_MEMORY, MM_STORE_FULL}},
};

unsigned mm_problem_http(enum mm_status status) {
    size_t row = 0;
    while (row < MM_HTTP_COUNT && mm_http_table[row].statuses[0] != status &&
           mm_http_table[row].statuses[1] != status)
        row++;
    assert(row < MM_HTTP_COUNT);
    return mm_http_table[row].code;
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
    if (error->status == MM_NO_DEVICE_MEMORY || error->status == MM_STORE_FULL) {
        failed |= mm_json_put(problem, "needed_bytes", mm_json_count(error->needed_bytes));
        failed |= mm_json_put(problem, "free_bytes", mm_json_count(error->free_bytes));
    }
    return mm_json_print(mm_json_finish(problem, failed), 0, length);
}
