#include "server/http/line.h"

#include "gpu/store/store.h"
#include "server/http/upload.h"
#include "server/http/request.h"
#include "server/http/routes.h"
#include "server/observe/metrics.h"

#include <inttypes.h>

/* Limits how many slow requests one call of mm_line_look ends for each line of waiting requests. */
enum { ENDS_MAX = 64 };

void mm_line_open(struct mm_line *line) {
    for (unsigned part = 0; part < MM_BUDGET_PARTS; part++)
        TAILQ_INIT(&line->requests[part]);
}

static bool goes_before(const struct mm_request *request, const struct mm_request *other) {
    const bool holds = request->place.held_bytes > 0;
    return holds != (other->place.held_bytes > 0) ? holds : request->started_ns < other->started_ns;
}

static void count_waiting(const struct mm_request *request, int count) {
    struct mm_budget *budget = &request->server->budget;
    struct mm_budget_waiting *waiting = &budget->waiting[request->place.line];
    const struct mm_reservation *memory = &request->memory;
    __atomic_add_fetch(&waiting->all, (size_t)count, __ATOMIC_RELAXED);
    __atomic_add_fetch(&budget->client_waiting_bytes[memory->client],
                       (size_t)count * request->place.held_bytes, __ATOMIC_RELAXED);
    if (request->place.held_bytes > 0)
        __atomic_add_fetch(&waiting->holders, (size_t)count, __ATOMIC_RELAXED);
}

void mm_line_enter(struct mm_request *request, size_t lacked_bytes) {
    struct mm_place *place = &request->place;
    place->lacked_bytes = lacked_bytes;
    place->line = (int)mm_reservation_line(&request->memory, lacked_bytes);
    place->held_bytes = request->memory.bytes;
    place->since_ns = mm_clock_ns();
    struct mm_waiting_requests *line = &request->server->line.requests[place->line];
    struct mm_request *before = TAILQ_LAST(line, mm_waiting_requests);
    while (before != NULL && goes_before(request, before))
        before = TAILQ_PREV(before, mm_waiting_requests, place.next);
    if (before == NULL)
        TAILQ_INSERT_HEAD(line, request, place.next);
    else
        TAILQ_INSERT_AFTER(line, before, request, place.next);
    count_waiting(request, 1);
}

void mm_line_leave(struct mm_request *request) {
    struct mm_place *place = &request->place;
    TAILQ_REMOVE(&request->server->line.requests[place->line], request, place.next);
    count_waiting(request, -1);
    place->lacked_bytes = 0;
    place->waited_ns += mm_clock_ns() - place->since_ns;
}

/* Returns the request of a line that gets memory next, or NULL. This is the first request whose client may
 * get more memory, or the first request if there is none. Needs server->mutex. */
static struct mm_request *find_next(const struct mm_server *server, int part) {
    struct mm_request *first = TAILQ_FIRST(&server->line.requests[part]), *request = first;
    while (request != NULL && mm_reservation_is_unfair(&request->memory, request->place.lacked_bytes, true))
        request = TAILQ_NEXT(request, place.next);
    return request != NULL ? request : first;
}

/* Serves the requests of a line while the budget has enough memory. Needs server->mutex. */
static void serve(struct mm_server *server, int part, struct mm_resumed *resumed) {
    struct mm_request *first;
    while ((first = find_next(server, part)) != NULL &&
           mm_reservation_extend(&first->memory, first->place.lacked_bytes)) {
        mm_request_end_wait(first, NULL);
        SLIST_INSERT_HEAD(resumed, first, resumed);
    }
}

void mm_line_serve(struct mm_server *server) {
    struct mm_resumed resumed = SLIST_HEAD_INITIALIZER(resumed);
    if (!mm_budget_is_awaited(&server->budget))
        return;
    pthread_mutex_lock(&server->mutex);
    for (int part = 0; part < MM_BUDGET_PARTS; part++)
        serve(server, part, &resumed);
    pthread_mutex_unlock(&server->mutex);
    mm_request_resume(&resumed);
}

/* The functions from here to mm_line_look free memory. Call them with server->mutex held. */

