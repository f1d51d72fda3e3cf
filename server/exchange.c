/* The life of an exchange, from the head to the last byte, as exchange.h draws it, but for its wait for a
 * job, which is wait.c's. Knows no route. */
#include "server/exchange.h"

#include "server/bearer.h"
#include "server/guard.h"
#include "server/reply.h"
#include "server/routes.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { CHUNKED_BODY_START = 64 << 10 };

const char *mm_exchange_header(const struct mm_exchange *exchange, const char *name) {
    return MHD_lookup_connection_value(exchange->connection, MHD_HEADER_KIND, name);
}

char mm_exchange_first_character(const struct mm_exchange *exchange) {
    const char *text = exchange->body.data;
    for (size_t index = 0; index < exchange->body_bytes; index++)
        if (memchr(" \t\r\n", text[index], 4) == NULL)
            return text[index];
    return 0;
}

uint64_t mm_exchange_deadline_ns(const struct mm_exchange *exchange, uint64_t asked_ms) {
    if (asked_ms == 0 || asked_ms >= exchange->server->options->timeout_ms)
        return exchange->deadline_ns;
    return exchange->started_ns + asked_ms * UINT64_C(1000000);
}

/* [A-Za-z0-9._-]{1,128} */
static bool is_request_id(const char *text) {
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    size_t length = strspn(text, allowed);
    return length >= 1 && length <= MM_REQUEST_ID_MAX && text[length] == '\0';
}

static void set_request_id(struct mm_exchange *exchange) {
    const char *given = mm_exchange_header(exchange, "X-Request-Id");
    if (given != NULL && is_request_id(given))
        snprintf(exchange->request_id, sizeof exchange->request_id, "%s", given);
    else
        mm_server_make_id(exchange->server, exchange->request_id);
}

static uint64_t content_length(const struct mm_exchange *exchange) {
    const char *text = mm_exchange_header(exchange, MHD_HTTP_HEADER_CONTENT_LENGTH);
    if (mm_exchange_header(exchange, MHD_HTTP_HEADER_TRANSFER_ENCODING) != NULL)
        return MM_LENGTH_UNKNOWN;
    return text == NULL ? 0 : strtoull(text, NULL, 10); /* the guard refuses what is no number */
}

/* Of the process, or of the route where that is less. */
static size_t body_bytes_max(const struct mm_exchange *exchange) {
    size_t process = exchange->server->limits.body_bytes_max;
    size_t route = exchange->route->body_bytes_max;
    return route != 0 && route < process ? route : process;
}

static enum mm_status fail_body_limit(struct mm_exchange *exchange, uint64_t got) {
    size_t limit = body_bytes_max(exchange);
    mm_fail(&exchange->error, MM_TOO_LARGE, "the body has %" PRIu64 " bytes or more, but the limit is %zu",
            got, limit);
    exchange->error.limit = limit;
    exchange->error.has_limit = true;
    return MM_TOO_LARGE;
}

/* What any POST is judged by before its route sees it. */
static enum mm_status judge_length(struct mm_exchange *exchange) {
    if (strcmp(exchange->route->method, "POST") != 0)
        return MM_OK;
    if (exchange->content_length != MM_LENGTH_UNKNOWN &&
        mm_exchange_header(exchange, MHD_HTTP_HEADER_CONTENT_LENGTH) == NULL)
        return mm_fail(&exchange->error, MM_LENGTH_REQUIRED,
                       "a POST needs Content-Length or Transfer-Encoding: chunked, and has neither");
    if (exchange->content_length != MM_LENGTH_UNKNOWN && exchange->content_length > body_bytes_max(exchange))
        return fail_body_limit(exchange, exchange->content_length);
    return MM_OK;
}

/* Memory that others hold will be there later; what the request itself holds will not: a request that
 * could not even have the whole budget is too large, and to come again would not help. */
static void judge_busy(struct mm_exchange *exchange) {
    struct mm_error *error = &exchange->error;
    if (error->status != MM_BUSY || error->needed_bytes == 0)
        return; /* who works for an abandoned exchange may still change what it holds */
    size_t budget = mm_buffers_budget(exchange->server->buffers);
    size_t held = exchange->body.bytes + exchange->call.storage.bytes + exchange->result.bytes;
    size_t needed = error->needed_bytes;
    if (held <= budget && needed <= budget - held)
        return;
    mm_fail(error, MM_TOO_LARGE,
            "the request needs %zu bytes of memory beside the %zu that it has, but the budget is %zu", needed,
            held, budget);
    error->limit = budget;
    error->has_limit = true;
}

/* Memory for the whole body, or its beginning where the length is unknown: before the body is read,
 * so that a full budget costs its sender no upload. */
