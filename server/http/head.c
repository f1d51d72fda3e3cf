/* Keeps the headers that the server uses, passes all headers to the guard, and checks that the headers follow
 * each other in memory without a gap. libmicrohttpd 0.9 parses a head in place and overwrites colons and line
 * ends with zeros. A gap means that libmicrohttpd joined a folded line to a name, stopped at a zero byte, or
 * took an empty name for the end of the head. Version 1.0 handles folded lines, and refuses zero bytes and
 * empty names. */
#include "server/http/head.h"

#include "server/http/guard.h"
#include "server/http/request.h"
#include "server/http/routes.h"

#include <string.h>
#include <strings.h>

struct reading {
    struct mm_guard guard;
    struct mm_request *request;
    bool looks_for_gaps;
    const char *end; /* end of the last name or value, before its line end */
};

/* Replaces zero bytes. Otherwise /healthz%00x would become /healthz, because the handler gets a C string. */
size_t mm_head_unescape(void *server, struct MHD_Connection *connection, char *text) {
    size_t bytes = MHD_http_unescape(text);
    mm_guard_show_zeros(text, bytes);
    return bytes;
}

void *mm_head_note_target(void *server, const char *target, struct MHD_Connection *connection) {
    struct mm_connection *peer = mm_connection_of(connection);
    if (peer != NULL)
        peer->target_bytes = strlen(target);
    return NULL; /* the request has no state yet */
}

static enum mm_status fail_gap(struct mm_request *request) {
    return mm_fail(
        &request->error, MM_BAD_REQUEST,
        "the head has a folded line, a zero byte or a header without a name; send each header on a "
        "line of its own");
}

/* Whether `line` begins right after a CRLF or LF at `end`. */
static bool is_next_line(const char *end, const char *line) {
    return line == end + 1 || line == end + 2;
}

static const struct {
    const char *name;
    size_t bytes;
} headers[MM_HEADER_COUNT] = {
#define X(constant, wire_name) [constant] = {wire_name, sizeof wire_name - 1},
    MM_HEADER_TABLE(X)
#undef X
};

const char *mm_header_name(enum mm_header header) {
    return headers[header].name;
}

static void note(struct mm_request *request, const char *name, size_t name_bytes, const char *value) {
    for (unsigned header = 0; header < MM_HEADER_COUNT; header++)
        if (headers[header].bytes == name_bytes && request->headers[header] == NULL &&
            strncasecmp(headers[header].name, name, name_bytes) == 0)
            request->headers[header] = value;
}

/* After an error, still reads the later headers, because they affect the reply to the error. */
static enum MHD_Result read_header(void *argument, enum MHD_ValueKind kind, const char *name,
                                   size_t name_bytes, const char *value, size_t value_bytes) {
    struct reading *reading = argument;
    struct mm_request *request = reading->request;
    note(request, name, name_bytes, value);
    if (request->error.status != MM_OK)
        return MHD_YES;
    if (reading->looks_for_gaps && !is_next_line(reading->end, name))
        fail_gap(request);
    else
        mm_guard_header(&reading->guard, name, name_bytes, value, value_bytes);
    reading->end = value + value_bytes;
    return MHD_YES;
}

/* Whether the head ends at `end`, with two line ends, which MHD has overwritten with zeros. This check cannot
 * detect a line of a colon and LF, because that becomes two zeros, as CRLF does. */
static bool ends_here(struct MHD_Connection *connection, const char *method, const char *end) {
    static const char zeros[4];
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    if (info == NULL)
        return false;
    const size_t read = (size_t)(end - method);
    const size_t left = info->header_size - read;
    return info->header_size >= read && left >= 2 && left <= sizeof zeros && memcmp(end, zeros, left) == 0;
}

enum mm_status mm_head_check(struct mm_request *request, const char *method, const char *url,
                             const char *version) {
    struct mm_error *error = &request->error;
    struct reading reading = {
        .request = request, .looks_for_gaps = MHD_get_version()[0] == '0', .end = version + strlen(version)};
    if (mm_guard_begin(&reading.guard, version, url, error) == MM_OK && reading.looks_for_gaps &&
        version != url + request->peer->target_bytes + 1)
        fail_gap(request);
    MHD_get_connection_values_n(request->connection, MHD_HEADER_KIND, read_header, &reading);
    if (error->status == MM_OK && reading.looks_for_gaps &&
        !ends_here(request->connection, method, reading.end))
        fail_gap(request);
    if (error->status == MM_OK)
        mm_guard_end(&reading.guard);
    request->upload.content_length = reading.guard.has_coding ? MM_LENGTH_UNKNOWN : reading.guard.length;
    return error->status;
}

