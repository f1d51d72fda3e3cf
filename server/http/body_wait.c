/* Requests that wait for memory, and the slow uploads and replies that end for them: these could hold the
 * whole budget. */
#include "server/http/body.h"

#include "gpu/store/store.h"
#include "server/http/routes.h"
#include "server/observe/metrics.h"

/* WAIT_MAX_MS: how long a request waits, in all its waits together. PACE_MS: how often a pace is judged, so
 * that an upload that stands is found before that. GO_ON_MS: how long one that waits counts on what others
 * will release, since a product can take longer than it may wait. */
enum { REFUSALS_MAX = 64, WAIT_MAX_MS = 3000, PACE_MS = 1000, GO_ON_MS = 2000 };

#define NS_PER_MS UINT64_C(1000000)

size_t mm_body_arrived_bytes(const struct mm_request *request) {
    const size_t received = __atomic_load_n(&request->received_bytes, __ATOMIC_RELAXED);
    return received > request->needed_bytes ? received : request->needed_bytes;
}

uint64_t mm_body_upload_ns(const struct mm_request *request, uint64_t now_ns) {
    const uint64_t begun_ns = request->started_ns + request->waited_ns;
    const uint64_t end_ns = mm_request_state(request) == MM_STARVED ? request->starved_since_ns : now_ns;
    return end_ns > begun_ns ? end_ns - begun_ns : 0; /* it may have begun after the sweep read the clock */
}

bool mm_body_is_late(const struct mm_request *request, uint64_t now_ns, struct mm_error *error) {
    const uint64_t deadline_ns = request->deadline_ns;
    if (now_ns <= deadline_ns)
        return false;
    mm_fail(error, mm_request_chose_deadline(request, deadline_ns) ? MM_TIMEOUT : MM_REQUEST_TIMEOUT,
            "the deadline passed when %zu bytes of the body had come; %s", mm_body_arrived_bytes(request),
            mm_request_deadline_advice(request, deadline_ns));
    return true;
}

/* A chunked body is taken to be twice as long as what has come. */
static double assumed_length(const struct mm_request *request) {
    enum { CHUNKED_BYTES_MIN = 64 << 10 };
    if (request->content_length != MM_LENGTH_UNKNOWN)
        return (double)request->content_length;
    const double length = 2 * (double)mm_body_arrived_bytes(request);
    return length > CHUNKED_BYTES_MIN ? length : CHUNKED_BYTES_MIN;
}

/* How long so many bytes may take at the even rate that completes the body at its deadline. */
static double even_ns(const struct mm_request *request, size_t bytes) {
    return (double)(request->deadline_ns - request->started_ns) * (double)bytes / assumed_length(request);
}

static bool is_pace_due(const struct mm_request *request, uint64_t now_ns) {
    return now_ns >= request->paced_ns + PACE_MS * NS_PER_MS;
}

static void begin_pace(struct mm_request *request, size_t bytes, uint64_t now_ns) {
    request->paced_ns = now_ns;
    request->paced_bytes = bytes;
}

/* byte_ns: how long a byte may take. left: how many are to come. */
static void judge_pace(struct mm_request *request, size_t bytes, double byte_ns, double left,
                       bool we_are_slow, uint64_t now_ns) {
    const double took_ns = (double)(now_ns - request->paced_ns);
    const double came = (double)(bytes - request->paced_bytes);
    request->stands = !we_are_slow && took_ns > byte_ns * came;
    request->lasts = !we_are_slow && took_ns * left > GO_ON_MS * (double)NS_PER_MS * came;
    begin_pace(request, bytes, now_ns);
}

void mm_body_judge_pace(struct mm_request *request, uint64_t now_ns) {
    const size_t bytes = mm_body_arrived_bytes(request);
    if (is_pace_due(request, now_ns))
        judge_pace(request, bytes, even_ns(request, 1), assumed_length(request) - (double)bytes,
                   mm_connection_has_unread(request->peer), now_ns);
}

/* Whether the sweep has begun to judge the pace of the reply. Until then the pace is the upload's. */
static bool has_reply_pace(const struct mm_request *request) {
    return __atomic_load_n(&request->peer->answers, __ATOMIC_ACQUIRE) != 0 &&
           request->paced_ns >= request->record.replied_ns;
}

