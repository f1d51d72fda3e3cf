/* Tests which multipart bodies are well-formed, and which parts they have. */
#include "api/form/multipart.h"
#include "tests/unit/unit.h"

#define TYPE "multipart/form-data; boundary=B"
#define DISPOSITION(name) "Content-Disposition: form-data; name=" name "\r\n"
#define PART(name, data) "--B\r\n" DISPOSITION(name) "\r\n" data "\r\n"
#define A PART("\"a\"", "1")
#define OF_50 "12345678901234567890123456789012345678901234567890"

/* Reads a body in memory of exactly its size, so a sanitizer reports reads past its end. Lists the body's
 * parts as "name=data;". */
static enum mm_status list_parts(const char *type, const char *body, size_t bytes, char *list,
                                 size_t list_bytes, struct mm_error *error) {
    struct mm_multipart multipart;
    struct mm_part part;
    enum mm_multipart_event event = MM_MULTIPART_HEAD;
    size_t used = 0;
    char *copy = malloc(bytes);
    assert_non_null(copy);
    memcpy(copy, body, bytes);
    list[0] = '\0';
    enum mm_status status = mm_multipart_begin(&multipart, type, error);
    while (status == MM_OK && event != MM_MULTIPART_END) {
        event = mm_multipart_next(&multipart, copy, bytes, true, &part, error);
        assert_int_not_equal(event, MM_MULTIPART_WAIT);
        if (event == MM_MULTIPART_FAULT)
            status = error->status;
        if (event == MM_MULTIPART_CONTENTS && list_bytes > used)
            used += (size_t)snprintf(list + used, list_bytes - used, "%.*s=%.*s;", (int)part.name_length,
                                     copy + part.name, (int)part.bytes, copy + part.data);
    }
    free(copy);
    return status;
}

