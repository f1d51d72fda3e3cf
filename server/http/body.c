/* Receiving a body: its limits, its memory, and its pieces. */
#include "server/http/body.h"

#include "gpu/store/store.h"
#include "server/http/reply.h"
#include "server/http/routes.h"

#include <inttypes.h>
#include <string.h>

/* Smaller bodies gain nothing by a larger receive buffer. A client whose body we have stopped reading then
 * costs the system a few times what it costs us, at most. */
enum { LARGE_BYTES = 1 << 20 };

enum { SMALL_BYTES = 64 << 10 };

static bool takes_body(const struct mm_request *request) {
    return request->route != NULL && request->route->body != MM_BODY_NONE;
}

/* Of the process, or of the route if that is less. */
static size_t body_bytes_max(const struct mm_request *request) {
    size_t process = request->server->limits.body_bytes_max;
    size_t route = request->route->body_bytes_max;
    return route != 0 && route < process ? route : process;
}

static enum mm_status fail_limit(const struct mm_request *request, uint64_t got, struct mm_error *error) {
    size_t limit = body_bytes_max(request);
    return mm_fail_limit(
        error, "", limit, "the body has %" PRIu64 " bytes or more, but the limit is %zu%s", got, limit,
        limit == request->server->limits.body_bytes_max ? " (the smaller of --max-body and --memory-budget)"
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

enum mm_status mm_body_judge_limit(struct mm_request *request) {
    if (request->content_length != MM_LENGTH_UNKNOWN && request->content_length > body_bytes_max(request))
        return fail_limit(request, request->content_length, &request->error);
    return MM_OK;
}

enum mm_status mm_body_judge(struct mm_request *request) {
    const bool is_chunked = request->content_length == MM_LENGTH_UNKNOWN;
    if (!takes_body(request))
        return MM_OK;
    if (is_chunked && request->route->body == MM_BODY_SIZED)
        return mm_fail(&request->error, MM_LENGTH_REQUIRED,
                       "the %s is chunked; send it with Content-Length, by which room is reserved",
                       request->route->method);
    if (request->route->body >= MM_BODY_REQUIRED && mm_body_require_length(request) != MM_OK)
        return request->error.status;
    return request->route->body == MM_BODY_SIZED ? MM_OK : mm_body_judge_limit(request);
}

static size_t others_bytes(const struct mm_server *server) {
    return mm_buffers_budget(server->buffers) / MM_OTHERS_PART;
}

static size_t stored_bytes(const struct mm_server *server) {
    return server->store == NULL ? 0 : mm_store_totals(server->store).host_bytes;
}

static bool is_huge(const struct mm_server *server, size_t output_bytes) {
    return output_bytes > MM_LARGE_OUTPUT_BYTES &&
           output_bytes > mm_buffers_budget(server->buffers) / MM_HUGE_OUTPUT_PART;
}

void mm_body_count_output(struct mm_request *request, size_t bytes) {
    const size_t huge_bytes = is_huge(request->server, bytes) ? bytes : 0;
    const size_t before = __atomic_exchange_n(&request->huge_bytes, huge_bytes, __ATOMIC_RELAXED);
    __atomic_add_fetch(&request->server->huge_bytes, huge_bytes - before, __ATOMIC_RELAXED);
}

/* A stored matrix counts until its memory is free, else a slow reader of one that is deleted would hold up
 * all bodies. */
static size_t huge_and_stored_bytes(const struct mm_server *server) {
    const size_t huge_bytes = __atomic_load_n(&server->huge_bytes, __ATOMIC_RELAXED);
    if (server->store == NULL)
        return huge_bytes;
    const struct mm_store_totals totals = mm_store_totals(server->store);
    return huge_bytes + totals.host_bytes + totals.nameless_host_bytes;
}

size_t mm_body_taken_bytes(const struct mm_server *server, bool is_huge) {
    const size_t used = mm_buffers_used(server->buffers);
    const size_t least = is_huge ? huge_and_stored_bytes(server) + others_bytes(server) : 0;
    return used > least ? used : least;
}

bool mm_body_passes_huge(const struct mm_server *server, size_t more_bytes) {
    const size_t used = mm_buffers_used(server->buffers), most = others_bytes(server);
    const size_t taken = used - mm_size_min(used, huge_and_stored_bytes(server));
    return taken <= most && more_bytes <= most - taken;
}

size_t mm_body_output_bytes_max(const struct mm_server *server) {
    const size_t most = mm_buffers_budget(server->buffers) - 2 * others_bytes(server);
    return most - mm_size_min(most, stored_bytes(server));
}

/* Whether an older request waits for memory, and goes first. */
static bool is_behind(const struct mm_request *request, size_t more_bytes) {
    const struct mm_server *server = request->server;
    return __atomic_load_n(&server->starved_ns, __ATOMIC_RELAXED) < request->started_ns &&
           (__atomic_load_n(&server->starved_others, __ATOMIC_RELAXED) > 0 ||
            !mm_body_passes_huge(server, more_bytes));
}

/* A request of a few bytes can ask for an output of any size, and others would wait until its kernel ends. */
enum mm_status mm_body_judge_output(struct mm_request *request, size_t held_bytes, size_t bytes,
                                    struct mm_error *error) {
    const struct mm_server *server = request->server;
    const size_t budget = mm_buffers_budget(server->buffers), part = budget - others_bytes(server);
    if (bytes <= MM_LARGE_OUTPUT_BYTES)
        return MM_OK;
    const bool huge = is_huge(server, bytes);
    const size_t used = mm_body_taken_bytes(server, huge), others = huge ? others_bytes(server) : 0;
    const bool waits = __atomic_load_n(&request->promised_bytes, __ATOMIC_RELAXED) == 0 &&
                       is_behind(request, huge ? SIZE_MAX : bytes);
    if (!waits && used <= part && bytes <= part - used) {
        mm_body_count_output(request, bytes);
        return MM_OK;
    }
    if (bytes > part - others) {
        mm_fail_limit(
            error, "", part - others,
            "%zu bytes of memory are needed, but the limit is %zu (--memory-budget, of which an eighth "
            "is left to other requests)",
            bytes, part - others);
        mm_fail_got(error, "%zu", bytes);
        return MM_TOO_LARGE;
    }
    if (held_bytes > part || bytes > part - held_bytes) {
        mm_fail_limit(
            error, "", part,
            "the request needs %zu bytes of memory beside the %zu that it has, but the limit is %zu "
            "(--memory-budget, of which a sixteenth is left to other requests)",
            bytes, held_bytes, part);
        mm_fail_got(error, "%zu", held_bytes + bytes);
        return MM_TOO_LARGE;
    }
    const size_t stored = stored_bytes(server);
    if (bytes + (held_bytes > others ? held_bytes : others) > part - mm_size_min(part, stored))
        return mm_fail(error, MM_BUSY,
                       "the request needs %zu bytes of memory, but of %zu bytes (--memory-budget) stored "
                       "matrices take %zu; delete some, or try again later",
                       bytes + held_bytes, budget, stored);
    mm_fail(error, MM_BUSY, "memory is full (--memory-budget); try again later");
    error->needed_bytes = bytes + others_bytes(server);
    return MM_BUSY;
}

/* How large the body may become. */
static size_t bytes_max(const struct mm_request *request) {
    return request->content_length == MM_LENGTH_UNKNOWN ? body_bytes_max(request) : request->content_length;
}

bool mm_body_is_small(const struct mm_request *request) {
    return bytes_max(request) <= SMALL_BYTES;
}

/* How much more the body may hold once its first `bytes` do (mm_buffers_grow). */
static size_t more_bytes(const struct mm_request *request, size_t bytes) {
    enum { STEP_BYTES_MAX = 2 << 20 };
    const size_t step = mm_size_min(bytes + SMALL_BYTES, STEP_BYTES_MAX);
    const size_t kept = mm_body_kept_bytes(request, mm_size_min(bytes + step, bytes_max(request)));
    return kept - mm_size_min(kept, request->body.bytes);
}

/* A large output waits for what it leaves to others as well. */
size_t mm_body_lacked_bytes(const struct mm_request *request) {
    const size_t bytes = request->output_bytes;
    return bytes != 0 ? bytes - mm_size_min(bytes, others_bytes(request->server))
                      : more_bytes(request, request->needed_bytes);
}

bool mm_body_waits_for_huge(const struct mm_request *request) {
    return request->output_bytes != 0 && is_huge(request->server, mm_body_lacked_bytes(request));
}

/* The same for the first `bytes` of the body: uploads would take each other's memory until none can end. A
 * small body takes too little for that. */
static bool is_behind_others(const struct mm_request *request, size_t bytes) {
    return !mm_body_is_small(request) && is_behind(request, more_bytes(request, bytes));
}

/* A body that may be passed on gets its memory when that is known. */
enum mm_status mm_body_acquire(struct mm_request *request) {
    if (!takes_body(request) || request->content_length == MM_LENGTH_UNKNOWN ||
        request->content_length == 0 || request->may_pass)
        return MM_OK;
    if (is_behind_others(request, request->content_length))
        return mm_fail(&request->error, MM_BUSY,
                       "memory is full (--memory-budget), and other bodies wait for some; try again later");
    return mm_body_grow(request, request->content_length, false, &request->error);
}

/* Nothing if no other request holds memory. */
static size_t spare_bytes(const struct mm_request *request) {
    const struct mm_buffers *buffers = request->server->buffers;
    return mm_buffers_used(buffers) > request->body.bytes ? others_bytes(request->server) : 0;
}

size_t mm_body_kept_bytes(const struct mm_request *request, size_t bytes) {
    return request->passes_on ? mm_size_min(bytes, MM_BODY_PASSED_BYTES) : bytes;
}

static enum mm_status grow(struct mm_request *request, size_t bytes, bool to_the_last,
                           struct mm_error *error) {
    const size_t kept = mm_body_kept_bytes(request, bytes);
    if (request->passes_on && kept <= request->body.bytes) /* which may have been exchanged */
        return MM_OK;
    return mm_buffers_grow(request->server->buffers, kept, mm_body_kept_bytes(request, bytes_max(request)),
                           to_the_last ? 0 : spare_bytes(request), &request->body, error);
}

/* The body has precedence over elements that its reader has stored: they can be read from it again. What is
 * left to results is taken only for a whole body: else it would be gone, and the body would still wait. */
enum mm_status mm_body_grow(struct mm_request *request, size_t bytes, bool to_the_last,
                            struct mm_error *error) {
    if (bytes > bytes_max(request))
        return fail_limit(request, bytes, error);
    if (to_the_last && request->content_length != MM_LENGTH_UNKNOWN)
        bytes = request->content_length;
    enum mm_status status = grow(request, bytes, to_the_last, error);
    if (status == MM_BUSY && request->reading != NULL && request->reader->yield != NULL) {
        request->reader->yield(request->reading);
        *error = (struct mm_error){0};
        status = grow(request, bytes, to_the_last, error);
    }
    if (status == MM_OK)
        __atomic_store_n(&request->held_bytes, request->body.bytes, __ATOMIC_RELAXED);
    else
        mm_request_judge_busy(request, request->body.bytes, error);
    return status == MM_OK ? MM_OK : error->status;
}

void mm_body_drop(struct mm_request *request) {
    if (request->reading != NULL)
        request->reader->cancel(request->reading);
    request->reading = NULL;
    mm_buffers_release(request->server->buffers, &request->body);
    __atomic_store_n(&request->held_bytes, 0, __ATOMIC_RELAXED);
}

void mm_body_drop_all(struct mm_request *request) {
    mm_body_drop(request);
    if (request->route != NULL && request->route->state != NULL && request->route->state->drop_memory != NULL)
        request->route->state->drop_memory(request);
}

/* Refuses a client that goes on sending before the end of its body. */
static void refuse_midway(struct mm_request *request) {
    if (request->error.status == MM_OK)
        mm_fail_limit(&request->error, "", MM_REFUSAL_DRAIN_MAX,
                      "%s %s takes no body and ignores one of up to %d bytes, but more came; send none",
                      request->route->method, request->route->path, MM_REFUSAL_DRAIN_MAX);
    mm_request_refuse_unread(request);
}

/* The refusal is sent at the end of the body, unless that is far or the connection is closed anyway. */
static void pass_over(struct mm_request *request, size_t bytes) {
    mm_body_drop(request);
    request->dropped_bytes += bytes;
    if (request->last || request->dropped_bytes > MM_REFUSAL_DRAIN_MAX || mm_request_is_large(request))
        refuse_midway(request);
}

/* Takes locked memory, from which a GPU copies faster, if there is some: so much of the body has come by now.
 */
static void exchange_memory(struct mm_request *request) {
    struct mm_buffers *buffers = request->server->buffers;
    struct mm_buffer locked;
    if (mm_buffers_acquire(buffers, MM_BODY_PASSED_BYTES, &locked, NULL) != MM_OK)
        return;
    mm_buffers_release(buffers, &request->body);
    request->body = locked;
}

/* Passes on what is kept, each time that its memory is full. */
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

/* Makes room for all that was received: what a reader has closed up may have to be spread again. Between the
 * two moves the connection belongs to this thread, and the sweep cannot take its memory; while it waits for
 * memory, it belongs to the sweep. */
enum MHD_Result mm_body_receive(struct mm_request *request, const char *data, size_t *bytes) {
    const size_t piece = *bytes;
    const size_t received = __atomic_load_n(&request->received_bytes, __ATOMIC_RELAXED) + piece;
    const bool is_ours = mm_connection_move(request->peer, MM_PHASE_BODY, MM_PHASE_HANDLED);
    request->peer->stream.unread_bytes = 0;
    if (request->record.left)
        return MHD_NO;
    if (is_ours && request->may_pass && request->error.status == MM_OK)
        request->may_pass = !request->route->state->look(request, data, piece);
    const bool has_room = mm_body_kept_bytes(request, received) <= request->body.bytes;
    if (is_ours && takes_body(request) && request->error.status == MM_OK &&
        ((!has_room && is_behind_others(request, received)) ||
         mm_body_grow(request, received, false, &request->error) == MM_BUSY)) {
        request->error = (struct mm_error){0};
        mm_request_wait_for_memory(request, received);
        return MHD_YES;
    }
    *bytes = 0;
    __atomic_store_n(&request->received_bytes, received, __ATOMIC_RELAXED);
    if (!is_ours)
        return MHD_YES;
    if (takes_body(request) && request->error.status == MM_OK) {
        keep(request, data, piece);
        if (received >= LARGE_BYTES && received - piece < LARGE_BYTES)
            mm_connection_widen(request->peer);
    } else {
        pass_over(request, piece);
    }
    mm_connection_move(request->peer, MM_PHASE_HANDLED, MM_PHASE_BODY);
    return MHD_YES;
}