void mm_body_judge_reply(struct mm_request *request, size_t taken_bytes, bool we_are_slow, uint64_t now_ns) {
    const double timeout_ns = (double)request->server->options->timeout_ms * (double)NS_PER_MS;
    if (!has_reply_pace(request)) {
        request->stands = request->lasts = false;
        begin_pace(request, taken_bytes, now_ns);
    } else if (is_pace_due(request, now_ns)) {
        const double length = (double)request->record.out_bytes;
        judge_pace(request, taken_bytes, timeout_ns / length, length, we_are_slow, now_ns);
    }
}

/* Whether an upload stood when its pace was judged last, and has not kept the even rate since then. */
static bool still_stands(const struct mm_request *request, uint64_t now_ns) {
    const size_t came = mm_body_arrived_bytes(request) - request->paced_bytes;
    return request->stands && mm_request_state(request) != MM_STARVED &&
           even_ns(request, came) < (double)now_ns - (double)request->paced_ns;
}

/* How far an upload is behind the even rate; below 0: ahead. What one that stands brought before does not
 * count: it may hold most of the memory, and never end. Nor does what was read of a reply that stands; no
 * other is behind. */
static double behind_ns(const struct mm_request *request, uint64_t now_ns) {
    if (has_reply_pace(request))
        return request->stands ? (double)(now_ns - request->record.replied_ns) : 0;
    return (double)mm_body_upload_ns(request, now_ns) -
           (still_stands(request, now_ns) ? 0 : even_ns(request, mm_body_arrived_bytes(request)));
}

/* What holds memory while `first` waits for some. */
struct holders {
    struct mm_request *last;     /* the upload or reply that is furthest behind; NULL: none is behind */
    struct mm_request *youngest; /* of the others that wait; NULL: none */
    bool go_on;                  /* others do not wait, and will soon give back what it lacks */
    double coming_bytes;         /* of uploads that will end soon */
    double waiting_bytes;        /* what the others that wait hold */
};

/* How much the request still lacks, if its body has this length. */
static double lacked_bytes(const struct mm_request *request, double length) {
    return request->output_bytes != 0
               ? (double)request->output_bytes
               : (double)mm_body_kept_bytes(request, (size_t)length) - (double)request->body.bytes;
}

/* Whether the request sends a stored matrix that ends with it. One that still has its name stays. */
static bool sends_nameless(const struct mm_request *request) {
    const struct mm_stored *value = __atomic_load_n(&request->sent_value, __ATOMIC_ACQUIRE);
    return value != NULL && !mm_stored_is_named(value);
}

/* Whether memory becomes free once the request ends. */
static bool holds_memory(const struct mm_request *request) {
    return __atomic_load_n(&request->held_bytes, __ATOMIC_RELAXED) != 0 || sends_nameless(request);
}

/* Whether it holds what mm_body_passes_huge leaves out. */
static bool holds_huge(const struct mm_request *request) {
    return __atomic_load_n(&request->huge_bytes, __ATOMIC_RELAXED) != 0 || sends_nameless(request);
}

/* An upload or a reply that lasts will end, but later than others can wait for what it holds: a few bytes a
 * second would hold up all that wait. So would uploads that are too small for them, one after the other. */
static void look_at(struct mm_request *request, const struct mm_request *first, bool huge_only,
                    uint64_t now_ns, double *most_ns, struct holders *holders) {
    const enum mm_request_state state = mm_request_state(request);
    const bool waits = state == MM_STARVED;
    const bool uploads = state == MM_RECEIVING && mm_connection_phase(request->peer) == MM_PHASE_BODY;
    const bool sends = has_reply_pace(request);
    if (!holds_memory(request) || (huge_only && !holds_huge(request)))
        return;
    if (uploads)
        holders->coming_bytes +=
            request->lasts ? 0 : (double)mm_body_kept_bytes(request, (size_t)assumed_length(request));
    else
        holders->go_on |= !waits && !(sends && request->lasts);
    if (!waits && !uploads && !sends) /* its own thread has it */
        return;
    const double late_ns = behind_ns(request, now_ns);
    if (late_ns > *most_ns) {
        holders->last = request;
        *most_ns = late_ns;
    }
    if (!waits || request == first)
        return;
    holders->waiting_bytes += (double)__atomic_load_n(&request->held_bytes, __ATOMIC_RELAXED);
    if (holders->youngest == NULL || request->started_ns > holders->youngest->started_ns)
        holders->youngest = request;
}

/* What has gone past a huge output does not delay it, and does not have to go for it. With server->mutex
 * held, like all that follow. */