static const struct {
    const char *type;
    const char *body;
    const char *parts; /* NULL if the body is malformed */
} cases[] = {
    {TYPE, A "--B--\r\n", "a=1;"},
    {TYPE, A PART("\"b\"", "2") "--B--", "a=1;b=2;"},
    {TYPE, A "--B--\r\nepilogue\r\n--B\r\n", "a=1;"},
    {TYPE, "preamble\r\nmore\r\n" A "--B--", "a=1;"},
    {TYPE, "\r\n" A "--B--", "a=1;"},
    {TYPE, "--B not\r\n" A "--B--", "a=1;"},
    {TYPE, "--B  \r\n" DISPOSITION("a") "\r\n1\r\n--B-- \t\r\n", "a=1;"},
    {TYPE, PART("\"a\"", "") "--B--", "a=;"},
    {TYPE, PART("\"\"", "1") "--B--", "=1;"},
    {TYPE, PART("\"a\"; filename=\"x;name=\\\"y\\\".npy\"", "1") "--B--", "a=1;"},
    {TYPE, PART("a", "1") "--B--", "a=1;"},
    {TYPE, "--B\r\ncontent-DISPOSITION:Form-Data ;filename=x; NAME = a ;\r\n\r\n1\r\n--B--", "a=1;"},
    {TYPE, "--B\r\nContent-Type: text/plain\r\n" DISPOSITION("a") "X-Other: y\r\n\r\n1\r\n--B--", "a=1;"},
    {TYPE, "--B--", ""},
    {TYPE, "--B--\r\n", ""},
    /* A delimiter is a line of its own, and includes the CRLF before this line. */
    {TYPE, PART("a", "x--B--") "--B--", "a=x--B--;"},
    {TYPE, "--B\r\n" DISPOSITION("a") "\r\n--B--", "a=;"},
    {TYPE, "--B\r\n" DISPOSITION("a") "--B--"},
    {TYPE, PART("a", "x--B\r\n") "--B--", "a=x--B\r\n;"},
    {TYPE, PART("a", "x\r\n--BB\r\n--B- \r\n--B--x") "--B--", "a=x\r\n--BB\r\n--B- \r\n--B--x;"},
    {TYPE, PART("a", "\r\n") "--B--", "a=\r\n;"},
    {TYPE, PART("a", "x\n--B\n") "--B--", "a=x\n--B\n;"},
    {TYPE, PART("a", "x\r\n-") "--B--", "a=x\r\n-;"},
    {TYPE, PART("a", "x\r\r\n--") "--B--", "a=x\r\r\n--;"},
    /* Different boundaries in Content-Type. */
    {"multipart/form-data; boundary=\"B\"", A "--B--", "a=1;"},
    {"Multipart/Form-Data;charset=x;BOUNDARY=B;", A "--B--", "a=1;"},
    {"multipart/form-data; boundary = B ", A "--B--", "a=1;"},
    {"multipart/form-data; boundary=\"a b:?\"", "--a b:?\r\n" DISPOSITION("a") "\r\n1\r\n--a b:?--", "a=1;"},
    {"multipart/form-data; boundary=" OF_50 OF_50, A "--B--"},
    {"multipart/form-data; boundary=" OF_50 "12345678901234567890",
     "--" OF_50 "12345678901234567890\r\n" DISPOSITION("a") "\r\n1\r\n--" OF_50 "12345678901234567890--",
     "a=1;"},
    {"multipart/form-data; boundary=" OF_50 "123456789012345678901",
     "--" OF_50 "123456789012345678901\r\n" DISPOSITION("a") "\r\n1\r\n--" OF_50 "123456789012345678901--",
     NULL},
    {"multipart/form-data", A "--B--"},
    {"multipart/form-data; boundary", A "--B--"},
    {"multipart/form-data; boundary=\"\"", "--\r\n" DISPOSITION("a") "\r\n1\r\n----"},
    {"multipart/form-data; boundary=\"B", A "--B--"},
    {"multipart/form-data; boundary=\"B \"", A "--B --"},
    {"multipart/form-data; boundary=B!", "--B!\r\n" DISPOSITION("a") "\r\n1\r\n--B!--"},
    {"multipart/form-data; boundary=B; boundary=B", A "--B--"},
    {"multipart/form-data; boundary=C", A "--B--"},
    /* Parts without headers or data, and lines that end in LF only. */
    {TYPE, "--B\r\n--B--"},
    {TYPE, "--B\r\n\r\n--B--"},
    {TYPE, "--B\r\n\r\n1\r\n--B--"},
    {TYPE, A "--B--\n"},
    {TYPE, "--B\n" DISPOSITION("a") "\r\n1\r\n--B--"},
    {TYPE, "--B\r\nContent-Disposition: form-data; name=a\n\r\n1\r\n--B--"},
    {TYPE, "--B\r\n" DISPOSITION("a") "\n1\r\n--B--"},
    {TYPE, "--B\r\n" DISPOSITION("a") "\r\n1\n--B--"},
    /* Headers of parts. */
    {TYPE, "--B\r\n" DISPOSITION("a") "1\r\n--B--"},
    {TYPE, "--B\r\nContent-Type: text/plain\r\n\r\n1\r\n--B--"},
    {TYPE, "--B\r\nContent-Disposition: form-data\r\n\r\n1\r\n--B--"},
    {TYPE, "--B\r\nContent-Disposition: form-data; filename=\"a\"\r\n\r\n1\r\n--B--"},
    {TYPE, "--B\r\nContent-Disposition: attachment; name=\"a\"\r\n\r\n1\r\n--B--"},
    {TYPE, "--B\r\n" DISPOSITION("a") DISPOSITION("a") "\r\n1\r\n--B--"},
    {TYPE, PART("\"a", "1") "--B--"},
    {TYPE, PART("a; name=b", "1") "--B--"},
    {TYPE, PART("a b", "1") "--B--"},
    {TYPE, "--B\r\n" DISPOSITION("a") " folded\r\n\r\n1\r\n--B--"},
    {TYPE, "--B\r\n" DISPOSITION("a") "no colon\r\n\r\n1\r\n--B--"},
    {TYPE, "--B\r\n" DISPOSITION("a") ": no name\r\n\r\n1\r\n--B--"},
};

