/* The life of a request from its head to its end, except waits (wait.c). Knows no route. */
#include "server/http/request.h"

#include "api/json/json_text.h"
#include "api/slice.h"
#include "gpu/store/store.h"
#include "server/auth/bearer.h"
#include "server/http/upload.h"
#include "server/http/head.h"
#include "server/http/origin.h"
#include "server/http/reply.h"
#include "server/http/routes.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum mm_request_state mm_request_state(const struct mm_request *request) {
    return (enum mm_request_state)__atomic_load_n(&request->state, __ATOMIC_RELAXED);
}

bool mm_request_waits(const struct mm_request *request) {
    const enum mm_request_state state = mm_request_state(request);
    return state == MM_RESERVING || state == MM_INFLATING || state == MM_DECODING || state == MM_QUEUED ||
           state == MM_ENCODING;
}

void mm_request_move(struct mm_request *request, enum mm_request_state to) {
    static const unsigned allowed[] = {
        [MM_RECEIVING] = 1u << MM_RESERVING | 1u << MM_INFLATING | 1u << MM_DECODING | 1u << MM_QUEUED |
                         1u << MM_ENCODING | 1u << MM_SENDING | 1u << MM_OVER,
        [MM_RESERVING] = 1u << MM_RECEIVING,
        [MM_INFLATING] = 1u << MM_INFLATING | 1u << MM_RESERVING | 1u << MM_RECEIVING | 1u << MM_ANSWERING,
        [MM_DECODING] = 1u << MM_RESERVING | 1u << MM_QUEUED | 1u << MM_ANSWERING,
        [MM_QUEUED] = 1u << MM_QUEUED | 1u << MM_ENCODING | 1u << MM_ANSWERING,
        [MM_ENCODING] = 1u << MM_ENCODING | 1u << MM_ANSWERING,
        [MM_ANSWERING] = 1u << MM_SENDING | 1u << MM_OVER,
        [MM_SENDING] = 1u << MM_OVER,
        [MM_OVER] = 0,
    };
    assert(allowed[mm_request_state(request)] & 1u << to);
    (void)allowed; /* unused if assertions are off */
    __atomic_store_n(&request->state, (int)to, __ATOMIC_RELAXED);
}

struct joined {
    const char *name;
    char *text;
    bool is_cut;
};

static enum MHD_Result join(void *argument, enum MHD_ValueKind kind, const char *name, const char *value) {
    struct joined *joined = argument;
    char *text = joined->text;
    if (strcasecmp(name, joined->name) != 0 || value == NULL)
        return MHD_YES;
    const size_t length = strlen(text);
    const size_t room = MM_ACCEPT_BYTES - length;
    if ((size_t)snprintf(text + length, room, "%s%s", length > 0 ? ", " : "", value) < room)
        return MHD_YES;
    text[length] = '\0';
    joined->is_cut = true;
    return MHD_NO;
}

const char *mm_request_list(const struct mm_request *request, enum mm_header header,
                            char text[MM_ACCEPT_BYTES], bool *is_cut) {
    struct joined joined = {mm_header_name(header), text, false};
    text[0] = '\0';
    if (request->headers[header] == NULL)
        return NULL;
    MHD_get_connection_values(request->connection, MHD_HEADER_KIND, join, &joined);
    if (is_cut != NULL)
        *is_cut = joined.is_cut;
    return text;
}

char mm_request_first_character(const struct mm_request *request) {
    if (request->upload.body_bytes == 0)
        return 0;
    const char *text = request->upload.body.data, *end = text + request->upload.body_bytes;
    text = mm_json_skip_spaces(mm_skip_mark(text, end), end);
    return text < end ? *text : 0;
}

uint64_t mm_request_deadline_ns(const struct mm_request *request, uint64_t asked_ms) {
    if (asked_ms == 0 || asked_ms >= request->server->options->timeout_ms)
        return request->deadline_ns;
    return request->started_ns + asked_ms * UINT64_C(1000000);
}

bool mm_request_chose_deadline(const struct mm_request *request, uint64_t deadline_ns) {
    return deadline_ns - request->started_ns < request->server->options->timeout_ms * UINT64_C(1000000);
}

const char *mm_request_deadline_advice(const struct mm_request *request, uint64_t deadline_ns) {
    return mm_request_chose_deadline(request, deadline_ns) ? "send a longer timeout_ms"
                                                           : "send less, or raise --timeout-ms";
}

