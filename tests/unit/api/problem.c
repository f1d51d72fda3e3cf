/* Tests the text of error replies. */
#include "api/problem.h"
#include "tests/unit/unit.h"

static void assert_problem(const struct mm_error *error, const char *request_id, const char *expected) {
    size_t length = 0;
    char *text = mm_problem_json(error, request_id, &length);
    expect_text(text, length, expected);
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
                   "{\"type\": \"urn:matmuld:problem:too_large\", "
                   "\"title\": \"The request exceeds a limit\", "
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

/* Bytes that a client sent, and how the error must quote them. */
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
    static const char *const members[] = {"detail", "request_id", "got"};
    for (size_t index = 0; index < COUNT(foreign); index++) {
        struct mm_error error;
        char expected[64];
        size_t length;
        mm_fail(&error, MM_BAD_REQUEST, "%s", foreign[index].bytes);
        strcpy(error.got, foreign[index].bytes);
        char *text = mm_problem_json(&error, foreign[index].bytes, &length);
        assert_non_null(text);
        for (size_t member = 0; member < COUNT(members); member++) {
            snprintf(expected, sizeof expected, "\"%s\": \"%s\"", members[member], foreign[index].text);
            assert_non_null(strstr(text, expected));
        }
        free(text);
    }
}

RUN_TESTS(test_members, test_foreign_bytes)