/* Ends an upload or a waiting request with this error. Returns false if an upload is not in MM_PHASE_BODY. */
static bool refuse(struct mm_request *request, const struct mm_error *error, struct mm_resumed *resumed) {
    struct mm_connection *peer = request->peer;
    const bool was_waiting = mm_request_state(request) == MM_RESERVING;
    if (!was_waiting && !mm_connection_move(peer, MM_PHASE_BODY, MM_PHASE_CUT))
        return false;
    mm_upload_drop_all(request);
    if (was_waiting) {
        mm_request_end_wait(request, error);
        SLIST_INSERT_HEAD(resumed, request, resumed);
        return true;
    }
    request->error = *error;
    const struct mm_problem_reply reply = mm_request_problem(request, error);
    mm_record_cut(request, error, mm_connection_cut_from_outside(peer, &reply));
    return true;
}

/* Resets the connection of a slow reply. The connection's thread then frees the reply's memory. */
static void drop_reply(struct mm_request *request, uint64_t now_ns) {
    mm_pace_begin(&request->pace, request->pace.bytes, now_ns); /* so the next call does not drop it again */
    mm_connection_drop(request->peer);
    mm_metrics_closed(MM_CLOSED_SLOW_READER);
}

static void end_overdue(struct mm_server *server, int part, uint64_t now_ns, struct mm_resumed *resumed) {
    const uint64_t wait_ms = server->options->memory_wait_ms;
    struct mm_request *request, *next;
    struct mm_error error;
    mm_fail_busy(&error, MM_BUSY_MEMORY,
                 "no memory became free in %" PRIu64 " ms (--memory-wait-ms, --memory-budget); try "
                 "again later",
                 wait_ms);
    for (request = TAILQ_FIRST(&server->line.requests[part]); request != NULL; request = next) {
        const struct mm_place *place = &request->place;
        next = TAILQ_NEXT(request, place.next);
        if (now_ns + place->waited_ns > place->since_ns + wait_ms * UINT64_C(1000000))
            refuse(request, &error, resumed);
    }
}

/* Whether the request's body is being received or its reply is being sent. */
static bool moves(const struct mm_request *request) {
    const enum mm_request_state state = mm_request_state(request);
    return (state == MM_RECEIVING && mm_connection_phase(request->peer) == MM_PHASE_BODY) ||
           (state == MM_SENDING && __atomic_load_n(&request->peer->answers, __ATOMIC_ACQUIRE) != 0 &&
            request->pace.looked_ns >= request->record.replied_ns); /* earlier, `pace` describes the upload */
}

/* How much memory a line's first request gains if `request` ends. While no request waits for the main part of
 * the budget, small requests can use it too. The end of a reply also frees its stored value if that has no
 * name. */
static size_t freed_bytes(const struct mm_request *request, int part) {
    const struct mm_reservation *memory = &request->memory;
    const struct mm_stored *value = __atomic_load_n(&request->value, __ATOMIC_ACQUIRE);
    const bool has_main =
        part == MM_BUDGET_MAIN || TAILQ_EMPTY(&request->server->line.requests[MM_BUDGET_MAIN]);
    const int counts_in = __atomic_load_n(&memory->part, __ATOMIC_RELAXED);
    const size_t own = counts_in == part || has_main ? __atomic_load_n(&memory->bytes, __ATOMIC_RELAXED) : 0;
    const bool ends_value =
        has_main && value != NULL && value->only_copy == NULL && !mm_stored_is_named(value);
    return own + (ends_value ? value->bytes : 0);
}

struct slow_peers {
    struct mm_request *requests[ENDS_MAX]; /* the request that frees most memory comes first */
    size_t bytes[ENDS_MAX];
    unsigned count;
};

static void add_slow(struct slow_peers *slow, struct mm_request *request, size_t bytes) {
    unsigned place = slow->count;
    while (place > 0 && slow->bytes[place - 1] < bytes)
        place--;
    if (place == ENDS_MAX)
        return;
    slow->count = slow->count < ENDS_MAX ? slow->count + 1 : ENDS_MAX;
    for (unsigned last = slow->count - 1; last > place; last--) {
        slow->requests[last] = slow->requests[last - 1];
        slow->bytes[last] = slow->bytes[last - 1];
    }
    slow->requests[place] = request;
    slow->bytes[place] = bytes;
}

static void find_slow(struct mm_server *server, int part, struct slow_peers *slow) {
    const struct mm_connection *peer;
    slow->count = 0;
    TAILQ_FOREACH(peer, &server->connections, listed) {
        struct mm_request *request = __atomic_load_n(&peer->request, __ATOMIC_ACQUIRE);
        if (request == NULL || !moves(request) || !mm_pace_is_too_slow(&request->pace))
            continue;
        const size_t bytes = freed_bytes(request, part);
        if (bytes > 0)
            add_slow(slow, request, bytes);
    }
}

