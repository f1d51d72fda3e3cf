/* Checks rules of RFC 9110 and RFC 9112 that libmicrohttpd does not check. The guard is stricter than the
 * RFCs where other programs disagree: it refuses every repeated length and every list of codings. */
#include "server/http/guard.h"

#include "api/slice.h"

#include <string.h>
#include <strings.h>

enum { TOKEN = 1, HOST = 2, DIGIT = 4, HEX = 8, CONTROL = 16 };

/* TOKEN: tchar of RFC 9110, 5.6.2. HOST: unreserved and sub-delims of RFC 3986, 3.2.2, without the comma,
 * because some programs join hosts with commas. CONTROL: what RFC 9110, 5.5 forbids in a header's value. */
static const unsigned char classes[256] = {
    [0 ... 8] = CONTROL,
    [10 ... 31] = CONTROL,
    ['!'] = TOKEN | HOST,
    ['#'] = TOKEN,
    ['$'] = TOKEN | HOST,
    ['%'] = TOKEN,
    ['&'] = TOKEN | HOST,
    ['\''] = TOKEN | HOST,
    ['('] = HOST,
    [')'] = HOST,
    ['*'] = TOKEN | HOST,
    ['+'] = TOKEN | HOST,
    ['-'] = TOKEN | HOST,
    ['.'] = TOKEN | HOST,
    ['0' ... '9'] = TOKEN | HOST | DIGIT | HEX,
    [';'] = HOST,
    ['='] = HOST,
    ['A' ... 'F'] = TOKEN | HOST | HEX,
    ['G' ... 'Z'] = TOKEN | HOST,
    ['^'] = TOKEN,
    ['_'] = TOKEN | HOST,
    ['`'] = TOKEN,
    ['a' ... 'f'] = TOKEN | HOST | HEX,
    ['g' ... 'z'] = TOKEN | HOST,
    ['|'] = TOKEN,
    ['~'] = TOKEN | HOST,
    [127] = CONTROL,
};

static bool is(char byte, unsigned class) {
    return (classes[(unsigned char)byte] & class) != 0;
}

static bool all(const char *text, size_t bytes, unsigned class) {
    size_t index = 0;
    while (index < bytes && is(text[index], class))
        index++;
    return index == bytes;
}

static bool any(const char *text, size_t bytes, unsigned class) {
    size_t index = 0;
    while (index < bytes && !is(text[index], class))
        index++;
    return index < bytes;
}

static bool equal(const char *text, size_t bytes, const char *word) {
    return strlen(word) == bytes && strncasecmp(text, word, bytes) == 0;
}

/* Limits how many bytes of a text an error shows. The writer of the error replaces invalid characters. */
static int shown(size_t bytes) {
    return bytes > 80 ? 80 : (int)bytes;
}

enum mm_status mm_guard_begin(struct mm_guard *guard, const char *version, const char *path,
                              struct mm_error *error) {
    *guard = (struct mm_guard){.error = error, .http_1_0 = strcmp(version, "HTTP/1.0") == 0};
    if (any(path, strlen(path), CONTROL))
        return mm_fail(error, MM_BAD_REQUEST,
                       "the target has a control character, plain or escaped; leave it out");
    return MM_OK;
}

/* Accepts only digits (RFC 9110, 8.6). Refuses 2^63 and more, which other programs could read as negative. */
static enum mm_status check_length(struct mm_guard *guard, const char *value, size_t bytes) {
    if (guard->has_length)
        return mm_fail(guard->error, MM_BAD_REQUEST, "Content-Length appears twice; send it once");
    guard->has_length = true;
    if (!mm_slice_whole((struct mm_slice){value, bytes}, &guard->length, NULL))
        return mm_fail(guard->error, MM_BAD_REQUEST, "Content-Length is '%.*s', but must be digits alone",
                       shown(bytes), bytes == 0 ? "" : value);
    if (guard->length > INT64_MAX)
        return mm_fail(guard->error, MM_BAD_REQUEST, "Content-Length is '%.*s', but must be under 2^63",
                       shown(bytes), value);
    return MM_OK;
}

/* Accepts only "chunked" (RFC 9112, 6.1). If a space followed "chunked", libmicrohttpd would read until the
 * connection ends. */
