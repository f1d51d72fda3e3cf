/* Tests the line that a request adds to the log, in both formats. */
#include "server/observe/record.h"
#include "gpu/device/backend.h"
#include "server/http/routes.h"
#include "tests/unit/unit.h"

#include <jansson.h>

static const char time_text[] = "2026-11-21T09:30:00.123Z";

static char line[MM_REQUEST_LINE_MAX + 1];

static const char *write_line(enum mm_log_format format, const struct mm_record *record) {
    memset(line, '#', sizeof line);
    size_t length = mm_request_line(line, format, time_text, record);
    assert_in_range(length, 1, MM_REQUEST_LINE_MAX);
    assert_int_equal(line[length], '#');
    assert_ptr_equal(memchr(line, '\n', length), line + length - 1);
    line[length - 1] = '\0';
    return line;
}

static json_t *parse_line(const struct mm_record *record) {
    json_t *object = json_loads(write_line(MM_LOG_JSON, record), JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(object);
    return object;
}

/* A byte from a client appears as itself or as \xNN. */
static void test_hostile_bytes(void **state) {
    for (int byte = 1; byte < 256; byte++) {
        struct mm_record record = {.request_id = "x", .route = MM_ROUTE_OTHER, .code = 400};
        char expected[8];
        bool plain = byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\';
        record.path[0] = record.method[0] = (char)byte;
        snprintf(expected, sizeof expected, plain ? "%c" : "\\x%02x", byte);
        json_t *object = parse_line(&record);
        assert_string_equal(json_string_value(json_object_get(object, "path")), expected);
        assert_string_equal(json_string_value(json_object_get(object, "method")), expected);
        json_decref(object);
        char member[64];
        snprintf(member, sizeof member, " path=\"%s\" ", expected);
        assert_non_null(strstr(write_line(MM_LOG_TEXT, &record), member));
    }
}

/* The line must have room for the longest values. */
static void test_longest(void **state) {
    const struct mm_backend *cpu = mm_backend_find("cpu");
    struct mm_device device = {.backend = cpu, .index = UINT32_MAX};
    struct mm_job job = {.work.backend = cpu, .outcome.ran = cpu->variants, .work.device = &device};
    job.outcome.verification = (struct mm_verification){.is_done = true, .rows_unjudged = 1};
    char request_id[129];
    memset(request_id, 'x', sizeof request_id - 1);
    request_id[128] = '\0';
    struct mm_address client;
    memset(&client, 0xff, sizeof client);
    struct mm_record record = {.request_id = request_id,
                               .client = &client,
                               .key = "name-of-15-char",
                               .traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                               .route = MM_ROUTE_OTHER,
                               .code = 415,
                               .problem = MM_UNSUPPORTED_MEDIA_TYPE,
                               .in_bytes = INT64_MAX,
                               .out_bytes = INT64_MAX,
                               .duration_ns = UINT64_MAX - 500,
                               .has_shape = true,
                               .has_depth = true,
                               .m = INT64_MAX,
                               .k = INT64_MAX,
                               .n = INT64_MAX,
                               .products = INT64_MAX,
                               .a = mm_source_word(MM_SOURCE_UNIFORM),
                               .b = mm_source_word(MM_SOURCE_UNIFORM),
                               .work = &job.work,
                               .cancelled = true,
                               .cancelled_in = MM_SPAN_DOWNLOAD};
    memset(record.path, 0xff, MM_RECORD_PATH_MAX);
    memset(record.method, 0xff, MM_RECORD_METHOD_MAX);
    for (unsigned stage = 0; stage < MM_STAGE_COUNT; stage++)
        record.stage_ns[stage] = UINT64_MAX - 500;
    json_decref(parse_line(&record));
    assert_non_null(strstr(write_line(MM_LOG_TEXT, &record), " device=4294967295 "));
    assert_non_null(strstr(line, " trace_id=0af7651916cd43dd8448eb211c80319c key=name-of-15-char "
                                 "client=ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff method="));
}

RUN_TESTS(test_hostile_bytes, test_longest)