static enum mm_status acquire_body(struct mm_exchange *exchange) {
    size_t bytes =
        exchange->content_length == MM_LENGTH_UNKNOWN ? CHUNKED_BODY_START : exchange->content_length;
    if (strcmp(exchange->route->method, "POST") != 0 || bytes == 0)
        return MM_OK;
    if (bytes > body_bytes_max(exchange))
        bytes = body_bytes_max(exchange);
    return mm_buffers_acquire(exchange->server->buffers, bytes, &exchange->body, &exchange->error);
}

/* The path of a target in absolute form, as proxies are sent it (RFC 9112, 3.2.2), or of any other. */
static const char *path_of(const char *target) {
    static const char *const schemes[] = {"http://", "https://"};
    for (size_t index = 0; index < sizeof schemes / sizeof schemes[0]; index++) {
        const size_t length = strlen(schemes[index]);
        if (strncasecmp(target, schemes[index], length) != 0)
            continue;
        const char *path = strchr(target + length, '/');
        return path == NULL ? "/" : path;
    }
    return target;
}

static enum mm_status judge_head(struct mm_exchange *exchange, const char *method, const char *path) {
    enum mm_status status = mm_route_find(exchange->server->options, method, path, &exchange->route,
                                          exchange->allow, sizeof exchange->allow, &exchange->error);
    if (status == MM_OK)
        status = mm_bearer_judge(exchange);
    if (status == MM_OK)
        status = judge_length(exchange);
    if (status == MM_OK && exchange->route->admit != NULL)
        status = exchange->route->admit(exchange);
    if (status == MM_OK)
        status = acquire_body(exchange);
    return status;
}

/* Whether a body that was refused is too long to be dropped for the connection's sake. */
static bool is_large(const struct mm_exchange *exchange) {
    return exchange->content_length != MM_LENGTH_UNKNOWN && exchange->content_length > MM_REFUSAL_DRAIN_MAX;
}

/* Whether the sender wants a word before the body, which he then need not send: as MHD judges it. */
static bool expects_continue(const struct mm_exchange *exchange, const char *version) {
    const char *expect = mm_exchange_header(exchange, MHD_HTTP_HEADER_EXPECT);
    return expect != NULL && strcasecmp(expect, "100-continue") == 0 &&
           strcmp(version, MHD_HTTP_VERSION_1_1) == 0;
}

/* Tells the refusal past MHD, and goes on to drop what still comes: a close with bytes unread resets the
 * connection, so that a sender who is busy sending would never see why. The sweep ends it. The connection's
 * thread, which has it to itself by a move. */
static void refuse_unread(struct mm_exchange *exchange) {
    const struct mm_last_reply reply = {
        .error = &exchange->error,
        .request_id = exchange->request_id,
        .allow = exchange->allow,
        .cors = exchange->cors,
        .head_only = strcmp(exchange->record.method, "HEAD") == 0,
        .retry_after_s = mm_server_retry_after_s(exchange->server, exchange->error.status)};
    mm_record_cut(exchange, &exchange->error, mm_connection_cut(exchange->peer, &reply));
    exchange->peer->cut_ns = mm_clock_ns();
    mm_connection_move(exchange->peer, MM_PHASE_HANDLED, MM_PHASE_CUT);
}

static struct mm_exchange *open_exchange(struct mm_server *server, struct MHD_Connection *connection,
                                         struct mm_connection *peer) {
    struct mm_exchange *exchange = calloc(1, sizeof *exchange);
    if (exchange == NULL)
        return NULL;
    exchange->server = server;
    exchange->connection = connection;
    exchange->peer = peer;
    exchange->state = MM_RECEIVING;
    exchange->started_ns = mm_clock_ns();
    exchange->deadline_ns = exchange->started_ns + server->options->timeout_ms * UINT64_C(1000000);
    exchange->holders = 1;
    exchange->content_length = content_length(exchange);
    set_request_id(exchange);
    if (server->options->cors_origin != NULL)
        exchange->cors = mm_cors_judge(server->options, mm_exchange_header(exchange, MHD_HTTP_HEADER_ORIGIN));
    __atomic_store_n(&peer->exchange, exchange, __ATOMIC_RELEASE);
    exchange->accepted = true; /* before `draining` is looked at: see server.h */
    __atomic_add_fetch(&server->accepted, 1, __ATOMIC_SEQ_CST);
    return exchange;
}

/* A drain does not wait for it any more: it is over, or was refused. */
static void leave_accepted(struct mm_exchange *exchange) {
    if (exchange->accepted)
        __atomic_sub_fetch(&exchange->server->accepted, 1, __ATOMIC_SEQ_CST);
    exchange->accepted = false;
}

