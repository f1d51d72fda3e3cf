/* Headers and bodies, handed to MHD. */
#include "server/reply.h"

#include "api/problem.h"
#include "server/bearer.h"
#include "server/digits.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum mm_status fail_reply(struct mm_exchange *exchange) {
    return mm_fail(&exchange->error, MM_INTERNAL, "the system has no memory for the reply");
}

/* A response that a header finds no memory for is dropped, and NULL from then on: without the header it would
 * say something else. */
static void add_header(struct MHD_Response **response, const char *name, const char *value) {
    if (*response == NULL || MHD_add_response_header(*response, name, value) == MHD_YES)
        return;
    MHD_destroy_response(*response);
    *response = NULL;
}

static void add_headers(struct MHD_Response **response, const struct mm_header *headers, size_t count) {
    for (size_t index = 0; index < count; index++)
        add_header(response, headers[index].name, headers[index].value);
}

/* Adds what every reply carries, queues it, and drops our hold on it. `bytes` is its body's length. */
static enum MHD_Result queue_response(struct mm_exchange *exchange, unsigned http,
                                      struct MHD_Response *response, size_t bytes) {
    struct mm_header cors[MM_CORS_HEADERS_MAX];
    add_header(&response, "X-Request-Id", exchange->request_id);
    add_headers(&response, cors, mm_cors_headers(exchange->cors, cors));
    if (exchange->last)
        add_header(&response, MHD_HTTP_HEADER_CONNECTION, "close");
    if (response == NULL)
        return MHD_NO;
    enum MHD_Result result = MHD_queue_response(exchange->connection, http, response);
    MHD_destroy_response(response);
    if (result != MHD_YES)
        return result;
    exchange->state = MM_ANSWERED;
    __atomic_store_n(&exchange->peer->answers, 1, __ATOMIC_RELAXED);
    exchange->record.code = http;
    exchange->record.out_bytes = strcmp(exchange->record.method, "HEAD") == 0 ? 0 : bytes;
    exchange->record.replied_ns = mm_clock_ns();
    return result;
}

enum MHD_Result mm_reply_problem(struct mm_exchange *exchange) {
    const struct mm_error *error = &exchange->error;
    size_t length = 0;
    char *text = mm_problem_json(error, exchange->request_id, &length);
    if (text == NULL)
        return MHD_NO;
    struct MHD_Response *response = MHD_create_response_from_buffer(length, text, MHD_RESPMEM_MUST_FREE);
    if (response == NULL) {
        free(text);
        return MHD_NO;
    }
    add_header(&response, MHD_HTTP_HEADER_CONTENT_TYPE, MM_PROBLEM_TYPE);
    if (exchange->allow[0] != '\0')
        add_header(&response, MHD_HTTP_HEADER_ALLOW, exchange->allow);
    if (error->status == MM_UNAUTHORIZED)
        add_header(&response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, MM_BEARER_CHALLENGE);
    char seconds[MM_DIGITS_MAX + 1];
    const unsigned retry_after_s = mm_server_retry_after_s(exchange->server, error->status);
    *mm_put_digits(seconds, retry_after_s) = '\0';
    if (retry_after_s > 0)
        add_header(&response, MHD_HTTP_HEADER_RETRY_AFTER, seconds);
    return queue_response(exchange, mm_problem_http(error->status), response, length);
}

