/* Reads multipart/form-data. A delimiter is CRLF, "--" and the boundary. A part lies between two
 * delimiters. */
#include "api/form/multipart.h"

#include "api/slice.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* Whether the character ends a value without quotes. By RFC 2045, a value with a slash or an equals sign
 * needs quotes. But many clients omit the quotes around boundaries, so these characters do not end a
 * value. */
static bool ends_token(char c) {
    return mm_is_blank(c) || c == ';' || c == '"';
}

/* Reads a value with or without quotes. Returns the value's end, or NULL if the closing quote is missing.
 * Between quotes, a backslash escapes the next character, and the backslash stays in the value. */
static const char *read_value(const char *text, const char *end, struct mm_slice *value) {
    const char *start = text;
    if (text == end || *text != '"') {
        while (text < end && !ends_token(*text))
            text++;
        *value = (struct mm_slice){start, (size_t)(text - start)};
        return text;
    }
    for (text++; text < end && *text != '"'; text++)
        if (*text == '\\' && text + 1 < end)
            text++;
    if (text == end)
        return NULL;
    *value = (struct mm_slice){start + 1, (size_t)(text - start - 1)};
    return text + 1;
}

/* Finds a parameter in the rest of a header, such as `; name="a"`. value->start is NULL if the parameter is
 * missing. Returns false if the parameters are malformed, or if the parameter occurs twice. */
static bool find_parameter(const char *text, const char *end, const char *name, struct mm_slice *value) {
    *value = (struct mm_slice){NULL, 0};
    for (text = mm_skip_blanks(text, end); text < end; text = mm_skip_blanks(text, end)) {
        if (*text != ';')
            return false;
        text = mm_skip_blanks(text + 1, end);
        if (text == end) /* a semicolon at the end is allowed */
            return true;
        const char *start = text;
        while (text < end && *text != '=' && !ends_token(*text))
            text++;
        struct mm_slice key = {start, (size_t)(text - start)};
        text = mm_skip_blanks(text, end);
        if (key.length == 0 || text == end || *text != '=')
            return false;
        struct mm_slice found;
        text = read_value(mm_skip_blanks(text + 1, end), end, &found);
        if (text == NULL)
            return false;
        if (!mm_slice_is_any_case(key, name))
            continue;
        if (value->start != NULL)
            return false;
        *value = found;
    }
    return true;
}

/* Whether RFC 2046 allows the text, a part of a C string, as a boundary. */
static bool is_boundary(struct mm_slice text) {
    static const char allowed[] =
        "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'()+_,-./:=? ";
    return text.length >= 1 && text.length <= MM_MULTIPART_BOUNDARY_MAX &&
           text.start[text.length - 1] != ' ' && strspn(text.start, allowed) >= text.length;
}

enum mm_status mm_multipart_begin(struct mm_multipart *multipart, const char *content_type,
                                  struct mm_error *error) {
    *multipart = (struct mm_multipart){.place = MM_MULTIPART_PREAMBLE};
    struct mm_slice boundary = {NULL, 0};
    const char *end = content_type + strlen(content_type);
    const char *parameters = content_type + strcspn(content_type, ";");
    if (!find_parameter(parameters, end, "boundary", &boundary) || boundary.start == NULL ||
        !is_boundary(boundary))
        return mm_fail_field(error, MM_BAD_REQUEST, "Content-Type",
                             "Content-Type is '%.100s', but must give one boundary of 1 to %d characters out "
                             "of letters, digits, ' ( ) + _ , - . / : = ? and inner spaces; let the client "
                             "make this header, as curl -F does",
                             content_type, MM_MULTIPART_BOUNDARY_MAX);
    memcpy(multipart->delimiter, "\r\n--", 4);
    memcpy(multipart->delimiter + 4, boundary.start, boundary.length);
    multipart->delimiter_bytes = 4 + boundary.length;
    return MM_OK;
}

enum mm_status mm_multipart_check_type(const char *content_type, struct mm_error *error) {
    struct mm_multipart unused;
    return mm_multipart_begin(&unused, content_type, error);
}

/* What the text after a boundary means. CUT_OFF: more text must arrive to decide. */
enum tail { NO_DELIMITER, OPENS_PART, ENDS_BODY, CUT_OFF };