static void end_reading(struct mm_exchange *exchange) {
    if (exchange->reading != NULL)
        exchange->decoder->reader->cancel(exchange->reading);
    exchange->reading = NULL;
}

void mm_exchange_free(struct mm_exchange *exchange) {
    struct mm_buffers *buffers = exchange->server->buffers;
    mm_benchmark_release(exchange);
    end_reading(exchange);
    free(exchange->content_type);
    mm_buffers_release(buffers, &exchange->reply.buffer);
    mm_buffers_release(buffers, &exchange->check);
    mm_buffers_release(buffers, &exchange->result);
    mm_call_release(&exchange->call, buffers);
    mm_buffers_release(buffers, &exchange->body);
    free(exchange);
}

static enum MHD_Result guard_header(void *guard, enum MHD_ValueKind kind, const char *name, size_t name_bytes,
                                    const char *value, size_t value_bytes) {
    (void)kind;
    return mm_guard_header(guard, name, name_bytes, value, value_bytes) == MM_OK ? MHD_YES : MHD_NO;
}

/* Whether the head is HTTP that everyone reads alike. */
static enum mm_status judge_http(struct mm_exchange *exchange, const char *version, const char *path) {
    struct mm_guard guard;
    enum mm_status status = mm_guard_begin(&guard, version, path, &exchange->error);
    if (status != MM_OK)
        return status;
    MHD_get_connection_values_n(exchange->connection, MHD_HEADER_KIND, guard_header, &guard);
    return exchange->error.status != MM_OK ? exchange->error.status : mm_guard_end(&guard);
}

/* The head is here: judge it before the body comes. Where the head is malformed, nobody can tell what
 * follows it, so that nothing more is read. */
static enum MHD_Result begin(struct mm_server *server, struct MHD_Connection *connection, const char *path,
                             const char *method, const char *version, void **slot) {
    struct mm_connection *peer = mm_connection_of(connection);
    if (peer == NULL || !mm_connection_move(peer, MM_PHASE_HEAD, MM_PHASE_HANDLED))
        return MHD_NO;
    __atomic_add_fetch(&peer->requests, 1, __ATOMIC_RELAXED);
    peer->stream.unread_bytes = 0;
    struct mm_exchange *exchange = open_exchange(server, connection, peer);
    if (exchange == NULL)
        return MHD_NO;
    *slot = exchange;
    mm_record_begin(exchange, method, path_of(path));
    bool well_formed = judge_http(exchange, version, path) == MM_OK;
    bool accepted = well_formed && judge_head(exchange, method, path_of(path)) == MM_OK;
    if (!accepted) {
        judge_busy(exchange);
        leave_accepted(exchange);
    }
    bool waits = expects_continue(exchange, version);
    if (accepted || (well_formed && !waits && !is_large(exchange))) {
        mm_connection_move(peer, MM_PHASE_HANDLED, MM_PHASE_BODY);
        return MHD_YES;
    }
    if (well_formed && !waits) {
        refuse_unread(exchange);
        return MHD_YES;
    }
    exchange->last = true; /* a reply at the first callback always closes the connection */
    return mm_reply_problem(exchange);
}

/* Makes room for a chunked body that outgrows its buffer, by what was received: what a reader has closed up
 * may have to be spread again. */
static enum mm_status grow_body(struct mm_exchange *exchange, size_t needed) {
    struct mm_server *server = exchange->server;
    struct mm_buffer larger = {0};
    size_t limit = body_bytes_max(exchange);
    if (needed > limit)
        return fail_body_limit(exchange, needed);
    size_t twice = exchange->body.bytes > limit / 2 ? limit : exchange->body.bytes * 2;
    enum mm_status status = MM_BUSY;
    if (twice > needed)
        status = mm_buffers_acquire(server->buffers, twice, &larger, NULL);
    if (status != MM_OK)
        status = mm_buffers_acquire(server->buffers, needed, &larger, &exchange->error);
    if (status != MM_OK) {
        judge_busy(exchange);
        return exchange->error.status;
    }
    memcpy(larger.data, exchange->body.data, exchange->body_bytes);
    mm_buffers_release(server->buffers, &exchange->body);
    exchange->body = larger;
    return MM_OK;
}

/* Who goes on for long with a body that was refused is told so in the midst of it. */
static void refuse_midway(struct mm_exchange *exchange) {
    if (exchange->error.status == MM_OK) {
        mm_fail(&exchange->error, MM_TOO_LARGE,
                "%s %s takes no body: one of up to %d bytes is passed over, but more came",
                exchange->route->method, exchange->route->path, MM_REFUSAL_DRAIN_MAX);
        exchange->error.limit = MM_REFUSAL_DRAIN_MAX;
        exchange->error.has_limit = true;
    }
    if (mm_connection_move(exchange->peer, MM_PHASE_BODY, MM_PHASE_HANDLED))
        refuse_unread(exchange);
}

