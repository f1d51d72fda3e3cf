/* api/problem: the contract's table of codes, and problem details as text. */
#include "api/problem.h"
#include "tests/unit/unit.h"

static const struct {
    const char *code;
    unsigned http;
} codes[] = {
    {"ok", 200},
    {"bad_request", 400},
    {"unauthorized", 401},
    {"forbidden", 403},
    {"not_found", 404},
    {"method_not_allowed", 405},
    {"not_acceptable", 406},
    {"request_timeout", 408},
    {"length_required", 411},
    {"too_large", 413},
    {"unsupported_media_type", 415},
    {"bad_shape", 422},
    {"unsupported", 422},
    {"busy", 429},
    {"internal", 500},
    {"device_failed", 500},
    {"stopping", 503},
    {"not_ready", 503},
    {"timeout", 504},
    {"no_device_memory", 507},
};

static void test_http(void **state) {
    assert_int_equal(COUNT(codes), MM_STATUS_COUNT);
    for (unsigned status = 0; status < MM_STATUS_COUNT; status++) {
        assert_string_equal(mm_status_name((enum mm_status)status), codes[status].code);
        assert_int_equal(mm_problem_http((enum mm_status)status), codes[status].http);
    }
}

static void assert_problem(const struct mm_error *error, const char *request_id, const char *expected) {
    size_t length = 0;
    char *text = mm_problem_json(error, request_id, &length);
    assert_non_null(text);
    assert_string_equal(text, expected);
    assert_int_equal(length, strlen(expected));
    free(text);
}

static void test_members(void **state) {
    struct mm_error error;
    mm_fail(&error, MM_BAD_SHAPE, "a is 2×3 and b is 2×3");
    assert_problem(
        &error, "id-1",
        "{\"type\": \"urn:matmuld:problem:bad_shape\", \"title\": \"The matrices do not conform\", "
        "\"status\": 422, \"detail\": \"a is 2×3 and b is 2×3\", \"code\": \"bad_shape\", "
        "\"request_id\": \"id-1\"}");
    mm_fail_field(&error, MM_TOO_LARGE, "m", "m is \"%s\"", "9\\9");
    error.has_limit = true;
    strcpy(error.expected, "less");
    strcpy(error.got, "more");
    error.line = 3;
    error.column = 7;
    assert_problem(&error, "x",
                   "{\"type\": \"urn:matmuld:problem:too_large\", \"title\": \"The request passes a limit\", "
                   "\"status\": 413, \"detail\": \"m is \\\"9\\\\9\\\"\", \"code\": \"too_large\", "
                   "\"request_id\": \"x\", \"field\": \"m\", \"limit\": 0, \"expected\": \"less\", \"got\": "
                   "\"more\", \"line\": 3, \"column\": 7}");
    mm_fail(&error, MM_NO_DEVICE_MEMORY, "no");
    error.needed_bytes = UINT64_MAX;
    error.free_bytes = 0;
    assert_problem(&error, "x",
                   "{\"type\": \"urn:matmuld:problem:no_device_memory\", \"title\": \"The device is out of "
                   "memory\", \"status\": 507, \"detail\": \"no\", \"code\": \"no_device_memory\", "
                   "\"request_id\": \"x\", \"needed_bytes\": 9223372036854775807, \"free_bytes\": 0}");
}

/* Bytes from outside, and what must stand in the reply for them. */
static const struct {
    const char *bytes;
    const char *text;
} foreign[] = {
    {"plain", "plain"},
    {"caf\xc3\xa9", "caf\xc3\xa9"},
    {"\xe2\x82\xac \xf0\x9d\x84\x9e", "\xe2\x82\xac \xf0\x9d\x84\x9e"},
    {"a\xff"
     "b",
     "a\xef\xbf\xbd"
     "b"},
    {"\x80", "\xef\xbf\xbd"},
    {"\xc3", "\xef\xbf\xbd"},
    {"\xe2\x82", "\xef\xbf\xbd\xef\xbf\xbd"},
    {"\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd"},
    {"\xe0\x9f\xbf", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
    {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
    {"\xf4\x90\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
    {"\xf5\x80", "\xef\xbf\xbd\xef\xbf\xbd"},
    {"\xf4\x8f\xbf\xbf\xed\x9f\xbf\xee\x80\x80", "\xf4\x8f\xbf\xbf\xed\x9f\xbf\xee\x80\x80"},
    {"\xc3(", "\xef\xbf\xbd("},
    {"line\nend\x01", "line\\nend\\u0001"},
};

static void test_foreign_bytes(void **state) {
    for (size_t index = 0; index < COUNT(foreign); index++) {
        struct mm_error error;
        char expected[64];
        size_t length;
        mm_fail(&error, MM_BAD_REQUEST, "%s", foreign[index].bytes);
        strcpy(error.got, foreign[index].bytes);
        char *text = mm_problem_json(&error, foreign[index].bytes, &length);
        assert_non_null(text);
        snprintf(expected, sizeof expected, "\"detail\": \"%s\", ", foreign[index].text);
        assert_non_null(strstr(text, expected));
        snprintf(expected, sizeof expected, "\"request_id\": \"%s\", ", foreign[index].text);
        assert_non_null(strstr(text, expected));
        snprintf(expected, sizeof expected, "\"got\": \"%s\"}", foreign[index].text);
        assert_non_null(strstr(text, expected));
        free(text);
    }
}

/* A detail that was cut in the middle of a character is still JSON. */
static void test_cut_character(void **state) {
    struct mm_error error;
    size_t length;
    char long_text[1201];
    for (size_t index = 0; index < 1200; index += 3)
        memcpy(long_text + index, "\xe2\x82\xac", 3);
    long_text[1200] = '\0';
    for (int shift = 0; shift < 3; shift++) {
        mm_fail(&error, MM_BAD_REQUEST, "%.*s%s", shift, "xxx", long_text);
        char *text = mm_problem_json(&error, "x", &length);
        assert_non_null(text);
        free(text);
    }
}

RUN_TESTS(test_http, test_members, test_foreign_bytes, test_cut_character)
