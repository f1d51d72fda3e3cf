/* Receiving a body: its limits, its memory, and its chunks. */
#include "server/http/body.h"

#include "gpu/store/store.h"
#include "server/http/reply.h"
#include "server/http/routes.h"

#include <inttypes.h>
#include <string.h>

/* Smaller bodies gain nothing by a larger receive buffer. So a client whose body is not read costs the system
 * at most a few times the memory that it costs the server. */
enum { LARGE_BYTES = 1 << 20 };

/* The first step is everything expected, if that is at most FIRST_BYTES_MAX and this part of the budget; else
 * SMALL_BYTES. */
enum { SMALL_BYTES = 64 << 10, FIRST_BYTES_MAX = 2 << 20, FIRST_PART = 4 };

static bool takes_body(const struct mm_request *request) {
    return request->route != NULL && request->route->body != MM_BODY_NONE;
}

/* The limit of the process, or of the route if that is less. */
static size_t body_bytes_max(const struct mm_request *request) {
    size_t process = request->server->limits.body_bytes_max;
    size_t route = request->route->body_bytes_max;
    return route != 0 && route < process ? route : process;
}

static enum mm_status fail_limit(const struct mm_request *request, uint64_t got, struct mm_error *error) {
    size_t limit = body_bytes_max(request);
    return mm_fail_limit(error, "", limit, "the body has %" PRIu64 " bytes or more, but the limit is %zu%s",
                         got, limit,
                         limit == request->server->limits.body_bytes_max
                             ? " (the smaller of --max-body and fifteen sixteenths of --memory-budget)"
                             : "");
}

enum mm_status mm_body_require_length(struct mm_request *request) {
    if (request->content_length == MM_LENGTH_UNKNOWN || request->headers[MM_HEADER_CONTENT_LENGTH] != NULL)
        return MM_OK;
    return mm_fail(&request->error, MM_LENGTH_REQUIRED,
                   "the %s has neither Content-Length nor Transfer-Encoding: chunked; send %s",
                   request->route->method,
                   request->route->body == MM_BODY_SIZED ? "Content-Length" : "one of them");
}

enum mm_status mm_body_check_limit(struct mm_request *request) {
    if (request->content_length != MM_LENGTH_UNKNOWN && request->content_length > body_bytes_max(request))
        return fail_limit(request, request->content_length, &request->error);
    return MM_OK;
}

enum mm_status mm_body_check(struct mm_request *request) {
    const bool is_chunked = request->content_length == MM_LENGTH_UNKNOWN;
    if (!takes_body(request))
        return MM_OK;
    if (is_chunked && request->route->body == MM_BODY_SIZED)
        return mm_fail(&request->error, MM_LENGTH_REQUIRED,
                       "the %s is chunked; send it with Content-Length, so that memory can be reserved",
                       request->route->method);
    if (request->route->body >= MM_BODY_REQUIRED && mm_body_require_length(request) != MM_OK)
        return request->error.status;
    return request->route->body == MM_BODY_SIZED ? MM_OK : mm_body_check_limit(request);
}

/* How large the body may become. */
static uint64_t bytes_max(const struct mm_request *request) {
    return request->content_length == MM_LENGTH_UNKNOWN ? body_bytes_max(request) : request->content_length;
}

bool mm_body_is_small(const struct mm_request *request) {
    return bytes_max(request) <= SMALL_BYTES;
}

/* How many of the first `bytes` of the body are kept. */
static size_t kept_bytes(const struct mm_request *request, uint64_t bytes) {
    return request->passes_on && bytes > MM_BODY_PASSED_BYTES ? MM_BODY_PASSED_BYTES : (size_t)bytes;
}

/* --- steps */

/* What the request needs in all; 0: unknown, as for a body that may be passed on. */
static size_t expected_bytes(const struct mm_request *request) {
    const bool is_known = request->content_length != MM_LENGTH_UNKNOWN && !request->may_pass;
    return is_known ? kept_bytes(request, request->content_length) + request->need_bytes : 0;
}