struct text {
    const char *body;
    size_t bytes;
    bool is_all;
};

/* A delimiter in the body. `behind` is the offset after the delimiter's line. */
struct line {
    size_t start;
    size_t behind;
};

/* Reads the rest of the line after a boundary. In a delimiter, the rest is blank, or it is two dashes and
 * then blanks. */
static enum tail read_tail(const struct text *text, size_t at, size_t *behind) {
    const char *body = text->body;
    const size_t left = text->bytes - at;
    const bool closes = left >= 2 && body[at] == '-' && body[at + 1] == '-';
    if (!text->is_all && left < 2)
        return CUT_OFF;
    at += closes ? 2 : 0;
    while (at < text->bytes && mm_is_blank(body[at]))
        at++;
    const bool line_ends = text->bytes - at >= 2 && body[at] == '\r' && body[at + 1] == '\n';
    const bool may_end = at == text->bytes || (text->bytes - at == 1 && body[at] == '\r');
    if (!line_ends && may_end && !text->is_all)
        return CUT_OFF;
    if (!line_ends && !(closes && at == text->bytes))
        return NO_DELIMITER;
    *behind = line_ends ? at + 2 : at;
    return closes ? ENDS_BODY : OPENS_PART;
}

/* Finds the first delimiter between two offsets. CUT_OFF: the end of the delimiter's line has not arrived. */
static enum tail find_delimiter(const struct mm_multipart *multipart, const struct text *text, size_t from,
                                size_t to, struct line *line) {
    const char *found;
    while (from < to && (found = memmem(text->body + from, to - from, multipart->delimiter,
                                        multipart->delimiter_bytes)) != NULL) {
        line->start = (size_t)(found - text->body);
        enum tail tail = read_tail(text, line->start + multipart->delimiter_bytes, &line->behind);
        if (tail != NO_DELIMITER)
            return tail;
        from = line->start + 2;
    }
    return NO_DELIMITER;
}

/* Finds the body's first delimiter. At the very beginning of the body, no CRLF precedes a delimiter. */
static enum tail find_first(const struct mm_multipart *multipart, const struct text *text, size_t *behind) {
    const size_t line_bytes = multipart->delimiter_bytes - 2;
    struct line line = {0};
    enum tail tail = NO_DELIMITER;
    if (!text->is_all && text->bytes < line_bytes)
        return CUT_OFF;
    if (text->bytes >= line_bytes && memcmp(text->body, multipart->delimiter + 2, line_bytes) == 0)
        tail = read_tail(text, line_bytes, behind);
    if (tail != NO_DELIMITER)
        return tail;
    /* If a body has only a final delimiter, the lines of the form probably end in LF. The function then
     * reports no delimiter, so the body is rejected. */
    tail = find_delimiter(multipart, text, 0, text->bytes, &line);
    *behind = line.behind;
    return tail == ENDS_BODY ? NO_DELIMITER : tail;
}

static enum mm_multipart_event fail_boundary(const struct mm_multipart *multipart, const char *which,
                                             const char *dashes, struct mm_error *error) {
    mm_fail(error, MM_BAD_REQUEST, "the body has no %s boundary; expected a line '%.*s%s' that ends in CRLF",
            which, (int)multipart->delimiter_bytes - 2, multipart->delimiter + 2, dashes);
    return MM_MULTIPART_FAULT;
}

static enum mm_status fail_part(const struct mm_multipart *multipart, const char *what,
                                struct mm_error *error) {
    return mm_fail(error, MM_BAD_REQUEST, "part %u of the form %s", multipart->parts, what);
}

/* Values from the headers of a part. `start` is NULL if a value is missing. */
struct headers {
    struct mm_slice name;
    struct mm_slice file;
    struct mm_slice type;
};