enum mm_status mm_reply_text(struct mm_exchange *exchange, char *text, size_t length, const char *type) {
    struct MHD_Response *response =
        text == NULL ? NULL : MHD_create_response_from_buffer(length, text, MHD_RESPMEM_MUST_FREE);
    if (response == NULL) {
        free(text);
        return fail_reply(exchange);
    }
    add_header(&response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    return queue_response(exchange, MHD_HTTP_OK, response, length) == MHD_YES ? MM_OK : fail_reply(exchange);
}

enum mm_status mm_reply_options(struct mm_exchange *exchange) {
    struct MHD_Response *response = MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
    if (response == NULL)
        return fail_reply(exchange);
    struct mm_header preflight[MM_CORS_PREFLIGHT_MAX];
    add_header(&response, MHD_HTTP_HEADER_ALLOW, exchange->allow);
    add_headers(&response, preflight, mm_cors_preflight(exchange->cors, exchange->allow, preflight));
    return queue_response(exchange, MHD_HTTP_NO_CONTENT, response, 0) == MHD_YES ? MM_OK
                                                                                 : fail_reply(exchange);
}

/* A reply's body on its way out: MHD gives it back here when the last byte was sent, or never will be. */
struct outgoing {
    struct mm_buffers *buffers;
    struct mm_buffer buffer;
    char head[MM_REPLY_HEAD_MAX];
};

static void release_outgoing(void *argument) {
    struct outgoing *outgoing = argument;
    mm_buffers_release(outgoing->buffers, &outgoing->buffer);
    free(outgoing);
}

/* The response that sends the body from where it lies; the body is taken over in any case. */
static struct MHD_Response *respond_with(struct mm_buffers *buffers, struct mm_reply_body *body) {
    struct outgoing *outgoing = malloc(sizeof *outgoing);
    if (outgoing == NULL) {
        mm_buffers_release(buffers, &body->buffer);
        return NULL;
    }
    *outgoing = (struct outgoing){.buffers = buffers, .buffer = body->buffer};
    body->buffer = (struct mm_buffer){0};
    memcpy(outgoing->head, body->head, body->head_bytes);
    const struct MHD_IoVec pieces[] = {{outgoing->head, body->head_bytes},
                                       {outgoing->buffer.data, body->bytes}};
    struct MHD_Response *response =
        body->head_bytes > 0 ? MHD_create_response_from_iovec(pieces, 2, release_outgoing, outgoing)
                             : MHD_create_response_from_buffer_with_free_callback_cls(
                                   body->bytes, outgoing->buffer.data, release_outgoing, outgoing);
    if (response == NULL)
        release_outgoing(outgoing);
    return response;
}

static char *put_text(char *end, const char *text) {
    const size_t length = strlen(text);
    memcpy(end, text, length);
    return end + length;
}

static void add_timing(struct MHD_Response **response, const uint64_t *span_ns) {
    char value[MM_SPAN_COUNT * (MM_MILLISECONDS_MAX + 16)];
    char *end = value;
    for (unsigned span = 0; span < MM_SPAN_COUNT; span++) {
        end = put_text(end, span > 0 ? ", " : "");
        end = put_text(end, mm_span_name((enum mm_span)span));
        end = put_text(end, ";dur=");
        end = mm_put_milliseconds(end, span_ns[span]);
    }
    *end = '\0';
    add_header(response, "Server-Timing", value);
}

static void add_path(struct MHD_Response **response, const struct mm_path *path) {
    char text[MM_PATH_TEXT_MAX];
    if (path->kind == MM_PATH_NONE)
        return;
    mm_path_text(path, text);
    add_header(response, "Matmul-Path", text);
}

/* A dictionary of RFC 9651, whose own numbers are too coarse: residual="1.5e-07", bound="2.4e-05", passed,
 * rows_unjudged=0. */
static void add_verification(struct MHD_Response **response, const struct mm_verification *verification) {
    static const char *const passed[MM_VERDICT_COUNT] = {
        [MM_VERDICT_PASSED] = ", passed",
        [MM_VERDICT_FAILED] = ", passed=?0",
        [MM_VERDICT_UNJUDGED] = "",
    };
    char value[128];
    if (!verification->is_done)
        return;
    int bytes = isfinite(verification->residual)
                    ? snprintf(value, sizeof value, "residual=\"%.15g\"", verification->residual)
                    : snprintf(value, sizeof value, "residual=\"Infinity\"");
    snprintf(value + bytes, sizeof value - (size_t)bytes, ", bound=\"%.15g\"%s, rows_unjudged=%zu",
             verification->bound, passed[mm_verification_verdict(verification)], verification->rows_unjudged);
    add_header(response, "Matmul-Verify", value);
}

enum mm_status mm_reply_product(struct mm_exchange *exchange, struct mm_reply_body *body, const char *type) {
    const struct mm_job *job = &exchange->job;
    size_t bytes = body->head_bytes + body->bytes;
    struct MHD_Response *response = respond_with(exchange->server->buffers, body);
    if (response == NULL)
        return fail_reply(exchange);
    char shape[2 * MM_DIGITS_MAX + 3];
    char *end = put_text(mm_put_digits(shape, job->product.m), ", ");
    *mm_put_digits(end, job->product.n) = '\0';
    add_header(&response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    add_timing(&response, exchange->span_ns);
    add_header(&response, "Matmul-Shape", shape);
    add_header(&response, "Matmul-Dtype", mm_dtype_name(job->product.c.dtype));
    add_header(&response, "Matmul-Variant", job->ran->name);
    add_header(&response, "Matmul-Backend", job->backend->name);
    add_header(&response, "Matmul-Device", job->device->name);
    add_path(&response, &job->path);
    add_verification(&response, &job->verification);
    return queue_response(exchange, MHD_HTTP_OK, response, bytes) == MHD_YES ? MM_OK : fail_reply(exchange);
}