static bool is_request_id(const char *text) {
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    size_t length = strspn(text, allowed);
    return length >= 1 && length <= MM_REQUEST_ID_MAX && text[length] == '\0';
}

static void set_request_id(struct mm_request *request) {
    const char *given = request->headers[MM_HEADER_REQUEST_ID];
    if (given != NULL && is_request_id(given))
        snprintf(request->request_id, sizeof request->request_id, "%s", given);
    else
        mm_server_make_id(request->server, request->request_id);
}

enum mm_status mm_request_fail_memory(const struct mm_request *request, size_t bytes,
                                      struct mm_error *error) {
    const size_t limit = request->server->budget.part_bytes[MM_BUDGET_MAIN];
    mm_fail_limit(error, "", limit,
                  "the request needs %zu bytes of memory, but the limit is %zu (fifteen sixteenths of "
                  "--memory-budget)",
                  bytes, limit);
    mm_fail_got(error, "%zu", bytes);
    return MM_TOO_LARGE;
}

/* Fails with MM_FORBIDDEN if a page of another site sent the request. */
static enum mm_status check_site(struct mm_request *request) {
    const struct mm_options *options = request->server->options;
    const char *host = request->headers[MM_HEADER_HOST];
    if (request->server->checks_host && request->route->entry != MM_ENTRY_HEALTH &&
        mm_origin_check_host(options->allowed_hosts, host, &request->error) != MM_OK)
        return request->error.status;
    if (request->cors.origin != NULL)
        return MM_OK;
    return mm_origin_check(request->route->method, request->headers[MM_HEADER_ORIGIN], host, &request->error);
}

/* Whether the client waits for 100 Continue before it sends the body. libmicrohttpd uses the same rule. */
static bool expects_continue(const struct mm_request *request, const char *version) {
    const char *expect = request->headers[MM_HEADER_EXPECT];
    return expect != NULL && strcasecmp(expect, "100-continue") == 0 &&
           strcmp(version, MHD_HTTP_VERSION_1_1) == 0;
}

static enum mm_status check_head(struct mm_request *request, const char *method) {
    if (mm_route_find(request, method) != MM_OK || mm_bearer_check(request) != MM_OK)
        return request->error.status;
    mm_client_acquire(request);
    if (check_site(request) != MM_OK || mm_upload_check(request) != MM_OK ||
        (request->route->body != MM_BODY_NONE && mm_head_check_coding(request) != MM_OK))
        return request->error.status;
    return request->route->admit == NULL ? MM_OK : request->route->admit(request);
}

bool mm_request_is_large(const struct mm_request *request) {
    return request->upload.content_length != MM_LENGTH_UNKNOWN &&
           request->upload.content_length > MM_REFUSAL_DRAIN_MAX;
}

struct mm_problem_reply mm_request_problem(const struct mm_request *request, const struct mm_error *error) {
    struct mm_problem_reply reply = {.form = mm_route_problems(request->path),
                                     .error = error,
                                     .request_id = request->request_id,
                                     .traceparent = request->traceparent,
                                     .codings = mm_head_codings(request),
                                     .cors = request->cors,
                                     .head_only = strcmp(request->record.method, "HEAD") == 0,
                                     .retry_after_s =
                                         mm_server_retry_after_s(request->server, error->status)};
    if (error->status == MM_METHOD_NOT_ALLOWED)
        mm_route_methods(request->path, reply.allow);
    return reply;
}

/* Releases the memory of a request, and gives it to requests that wait for memory. */
static void release(struct mm_request *request) {
    struct mm_server *server = request->server;
    mm_upload_drop(request);
    if (request->route != NULL && request->route->state != NULL)
        request->route->state->release(request);
    mm_request_release_value(request);
    mm_reservation_close(&request->memory);
    mm_client_release(request);
    mm_line_serve(server);
}

/* Releases the memory of a failed request, unless a thread still works on it. Call it before the reply is
 * sent, because the client may then try again at once. */
static void release_failed(struct mm_request *request) {
    pthread_mutex_lock(&request->server->mutex);
    const bool is_worked_on = request->is_worked_on;
    pthread_mutex_unlock(&request->server->mutex);
    if (!is_worked_on)
        release(request);
}

/* If bytes stayed unread, closing the socket would reset the connection before the client reads the reply. So
 * bytes that still arrive are read and dropped, until the sweep ends the connection. */