/* Reads one header line of a part. Ignores all headers except Content-Disposition and Content-Type. */
static enum mm_status read_header(const struct mm_multipart *multipart, struct mm_slice line,
                                  struct headers *headers, struct mm_error *error) {
    const char *end = line.start + line.length;
    const char *colon = memchr(line.start, ':', line.length);
    if (colon == NULL || colon == line.start || mm_is_blank(line.start[0]) ||
        memchr(line.start, '\n', line.length) != NULL || memchr(line.start, '\r', line.length) != NULL ||
        memchr(line.start, '\0', line.length) != NULL)
        return fail_part(multipart, "has a malformed header; expected lines 'Name: value' that end in CRLF",
                         error);
    const struct mm_slice header = {line.start, (size_t)(colon - line.start)};
    struct mm_slice value;
    const char *parameters = read_value(mm_skip_blanks(colon + 1, end), end, &value);
    if (mm_slice_is_any_case(header, "Content-Type") && parameters != NULL)
        headers->type = value;
    if (!mm_slice_is_any_case(header, "Content-Disposition"))
        return MM_OK;
    if (headers->name.start != NULL || parameters == NULL || !mm_slice_is_any_case(value, "form-data") ||
        !find_parameter(parameters, end, "name", &headers->name) || headers->name.start == NULL)
        return fail_part(multipart, "has a wrong Content-Disposition; expected one: form-data; name=\"...\"",
                         error);
    (void)find_parameter(parameters, end, "filename", &headers->file); /* a malformed file name is ignored */
    return MM_OK;
}

static size_t place(struct mm_slice slice, const char *body) {
    return slice.start == NULL ? 0 : (size_t)(slice.start - body);
}

static enum mm_status read_headers(const struct mm_multipart *multipart, const char *body, size_t at,
                                   size_t stop, struct mm_part *part, struct mm_error *error) {
    const char *text = body + at, *const end = body + stop;
    struct headers headers = {0};
    for (;;) {
        const char *line_end = memmem(text, (size_t)(end - text), "\r\n", 2);
        /* RFC 2046 allows a part without contents to end after its headers, without an empty line. */
        if (text == end && headers.name.start != NULL)
            break;
        if (line_end == NULL)
            return fail_part(multipart, "has no empty line (CRLF) after its headers", error);
        if (line_end == text)
            break;
        enum mm_status status =
            read_header(multipart, (struct mm_slice){text, (size_t)(line_end - text)}, &headers, error);
        if (status != MM_OK)
            return status;
        text = line_end + 2;
    }
    if (headers.name.start == NULL)
        return fail_part(
            multipart, "has no name; expected a header Content-Disposition: form-data; name=\"...\"", error);
    *part = (struct mm_part){.name = place(headers.name, body),
                             .name_length = headers.name.length,
                             .file = place(headers.file, body),
                             .file_length = headers.file.length,
                             .type = place(headers.type, body),
                             .type_length = headers.type.length,
                             .data = (size_t)(text - body) + (text == end ? 0 : 2)};
    return MM_OK;
}

/* Waits for more of the body. If much text is unread, waits until that text has doubled, because rereading it
 * for each small chunk would take quadratic time. */
static enum mm_multipart_event wait_for_more(struct mm_multipart *multipart, const struct text *text) {
    enum { SHORT = 4096 };
    const size_t pending = text->bytes - multipart->at;
    multipart->retry_bytes = pending > SHORT ? text->bytes + pending : 0;
    return MM_MULTIPART_WAIT;
}

static void pass_delimiter(struct mm_multipart *multipart, enum tail tail, size_t behind) {
    multipart->at = behind;
    multipart->place = tail == ENDS_BODY ? MM_MULTIPART_BEHIND : MM_MULTIPART_HEADERS;
}

static enum mm_multipart_event read_preamble(struct mm_multipart *multipart, const struct text *text,
                                             struct mm_error *error) {
    size_t behind = 0;
    const enum tail tail = find_first(multipart, text, &behind);
    if (tail == CUT_OFF || (tail == NO_DELIMITER && !text->is_all))
        return wait_for_more(multipart, text);
    if (tail == NO_DELIMITER)
        return fail_boundary(multipart, "first", "", error);
    pass_delimiter(multipart, tail, behind);
    return MM_MULTIPART_CONTENTS;
}

/* Reads the headers of a part, up to an empty line or a delimiter. If the part has no headers, the delimiter
 * begins with the CRLF before multipart->at. */