static struct holders find_holders(const struct mm_request *first, uint64_t now_ns) {
    struct holders holders = {0};
    double most_ns = 0;
    const bool huge_only = mm_body_waits_for_huge(first) && mm_body_passes_huge(first->server, 0);
    const struct mm_connection *peer;
    TAILQ_FOREACH(peer, &first->server->connections, listed) {
        struct mm_request *request = __atomic_load_n(&peer->request, __ATOMIC_ACQUIRE);
        if (request != NULL)
            look_at(request, first, huge_only, now_ns, &most_ns, &holders);
    }
    holders.go_on |= holders.coming_bytes >= lacked_bytes(first, assumed_length(first));
    return holders;
}

/* Its memory is free once its own thread has seen the end. Until then it is none that stands. */
static void drop_reply(struct mm_request *request, uint64_t now_ns) {
    request->stands = request->lasts = false;
    request->paced_ns = now_ns;
    mm_connection_drop(request->peer);
    mm_metrics_closed(MM_CLOSED_SLOW_READER);
}

/* False if its own thread has the connection now. */
static bool refuse(struct mm_request *request, const char *why, struct mm_resumed *resumed) {
    struct mm_connection *peer = request->peer;
    struct mm_error error;
    const bool was_waiting = mm_request_state(request) == MM_STARVED;
    if (!was_waiting && !mm_connection_move(peer, MM_PHASE_BODY, MM_PHASE_CUT))
        return false;
    mm_fail(&error, MM_BUSY, "memory is full (--memory-budget), and %s; try again later", why);
    mm_body_drop_all(request);
    if (was_waiting) {
        mm_request_end_wait(request, &error);
        SLIST_INSERT_HEAD(resumed, request, resumed);
        return true;
    }
    request->error = error;
    const struct mm_problem_reply reply = mm_request_problem(request, &error);
    mm_record_cut(request, &error, mm_connection_cut_from_outside(peer, &reply));
    return true;
}

/* Gives a body its memory. For a complete request only looks whether there is enough beside what is promised
 * to others: it takes it itself. */
static enum mm_status give(struct mm_request *request, bool to_the_last, struct mm_error *error) {
    struct mm_server *server = request->server;
    const size_t budget = mm_buffers_budget(server->buffers);
    if (request->output_bytes == 0)
        return mm_body_grow(request, request->needed_bytes, to_the_last, error);
    const size_t taken =
        mm_body_taken_bytes(server, mm_body_waits_for_huge(request)) + server->promised_bytes;
    if (taken > budget || request->output_bytes > budget - taken)
        return MM_BUSY;
    __atomic_store_n(&request->promised_bytes, request->output_bytes, __ATOMIC_RELAXED);
    server->promised_bytes += request->promised_bytes;
    return MM_OK;
}

/* Ends the wait of a request that now has its memory, or can never have it; else returns false. by_itself: no
 * other was refused for it. */
static bool serve(struct mm_request *request, bool to_the_last, bool by_itself, struct mm_resumed *resumed) {
    struct mm_error error;
    const enum mm_status status = give(request, to_the_last, &error);
    if (status == MM_BUSY)
        return false;
    if (by_itself && request == TAILQ_FIRST(&request->server->starved))
        request->server->served_ns = mm_clock_ns();
    if (by_itself)
        request->counts_since_ns = 0;
    mm_request_end_wait(request, status == MM_OK ? NULL : &error);
    SLIST_INSERT_HEAD(resumed, request, resumed);
    return true;
}

/* Whether the first would have its memory if all others that wait were refused. Of a chunked body only the
 * piece that has come is certain. */
static bool do_suffice(const struct holders *holders, const struct mm_request *first) {
    const struct mm_server *server = first->server;
    const bool is_chunked = first->content_length == MM_LENGTH_UNKNOWN;
    const double length = (double)(is_chunked ? first->needed_bytes : first->content_length);
    const double taken = (double)mm_buffers_used(server->buffers) + (double)server->promised_bytes;
    return (double)mm_buffers_budget(server->buffers) - taken + holders->waiting_bytes >=
           lacked_bytes(first, length);
}

/* Whether others can be expected to release what the first lacks. While they serve one first after the other,
 * each counts on them anew. */
static bool may_release(const struct holders *holders, const struct mm_request *first, uint64_t now_ns) {
    const uint64_t served_ns = first->server->served_ns, counts_since_ns = first->counts_since_ns;
    const uint64_t since_ns = served_ns > counts_since_ns ? served_ns : counts_since_ns;
    return holders->go_on && now_ns <= since_ns + GO_ON_MS * NS_PER_MS;
}

/* Refuses an upload for the first that waits, or drops a reply; false if that has freed nothing yet. If all
 * that hold memory wait for more, or what the others hold has not come, the youngest goes if that helps, so
 * that the oldest are answered. */
