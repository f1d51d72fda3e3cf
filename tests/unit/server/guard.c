/* The guard: heads that are taken, and heads that are refused, each by the sentence that says why. */
#include "server/guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Copies of just the bytes, so that the sanitizers see it when the guard reads too far. */
static enum mm_status judge_header(struct mm_guard *guard, const char *line, size_t bytes) {
    size_t name_bytes = (size_t)((const char *)memchr(line, ':', bytes) - line);
    size_t value_bytes = bytes - name_bytes - 1;
    char *name = name_bytes == 0 ? NULL : malloc(name_bytes);
    char *value = value_bytes == 0 ? NULL : malloc(value_bytes);
    if (name != NULL)
        memcpy(name, line, name_bytes);
    if (value != NULL)
        memcpy(value, line + name_bytes + 1, value_bytes);
    enum mm_status status = mm_guard_header(guard, name, name_bytes, value, value_bytes);
    free(name);
    free(value);
    return status;
}

/* A head is its headers one after another, each "name:value\n"; the value begins right after the colon,
 * since the spaces there are the parser's to remove. */
static enum mm_status judge(const char *version, const char *path, const char *head, size_t bytes,
                            struct mm_error *error) {
    struct mm_guard guard;
    memset(error, 0, sizeof *error);
    enum mm_status status = mm_guard_begin(&guard, version, path, error);
    for (size_t start = 0; status == MM_OK && start < bytes;) {
        const char *line = head + start;
        size_t length = (size_t)((const char *)memchr(line, '\n', bytes - start) - line);
        status = judge_header(&guard, line, length);
        start += length + 1;
    }
    return status == MM_OK ? mm_guard_end(&guard) : status;
}

struct head {
    const char *text;
    size_t bytes;
    const char *words; /* of the refusal; NULL: it is taken */
};

#define HEAD(text, words)                                                                                    \
    { text, sizeof text - 1, words }

static void check(const char *version, const struct head *heads, size_t count) {
    for (size_t index = 0; index < count; index++) {
        const struct head *head = &heads[index];
        struct mm_error error;
        enum mm_status status = judge(version, "/v1/matmul", head->text, head->bytes, &error);
        if (status != (head->words == NULL ? MM_OK : MM_BAD_REQUEST) || error.status != status ||
            (head->words != NULL && strstr(error.detail, head->words) == NULL))
            fail_msg("%s, '%s': %s, '%s'", version, head->text, mm_status_name(status), error.detail);
    }
}