static enum mm_multipart_event read_part(struct mm_multipart *multipart, const struct text *text,
                                         struct mm_part *part, struct mm_error *error) {
    const size_t from = multipart->at - 2, most = multipart->at + MM_MULTIPART_HEADER_BYTES_MAX;
    const size_t end = text->bytes < most ? text->bytes : most;
    const char *empty_line = memmem(text->body + from, end - from, "\r\n\r\n", 4);
    size_t stop = empty_line == NULL ? end : (size_t)(empty_line - text->body) + 4;
    struct line line;
    const enum tail tail = find_delimiter(multipart, text, from, stop, &line);
    if (multipart->parts == MM_MULTIPART_PARTS_MAX) {
        mm_fail_limit(error, "", MM_MULTIPART_PARTS_MAX, "the form has more than %d parts; send fewer",
                      MM_MULTIPART_PARTS_MAX);
        return MM_MULTIPART_FAULT;
    }
    if (tail == OPENS_PART || tail == ENDS_BODY) {
        stop = line.start > multipart->at ? line.start : multipart->at;
    } else if (tail == CUT_OFF) {
        return wait_for_more(multipart, text);
    } else if (empty_line == NULL && end == most) {
        mm_fail_limit(error, "", MM_MULTIPART_HEADER_BYTES_MAX,
                      "the headers of part %u take more than %d bytes; send shorter ones",
                      multipart->parts + 1, MM_MULTIPART_HEADER_BYTES_MAX);
        return MM_MULTIPART_FAULT;
    } else if (empty_line == NULL && !text->is_all) {
        return wait_for_more(multipart, text);
    } else if (empty_line == NULL) {
        return fail_boundary(multipart, "final", "--", error);
    }
    multipart->parts++;
    if (read_headers(multipart, text->body, multipart->at, stop, part, error) != MM_OK)
        return MM_MULTIPART_FAULT;
    multipart->at = part->data;
    multipart->expected = 0;
    multipart->place = MM_MULTIPART_IN_PART;
    return MM_MULTIPART_HEAD;
}

/* Finds the delimiter after the contents. Looks first at offset multipart->expected, if it is known, then
 * searches. If the part has no contents, the delimiter begins with the CRLF before multipart->at. */
static enum mm_multipart_event read_contents(struct mm_multipart *multipart, const struct text *text,
                                             struct mm_part *part, struct mm_error *error) {
    const size_t expected_end = multipart->expected + multipart->delimiter_bytes;
    struct line line = {.start = multipart->expected};
    enum tail tail = NO_DELIMITER;
    if (multipart->expected > 0 && !text->is_all && text->bytes < expected_end) {
        multipart->retry_bytes = expected_end;
        return MM_MULTIPART_WAIT;
    }
    if (multipart->expected > 0 && text->bytes >= expected_end &&
        memcmp(text->body + line.start, multipart->delimiter, multipart->delimiter_bytes) == 0)
        tail = read_tail(text, expected_end, &line.behind);
    if (tail == NO_DELIMITER)
        tail = find_delimiter(multipart, text, multipart->at - 2, text->bytes, &line);
    if (tail == CUT_OFF || (tail == NO_DELIMITER && !text->is_all))
        return wait_for_more(multipart, text);
    if (tail == NO_DELIMITER)
        return fail_boundary(multipart, "final", "--", error);
    part->bytes = line.start > multipart->at ? line.start - multipart->at : 0;
    pass_delimiter(multipart, tail, line.behind);
    return MM_MULTIPART_CONTENTS;
}

enum mm_multipart_event mm_multipart_next(struct mm_multipart *multipart, const char *body, size_t bytes,
                                          bool is_all, struct mm_part *part, struct mm_error *error) {
    const struct text text = {body, bytes, is_all};
    enum mm_multipart_event event;
    if (!is_all && bytes < multipart->retry_bytes)
        return MM_MULTIPART_WAIT;
    multipart->retry_bytes = 0;
    if (multipart->place == MM_MULTIPART_PREAMBLE &&
        (event = read_preamble(multipart, &text, error)) != MM_MULTIPART_CONTENTS)
        return event;
    if (multipart->place == MM_MULTIPART_HEADERS)
        return read_part(multipart, &text, part, error);
    if (multipart->place == MM_MULTIPART_IN_PART)
        return read_contents(multipart, &text, part, error);
    return MM_MULTIPART_END;
}
