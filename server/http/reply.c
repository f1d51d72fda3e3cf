#include "server/http/reply.h"

#include "api/problem.h"
#include "api/number/digits.h"
#include "server/http/condition.h"
#include "server/http/headers.h"
#include "server/http/routes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Adds a header. If memory runs out, destroys the response, which would be wrong without the header. */
static void add_header(struct MHD_Response **response, const char *name, const char *value) {
    if (*response == NULL || MHD_add_response_header(*response, name, value) == MHD_YES)
        return;
    MHD_destroy_response(*response);
    *response = NULL;
}

static void add_headers(struct MHD_Response **response, const struct mm_headers *headers) {
    for (size_t index = 0; index < headers->count; index++)
        add_header(response, headers->list[index].name, headers->list[index].value);
}

/* Adds the common headers, then queues and releases the response. `response` is NULL if memory ran out. */
static enum MHD_Result queue_response(struct mm_request *request, unsigned http,
                                      struct MHD_Response *response, size_t bytes) {
    struct mm_headers common = {.count = 0};
    mm_headers_add_common(&common, request->request_id, request->traceparent, request->cors,
                          request->closes || mm_server_is_leaving(request->server));
    add_headers(&response, &common);
    if (response == NULL)
        return MHD_NO;
    enum MHD_Result result = MHD_queue_response(request->connection, http, response);
    MHD_destroy_response(response);
    if (result != MHD_YES)
        return result;
    mm_request_move(request, MM_SENDING);
    request->record.code = http;
    request->record.out_bytes = strcmp(request->record.method, "HEAD") == 0 ? 0 : bytes;
    request->record.replied_ns = mm_clock_ns();
    __atomic_store_n(&request->peer->answers, 1, __ATOMIC_RELEASE); /* now the sweep may read the record */
    return result;
}

static enum mm_status fail_memory(struct mm_request *request) {
    return mm_fail(&request->error, MM_INTERNAL, "the system has no memory for the reply");
}

static enum mm_status reply(struct mm_request *request, unsigned http, struct MHD_Response *response,
                            size_t bytes) {
    return queue_response(request, http, response, bytes) == MHD_YES ? MM_OK : fail_memory(request);
}

static struct MHD_Response *respond_with_text(char *text, size_t length) {
    struct MHD_Response *response =
        text == NULL ? NULL : MHD_create_response_from_buffer(length, text, MHD_RESPMEM_MUST_FREE);
    if (response == NULL)
        free(text);
    return response;
}

enum MHD_Result mm_reply_problem(struct mm_request *request) {
    const struct mm_problem_reply problem = mm_request_problem(request, &request->error);
    size_t length = 0;
    char *text = problem.form->write(problem.error, problem.request_id, &length);
    struct MHD_Response *response = respond_with_text(text, length);
    struct mm_headers headers = {.count = 0};
    mm_headers_add_problem(&headers, &problem);
    add_headers(&response, &headers);
    return queue_response(request, mm_problem_http(problem.error->status), response, length);
}