void mm_request_refuse_unread(struct mm_request *request) {
    release_failed(request);
    const struct mm_problem_reply reply = mm_request_problem(request, &request->error);
    mm_record_cut(request, &request->error, mm_connection_cut(request->peer, &reply));
    mm_connection_move(request->peer, MM_PHASE_HANDLED, MM_PHASE_CUT);
}

static struct mm_request *acquire_memory(const struct mm_server *server, struct mm_connection *peer) {
    const size_t bytes = sizeof(struct mm_request) + server->state_bytes_max;
    void *spare = peer->spare;
    peer->spare = NULL;
    return spare != NULL ? memset(spare, 0, bytes) : calloc(1, bytes);
}

static struct mm_request *open_request(struct mm_server *server, struct MHD_Connection *connection,
                                       struct mm_connection *peer, const char *target) {
    struct mm_request *request = acquire_memory(server, peer);
    if (request == NULL)
        return NULL;
    request->own = request + 1;
    request->server = server;
    request->connection = connection;
    request->peer = peer;
    request->path = mm_route_path(target);
    request->state = MM_RECEIVING;
    request->started_ns = mm_clock_ns();
    request->memory.budget = &server->budget;
    request->deadline_ns = request->started_ns + server->options->timeout_ms * UINT64_C(1000000);
    __atomic_store_n(&peer->request, request, __ATOMIC_RELEASE);
    request->accepted = true; /* must precede the check of `draining` (see server.h) */
    __atomic_add_fetch(&server->accepted, 1, __ATOMIC_SEQ_CST);
    return request;
}

/* Tells a drain not to wait for this request, because it has ended or was refused. */
static void leave_accepted(struct mm_request *request) {
    if (request->accepted)
        __atomic_sub_fetch(&request->server->accepted, 1, __ATOMIC_SEQ_CST);
    request->accepted = false;
}

void mm_request_release_value(struct mm_request *request) {
    mm_store_release(request->server->store, __atomic_exchange_n(&request->value, NULL, __ATOMIC_ACQ_REL));
}

void mm_request_free(struct mm_request *request) {
    release(request);
    free(request);
}

/* Replies to a refused head. A short body is read before the reply. A long body stays unread, and the reply
 * is sent at once without MHD. If the client waits for 100 Continue, or the head is malformed, MHD sends the
 * reply at once and closes the connection. */
static enum MHD_Result refuse_head(struct mm_request *request, bool well_formed, bool waits) {
    leave_accepted(request);
    release_failed(request);
    if (well_formed && !waits && !mm_request_is_large(request)) {
        mm_connection_move(request->peer, MM_PHASE_HANDLED, MM_PHASE_BODY);
        return MHD_YES;
    }
    if (well_formed && !waits) {
        mm_request_refuse_unread(request);
        return MHD_YES;
    }
    request->closes = true; /* MHD closes the connection if the reply comes so early */
    return mm_reply_problem(request);
}

/* Prepares for the body of an accepted head. Runs again after a wait for the first memory. */
static enum MHD_Result accept_head(struct mm_request *request, const char *version) {
    if (request->error.status == MM_OK && mm_upload_reserve_first(request) == MM_BUSY &&
        mm_request_wait_for_memory(request))
        return MHD_YES;
    request->upload.state = MM_UPLOAD_ARRIVING;
    if (request->error.status != MM_OK)
        return refuse_head(request, true, expects_continue(request, version));
    mm_pace_begin(&request->pace, 0, mm_clock_ns());
    mm_connection_move(request->peer, MM_PHASE_HANDLED, MM_PHASE_BODY);
    return MHD_YES;
}

static enum MHD_Result begin(struct mm_server *server, struct MHD_Connection *connection, const char *target,
                             const char *method, const char *version, void **slot) {
    struct mm_connection *peer = mm_connection_of(connection);
    if (peer == NULL || !mm_connection_move(peer, MM_PHASE_HEAD, MM_PHASE_HANDLED))
        return MHD_NO;
    __atomic_add_fetch(&peer->requests, 1, __ATOMIC_RELAXED);
    peer->stream.unread_bytes = 0;
    struct mm_request *request = open_request(server, connection, peer, target);
    if (request == NULL)
        return MHD_NO;
    *slot = request;
    const bool well_formed = mm_head_check(request, method, target, version) == MM_OK;
    mm_head_find_client(request);
    set_request_id(request);
    mm_head_find_trace(request);
    request->cors = mm_cors_decide(server->options, request->headers[MM_HEADER_ORIGIN]);
    mm_record_begin(request, method);
    if (well_formed && check_head(request, method) == MM_OK)
        return accept_head(request, version);
    request->upload.state = MM_UPLOAD_ARRIVING;
    return refuse_head(request, well_formed, expects_continue(request, version));
}