static void heads_of_http_1_1(void **state) {
    static const struct head heads[] = {
        HEAD("Host:a\n", NULL),
        HEAD("", "must have a Host"),
        HEAD("Accept:*/*\n", "must have a Host"),
        HEAD("Host:a\nHost:a\n", "Host must stand once"),
        HEAD("Host:a\nhOST:b\n", "Host must stand once"),
        /* RFC 9110, 8.6 */
        HEAD("Host:a\nContent-Length:5\n", NULL),
        HEAD("Host:a\nContent-Length:0\n", NULL),
        HEAD("Host:a\nContent-Length:0005\n", NULL),
        HEAD("Host:a\nContent-Length:9223372036854775807\n", NULL),
        HEAD("Host:a\nContent-Length:0009223372036854775807\n", NULL),
        HEAD("Host:a\nContent-Length:9223372036854775808\n", "under 2^63"),
        HEAD("Host:a\nContent-Length:18446744073709551621\n", "under 2^63"),
        HEAD("Host:a\nContent-Length:99999999999999999999999999\n", "under 2^63"),
        HEAD("Host:a\nContent-Length:+5\n", "digits alone, and is '+5'"),
        HEAD("Host:a\nContent-Length:-5\n", "digits alone"),
        HEAD("Host:a\nContent-Length:5, 5\n", "digits alone"),
        HEAD("Host:a\nContent-Length: 5\n", "digits alone"),
        HEAD("Host:a\nContent-Length:5 \n", "digits alone"),
        HEAD("Host:a\nContent-Length:0x5\n", "digits alone"),
        HEAD("Host:a\nContent-Length:5e1\n", "digits alone"),
        HEAD("Host:a\nContent-Length:\n", "digits alone, and is ''"),
        HEAD("Host:a\nContent-Length:5\ncontent-length:5\n", "Content-Length must stand once"),
        HEAD("Host:a\nContent-Length:5\nX:y\nContent-Length:6\n", "Content-Length must stand once"),
        /* RFC 9112, 6.1 */
        HEAD("Host:a\nTransfer-Encoding:chunked\n", NULL),
        HEAD("Host:a\ntransfer-encoding:CHUNKED\n", NULL),
        HEAD("Host:a\nTransfer-Encoding:chunked\nContent-Length:5\n", "has both"),
        HEAD("Host:a\nContent-Length:5\nTransfer-Encoding:chunked\n", "has both"),
        HEAD("Host:a\nTransfer-Encoding:xchunked\n", "must be 'chunked', and is 'xchunked'"),
        HEAD("Host:a\nTransfer-Encoding:chunkedx\n", "must be 'chunked'"),
        HEAD("Host:a\nTransfer-Encoding:chunked \n", "must be 'chunked'"),
        HEAD("Host:a\nTransfer-Encoding:gzip, chunked\n", "must be 'chunked'"),
        HEAD("Host:a\nTransfer-Encoding:chunked, chunked\n", "must be 'chunked'"),
        HEAD("Host:a\nTransfer-Encoding:identity\n", "must be 'chunked'"),
        HEAD("Host:a\nTransfer-Encoding:\n", "must be 'chunked', and is ''"),
        HEAD("Host:a\nTransfer-Encoding:chunked\nTransfer-Encoding:chunked\n",
             "Transfer-Encoding must stand"),
        /* RFC 9112, 5 and RFC 9110, 5.5 */
        HEAD("Host:a\n!#$%&'*+-.^_`|~09azAZ:x\n", NULL),
        HEAD("Host:a\nX:\n", NULL),
        HEAD("Host:a\nX:a\tb c\xff\n", NULL),
        HEAD("Host:a\nX :b\n", "one is 'X '"),
        HEAD("Host:a\n X:b\n", "a header's name"),
        HEAD("Host:a\n:b\n", "a header's name"),
        HEAD("Host:a\nX\0Y:b\n", "a header's name"),
        HEAD("Host:a\nX\x7f:b\n", "a header's name"),
        HEAD("Host:a\n\xc3\xa9:b\n", "a header's name"),
        HEAD("Host:a\nX(Y):b\n", "a header's name"),
        HEAD("Host:a\nX:a\0b\n", "that of X does"),
        HEAD("Host:a\nX:a\rb\n", "that of X does"),
        HEAD("Host:a\nX:\x1f\n", "that of X does"),
        HEAD("Host:a\nX:\x7f\n", "that of X does"),
        HEAD("Host:a\nContent-Length:5\0\n", "that of Content-Length does"),
    };
    (void)state;
    check("HTTP/1.1", heads, sizeof heads / sizeof heads[0]);
    check("HTTP/1.2", heads, sizeof heads / sizeof heads[0]);
}

static void heads_of_http_1_0(void **state) {
    static const struct head heads[] = {
        HEAD("", NULL),
        HEAD("Host:a\n", NULL),
        HEAD("Content-Length:5\n", NULL),
        HEAD("Host:a\nHost:a\n", "Host must stand once"),
        HEAD("Transfer-Encoding:chunked\n", "HTTP/1.0 has no Transfer-Encoding"),
    };
    (void)state;
    check("HTTP/1.0", heads, sizeof heads / sizeof heads[0]);
}