/* Bytes that the first request lacks in this part of the budget. Memory in another part is useless. */
static size_t lacked_bytes(const struct mm_request *first, int part) {
    const struct mm_reservation *memory = &first->memory;
    return first->place.lacked_bytes + (memory->part == part ? 0 : memory->bytes);
}

/* Ends uploads and replies that are too slow, until there is enough memory for the first request.
 * coming_bytes counts memory of dropped replies that is not free yet. */
static void end_slow(struct mm_server *server, int part, uint64_t now_ns, struct mm_resumed *resumed) {
    struct slow_peers slow;
    struct mm_error error;
    size_t coming_bytes = 0;
    mm_fail_busy(
        &error, MM_BUSY_MEMORY,
        "memory is full (--memory-budget), and this upload is too slow to be complete by its deadline; try "
        "again later");
    find_slow(server, part, &slow);
    for (unsigned index = 0; index < slow.count; index++) {
        const struct mm_request *first = find_next(server, part);
        if (first == NULL ||
            mm_budget_free_bytes(&server->budget, part) + coming_bytes >= lacked_bytes(first, part))
            return;
        if (mm_request_state(slow.requests[index]) == MM_SENDING) {
            drop_reply(slow.requests[index], now_ns);
            coming_bytes += slow.bytes[index];
        } else if (refuse(slow.requests[index], &error, resumed)) {
            serve(server, part, resumed);
        }
    }
}

/* What all waiting requests but the first have reserved in a part of the budget, and the latest request. */
struct waiting {
    size_t bytes;
    struct mm_request *youngest;
};

static struct waiting find_waiting(const struct mm_server *server, int part, const struct mm_request *first) {
    struct waiting waiting = {0};
    for (int line = 0; line < MM_BUDGET_PARTS; line++) {
        struct mm_request *request = TAILQ_FIRST(&server->line.requests[line]);
        for (; request != NULL; request = TAILQ_NEXT(request, place.next)) {
            if (request == first || request->memory.part != part || request->memory.bytes == 0)
                continue;
            waiting.bytes += request->memory.bytes;
            if (waiting.youngest == NULL || request->started_ns > waiting.youngest->started_ns)
                waiting.youngest = request;
        }
    }
    return waiting;
}

/* Ends a deadlock, in which waiting requests have reserved memory that the first request needs: rejects the
 * waiting request that arrived last. If stored matrices use too much, rejects the first request. */
static void end_deadlock(struct mm_server *server, int part, struct mm_resumed *resumed) {
    struct mm_request *first;
    struct mm_error latest, stored;
    mm_fail_busy(
        &latest, MM_BUSY_MEMORY,
        "memory is full (--memory-budget), and of the requests that wait for more this one arrived last; try "
        "again later");
    mm_fail_busy(
        &stored, MM_BUSY_STORED,
        "memory is full (--memory-budget), and stored matrices use what this request needs; delete some, or "
        "try again later");
    while ((first = find_next(server, part)) != NULL) {
        const size_t stored_bytes = part == MM_BUDGET_MAIN ? mm_request_stored_bytes(first) : 0;
        const size_t own_bytes = first->memory.part == part ? first->memory.bytes : 0;
        const size_t needed_bytes = own_bytes + lacked_bytes(first, part) + stored_bytes;
        const struct waiting waiting = find_waiting(server, part, first);
        const size_t part_bytes = server->budget.part_bytes[part];
        if (needed_bytes > part_bytes)
            refuse(first, &stored, resumed);
        else if (waiting.bytes > part_bytes - needed_bytes)
            refuse(waiting.youngest, &latest, resumed);
        else
            return;
        serve(server, part, resumed);
    }
}

void mm_line_look(struct mm_server *server, uint64_t now_ns) {
    struct mm_resumed resumed = SLIST_HEAD_INITIALIZER(resumed);
    pthread_mutex_lock(&server->mutex);
    for (int part = 0; part < MM_BUDGET_PARTS; part++) {
        end_overdue(server, part, now_ns, &resumed);
        serve(server, part, &resumed);
        if (!TAILQ_EMPTY(&server->line.requests[part]))
            end_slow(server, part, now_ns, &resumed);
        end_deadlock(server, part, &resumed);
    }
    pthread_mutex_unlock(&server->mutex);
    mm_request_resume(&resumed);
}