enum mm_status mm_body_reserve_first(struct mm_request *request) {
    struct mm_reservation *memory = &request->memory;
    const size_t expected = memory->expected_bytes = expected_bytes(request);
    const size_t whole_max = mm_size_min(FIRST_BYTES_MAX, memory->budget->bytes / FIRST_PART);
    const bool is_all_known = request->need_bytes > 0 || expected >= SMALL_BYTES;
    if (!takes_body(request) || request->content_length == 0)
        return MM_OK;
    return mm_reservation_ensure(memory, is_all_known && expected <= whole_max ? expected : SMALL_BYTES,
                                 &request->error);
}

/* Makes space for the first `bytes` of the body, and up to the next step. */
static enum mm_status make_room(struct mm_request *request, size_t bytes) {
    struct mm_reservation *memory = &request->memory;
    const size_t most = kept_bytes(request, bytes_max(request));
    const size_t needed = kept_bytes(request, bytes), held = request->body.bytes;
    if (needed <= held)
        return MM_OK;
    size_t unused = mm_reservation_unused(memory);
    if (needed - held > unused) {
        const size_t stepped = held + unused + mm_reservation_step(memory->bytes);
        const size_t target = mm_size_min(stepped > needed ? stepped : needed, most);
        if (mm_reservation_ensure(memory, target - held, &request->error) != MM_OK)
            return request->error.status;
        unused = mm_reservation_unused(memory);
    }
    return mm_reservation_grow(memory, mm_size_min(held + unused, most), most, &request->body,
                               &request->error);
}

/* If memory is short, drops elements that the reader has decoded: they can be decoded again. */
static enum mm_status grow(struct mm_request *request, size_t bytes) {
    if (bytes > bytes_max(request))
        return fail_limit(request, bytes, &request->error);
    request->memory.expected_bytes = expected_bytes(request);
    enum mm_status status = make_room(request, bytes);
    if (status != MM_BUSY || request->reading == NULL || request->reader->yield == NULL)
        return status;
    request->reader->yield(request->reading);
    request->error = (struct mm_error){0};
    return make_room(request, bytes);
}

/* --- release */

void mm_body_drop(struct mm_request *request) {
    if (request->reading != NULL)
        request->reader->cancel(request->reading);
    request->reading = NULL;
    mm_reservation_free(&request->memory, &request->body);
}

void mm_body_drop_all(struct mm_request *request) {
    mm_body_drop(request);
    if (request->route != NULL && request->route->state != NULL && request->route->state->drop_memory != NULL)
        request->route->state->drop_memory(request);
    mm_reservation_close(&request->memory);
}

uint64_t mm_body_upload_ns(const struct mm_request *request, uint64_t now_ns) {
    const struct mm_place *place = &request->place;
    const uint64_t begun_ns = request->started_ns + place->waited_ns;
    const uint64_t end_ns = mm_request_state(request) == MM_RESERVING ? place->since_ns : now_ns;
    return end_ns > begun_ns ? end_ns - begun_ns : 0; /* it may begin after the sweep read the clock */
}

bool mm_body_is_late(const struct mm_request *request, uint64_t now_ns, struct mm_error *error) {
    const uint64_t deadline_ns = request->deadline_ns;
    if (now_ns <= deadline_ns)
        return false;
    mm_fail(error, mm_request_chose_deadline(request, deadline_ns) ? MM_TIMEOUT : MM_REQUEST_TIMEOUT,
            "the deadline passed when %zu bytes of the body had arrived; %s",
            __atomic_load_n(&request->received_bytes, __ATOMIC_RELAXED),
            mm_request_deadline_advice(request, deadline_ns));
    return true;
}

double mm_body_byte_ns(const struct mm_request *request) {
    const double time_ns = (double)(request->deadline_ns - request->started_ns);
    if (request->content_length != MM_LENGTH_UNKNOWN)
        return time_ns / (double)request->content_length;
    const double least_ns = 1e9 / (double)request->server->options->receive_rate;
    const double even_ns =
        time_ns / (double)(__atomic_load_n(&request->received_bytes, __ATOMIC_RELAXED) + 1);
    return even_ns < least_ns ? even_ns : least_ns;
}