static enum mm_status check_coding(struct mm_guard *guard, const char *value, size_t bytes) {
    if (guard->has_coding)
        return mm_fail(guard->error, MM_BAD_REQUEST, "Transfer-Encoding appears twice; send it once");
    guard->has_coding = true;
    if (guard->http_1_0)
        return mm_fail(guard->error, MM_BAD_REQUEST,
                       "the request is HTTP/1.0 and has Transfer-Encoding; send HTTP/1.1, or Content-Length");
    if (!equal(value, bytes, "chunked"))
        return mm_fail(guard->error, MM_BAD_REQUEST, "Transfer-Encoding is '%.*s', but must be 'chunked'",
                       shown(bytes), bytes == 0 ? "" : value);
    return MM_OK;
}

/* Returns the length of the reg-name (RFC 3986, 3.2.2) at the start of a text. */
static size_t name_span(const char *text, size_t bytes) {
    size_t index = 0;
    while (index < bytes) {
        if (is(text[index], HOST))
            index++;
        else if (text[index] == '%' && bytes - index >= 3 && all(text + index + 1, 2, HEX))
            index += 3;
        else
            break;
    }
    return index;
}

/* Length of the IP-literal (RFC 3986, 3.2.2) with its brackets at the start of a text; 0 if there is none. */
static size_t literal_span(const char *text, size_t bytes) {
    size_t index = 1;
    while (index < bytes && (is(text[index], HOST) || text[index] == ':'))
        index++;
    return index > 1 && index < bytes && text[index] == ']' ? index + 1 : 0;
}

/* Accepts a host with an optional port (RFC 9110, 7.2), or an empty text if the target has no authority. */
static bool is_host(const char *value, size_t bytes) {
    if (bytes == 0)
        return true;
    size_t host = value[0] == '[' ? literal_span(value, bytes) : name_span(value, bytes);
    if (host == 0)
        return false;
    return host == bytes || (value[host] == ':' && all(value + host + 1, bytes - host - 1, DIGIT));
}

static enum mm_status check_host(struct mm_guard *guard, const char *value, size_t bytes) {
    if (guard->has_host)
        return mm_fail(guard->error, MM_BAD_REQUEST, "Host appears twice; send it once");
    guard->has_host = true;
    while (bytes > 0 && (value[bytes - 1] == ' ' || value[bytes - 1] == '\t'))
        bytes--; /* spaces after a value do not count (RFC 9112, 5.1) */
    if (!is_host(value, bytes))
        return mm_fail(guard->error, MM_BAD_REQUEST, "Host is '%.*s', but must be HOST or HOST:PORT",
                       shown(bytes), value);
    return MM_OK;
}

enum mm_status mm_guard_header(struct mm_guard *guard, const char *name, size_t name_bytes, const char *value,
                               size_t value_bytes) {
    if (name_bytes == 0 || !all(name, name_bytes, TOKEN))
        return mm_fail(
            guard->error, MM_BAD_REQUEST,
            "a header's name is '%.*s', but must be letters, digits and !#$%%&'*+-.^_`|~ up to its colon",
            shown(name_bytes), name_bytes == 0 ? "" : name);
    if (any(value, value_bytes, CONTROL))
        return mm_fail(guard->error, MM_BAD_REQUEST,
                       "the value of the header %.*s has a control character; leave it out",
                       shown(name_bytes), name);
    if (equal(name, name_bytes, "Content-Length"))
        return check_length(guard, value, value_bytes);
    if (equal(name, name_bytes, "Transfer-Encoding"))
        return check_coding(guard, value, value_bytes);
    if (equal(name, name_bytes, "Host"))
        return check_host(guard, value, value_bytes);
    return MM_OK;
}

enum mm_status mm_guard_end(const struct mm_guard *guard) {
    if (guard->has_length && guard->has_coding)
        return mm_fail(guard->error, MM_BAD_REQUEST,
                       "the request has Content-Length and Transfer-Encoding; send one of them");
    if (!guard->has_host && !guard->http_1_0)
        return mm_fail(guard->error, MM_BAD_REQUEST, "the request has no Host header; send one");
    return MM_OK;
}

void mm_guard_show_zeros(char *text, size_t bytes) {
    for (char *zero = memchr(text, '\0', bytes); zero != NULL;
         zero = memchr(zero, '\0', bytes - (size_t)(zero - text)))
        *zero = '\x01';
}