static void test_cases(void **state) {
    for (size_t index = 0; index < COUNT(cases); index++) {
        char list[256];
        struct mm_error error = {0};
        const char *expected = cases[index].parts;
        enum mm_status status = list_parts(cases[index].type, cases[index].body, strlen(cases[index].body),
                                           list, sizeof list, &error);
        struct mm_error by_head;
        if (mm_multipart_check_type(cases[index].type, &by_head) != MM_OK) {
            assert_null(expected);
            assert_string_equal(by_head.detail, error.detail);
        }
        if (status != (expected != NULL ? MM_OK : MM_BAD_REQUEST) ||
            (expected != NULL && strcmp(list, expected) != 0))
            fail_msg("%s, body '%s': %s, parts '%s': %s", cases[index].type, cases[index].body,
                     mm_status_name(status), list, error.detail);
    }
    assert_int_equal(mm_multipart_check_type(TYPE, NULL), MM_OK);
    assert_int_equal(mm_multipart_check_type("multipart/form-data", NULL), MM_BAD_REQUEST);
}

static void test_nul(void **state) {
    static const char in_data[] = PART("a", "\0\0") "--B--";
    static const char in_name[] = PART("\"\0\"", "1") "--B--";
    char list[64];
    struct mm_error error;
    assert_int_equal(list_parts(TYPE, in_data, sizeof in_data - 1, list, sizeof list, &error), MM_OK);
    assert_int_equal(list_parts(TYPE, in_name, sizeof in_name - 1, list, sizeof list, &error),
                     MM_BAD_REQUEST);
}

static void test_parts_limit(void **state) {
    char body[(MM_MULTIPART_PARTS_MAX + 1) * sizeof A + 8] = "";
    for (unsigned count = 1; count <= MM_MULTIPART_PARTS_MAX + 1; count++) {
        char list[1024];
        struct mm_error error = {0};
        size_t length = (sizeof A - 1) * count;
        memcpy(body + length - (sizeof A - 1), A, sizeof A);
        memcpy(body + length, "--B--", 6);
        enum mm_status status = list_parts(TYPE, body, length + 5, list, sizeof list, &error);
        assert_int_equal(status, count <= MM_MULTIPART_PARTS_MAX ? MM_OK : MM_TOO_LARGE);
        assert_true(error.has_limit == (status == MM_TOO_LARGE));
        assert_int_equal(strlen(list), 4 * (count <= MM_MULTIPART_PARTS_MAX ? count : count - 1));
    }
}

/* The headers of a part have a limited length. */
static void test_headers_limit(void **state) {
    static const char head[] = "--B\r\n" DISPOSITION("a") "X: ";
    for (size_t excess = 0; excess <= 3; excess++) {
        char body[sizeof head + MM_MULTIPART_HEADER_BYTES_MAX + 32];
        char list[64];
        struct mm_error error = {0};
        size_t headers_end = strlen("--B\r\n") + MM_MULTIPART_HEADER_BYTES_MAX + excess;
        memset(body, 'x', sizeof body);
        memcpy(body, head, sizeof head - 1);
        memcpy(body + headers_end - 4, "\r\n\r\n1\r\n--B--", 13);
        enum mm_status status = list_parts(TYPE, body, headers_end + 8, list, sizeof list, &error);
        assert_int_equal(status, excess == 0 ? MM_OK : MM_TOO_LARGE);
        assert_true(excess == 0 || error.limit == MM_MULTIPART_HEADER_BYTES_MAX);
    }
}

RUN_TESTS(test_cases, test_nul, test_parts_limit, test_headers_limit)