static bool make_room(const struct mm_request *first, const struct holders *holders, uint64_t now_ns,
                      struct mm_resumed *resumed) {
    if (holders->last != NULL && mm_request_state(holders->last) == MM_SENDING) {
        drop_reply(holders->last, now_ns);
        return false;
    }
    if (holders->last != NULL)
        return refuse(holders->last, "this upload is slower than the others for its length and deadline",
                      resumed);
    return holders->youngest != NULL && !may_release(holders, first, now_ns) && do_suffice(holders, first) &&
           refuse(holders->youngest, "all uploads wait for more, of which this is the latest", resumed);
}

/* One that has waited too long; NULL: none. */
static struct mm_request *find_overdue(const struct mm_server *server, uint64_t now_ns) {
    struct mm_request *request = TAILQ_FIRST(&server->starved);
    while (request != NULL &&
           now_ns + request->waited_ns <= request->starved_since_ns + WAIT_MAX_MS * NS_PER_MS)
        request = TAILQ_NEXT(request, starving);
    return request;
}

/* What the requests have found that the list has before one. */
struct found {
    bool is_full;    /* no memory is left for a small body */
    bool is_blocked; /* a complete request waits: large outputs do not overtake it, */
    bool is_huge;    /* unless all that wait do so for a huge one */
};

/* Whether a request that is not the first may have its memory now. */
static bool is_due(const struct mm_request *request, const struct found *found) {
    const bool is_body = request->output_bytes == 0;
    if (is_body && mm_body_is_small(request))
        return !found->is_full;
    if (!is_body && (!found->is_blocked || request->output_bytes <= MM_LARGE_OUTPUT_BYTES))
        return true;
    return found->is_blocked && found->is_huge && !mm_body_waits_for_huge(request) &&
           mm_body_passes_huge(request->server, mm_body_lacked_bytes(request));
}

/* What does not depend on who is first. */
static void look_at_waiting(struct mm_request *request, uint64_t now_ns, struct found *found,
                            struct mm_resumed *resumed) {
    struct mm_error late;
    const bool is_body = request->output_bytes == 0;
    if (is_body && mm_body_is_late(request, now_ns, &late)) {
        mm_body_drop(request);
        mm_request_abandon(request, &late);
        SLIST_INSERT_HEAD(resumed, request, resumed);
        return;
    }
    const bool is_due_now = is_due(request, found);
    if (is_due_now && serve(request, false, true, resumed))
        return;
    found->is_full |= is_due_now && is_body && mm_body_is_small(request);
    found->is_blocked |= !is_body;
    found->is_huge &= mm_body_waits_for_huge(request);
}

void mm_body_serve_complete(struct mm_server *server) {
    struct mm_resumed resumed = SLIST_HEAD_INITIALIZER(resumed);
    struct mm_request *first;
    pthread_mutex_lock(&server->mutex);
    do
        first = TAILQ_FIRST(&server->starved);
    while (first != NULL && first->output_bytes != 0 && serve(first, false, true, &resumed));
    pthread_mutex_unlock(&server->mutex);
    mm_request_resume(&resumed);
}

/* Memory that a refused upload leaves goes to the next before another is refused. If none can be refused, and
 * no other request goes on, the first may have what was left to results. It does not get that sooner: a slow
 * upload would go on with it while all others wait. */
void mm_body_serve_waiting(struct mm_server *server, uint64_t now_ns) {
    struct mm_resumed resumed = SLIST_HEAD_INITIALIZER(resumed);
    struct mm_request *first, *next, *overdue;
    unsigned refusals = 0;
    struct found found = {.is_huge = true};
    pthread_mutex_lock(&server->mutex);
    for (first = TAILQ_FIRST(&server->starved); first != NULL; first = next) {
        next = TAILQ_NEXT(first, starving);
        look_at_waiting(first, now_ns, &found, &resumed);
    }
    while ((first = TAILQ_FIRST(&server->starved)) != NULL) {
        if (serve(first, false, refusals == 0, &resumed))
            continue;
        const struct holders holders = find_holders(first, now_ns);
        if (refusals++ == REFUSALS_MAX)
            break;
        if (make_room(first, &holders, now_ns, &resumed))
            continue;
        if (!holders.go_on && serve(first, true, refusals == 1, &resumed))
            continue;
        overdue = find_overdue(server, now_ns);
        if (overdue == NULL)
            break;
        refuse(overdue, "none became free while this request waited", &resumed);
    }
    pthread_mutex_unlock(&server->mutex);
    mm_request_resume(&resumed);
}
