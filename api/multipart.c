/* multipart/form-data by hand: a delimiter is a line of its own that begins with two dashes and the
 * boundary, the CRLF before it belongs to it, and a part is the bytes between two of them. Nothing is copied.
 */
#include "api/multipart.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* A piece of a header. */
struct span {
    const char *start;
    size_t length;
};

static bool is_space(char c) {
    return c == ' ' || c == '\t';
}

static bool span_is(struct span span, const char *text) {
    return span.length == strlen(text) && strncasecmp(span.start, text, span.length) == 0;
}

/* RFC 2045's token, which goes without quotes; a boundary's / = ? : and the like are let through, since
 * clients leave the quotes out there. */
static bool ends_token(char c) {
    return is_space(c) || c == ';' || c == '"';
}

/* Reads a value with quotes or without, and gives what follows it; NULL where a quote is not closed. Within
 * quotes a backslash keeps the next character from ending them; it stays in the value. */
static const char *read_value(const char *text, const char *end, struct span *value) {
    const char *start = text;
    if (text == end || *text != '"') {
        while (text < end && !ends_token(*text))
            text++;
        *value = (struct span){start, (size_t)(text - start)};
        return text;
    }
    for (text++; text < end && *text != '"'; text++)
        if (*text == '\\' && text + 1 < end)
            text++;
    if (text == end)
        return NULL;
    *value = (struct span){start + 1, (size_t)(text - start - 1)};
    return text + 1;
}

static const char *skip_spaces(const char *text, const char *end) {
    while (text < end && is_space(*text))
        text++;
    return text;
}

/* Finds a parameter behind a header's first word (`form-data; name="a"`). False where the parameters are
 * malformed, or it stands there twice; value->start is NULL where it does not. */
static bool find_parameter(const char *text, const char *end, const char *name, struct span *value) {
    *value = (struct span){NULL, 0};
    for (text = skip_spaces(text, end); text < end; text = skip_spaces(text, end)) {
        if (*text != ';')
            return false;
        text = skip_spaces(text + 1, end);
        if (text == end) /* a last semicolon with nothing behind it */
            return true;
        const char *start = text;
        while (text < end && *text != '=' && !ends_token(*text))
            text++;
        struct span key = {start, (size_t)(text - start)};
        text = skip_spaces(text, end);
        if (key.length == 0 || text == end || *text != '=')
            return false;
        struct span found;
        text = read_value(skip_spaces(text + 1, end), end, &found);
        if (text == NULL)
            return false;
        if (!span_is(key, name))
            continue;
        if (value->start != NULL)
            return false;
        *value = found;
    }
    return true;
}

/* RFC 2046's bchars; a space only inside. */
static bool is_boundary(struct span text) {
    static const char others[] = "'()+_,-./:=? ";
    if (text.length < 1 || text.length > MM_MULTIPART_BOUNDARY_MAX || text.start[text.length - 1] == ' ')
        return false;
    for (size_t index = 0; index < text.length; index++) {
        char c = text.start[index];
        bool letter = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
        if (!letter && (c == '\0' || strchr(others, c) == NULL))
            return false;
    }
    return true;
}

enum mm_status mm_multipart_begin(struct mm_multipart *multipart, const char *content_type,
                                  struct mm_error *error) {
    struct span boundary = {NULL, 0};
    const char *end = content_type + strlen(content_type);
    const char *parameters = content_type + strcspn(content_type, ";");
    if (!find_parameter(parameters, end, "boundary", &boundary) || boundary.start == NULL ||
        !is_boundary(boundary))
        return mm_fail_field(error, MM_BAD_REQUEST, "Content-Type",
                             "Content-Type is '%.100s', but must give one boundary of 1 to %d characters out "
                             "of letters, digits, ' ( ) + _ , - . / : = ? and inner spaces",
                             content_type, MM_MULTIPART_BOUNDARY_MAX);
    memcpy(multipart->delimiter, "\r\n--", 4);
    memcpy(multipart->delimiter + 4, boundary.start, boundary.length);
    multipart->delimiter_bytes = 4 + boundary.length;
    multipart->parts = 0;
    return MM_OK;
}

enum mm_status mm_multipart_judge_type(const char *content_type, struct mm_error *error) {
    struct mm_multipart unused;
    return mm_multipart_begin(&unused, content_type, error);
}

/* What stands behind a boundary: the end of the last line, or of one that opens a part, or neither. */
enum tail { NO_DELIMITER, OPENS_PART, ENDS_BODY };

/* Judges the rest of a candidate's line and gives where the next one begins. Whatever has more than
 * blanks behind it is a boundary that merely begins like ours, or data. */
static enum tail read_tail(char *text, char *end, char **next) {
    bool closes = end - text >= 2 && text[0] == '-' && text[1] == '-';
    text += closes ? 2 : 0;
    while (text < end && is_space(*text))
        text++;
    bool line_ends = end - text >= 2 && text[0] == '\r' && text[1] == '\n';
    if (!line_ends && !(closes && text == end))
        return NO_DELIMITER;
    *next = line_ends ? text + 2 : text;
    return closes ? ENDS_BODY : OPENS_PART;
}

/* The next delimiter from `from` on, without which the body is not complete. */
static enum tail find_delimiter(const struct mm_multipart *multipart, char *from, char **start, char **next) {
    char *end = multipart->end;
    while ((*start = memmem(from, (size_t)(end - from), multipart->delimiter, multipart->delimiter_bytes)) !=
           NULL) {
        enum tail tail = read_tail(*start + multipart->delimiter_bytes, end, next);
        if (tail != NO_DELIMITER)
            return tail;
        from = *start + 2;
    }
    return NO_DELIMITER;
}

