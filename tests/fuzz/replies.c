#include "tests/fuzz/replies.h"

#include "api/problem.h"

#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { REPLY_HEADERS_MAX = 32 };

struct reply {
    unsigned status;
    size_t header_count;
    struct slice names[REPLY_HEADERS_MAX];
    struct slice values[REPLY_HEADERS_MAX];
    struct slice body;
    bool is_ours; /* has an X-Request-Id, unlike libmicrohttpd's error pages */
};

/* Properties of the requests that decide which replies are allowed. */
struct reply_bounds {
    bool has_deadline;  /* a request may have a short deadline, so 504 is allowed */
    bool has_head_only; /* a request may be HEAD, whose reply has no body */
};

static bool slice_equals(struct slice slice, const char *text) {
    return slice.bytes == strlen(text) && strncasecmp(slice.text, text, slice.bytes) == 0;
}

static struct slice reply_header(const struct reply *reply, const char *name) {
    struct slice value = {NULL, 0};
    for (size_t index = 0; index < reply->header_count; index++)
        if (slice_equals(reply->names[index], name))
            value = reply->values[index];
    return value;
}

static size_t count_headers(const struct reply *reply, const char *name) {
    size_t count = 0;
    for (size_t index = 0; index < reply->header_count; index++)
        count += slice_equals(reply->names[index], name);
    return count;
}

/* Removes and returns a line. Checks that it ends in CRLF and has no other control characters. */
static struct slice take_line(struct slice *rest) {
    struct slice line = fuzz_split(rest, '\n');
    REQUIRE(line.bytes > 0 && line.text[line.bytes] == '\n' && line.text[line.bytes - 1] == '\r');
    line.bytes--;
    for (size_t index = 0; index < line.bytes; index++)
        REQUIRE(line.text[index] == '\t' || !iscntrl((unsigned char)line.text[index]));
    return line;
}

static unsigned take_status(struct slice *rest) {
    const struct slice line = take_line(rest);
    REQUIRE(line.bytes >= 12 && memcmp(line.text, "HTTP/1.", 7) == 0);
    REQUIRE((line.text[7] == '0' || line.text[7] == '1') && line.text[8] == ' ');
    for (size_t index = 9; index < 12; index++)
        REQUIRE(isdigit((unsigned char)line.text[index]));
    REQUIRE(line.bytes == 12 || line.text[12] == ' ');
    return (unsigned)strtoul(line.text + 9, NULL, 10);
}

static void take_headers(struct slice *rest, struct reply *reply) {
    static const char token[] =
        "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    for (;;) {
        struct slice line = take_line(rest);
        if (line.bytes == 0)
            return;
        const struct slice name = fuzz_split(&line, ':');
        REQUIRE(name.bytes > 0 && strspn(name.text, token) == name.bytes);
        REQUIRE(line.bytes > 0 && *line.text == ' ' && reply->header_count < REPLY_HEADERS_MAX);
        reply->names[reply->header_count] = name;
        reply->values[reply->header_count++] = (struct slice){line.text + 1, line.bytes - 1};
    }
}

/* Known statuses are in api/problem.c. libmicrohttpd sends other statuses before our handler runs. */
static void check_status(const struct reply *reply, const struct reply_bounds *bounds) {
    static const unsigned library[] = {400, 413, 414, 431, 501, 505};
    bool known = reply->is_ours && (reply->status == 200 || reply->status == 204);
    for (unsigned status = MM_OK + 1; status < MM_STATUS_COUNT && reply->is_ours; status++)
        known |= reply->status == mm_problem_http((enum mm_status)status);
    for (size_t index = 0; index < sizeof library / sizeof library[0] && !reply->is_ours; index++)
        known |= reply->status == library[index];
    REQUIRE(known);
    /* Overload and device failures cannot occur, because there is one connection and a working device. */
    REQUIRE(reply->status != 429 && (reply->status < 500 || reply->status == 504 || !reply->is_ours));
    REQUIRE(reply->status != 504 || bounds->has_deadline);
}

static const char *text_of(const json_t *object, const char *name) {
    const char *text = json_string_value(json_object_get(object, name));
    REQUIRE(text != NULL && text[0] != '\0');
    return text;
}

