#include "server/http/upload.h"

#include "gpu/store/store.h"
#include "server/http/reply.h"
#include "server/http/request.h"
#include "server/http/routes.h"

#include <inttypes.h>
#include <string.h>

/* Bodies of this length or more get a larger receive buffer; shorter bodies would gain nothing. So the
 * system's buffer for a body is at most a few times as large as the body. */
enum { LARGE_BYTES = 1 << 20 };

/* The first step reserves all expected memory, if that is at most FIRST_BYTES_MAX and 1/FIRST_PART of the
 * budget. Otherwise it reserves SMALL_BYTES. */
enum { SMALL_BYTES = 64 << 10, FIRST_BYTES_MAX = 2 << 20, FIRST_PART = 4 };

static bool takes_body(const struct mm_request *request) {
    return request->route != NULL && request->route->body != MM_BODY_NONE;
}

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

enum mm_status mm_upload_require_length(struct mm_request *request) {
    if (request->upload.content_length == MM_LENGTH_UNKNOWN ||
        request->headers[MM_HEADER_CONTENT_LENGTH] != NULL)
        return MM_OK;
    return mm_fail(&request->error, MM_LENGTH_REQUIRED,
                   "the %s has neither Content-Length nor Transfer-Encoding: chunked; send %s",
                   request->route->method,
                   request->route->body == MM_BODY_SIZED ? "Content-Length" : "one of them");
}

enum mm_status mm_upload_check_limit(struct mm_request *request) {
    if (request->upload.content_length != MM_LENGTH_UNKNOWN &&
        request->upload.content_length > body_bytes_max(request))
        return fail_limit(request, request->upload.content_length, &request->error);
    return MM_OK;
}

enum mm_status mm_upload_check(struct mm_request *request) {
    const bool is_chunked = request->upload.content_length == MM_LENGTH_UNKNOWN;
    if (!takes_body(request))
        return MM_OK;
    if (is_chunked && request->route->body == MM_BODY_SIZED)
        return mm_fail(&request->error, MM_LENGTH_REQUIRED,
                       "the %s is chunked; send it with Content-Length, so that memory can be reserved",
                       request->route->method);
    if (request->route->body >= MM_BODY_REQUIRED && mm_upload_require_length(request) != MM_OK)
        return request->error.status;
    return request->route->body == MM_BODY_SIZED ? MM_OK : mm_upload_check_limit(request);
}

static uint64_t bytes_max(const struct mm_request *request) {
    return request->upload.content_length == MM_LENGTH_UNKNOWN ? body_bytes_max(request)
                                                               : request->upload.content_length;
}

bool mm_upload_is_small(const struct mm_request *request) {
    return bytes_max(request) <= SMALL_BYTES;
}

static size_t buffered_bytes(const struct mm_request *request, uint64_t bytes) {
    return request->upload.mode == MM_UPLOAD_STREAMED && bytes > MM_UPLOAD_CHUNK_BYTES
               ? MM_UPLOAD_CHUNK_BYTES
               : (size_t)bytes + request->upload.lead_bytes;
}

/* Returns all memory that the request needs, or 0 if unknown, for instance if the body may be streamed. */
static size_t expected_bytes(const struct mm_request *request) {
    const bool is_known =
        request->upload.content_length != MM_LENGTH_UNKNOWN && request->upload.mode != MM_UPLOAD_UNDECIDED;
    return is_known ? buffered_bytes(request, request->upload.content_length) + request->upload.need_bytes
                    : 0;
}

enum mm_status mm_upload_reserve_first(struct mm_request *request) {
    struct mm_reservation *memory = &request->memory;
    const size_t expected = memory->expected_bytes = expected_bytes(request);
    const size_t whole_max = mm_size_min(FIRST_BYTES_MAX, memory->budget->bytes / FIRST_PART);
    const bool is_all_known = request->upload.need_bytes > 0 || expected >= SMALL_BYTES;
    if (!takes_body(request) || request->upload.content_length == 0)
        return MM_OK;
    return mm_reservation_ensure(memory, is_all_known && expected <= whole_max ? expected : SMALL_BYTES,
                                 &request->error);
}