static enum mm_status fail_boundary(const struct mm_multipart *multipart, const char *which,
                                    const char *dashes, struct mm_error *error) {
    return mm_fail(error, MM_BAD_REQUEST,
                   "the body has no %s boundary: a line '%.*s%s', with CRLF before and behind it", which,
                   (int)multipart->delimiter_bytes - 2, multipart->delimiter + 2, dashes);
}

enum mm_status mm_multipart_open(struct mm_multipart *multipart, const char *content_type, void *data,
                                 size_t bytes, struct mm_error *error) {
    enum mm_status status = mm_multipart_begin(multipart, content_type, error);
    if (status != MM_OK)
        return status;
    char *text = data;
    char *start;
    enum tail tail = NO_DELIMITER;
    size_t line_bytes = multipart->delimiter_bytes - 2;
    multipart->end = bytes > 0 ? text + bytes : text;
    if (bytes >= line_bytes && memcmp(text, multipart->delimiter + 2, line_bytes) == 0)
        tail = read_tail(text + line_bytes, multipart->end, &multipart->position);
    /* A preamble before the end of a form without parts is rather a form whose lines end in LF. */
    if (tail == NO_DELIMITER &&
        (bytes == 0 || find_delimiter(multipart, text, &start, &multipart->position) != OPENS_PART))
        return fail_boundary(multipart, "first", "", error);
    if (tail == ENDS_BODY)
        multipart->position = NULL;
    return MM_OK;
}

static enum mm_status fail_limit(const char *what, uint64_t limit, struct mm_error *error) {
    mm_fail(error, MM_TOO_LARGE, "%s, but the limit is %u", what, (unsigned)limit);
    if (error != NULL) {
        error->limit = limit;
        error->has_limit = true;
    }
    return MM_TOO_LARGE;
}

static enum mm_status fail_part(const struct mm_multipart *multipart, const char *what,
                                struct mm_error *error) {
    return mm_fail(error, MM_BAD_REQUEST, "part %u of the body %s", multipart->parts, what);
}

/* Reads one header line of a part. Only Content-Disposition says something to us. */
static enum mm_status read_header(const struct mm_multipart *multipart, struct span line,
                                  struct mm_part *part, struct mm_error *error) {
    const char *end = line.start + line.length;
    const char *colon = memchr(line.start, ':', line.length);
    if (colon == NULL || colon == line.start || is_space(line.start[0]) ||
        memchr(line.start, '\n', line.length) != NULL || memchr(line.start, '\r', line.length) != NULL ||
        memchr(line.start, '\0', line.length) != NULL)
        return fail_part(multipart, "has a malformed header: expected lines 'Name: value' that end in CRLF",
                         error);
    if (!span_is((struct span){line.start, (size_t)(colon - line.start)}, "Content-Disposition"))
        return MM_OK;
    struct span type, name;
    const char *parameters = read_value(skip_spaces(colon + 1, end), end, &type);
    if (part->name != NULL || parameters == NULL || !span_is(type, "form-data") ||
        !find_parameter(parameters, end, "name", &name) || name.start == NULL)
        return fail_part(multipart, "must have one header Content-Disposition: form-data; name=\"...\"",
                         error);
    part->name = name.start;
    part->name_length = name.length;
    return MM_OK;
}

enum mm_status mm_multipart_read_headers(const struct mm_multipart *multipart, char *text, char *end,
                                         struct mm_part *part, struct mm_error *error) {
    const char *limit =
        end - text > MM_MULTIPART_HEADER_BYTES_MAX ? text + MM_MULTIPART_HEADER_BYTES_MAX : end;
    *part = (struct mm_part){0};
    for (;;) {
        char *stop = memmem(text, (size_t)(limit - text), "\r\n", 2);
        /* RFC 2046 lets a part without contents do without the empty line too. */
        if (text == end && part->name != NULL)
            break;
        if (stop == NULL && limit < end)
            return fail_limit("the headers of a part go on for more bytes", MM_MULTIPART_HEADER_BYTES_MAX,
                              error);
        if (stop == NULL)
            return fail_part(multipart, "has no empty line (CRLF) behind its headers", error);
        if (stop == text)
            break;
        enum mm_status status =
            read_header(multipart, (struct span){text, (size_t)(stop - text)}, part, error);
        if (status != MM_OK)
            return status;
        text = stop + 2;
    }
    if (part->name == NULL)
        return fail_part(multipart, "has no name: no header Content-Disposition: form-data; name=\"...\"",
                         error);
    part->data = text == end ? text : text + 2;
    part->bytes = (size_t)(end - part->data);
    return MM_OK;
}

enum mm_status mm_multipart_next(struct mm_multipart *multipart, struct mm_part *part, bool *found,
                                 struct mm_error *error) {
    *found = multipart->position != NULL;
    if (!*found)
        return MM_OK;
    if (multipart->parts == MM_MULTIPART_PARTS_MAX)
        return fail_limit("the body has more parts", MM_MULTIPART_PARTS_MAX, error);
    multipart->parts++;
    /* The CRLF that ends this delimiter's line may begin the next one's: a part without a byte. */
    char *text = multipart->position;
    char *stop, *next = NULL;
    enum tail tail = find_delimiter(multipart, text - 2, &stop, &next);
    if (tail == NO_DELIMITER)
        return fail_boundary(multipart, "final", "--", error);
    multipart->position = tail == ENDS_BODY ? NULL : next;
    return mm_multipart_read_headers(multipart, text, stop < text ? text : stop, part, error);
}
