/* The lines, and who ends so that their first fits. */
#include "server/http/line.h"

#include "gpu/store/store.h"
#include "server/http/body.h"
#include "server/http/request.h"
#include "server/http/routes.h"
#include "server/observe/metrics.h"

#include <inttypes.h>

/* How many requests a look ends at most. */
enum { ENDS_MAX = 64 };

void mm_line_open(struct mm_line *line) {
    for (unsigned part = 0; part < MM_BUDGET_PARTS; part++)
        TAILQ_INIT(&line->requests[part]);
}

/* --- places */

static bool goes_before(const struct mm_request *request, const struct mm_request *other) {
    const bool holds = request->place.holds;
    return holds != other->place.holds ? holds : request->started_ns < other->started_ns;
}

static void count_waiting(const struct mm_request *request, int count) {
    struct mm_budget_waiting *waiting = &request->server->budget.waiting[request->place.line];
    __atomic_add_fetch(&waiting->all, (size_t)count, __ATOMIC_RELAXED);
    if (request->place.holds)
        __atomic_add_fetch(&waiting->holders, (size_t)count, __ATOMIC_RELAXED);
}

void mm_line_enter(struct mm_request *request, size_t lacked_bytes) {
    struct mm_place *place = &request->place;
    place->lacked_bytes = lacked_bytes;
    place->line = (int)mm_reservation_line(&request->memory, lacked_bytes);
    place->holds = request->memory.bytes > 0;
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

/* --- serving */

/* Reserves what the first lacks, as long as there is room. With server->mutex held. */
static void serve(struct mm_server *server, int part, struct mm_resumed *resumed) {
    struct mm_request *first;
    while ((first = TAILQ_FIRST(&server->line.requests[part])) != NULL &&
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

/* --- making room. With server->mutex held. */

/* Ends a request with this error; false if its own thread has the connection now. */
static bool refuse(struct mm_request *request, const struct mm_error *error, struct mm_resumed *resumed) {
    struct mm_connection *peer = request->peer;
    const bool was_waiting = mm_request_state(request) == MM_RESERVING;
    if (!was_waiting && !mm_connection_move(peer, MM_PHASE_BODY, MM_PHASE_CUT))
        return false;
    mm_body_drop_all(request);
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

/* Its memory is free once its own thread has seen the end. */
static void drop_reply(struct mm_request *request, uint64_t now_ns) {
    mm_pace_begin(&request->pace, request->pace.bytes, now_ns); /* so it is not dropped again meanwhile */
    mm_connection_drop(request->peer);
    mm_metrics_closed(MM_CLOSED_SLOW_READER);
}

static void end_overdue(struct mm_server *server, int part, uint64_t now_ns, struct mm_resumed *resumed) {
    const uint64_t wait_ms = server->options->memory_wait_ms;
    struct mm_request *request, *next;
    struct mm_error error;
    mm_fail(&error, MM_BUSY, "no memory became free in %" PRIu64 " ms (--memory-wait-ms, --memory-budget); try "
                             "again later", wait_ms);
    for (request = TAILQ_FIRST(&server->line.requests[part]); request != NULL; request = next) {
        const struct mm_place *place = &request->place;
        next = TAILQ_NEXT(request, place.next);
        if (now_ns + place->waited_ns > place->since_ns + wait_ms * UINT64_C(1000000))
            refuse(request, &error, resumed);
    }
}

/* What a request holds of a part. A value without a name is free once the reply that sends it ends. */
static size_t held_bytes(const struct mm_request *request, int part) {
    const struct mm_reservation *memory = &request->memory;
    const struct mm_stored *value = __atomic_load_n(&request->sent_value, __ATOMIC_ACQUIRE);
    const bool ends_value = part == MM_BUDGET_MAIN && value != NULL && !mm_stored_is_named(value);
    const bool counts_here = __atomic_load_n(&memory->part, __ATOMIC_RELAXED) == part;
    return (counts_here ? __atomic_load_n(&memory->bytes, __ATOMIC_RELAXED) : 0) +
           (ends_value ? value->bytes : 0);
}

/* Who holds memory of a part beside the first of its line. */
struct holders {
    struct mm_request *slow;     /* of uploads and replies that are too slow, the one that holds most */
    size_t slow_bytes;           /* what it holds */
    struct mm_request *youngest; /* of those that wait, the one that arrived last */
    size_t waiting_bytes;        /* what those that wait hold */
};

static bool moves(const struct mm_request *request) {
    const enum mm_request_state state = mm_request_state(request);
    return (state == MM_RECEIVING && mm_connection_phase(request->peer) == MM_PHASE_BODY) ||
           (state == MM_SENDING && __atomic_load_n(&request->peer->answers, __ATOMIC_ACQUIRE) != 0);
}

static void look_at(struct mm_request *request, int part, struct holders *holders) {
    const size_t bytes = held_bytes(request, part);
    if (bytes == 0)
        return;
    if (mm_request_state(request) == MM_RESERVING) {
        holders->waiting_bytes += bytes;
        if (holders->youngest == NULL || request->started_ns > holders->youngest->started_ns)
            holders->youngest = request;
    } else if (moves(request) && mm_pace_is_too_slow(&request->pace) && bytes > holders->slow_bytes) {
        holders->slow = request;
        holders->slow_bytes = bytes;
    }
}

static struct holders find_holders(const struct mm_request *first, int part) {
    struct holders holders = {0};
    const struct mm_connection *peer;
    TAILQ_FOREACH(peer, &first->server->connections, listed) {
        struct mm_request *request = __atomic_load_n(&peer->request, __ATOMIC_ACQUIRE);
        if (request != NULL && request != first)
            look_at(request, part, &holders);
    }
    return holders;
}

/* What the first lacks of a part: all of it if its reservation has to move there. */
static size_t lacked_bytes(const struct mm_request *first, int part) {
    const struct mm_reservation *memory = &first->memory;
    return first->place.lacked_bytes + (memory->part == part ? 0 : memory->bytes);
}

/* Whether the first would not fit even if all ended that do not wait. */
static bool is_deadlocked(const struct mm_request *first, int part, const struct holders *holders) {
    const size_t own = first->memory.part == part ? first->memory.bytes : 0;
    const size_t lasting = part == MM_BUDGET_MAIN ? mm_request_stored_bytes(first) : 0;
    const size_t others = holders->waiting_bytes + own + lasting;
    return mm_size_min(others, SIZE_MAX - lacked_bytes(first, part)) + lacked_bytes(first, part) >
           first->server->budget.part_bytes[part];
}

static bool end_one(struct mm_request *first, int part, uint64_t now_ns, size_t *coming_bytes,
                    struct mm_resumed *resumed) {
    struct mm_error slow, latest;
    const struct holders holders = find_holders(first, part);
    mm_fail(&slow, MM_BUSY, "memory is full (--memory-budget), and this upload is too slow to be complete by its "
                            "deadline; try again later");
    mm_fail(&latest, MM_BUSY, "memory is full (--memory-budget), and of the requests that wait for more this one "
                              "came last; try again later");
    if (holders.slow != NULL && mm_request_state(holders.slow) == MM_SENDING) {
        drop_reply(holders.slow, now_ns);
        *coming_bytes += holders.slow_bytes;
        return true;
    }
    if (holders.slow != NULL)
        return refuse(holders.slow, &slow, resumed);
    return holders.youngest != NULL && is_deadlocked(first, part, &holders) &&
           refuse(holders.youngest, &latest, resumed);
}

/* coming_bytes: of replies that were dropped in this look, whose memory will be free in a moment. */
static void make_room(struct mm_server *server, int part, uint64_t now_ns, struct mm_resumed *resumed) {
    size_t coming_bytes = 0;
    for (unsigned ends = 0; ends < ENDS_MAX; ends++) {
        serve(server, part, resumed);
        struct mm_request *first = TAILQ_FIRST(&server->line.requests[part]);
        if (first == NULL || mm_budget_free_bytes(&server->budget, part) + coming_bytes >= lacked_bytes(first, part) ||
            !end_one(first, part, now_ns, &coming_bytes, resumed))
            return;
    }
}

void mm_line_look(struct mm_server *server, uint64_t now_ns) {
    struct mm_resumed resumed = SLIST_HEAD_INITIALIZER(resumed);
    pthread_mutex_lock(&server->mutex);
    for (int part = 0; part < MM_BUDGET_PARTS; part++) {
        end_overdue(server, part, now_ns, &resumed);
        make_room(server, part, now_ns, &resumed);
    }
    pthread_mutex_unlock(&server->mutex);
    mm_request_resume(&resumed);
}