/* Makes the buffer large enough for `bytes` bytes of the body. Reserves missing memory in large steps. */
static enum mm_status reserve_space(struct mm_request *request, size_t bytes) {
    struct mm_reservation *memory = &request->memory;
    const size_t most = buffered_bytes(request, bytes_max(request));
    const size_t needed = buffered_bytes(request, bytes), buffered = request->upload.body.bytes;
    if (needed <= buffered)
        return MM_OK;
    size_t unused = mm_reservation_unused(memory);
    if (needed - buffered > unused) {
        const size_t stepped = buffered + unused + mm_reservation_step(memory->bytes);
        const size_t target = mm_size_min(stepped > needed ? stepped : needed, most);
        if (mm_reservation_ensure(memory, target - buffered, &request->error) != MM_OK)
            return request->error.status;
        unused = mm_reservation_unused(memory);
    }
    return mm_reservation_grow(memory, mm_size_min(buffered + unused, most), most, &request->upload.body,
                               &request->error);
}

/* Makes space for a body. If memory is short, the reader drops decoded elements, and decodes them later. */
static enum mm_status grow(struct mm_request *request, size_t bytes) {
    if (bytes > bytes_max(request))
        return fail_limit(request, bytes, &request->error);
    request->memory.expected_bytes = expected_bytes(request);
    enum mm_status status = reserve_space(request, bytes);
    if (status != MM_BUSY || request->upload.reading == NULL || request->upload.reader->yield == NULL)
        return status;
    request->upload.reader->yield(request->upload.reading);
    request->error = (struct mm_error){0};
    return reserve_space(request, bytes);
}

void mm_upload_drop(struct mm_request *request) {
    if (request->upload.reading != NULL)
        request->upload.reader->cancel(request->upload.reading);
    request->upload.reading = NULL;
    mm_inflation_close(&request->upload.inflation, &request->memory);
    mm_reservation_free(&request->memory, &request->upload.body);
}

enum mm_status mm_upload_inflate(struct mm_request *request, struct mm_error *error) {
    struct mm_upload *upload = &request->upload;
    const size_t lead_bytes = upload->lead_bytes, received = upload->received_bytes;
    const char *data = received == 0 ? NULL : (const char *)upload->body.data + lead_bytes;
    size_t bytes_max = body_bytes_max(request);
    if (received < bytes_max / MM_INFLATION_RATIO_MAX)
        bytes_max = received * MM_INFLATION_RATIO_MAX;
    const enum mm_status status = mm_inflation_step(&upload->inflation, (struct mm_slice){data, received},
                                                    lead_bytes, bytes_max, &request->memory, error);
    if (status != MM_OK || upload->inflation.coding != 0)
        return status;
    mm_reservation_free(&request->memory, &upload->body);
    upload->body = upload->inflation.body;
    upload->body_bytes = lead_bytes + upload->inflation.stream.total_out;
    upload->inflation.body = (struct mm_buffer){0};
    mm_inflation_close(&upload->inflation, &request->memory);
    return MM_OK;
}

void mm_upload_drop_all(struct mm_request *request) {
    mm_upload_drop(request);
    if (request->route != NULL && request->route->state != NULL && request->route->state->drop_memory != NULL)
        request->route->state->drop_memory(request);
    mm_reservation_close(&request->memory);
}

uint64_t mm_upload_time_ns(const struct mm_request *request, uint64_t now_ns) {
    const struct mm_place *place = &request->place;
    const uint64_t begun_ns = request->started_ns + place->waited_ns;
    const uint64_t end_ns = mm_request_state(request) == MM_RESERVING ? place->since_ns : now_ns;
    return end_ns > begun_ns ? end_ns - begun_ns : 0; /* begun_ns may be later than now_ns */
}

bool mm_upload_is_late(const struct mm_request *request, uint64_t now_ns, struct mm_error *error) {
    const uint64_t deadline_ns = request->deadline_ns;
    if (now_ns <= deadline_ns)
        return false;
    mm_fail(error, mm_request_chose_deadline(request, deadline_ns) ? MM_TIMEOUT : MM_REQUEST_TIMEOUT,
            "the deadline passed when %zu bytes of the body had arrived; %s",
            __atomic_load_n(&request->upload.received_bytes, __ATOMIC_RELAXED),
            mm_request_deadline_advice(request, deadline_ns));
    return true;
}

double mm_upload_byte_ns(const struct mm_request *request) {
    const double time_ns = (double)(request->deadline_ns - request->started_ns);
    if (request->upload.content_length != MM_LENGTH_UNKNOWN)
        return time_ns / (double)request->upload.content_length;
    const double least_ns = 1e9 / (double)request->server->options->receive_rate;
    const double even_ns =
        time_ns / (double)(__atomic_load_n(&request->upload.received_bytes, __ATOMIC_RELAXED) + 1);
    return even_ns < least_ns ? even_ns : least_ns;
}