/* RFC 9110, 7.2 and RFC 3986, 3.2.2. */
static void hosts(void **state) {
    static const char *const good[] = {
        "",      "a",          "A.example-1_~", "127.0.0.1",   "127.0.0.1:8080",       "a:",      "a%20b:1",
        "[::1]", "[::1]:8080", "[v1.a:b]",      "a!$&'()*+;=", "[::ffff:127.0.0.1]:1", "test \t", "xn--nxa",
    };
    static const char *const bad[] = {
        "a b", "a,b",   "a, b", "user@a", "u:p@a", "a/b",  "http://a", "a?b",       "a#b", "a\\b",
        "a:b", "a:1:2", "a:-1", "a:1 2",  ":80",   "[::1", "[]",       "[::1]a",    "::1", "[::1]:x",
        "a%2", "a%zz",  "a<b>", "a\"b",   "a|b",   "%",    "[a,b]",    "a\xc3\xa9", " ]",  "[::1]]",
    };
    char head[64];
    struct mm_error error;
    (void)state;
    for (size_t index = 0; index < sizeof good / sizeof good[0]; index++) {
        int bytes = snprintf(head, sizeof head, "Host:%s\n", good[index]);
        if (judge("HTTP/1.1", "/", head, (size_t)bytes, &error) != MM_OK)
            fail_msg("'%s' was refused: %s", good[index], error.detail);
    }
    for (size_t index = 0; index < sizeof bad / sizeof bad[0]; index++) {
        int bytes = snprintf(head, sizeof head, "Host:%s\n", bad[index]);
        if (judge("HTTP/1.1", "/", head, (size_t)bytes, &error) != MM_BAD_REQUEST ||
            strstr(error.detail, "Host must be") == NULL)
            fail_msg("'%s' was not refused as a host: %s", bad[index], error.detail);
    }
}

static void targets(void **state) {
    struct mm_error error;
    (void)state;
    assert_int_equal(judge("HTTP/1.0", "/v1/matmul", "", 0, &error), MM_OK);
    assert_int_equal(judge("HTTP/1.0", "*", "", 0, &error), MM_OK);
    assert_int_equal(judge("HTTP/1.0", "", "", 0, &error), MM_OK);
    assert_int_equal(judge("HTTP/1.0", "/a b\xc3\xa9", "", 0, &error), MM_OK);
    assert_int_equal(judge("HTTP/1.0", "/a\x01", "", 0, &error), MM_BAD_REQUEST);
    assert_int_equal(judge("HTTP/1.0", "/a\r\nb", "", 0, &error), MM_BAD_REQUEST);
    assert_int_equal(judge("HTTP/1.0", "/a\x7f", "", 0, &error), MM_BAD_REQUEST);
    assert_non_null(strstr(error.detail, "no control character"));
}

static void zeros_are_shown(void **state) {
    char text[] = "\0a\0\0b";
    char none[] = "ab";
    (void)state;
    mm_guard_show_zeros(text, sizeof text - 1);
    assert_memory_equal(text,
                        "\x01"
                        "a\x01\x01"
                        "b",
                        sizeof text);
    mm_guard_show_zeros(none, 2);
    assert_string_equal(none, "ab");
    mm_guard_show_zeros(none, 0);
    assert_string_equal(none, "ab");
}

/* What the refusal quotes is cut, however long it is. */
static void long_texts_are_cut(void **state) {
    enum { BYTES = 60000 };
    struct mm_error error;
    char *head = malloc(BYTES + 2);
    (void)state;
    assert_non_null(head);
    memset(head, ' ', BYTES);
    head[BYTES] = ':';
    head[BYTES + 1] = '\n';
    assert_int_equal(judge("HTTP/1.1", "/", head, BYTES + 2, &error), MM_BAD_REQUEST);
    assert_true(strlen(error.detail) < 300);
    free(head);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads_of_http_1_1),
        cmocka_unit_test(heads_of_http_1_0),
        cmocka_unit_test(hosts),
        cmocka_unit_test(targets),
        cmocka_unit_test(zeros_are_shown),
        cmocka_unit_test(long_texts_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