enum mm_status mm_reply_text(struct mm_request *request, char *text, size_t length, const char *type) {
    struct MHD_Response *response = respond_with_text(text, length);
    add_header(&response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    return reply(request, MHD_HTTP_OK, response, length);
}

/* Makes a response without a copy of the text. MHD accepts constant data only as a vector. */
static struct MHD_Response *respond_with_kept(const void *text, size_t length) {
    const struct MHD_IoVec whole = {text, length};
    return MHD_create_response_from_iovec(&whole, 1, NULL, NULL);
}

enum mm_status mm_reply_kept(struct mm_request *request, const void *text, size_t length, const char *type) {
    struct MHD_Response *response = respond_with_kept(text, length);
    add_header(&response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    return reply(request, MHD_HTTP_OK, response, length);
}

enum mm_status mm_reply_stored(struct mm_request *request, unsigned http, char *text, size_t length,
                               const char *etag) {
    struct MHD_Response *response = respond_with_text(text, length);
    add_header(&response, MHD_HTTP_HEADER_CONTENT_TYPE, "application/json");
    add_header(&response, MHD_HTTP_HEADER_LOCATION, request->path);
    add_header(&response, MHD_HTTP_HEADER_ETAG, etag);
    return reply(request, http, response, length);
}

static struct MHD_Response *respond_with_nothing(void) {
    return MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
}

/* Lets a client cache the value, but the client must ask before each use whether the value is current. */
static void add_validators(struct MHD_Response **response, const char *etag) {
    add_header(response, MHD_HTTP_HEADER_ETAG, etag);
    add_header(response, MHD_HTTP_HEADER_VARY, "Accept");
    add_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "private, no-cache");
}

enum mm_status mm_reply_no_content(struct mm_request *request) {
    return reply(request, MHD_HTTP_NO_CONTENT, respond_with_nothing(), 0);
}

enum mm_status mm_reply_options(struct mm_request *request) {
    struct MHD_Response *response = respond_with_nothing();
    struct mm_headers headers = {.count = 0};
    char methods[MM_ALLOW_MAX];
    mm_route_methods(request->path, methods);
    mm_headers_add_options(&headers, request->cors, methods);
    add_headers(&response, &headers);
    return reply(request, MHD_HTTP_NO_CONTENT, response, 0);
}

/* A body that MHD sends. MHD calls release_outgoing after the last byte, or when the connection ends. */
struct outgoing {
    struct mm_server *server;
    struct mm_buffer buffer;
    char head[MM_REPLY_HEAD_MAX];
};

static void release_outgoing(void *argument) {
    struct outgoing *outgoing = argument;
    mm_buffers_release(outgoing->server->budget.buffers, &outgoing->buffer);
    free(outgoing);
}

static ssize_t read_nothing(void *argument, uint64_t position, char *data, size_t bytes) {
    return MHD_CONTENT_READER_END_WITH_ERROR;
}

/* Makes the reply to HEAD, or a 304. If `bytes` is MHD_SIZE_UNKNOWN, the reply has no Content-Length, and MHD
 * 0.9.75 must close the connection. Otherwise MHD would send a last chunk, which the client would read as the
 * next reply. */
static struct MHD_Response *respond_without_body(uint64_t bytes) {
    enum { BLOCK_BYTES = 1 };
    struct MHD_Response *response =
        MHD_create_response_from_callback(bytes, BLOCK_BYTES, read_nothing, NULL, NULL);
    if (response != NULL && bytes == MHD_SIZE_UNKNOWN)
        MHD_set_response_options(response, MHD_RF_HTTP_1_0_COMPATIBLE_STRICT, MHD_RO_END);
    return response;
}

/* The page may load files and data only from this server, and no other site may show it in a frame. */
static const char page_policy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

enum mm_status mm_reply_page(struct mm_request *request, const struct mm_embedded_file *file,
                             const char *type, const char *coding) {
    const bool is_known = mm_condition_decide(request, file->etag) == MM_CONDITION_MATCHED;
    struct MHD_Response *response =
        is_known ? respond_without_body(file->bytes) : respond_with_kept(file->text, file->bytes);
    if (!is_known)
        add_header(&response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    if (coding != NULL)
        add_header(&response, MHD_HTTP_HEADER_CONTENT_ENCODING, coding);
    add_header(&response, MHD_HTTP_HEADER_VARY, MHD_HTTP_HEADER_ACCEPT_ENCODING);
    add_header(&response, MHD_HTTP_HEADER_ETAG, file->etag);
    add_header(&response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-cache");
    add_header(&response, "Content-Security-Policy", page_policy);
    add_header(&response, "X-Content-Type-Options", "nosniff");
    add_header(&response, "Referrer-Policy", "no-referrer");
    return reply(request, is_known ? MHD_HTTP_NOT_MODIFIED : MHD_HTTP_OK, response,
                 is_known ? 0 : file->bytes);
}

/* Sends the body without copying it, and takes ownership of it even on failure. If the body's memory belongs
 * to request->value, the request keeps the value until the request ends. */
static struct MHD_Response *respond_with(struct mm_request *request, struct mm_reply_body *body) {
    struct mm_server *server = request->server;
    struct outgoing *outgoing = malloc(sizeof *outgoing);
    void *data = body->offset == 0 ? body->buffer.data : (char *)body->buffer.data + body->offset;
    if (request->value != NULL && mm_stored_has(request->value, data))
        body->buffer = (struct mm_buffer){0};
    else
        mm_request_release_value(request);
    struct mm_buffer buffer = body->buffer;
    body->buffer = (struct mm_buffer){0};
    if (outgoing == NULL) {
        mm_buffers_release(server->budget.buffers, &buffer);
        return NULL;
    }
    *outgoing = (struct outgoing){.server = server, .buffer = buffer};
    memcpy(outgoing->head, body->head, body->head_bytes);
    const struct MHD_IoVec parts[] = {{outgoing->head, body->head_bytes}, {data, body->bytes}};
    struct MHD_Response *response = body->head_bytes > 0
                                        ? MHD_create_response_from_iovec(parts, 2, release_outgoing, outgoing)
                                        : MHD_create_response_from_buffer_with_free_callback_cls(
                                              body->bytes, data, release_outgoing, outgoing);
    if (response == NULL)
        release_outgoing(outgoing);
    return response;
}

enum mm_status mm_reply_long_text(struct mm_request *request, char *text, size_t length, const char *type) {
    struct mm_reply_body body = {.bytes = length};
    if (text == NULL)
        return fail_memory(request);
    if (mm_reservation_acquire(&request->memory, length, &body.buffer, &request->error) == MM_OK)
        memcpy(body.buffer.data, text, length);
    free(text);
    if (request->error.status != MM_OK)
        return request->error.status;
    struct MHD_Response *response = respond_with(request, &body);
    add_header(&response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    return reply(request, MHD_HTTP_OK, response, length);
}

static void add_timing(struct MHD_Response **response, const uint64_t *span_ns) {
    char value[MM_SPAN_COUNT * (MM_MILLIONTHS_MAX + 16)];
    char *end = value;
    for (unsigned span = 0; span < MM_SPAN_COUNT; span++) {
        end = mm_put_text(end, span > 0 ? ", " : "");
        end = mm_put_text(end, mm_span_name((enum mm_span)span));
        end = mm_put_text(end, ";dur=");
        end = mm_put_millionths(end, span_ns[span]);
    }
    *end = '\0';
    add_header(response, "Server-Timing", value);
}

static void add_number(struct MHD_Response **response, const char *name, uint64_t number) {
    char value[MM_DIGITS_MAX + 1];
    *mm_put_digits(value, number) = '\0';
    add_header(response, name, value);
}

static void add_path(struct MHD_Response **response, const struct mm_path *path) {
    char text[MM_PATH_TEXT_MAX];
    if (path->kind == MM_PATH_NONE)
        return;
    mm_path_text(path, text);
    add_header(response, "Matmul-Path", text);
}

/* Writes a member of a dictionary (RFC 9651) as a string, because numbers in RFC 9651 have too few digits. */
static char *put_real(char *end, const char *name, double number) {
    return isfinite(number) ? end + sprintf(end, "%s=\"%.15g\"", name, number)
                            : end + sprintf(end, "%s=\"Infinity\"", name);
}

/* Adds Matmul-Verify, such as residual="1.5e-07", bound="2.4e-05", passed, … */
static void add_verification(struct MHD_Response **response, const struct mm_verification *verification) {
    static const char *const passed[MM_VERDICT_COUNT] = {
        [MM_VERDICT_PASSED] = ", passed",
        [MM_VERDICT_FAILED] = ", passed=?0",
        [MM_VERDICT_UNJUDGED] = "",
    };
    char value[MM_DIGITS_MAX + 160];
    const enum mm_verdict verdict = mm_verification_verdict(verification);
    if (!verification->is_done)
        return;
    char *end = put_real(value, "residual", verification->residual);
    end = put_real(mm_put_text(end, ", "), "bound", verification->bound);
    end = mm_put_text(mm_put_text(end, passed[verdict]), ", rows_unjudged=");
    end = mm_put_digits(end, verification->rows_unjudged);
    *end = '\0';
    if (verdict != MM_VERDICT_UNJUDGED)
        (void)put_real(mm_put_text(end, ", "), "relative_error",
                       mm_verification_relative_error(verification));
    add_header(response, "Matmul-Verify", value);
}

/* Adds a header like "2, 3, 5". For a scalar it is " ", because libmicrohttpd refuses empty values. */
static void add_shape(struct MHD_Response **response, const struct mm_shape *shape) {
    char value[MM_RANK_MAX * (MM_DIGITS_MAX + 2) + 1];
    char *end = mm_put_text(value, shape->rank == 0 ? " " : "");
    for (unsigned dim = 0; dim < shape->rank; dim++)
        end = mm_put_digits(mm_put_text(end, dim > 0 ? ", " : ""), shape->dims[dim]);
    *end = '\0';
    add_header(response, "Matmul-Shape", value);
}

enum mm_status mm_reply_product(struct mm_request *request, struct mm_reply_body *body,
                                const struct mm_shape *shape, const char *type, const uint64_t *span_ns) {
    const struct mm_job *job = mm_work_job(request->work);
    const struct mm_stored *stored = request->value;
    size_t bytes = body->head_bytes + body->bytes;
    char etag[MM_ETAG_MAX + 1], location[sizeof "/v1/matrices/" + MM_STORE_NAME_MAX];
    if (stored != NULL) {
        strcpy(etag, stored->etag);
        sprintf(location, "/v1/matrices/%s", stored->name);
    }
    const bool is_stored = stored != NULL;
    struct MHD_Response *response = respond_with(request, body);
    if (body->json_bytes > 0)
        add_number(&response, mm_header_name(MM_HEADER_INFERENCE_LENGTH), body->json_bytes);
    if (is_stored) {
        add_header(&response, MHD_HTTP_HEADER_ETAG, etag);
        add_header(&response, MHD_HTTP_HEADER_LOCATION, location);
    }
    if (type != NULL)
        add_header(&response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    add_timing(&response, span_ns);
    add_shape(&response, shape);
    add_header(&response, "Matmul-Dtype", mm_dtype_name(job->product.c.dtype));
    if (job->product.a.dtype != job->product.c.dtype)
        add_header(&response, "Matmul-Operand-Dtype", mm_dtype_name(job->product.a.dtype));
    add_header(&response, "Matmul-Variant", job->outcome.ran->name);
    add_header(&response, "Matmul-Backend", job->work.backend->name);
    add_header(&response, "Matmul-Device", job->work.device->name);
    if (job->outcome.devices > 1)
        add_number(&response, "Matmul-Devices", job->outcome.devices);
    if (job->outcome.tiles > 0)
        add_number(&response, "Matmul-Tiles", job->outcome.tiles);
    add_path(&response, &job->outcome.path);
    add_verification(&response, &job->outcome.verification);
    return reply(request, type == NULL ? MHD_HTTP_NO_CONTENT : MHD_HTTP_OK, response, bytes);
}

/* For a 304, MHD sends only the length of the body. */
enum mm_status mm_reply_value(struct mm_request *request, unsigned http, struct mm_reply_body *body,
                              const struct mm_shape *shape, const char *type) {
    const enum mm_dtype dtype = request->value->dtype;
    char etag[MM_ETAG_MAX + 1];
    strcpy(etag, request->value->etag);
    const bool is_known = http == MHD_HTTP_NOT_MODIFIED;
    const size_t length = body == NULL ? 0 : body->head_bytes + body->bytes;
    const size_t bytes = is_known ? 0 : length;
    const bool is_bodiless = body == NULL || (body->buffer.data == NULL && body->bytes > 0);
    struct MHD_Response *response = is_bodiless
                                        ? respond_without_body(body == NULL ? MHD_SIZE_UNKNOWN : length)
                                        : respond_with(request, body);
    if (is_bodiless)
        mm_request_release_value(request);
    add_validators(&response, etag);
    if (!is_known) {
        add_header(&response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
        add_shape(&response, shape);
        add_header(&response, "Matmul-Dtype", mm_dtype_name(dtype));
    }
    return reply(request, http, response, bytes);
}