enum { FORWARDED_MAX = 4096 };

/* The end of X-Forwarded-For. Proxies add addresses at the end, so a client cannot hide by a long header. */
struct forwarded {
    char text[FORWARDED_MAX + 1];
    size_t bytes;
};

static void append(struct forwarded *forwarded, const char *text, size_t bytes) {
    const size_t kept = bytes < FORWARDED_MAX ? bytes : FORWARDED_MAX;
    const size_t before = forwarded->bytes < FORWARDED_MAX - kept ? forwarded->bytes : FORWARDED_MAX - kept;
    memmove(forwarded->text, forwarded->text + forwarded->bytes - before, before);
    memcpy(forwarded->text + before, text + bytes - kept, kept);
    forwarded->bytes = before + kept;
}

static enum MHD_Result find_forwarded(void *argument, enum MHD_ValueKind kind, const char *name,
                                      const char *value) {
    struct forwarded *forwarded = argument;
    if (value == NULL || strcasecmp(name, mm_header_name(MM_HEADER_FORWARDED_FOR)) != 0)
        return MHD_YES;
    append(forwarded, ",", forwarded->bytes > 0);
    append(forwarded, value, strlen(value));
    return MHD_YES;
}

void mm_head_find_client(struct mm_request *request) {
    const struct mm_networks *trusted = &request->server->trusted_proxies;
    struct forwarded forwarded;
    forwarded.bytes = 0;
    if (trusted->count > 0 && request->headers[MM_HEADER_FORWARDED_FOR] != NULL)
        MHD_get_connection_values(request->connection, MHD_HEADER_KIND, find_forwarded, &forwarded);
    forwarded.text[forwarded.bytes] = '\0';
    request->client =
        mm_address_of_client(trusted, request->peer->address, forwarded.bytes > 0 ? forwarded.text : NULL);
}

/* Two headers make a list, which is invalid. */
void mm_head_find_trace(struct mm_request *request) {
    char text[MM_ACCEPT_BYTES];
    bool is_cut;
    const char *value = mm_request_list(request, MM_HEADER_TRACEPARENT, text, &is_cut);
    if (value != NULL && !is_cut)
        (void)mm_traceparent_read(mm_slice_trim(value, value + strlen(value)), request->traceparent);
}

/* Sets *coding to the coding of the list, or to 0 if there is only identity. Returns false if the server does
 * not know a coding, or if there are several. */
static bool read_codings(const char *list, int *coding) {
    static const char between[] = ", \t";
    size_t length;
    *coding = 0;
    for (list += strspn(list, between); *list != '\0'; list += length + strspn(list + length, between)) {
        length = strcspn(list, between);
        const struct mm_slice name = {list, length};
        if (mm_slice_is_any_case(name, "identity"))
            continue;
        if (*coding != 0 || (*coding = mm_inflation_coding(name)) == 0)
            return false;
    }
    return true;
}

const char *mm_head_codings(const struct mm_request *request) {
    return request->route != NULL && request->route->inflates ? "gzip, deflate, identity" : "identity";
}

enum mm_status mm_head_check_coding(struct mm_request *request) {
    char text[MM_ACCEPT_BYTES];
    bool is_cut;
    int coding = 0;
    const char *list = mm_request_list(request, MM_HEADER_CONTENT_ENCODING, text, &is_cut);
    if (list == NULL ||
        (!is_cut && read_codings(list, &coding) && (coding == 0 || request->route->inflates))) {
        request->upload.inflation.coding = coding;
        if (coding != 0)
            request->upload.content_length = MM_LENGTH_UNKNOWN; /* the length of the inflated body */
        return MM_OK;
    }
    return mm_fail_field(&request->error, MM_UNSUPPORTED_MEDIA_TYPE, MHD_HTTP_HEADER_CONTENT_ENCODING,
                         "Content-Encoding is '%.80s', but the codings of '%s' are: %s; send one of them, or "
                         "leave the header out",
                         list, request->route->path, mm_head_codings(request));
}

bool mm_head_is_about_coding(const struct mm_error *error) {
    return error->status == MM_UNSUPPORTED_MEDIA_TYPE &&
           strcmp(error->field, MHD_HTTP_HEADER_CONTENT_ENCODING) == 0;
}