/* --- chunks */

/* Refuses a client that goes on sending before the end of its body. */
static void refuse_midway(struct mm_request *request) {
    if (request->error.status == MM_OK)
        mm_fail_limit(&request->error, "", MM_REFUSAL_DRAIN_MAX,
                      "%s %s takes no body and ignores one of up to %d bytes, but more came; send none",
                      request->route->method, request->route->path, MM_REFUSAL_DRAIN_MAX);
    mm_request_refuse_unread(request);
}

/* The error is sent at the end of the body, unless that is far away or the connection closes anyway. */
static void pass_over(struct mm_request *request, size_t bytes) {
    mm_body_drop(request);
    request->dropped_bytes += bytes;
    if (request->last || request->dropped_bytes > MM_REFUSAL_DRAIN_MAX || mm_request_is_large(request))
        refuse_midway(request);
}

/* Acquires locked memory, from which a GPU copies faster, if there is some. So much of the body has arrived
 * that it pays. */
static void exchange_memory(struct mm_request *request) {
    struct mm_buffer locked;
    if (mm_reservation_acquire(&request->memory, MM_BODY_PASSED_BYTES, &locked, NULL) != MM_OK)
        return;
    mm_reservation_free(&request->memory, &request->body);
    mm_request_trim(request);
    request->body = locked;
}

/* Passes on what is kept of the body each time that its memory is full. */
static void keep_and_pass(struct mm_request *request, const char *data, size_t bytes) {
    while (bytes > 0 && request->error.status == MM_OK) {
        const size_t part = mm_size_min(bytes, MM_BODY_PASSED_BYTES - request->body_bytes);
        memcpy((char *)request->body.data + request->body_bytes, data, part);
        request->body_bytes += part;
        data += part;
        bytes -= part;
        if (request->body_bytes < MM_BODY_PASSED_BYTES)
            continue;
        const bool is_first = request->passed_bytes == 0;
        if (request->route->state->pass(request) == MM_OK && is_first)
            exchange_memory(request);
    }
}

static void keep(struct mm_request *request, const char *data, size_t bytes) {
    if (request->passes_on) {
        keep_and_pass(request, data, bytes);
        return;
    }
    memcpy((char *)request->body.data + request->body_bytes, data, bytes);
    request->body_bytes += bytes;
    if (request->reading != NULL)
        request->body_bytes =
            request->reader->feed(request->reading, request->body.data, request->body_bytes);
}

/* Makes space for all that was received, because what a reader has moved together may have to be spread
 * again. Between the two calls of mm_connection_move the connection belongs to this thread, and the sweep
 * cannot release its memory. While the connection waits for memory, it belongs to the sweep. */
enum MHD_Result mm_body_receive(struct mm_request *request, const char *data, size_t *bytes) {
    const size_t chunk = *bytes;
    const size_t received = __atomic_load_n(&request->received_bytes, __ATOMIC_RELAXED) + chunk;
    const bool is_ours = mm_connection_move(request->peer, MM_PHASE_BODY, MM_PHASE_HANDLED);
    request->peer->stream.unread_bytes = 0;
    if (request->record.left)
        return MHD_NO;
    if (is_ours && request->may_pass && request->error.status == MM_OK)
        request->may_pass = !request->route->state->decide_to_pass(request, data, chunk);
    if (is_ours && takes_body(request) && request->error.status == MM_OK &&
        grow(request, received) == MM_BUSY && mm_request_wait_for_memory(request))
        return MHD_YES;
    *bytes = 0;
    __atomic_store_n(&request->received_bytes, received, __ATOMIC_RELAXED);
    if (!is_ours)
        return MHD_YES;
    if (takes_body(request) && request->error.status == MM_OK) {
        keep(request, data, chunk);
        if (received >= LARGE_BYTES && received - chunk < LARGE_BYTES)
            mm_connection_widen(request->peer);
    } else {
        pass_over(request, chunk);
    }
    mm_connection_move(request->peer, MM_PHASE_HANDLED, MM_PHASE_BODY);
    return MHD_YES;
}
