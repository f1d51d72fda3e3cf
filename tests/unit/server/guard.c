/* Tests which request headers are accepted, and the errors of rejected headers. */
#include "server/http/guard.h"
#include "tests/unit/unit.h"

/* The copy has exactly the line's size, so a sanitizer reports reads past the end. */
static enum mm_status check_header(struct mm_guard *guard, const char *line, size_t bytes) {
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

/* `head` is a list of headers "name:value\n" without spaces around the values. */
static enum mm_status check(const char *version, const char *head, size_t bytes, struct mm_error *error) {
    struct mm_guard guard;
    memset(error, 0, sizeof *error);
    enum mm_status status = mm_guard_begin(&guard, version, "/v1/matmul", error);
    for (size_t start = 0; status == MM_OK && start < bytes;) {
        const char *line = head + start;
        size_t length = (size_t)((const char *)memchr(line, '\n', bytes - start) - line);
        status = check_header(&guard, line, length);
        start += length + 1;
    }
    return status == MM_OK ? mm_guard_end(&guard) : status;
}

/* The headers must be rejected with an error that contains `words`, or accepted if `words` is NULL. */
static void expect(const char *version, const char *head, size_t bytes, const char *words) {
    struct mm_error error;
    const enum mm_status status = check(version, head, bytes, &error);
    if (status != (words == NULL ? MM_OK : MM_BAD_REQUEST) || error.status != status ||
        (words != NULL && strstr(error.detail, words) == NULL))
        fail_msg("%s, '%s': %s, '%s'", version, head, mm_status_name(status), error.detail);
}

/* The request has the headers `before`, one of `parts`, and `after`. It must be rejected with an error that
 * contains `words`, or accepted if `words` is NULL. */
static const struct {
    const char *before, *parts, *after, *words;
} heads[] = {
    {"", "Host:a\n", ""},
    {"", "|Accept:*/*\n", "", "has no Host header"},
    {"Host:a\n", "Host:a|hOST:b", "\n", "Host appears twice"},
    /* Content-Length: RFC 9110, section 8.6. */
    {"Host:a\nContent-Length:", "5|0|0005|9223372036854775807|0009223372036854775807", "\n"},
    {"Host:a\nContent-Length:", "9223372036854775808|18446744073709551621|99999999999999999999999999", "\n",
     "under 2^63"},
    {"Host:a\nContent-Length:", "-5|5, 5| 5|5 |0x5|5e1", "\n", "digits alone"},
    {"Host:a\nContent-Length:", "+5", "\n", "'+5', but must be digits alone"},
    {"Host:a\nContent-Length:", "", "\n", "'', but must be digits alone"},
    {"Host:a\nContent-Length:5\n", "content-length:5|X:y\nContent-Length:6", "\n",
     "Content-Length appears twice"},
    /* Transfer-Encoding: RFC 9112, section 6.1. */
    {"Host:a\n", "Transfer-Encoding:chunked|transfer-encoding:CHUNKED", "\n"},
    {"Host:a\n", "Transfer-Encoding:chunked\nContent-Length:5|Content-Length:5\nTransfer-Encoding:chunked",
     "\n", "has Content-Length and Transfer-Encoding"},
    {"Host:a\nTransfer-Encoding:", "xchunked", "\n", "is 'xchunked', but must be 'chunked'"},
    {"Host:a\nTransfer-Encoding:", "", "\n", "is '', but must be 'chunked'"},
    {"Host:a\nTransfer-Encoding:", "chunkedx|chunked |gzip, chunked|chunked, chunked|identity", "\n",
     "must be 'chunked'"},
    {"Host:a\nTransfer-Encoding:chunked\n", "Transfer-Encoding:chunked", "\n",
     "Transfer-Encoding appears twice"},
    /* Syntax of headers: RFC 9112, section 5, and RFC 9110, section 5.5. */
    {"Host:a\n", "X:|X:a\tb c\xff", "\n"},
    {"Host:a\n", "X :b", "\n", "name is 'X '"},
    {"Host:a\n", " X:b|:b|X\x7f:b|\xc3\xa9:b|X(Y):b", "\n", "a header's name"},
    {"Host:a\n", "X:a\rb|X:\x1f|X:\x7f", "\n", "the value of the header X has"},
};

static void request_heads_are_checked(void **state) {
    static const char *const versions[] = {"HTTP/1.1", "HTTP/1.2"};
    for (size_t index = 0; index < 2 * COUNT(heads); index++) {
        EACH(part, heads[index / 2].parts) {
            char head[256];
            const int bytes =
                snprintf(head, sizeof head, "%s%s%s", heads[index / 2].before, part, heads[index / 2].after);
            expect(versions[index % 2], head, (size_t)bytes, heads[index / 2].words);
        }
    }
    static const char token[] = "Host:a\n!#$%&'*+-.^_`|~09azAZ:x\n";
    expect("HTTP/1.1", token, sizeof token - 1, NULL);
}

/* The syntax of Host: RFC 9110, section 7.2, and RFC 3986, section 3.2.2. */
static void hosts(void **state) {
    static const char good[] = "|a|A.example-1_~|127.0.0.1|127.0.0.1:8080|a:|a%20b:1|[::1]|[::1]:8080|[v1.a:"
                               "b]|a!$&'()*+;=|[::ffff:127.0.0.1]:1|test \t|xn--nxa";
    static const char bad[] =
        "a b|a,b|a, b|user@a|u:p@a|a/b|http://a|a?b|a#b|a\\b|a:b|a:1:2|a:-1|a:1 "
        "2|:80|[::1|[]|[::1]a|::1|[::1]:x|a%2|a%zz|a<b>|a\"b|%|[a,b]|a\xc3\xa9| ]|[::1]]";
    char head[64];
    EACH(host, good) {
        expect("HTTP/1.1", head, (size_t)snprintf(head, sizeof head, "Host:%s\n", host), NULL);
    }
    EACH(host, bad) {
        expect("HTTP/1.1", head, (size_t)snprintf(head, sizeof head, "Host:%s\n", host), "but must be HOST");
    }
    expect("HTTP/1.1", "Host:a|b\n", 9, "but must be HOST");
}

/* The error shortens a long value. */
static void long_texts_are_shortened(void **state) {
    enum { BYTES = 60000 };
    struct mm_error error;
    char *head = malloc(BYTES + 2);
    assert_non_null(head);
    memset(head, ' ', BYTES);
    head[BYTES] = ':';
    head[BYTES + 1] = '\n';
    assert_int_equal(check("HTTP/1.1", head, BYTES + 2, &error), MM_BAD_REQUEST);
    assert_true(strlen(error.detail) < 300);
    free(head);
}

RUN_TESTS(request_heads_are_checked, hosts, long_texts_are_shortened)