/* Runs a handler of the route. If memory is short, the request waits, and then the handler runs again. */
static enum MHD_Result step(struct mm_request *request, enum mm_status (*handler)(struct mm_request *)) {
    enum mm_status status = request->error.status;
    assert(status != MM_OK || (handler != NULL && request->route != NULL));
    if (status == MM_OK)
        status = handler(request);
    if (status == MM_OK || (status == MM_BUSY && mm_request_state(request) == MM_RECEIVING &&
                            mm_request_wait_for_memory(request)))
        return MHD_YES;
    release_failed(request);
    return mm_reply_problem(request);
}

/* Calls the route's `complete`. If the body is compressed, lets the worker pool inflate it first. */
static enum mm_status complete(struct mm_request *request) {
    if (request->upload.inflation.coding == 0)
        return request->route->complete(request);
    mm_request_leave_to_pool(request, MM_INFLATING);
    return MM_OK;
}

enum MHD_Result mm_request_handle(void *server, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *upload_data,
                                  size_t *upload_data_size, void **slot) {
    struct mm_request *request = *slot;
    if (request == NULL)
        return begin(server, connection, url, method, version, slot);
    if (*upload_data_size > 0)
        return mm_upload_receive(request, upload_data, upload_data_size);
    switch (mm_request_state(request)) {
    case MM_RECEIVING:
        if (request->record.left)
            return MHD_NO;
        if (request->upload.state == MM_UPLOAD_PENDING)
            return accept_head(request, version);
        if (request->upload.state == MM_UPLOAD_COMPLETE) /* after a wait for memory */
            return step(request, complete);
        if (!mm_connection_move(request->peer, MM_PHASE_BODY, MM_PHASE_HANDLED)) {
            mm_connection_say_late(server, request->peer);
            return MHD_NO;
        }
        request->upload.state = MM_UPLOAD_COMPLETE;
        request->record.stage_ns[MM_SPAN_RECEIVE] = mm_clock_ns() - request->started_ns;
        /* Trailers are not checked, so close the connection after a request with trailers. libmicrohttpd 0.9
         * sometimes reports a trailer without need, which costs only a connection. */
        request->closes |= MHD_get_connection_values(connection, MHD_FOOTER_KIND, NULL, NULL) > 0;
        return step(request, complete);
    case MM_ANSWERING:
        if (request->record.left)
            return MHD_NO;
        return step(request, request->route->answer);
    default:
        return MHD_YES;
    }
}

void mm_request_completed(void *argument, struct MHD_Connection *connection, void **slot,
                          enum MHD_RequestTerminationCode why) {
    struct mm_server *server = argument;
    struct mm_request *request = *slot;
    if (request == NULL)
        return;
    struct mm_connection *peer = request->peer;
    *slot = NULL;
    (void)mm_connection_move(peer, MM_PHASE_BODY, MM_PHASE_HANDLED); /* so the sweep cannot end it any more */
    if (mm_connection_phase(peer) == MM_PHASE_CUT) {
        pthread_mutex_lock(&server->mutex); /* waits until the sweep has recorded the end */
        pthread_mutex_unlock(&server->mutex);
        if (peer->late_bytes > 0)
            request->record.out_bytes = peer->late_bytes;
    }
    mm_record_end(request, why == MHD_REQUEST_TERMINATED_COMPLETED_OK);
    leave_accepted(request);
    pthread_mutex_lock(&server->mutex);
    __atomic_store_n(&peer->request, NULL, __ATOMIC_RELAXED);
    __atomic_store_n(&peer->answers, 0, __ATOMIC_RELAXED);
    mm_request_move(request, MM_OVER);
    const bool is_worked_on = request->is_worked_on;
    pthread_mutex_unlock(&server->mutex); /* now another thread may free the request */
    mm_connection_move(peer, MM_PHASE_HANDLED, MM_PHASE_HEAD);
    if (is_worked_on)
        return;
    release(request);
    peer->spare = request;
}