static void check_problem(const struct reply *reply, const json_t *problem) {
    unsigned status = MM_OK + 1;
    REQUIRE(json_is_object(problem));
    REQUIRE(json_integer_value(json_object_get(problem, "status")) == (json_int_t)reply->status);
    const char *code = text_of(problem, "code");
    while (status < MM_STATUS_COUNT && strcmp(mm_status_name((enum mm_status)status), code) != 0)
        status++;
    REQUIRE(status < MM_STATUS_COUNT && mm_problem_http((enum mm_status)status) == reply->status);
    REQUIRE(strcmp(text_of(problem, "title"), mm_status_title((enum mm_status)status)) == 0);
    REQUIRE(strncmp(text_of(problem, "type"), "urn:matmuld:problem:", 20) == 0);
    text_of(problem, "detail");
    REQUIRE(slice_equals(reply_header(reply, "X-Request-Id"), text_of(problem, "request_id")));
}

static void check_body(const struct reply *reply, bool has_body) {
    const struct slice type = reply_header(reply, "Content-Type");
    const bool is_problem = slice_equals(type, "application/problem+json");
    REQUIRE(is_problem == (reply->status >= 400));
    REQUIRE(is_problem || reply->status == 204 || type.bytes > 0);
    if (!has_body || !(is_problem || slice_equals(type, "application/json")))
        return;
    json_t *root = json_loadb(reply->body.text, reply->body.bytes, JSON_REJECT_DUPLICATES, NULL);
    REQUIRE(root != NULL);
    if (is_problem)
        check_problem(reply, root);
    json_decref(root);
}

static void check_headers(const struct reply *reply) {
    static const char id_characters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    REQUIRE(count_headers(reply, "Content-Length") == (reply->status != 204) ||
            slice_equals(reply_header(reply, "Content-Length"), "0"));
    REQUIRE(count_headers(reply, "Transfer-Encoding") == 0 && count_headers(reply, "Date") <= 1);
    REQUIRE(count_headers(reply, "X-Request-Id") <= 1 && count_headers(reply, "Content-Type") <= 1);
    if (!reply->is_ours)
        return;
    const struct slice id = reply_header(reply, "X-Request-Id");
    REQUIRE(id.bytes >= 1 && id.bytes <= 128 && strspn(id.text, id_characters) == id.bytes);
    REQUIRE((count_headers(reply, "Allow") == 1) == (reply->status == 405 || reply->status == 204));
    REQUIRE((count_headers(reply, "WWW-Authenticate") == 1) == (reply->status == 401));
}

static size_t content_length(const struct reply *reply) {
    const struct slice value = reply_header(reply, "Content-Length");
    size_t bytes = 0;
    REQUIRE(value.bytes < 10);
    for (size_t index = 0; index < value.bytes; index++) {
        REQUIRE(isdigit((unsigned char)value.text[index]));
        bytes = bytes * 10 + (size_t)(value.text[index] - '0');
    }
    return bytes;
}

/* Returns whether a body follows the head. If a request may be HEAD, its reply may have no body. The next
 * reply or the end of `rest` then follows directly. */
static bool has_body(struct slice rest, const struct reply_bounds *bounds) {
    return !bounds->has_head_only ||
           (rest.bytes > 0 && (rest.bytes < 7 || memcmp(rest.text, "HTTP/1.", 7) != 0));
}

/* Removes the next final reply from `rest`. Returns false if no reply is left. */
static bool reply_take(struct slice *rest, const struct reply_bounds *bounds, struct reply *reply) {
    do {
        if (rest->bytes == 0)
            return false;
        *reply = (struct reply){.status = take_status(rest)};
        take_headers(rest, reply);
    } while (reply->status == 100);
    reply->is_ours = count_headers(reply, "X-Request-Id") > 0;
    check_status(reply, bounds);
    check_headers(reply);
    if (!reply->is_ours) {
        /* libmicrohttpd closes after its error page. Version 0.9.75 writes the head of some pages twice. */
        REQUIRE(slice_equals(reply_header(reply, "Connection"), "close"));
        *rest = (struct slice){rest->text + rest->bytes, 0};
        return true;
    }
    const size_t bytes = content_length(reply);
    const bool with_body = bytes > 0 && has_body(*rest, bounds);
    if (with_body) {
        REQUIRE(bytes <= rest->bytes);
        reply->body = (struct slice){rest->text, bytes};
        *rest = (struct slice){rest->text + bytes, rest->bytes - bytes};
    }
    check_body(reply, with_body);
    if (slice_equals(reply_header(reply, "Connection"), "close"))
        REQUIRE(rest->bytes == 0);
    return true;
}

static bool has_word(struct slice sent, const char *word) {
    return sent.bytes > 0 && memmem(sent.text, sent.bytes, word, strlen(word)) != NULL;
}

void replies_check(struct slice sent, struct slice came) {
    const struct reply_bounds bounds = {.has_deadline = has_word(sent, "timeout"),
                                        .has_head_only = has_word(sent, "HEAD")};
    struct reply reply;
    while (reply_take(&came, &bounds, &reply))
        continue;
}