/* A piece of the body: kept, or dropped where the request was refused or takes none. A refusal waits for the
 * end, within reason. */
static enum MHD_Result receive(struct mm_exchange *exchange, const char *data, size_t bytes) {
    const size_t received = __atomic_add_fetch(&exchange->received_bytes, bytes, __ATOMIC_RELAXED);
    bool refused = exchange->error.status != MM_OK;
    exchange->peer->stream.unread_bytes = 0;
    if (!refused && exchange->body.data != NULL && received > exchange->body.bytes)
        refused = grow_body(exchange, received) != MM_OK;
    if (refused || exchange->body.data == NULL) {
        end_reading(exchange);
        mm_buffers_release(exchange->server->buffers, &exchange->body);
        exchange->dropped_bytes += bytes;
        if (exchange->dropped_bytes > MM_REFUSAL_DRAIN_MAX &&
            mm_connection_phase(exchange->peer) == MM_PHASE_BODY)
            refuse_midway(exchange);
        return MHD_YES;
    }
    memcpy((char *)exchange->body.data + exchange->body_bytes, data, bytes);
    exchange->body_bytes += bytes;
    if (exchange->reading != NULL)
        exchange->body_bytes = exchange->decoder->reader->feed(exchange->reading, exchange->body.data,
                                                               exchange->body_bytes, bytes);
    return MHD_YES;
}

/* Runs a step of the route; what it could not answer is answered as a problem. */
static enum MHD_Result step(struct mm_exchange *exchange, enum mm_status (*handler)(struct mm_exchange *)) {
    enum mm_status status = exchange->error.status;
    assert(status != MM_OK || handler != NULL);
    if (status == MM_OK)
        status = handler(exchange);
    if (status == MM_OK)
        return MHD_YES;
    judge_busy(exchange);
    return mm_reply_problem(exchange);
}

enum MHD_Result mm_exchange_handle(void *server, struct MHD_Connection *connection, const char *url,
                                   const char *method, const char *version, const char *upload_data,
                                   size_t *upload_data_size, void **slot) {
    struct mm_exchange *exchange = *slot;
    if (exchange == NULL)
        return begin(server, connection, url, method, version, slot);
    if (*upload_data_size > 0) {
        size_t bytes = *upload_data_size;
        *upload_data_size = 0;
        return receive(exchange, upload_data, bytes);
    }
    switch (exchange->state) {
    case MM_RECEIVING:
        if (!mm_connection_move(exchange->peer, MM_PHASE_BODY, MM_PHASE_HANDLED))
            return MHD_NO;
        exchange->span_ns[MM_SPAN_RECEIVE] = mm_clock_ns() - exchange->started_ns;
        return step(exchange, exchange->route == NULL ? NULL : exchange->route->complete);
    case MM_ANSWERING:
        if (exchange->record.left)
            return MHD_NO;
        return step(exchange, exchange->route->answer);
    case MM_WAITING:
    case MM_ANSWERED:
        break;
    }
    return MHD_YES;
}

void mm_exchange_completed(void *argument, struct MHD_Connection *connection, void **slot,
                           enum MHD_RequestTerminationCode why) {
    struct mm_server *server = argument;
    struct mm_exchange *exchange = *slot;
    (void)connection;
    if (exchange == NULL)
        return;
    struct mm_connection *peer = exchange->peer;
    *slot = NULL;
    (void)mm_connection_move(peer, MM_PHASE_BODY, MM_PHASE_HANDLED); /* else the sweep might cut it yet */
    if (mm_connection_phase(peer) == MM_PHASE_CUT) {
        pthread_mutex_lock(&server->mutex); /* the sweep, if it was that, is done with the exchange */
        pthread_mutex_unlock(&server->mutex);
        if (peer->late_bytes > 0)
            exchange->record.out_bytes = peer->late_bytes;
    }
    mm_record_end(exchange, why == MHD_REQUEST_TERMINATED_COMPLETED_OK);
    leave_accepted(exchange);
    pthread_mutex_lock(&server->mutex);
    __atomic_store_n(&peer->exchange, NULL, __ATOMIC_RELAXED);
    __atomic_store_n(&peer->answers, 0, __ATOMIC_RELAXED);
    bool last = --exchange->holders == 0;
    pthread_mutex_unlock(&server->mutex); /* from here on, if not the last, its job's end may free it */
    mm_connection_move(peer, MM_PHASE_HANDLED, MM_PHASE_HEAD);
    if (last)
        mm_exchange_free(exchange);
}