static void refuse_midway(struct mm_request *request) {
    if (request->error.status == MM_OK)
        mm_fail_limit(&request->error, "", MM_REFUSAL_DRAIN_MAX,
                      "%s %s takes no body and ignores one of up to %d bytes, but more arrived; send none",
                      request->route->method, request->route->path, MM_REFUSAL_DRAIN_MAX);
    mm_request_refuse_unread(request);
}

/* Drops a chunk of a refused body. A short body is read to its end before the reply; a long body is not. */
static void drop(struct mm_request *request, size_t bytes) {
    mm_upload_drop(request);
    request->upload.dropped_bytes += bytes;
    if (request->closes || request->upload.dropped_bytes > MM_REFUSAL_DRAIN_MAX ||
        mm_request_is_large(request))
        refuse_midway(request);
}

/* Uses page-locked memory for further chunks, if some is free, because a GPU copies faster from it. */
static void use_locked_memory(struct mm_request *request) {
    struct mm_buffer locked;
    if (mm_reservation_acquire(&request->memory, MM_UPLOAD_CHUNK_BYTES, &locked, NULL) != MM_OK)
        return;
    mm_reservation_free(&request->memory, &request->upload.body);
    mm_request_trim(request);
    request->upload.body = locked;
}

static void stream(struct mm_request *request, const char *data, size_t bytes) {
    while (bytes > 0 && request->error.status == MM_OK) {
        const size_t part = mm_size_min(bytes, MM_UPLOAD_CHUNK_BYTES - request->upload.body_bytes);
        memcpy((char *)request->upload.body.data + request->upload.body_bytes, data, part);
        request->upload.body_bytes += part;
        data += part;
        bytes -= part;
        if (request->upload.body_bytes < MM_UPLOAD_CHUNK_BYTES)
            continue;
        const bool is_first = request->upload.streamed_bytes == 0;
        if (request->route->state->stream(request) == MM_OK && is_first)
            use_locked_memory(request);
    }
}

static void store(struct mm_request *request, const char *data, size_t bytes) {
    if (request->upload.mode == MM_UPLOAD_STREAMED) {
        stream(request, data, bytes);
        return;
    }
    if (request->upload.body_bytes == 0)
        request->upload.body_bytes = request->upload.lead_bytes;
    memcpy((char *)request->upload.body.data + request->upload.body_bytes, data, bytes);
    request->upload.body_bytes += bytes;
    if (request->upload.reading != NULL)
        request->upload.body_bytes = request->upload.reader->feed(
            request->upload.reading, request->upload.body.data, request->upload.body_bytes);
}

/* Reserves memory for all received bytes, because a reader that has packed elements may have to unpack them.
 * Between the two calls of mm_connection_move only this thread may use the connection, so the sweep cannot
 * release the request's memory. During a wait for memory, the sweep can do that. */
enum MHD_Result mm_upload_receive(struct mm_request *request, const char *data, size_t *bytes) {
    const size_t chunk = *bytes;
    const size_t received = __atomic_load_n(&request->upload.received_bytes, __ATOMIC_RELAXED) + chunk;
    const bool is_ours = mm_connection_move(request->peer, MM_PHASE_BODY, MM_PHASE_HANDLED);
    request->peer->stream.unread_bytes = 0;
    if (request->record.left)
        return MHD_NO;
    if (is_ours && request->upload.mode == MM_UPLOAD_UNDECIDED && request->error.status == MM_OK)
        request->route->state->decide_to_stream(request, data, chunk);
    if (is_ours && takes_body(request) && request->error.status == MM_OK &&
        grow(request, received) == MM_BUSY && mm_request_wait_for_memory(request))
        return MHD_YES;
    *bytes = 0;
    __atomic_store_n(&request->upload.received_bytes, received, __ATOMIC_RELAXED);
    if (!is_ours)
        return MHD_YES;
    if (takes_body(request) && request->error.status == MM_OK) {
        store(request, data, chunk);
        if (received >= LARGE_BYTES && received - chunk < LARGE_BYTES)
            mm_connection_widen(request->peer);
    } else {
        drop(request, chunk);
    }
    mm_connection_move(request->peer, MM_PHASE_HANDLED, MM_PHASE_BODY);
    return MHD_YES;
}
