/* The sweep: finds missed deadlines, clients that left, and slow clients. Knows no route and no codec. */
#include "server/http/sweep.h"

#include "gpu/store/store.h"
#include "server/http/upload.h"
#include "server/http/connection.h"
#include "server/http/request.h"
#include "server/observe/metrics.h"

#include <inttypes.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

/* HEADS_EVERY and TRIM_EVERY are numbers of sweeps. Heads and readers are checked only every HEADS_EVERY
 * sweeps, because each check takes a system call and many connections are idle. */
enum {
    PERIOD_MS = 100,
    SERVE_MS = 10, /* time between attempts to give memory to waiting requests */
    HEADS_EVERY = 5,
    TRIM_EVERY = 10,
    SLICE = 128,
    SLICE_PAUSE_NS = 20000,
    CUT_LINGER_MS = 1000,
    IDLE_MS_MIN = 100 /* a connection counts as idle only after this time */
};

#define NS_PER_MS UINT64_C(1000000)

/* Unused memory is returned to the system after this time. */
#define KEEP_NS UINT64_C(10000000000)

/* The value of TCP_ESTABLISHED, whose header cannot be included together with linux/tcp.h. */
enum { ESTABLISHED = 1 };

/* Returns 0 if then_ns is later than now_ns, because another thread set it after the sweep read the clock. */
static uint64_t since(uint64_t now_ns, uint64_t then_ns) {
    return now_ns > then_ns ? now_ns - then_ns : 0;
}

/* Whether the client has closed the connection. A client that only stopped sending looks like that too, and
 * counts as gone, as in other servers. */
static bool has_left(int fd) {
    struct pollfd peer = {.fd = fd, .events = POLLRDHUP};
    return poll(&peer, 1, 0) > 0 && (peer.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

/* Whether a waiting request has missed its deadline. If so, *late becomes the reply. */
static bool is_past_deadline(const struct mm_request *request, uint64_t now_ns, struct mm_error *late) {
    const bool has_work = request->work != NULL && request->work->deadline_ns != 0;
    const uint64_t deadline_ns = has_work ? request->work->deadline_ns : request->deadline_ns;
    if (request->upload.state != MM_UPLOAD_COMPLETE)
        return mm_upload_is_late(request, now_ns, late);
    if (now_ns <= deadline_ns)
        return false;
    mm_fail(late, MM_TIMEOUT, "the deadline passed before the result was ready; %s",
            mm_request_deadline_advice(request, deadline_ns));
    return true;
}

/* Abandons a waiting request if its client has left or its deadline has passed. Otherwise returns false. */
static bool look_at_waiting(struct mm_request *request, uint64_t now_ns) {
    struct mm_error late;
    const bool is_late = is_past_deadline(request, now_ns, &late);
    if (!is_late && !has_left(request->peer->fd))
        return false;
    if (mm_request_state(request) == MM_RESERVING)
        mm_upload_drop_all(request);
    mm_request_abandon(request, is_late ? &late : NULL);
    return true;
}

static bool is_slow_body(const struct mm_request *request, uint64_t now_ns, struct mm_error *error) {
    const struct mm_options *options = request->server->options;
    uint64_t elapsed_ms = mm_upload_time_ns(request, now_ns) / NS_PER_MS;
    uint64_t bytes = __atomic_load_n(&request->upload.received_bytes, __ATOMIC_RELAXED);
    if (mm_upload_is_late(request, now_ns, error) ||
        (__atomic_load_n(&request->upload.mode, __ATOMIC_RELAXED) == MM_UPLOAD_STREAMED &&
         request->route->state->has_lost_space(request, error)))
        return true;
    uint64_t rate = options->receive_rate;
    uint64_t gained_ms = bytes / rate * 1000 + bytes % rate * 1000 / rate;
    if (elapsed_ms <= options->receive_timeout_ms + gained_ms ||
        mm_connection_has_unread(request->peer)) /* the server is slow, not the client */
        return false;
    mm_fail(error, MM_REQUEST_TIMEOUT,
            "%" PRIu64 " bytes of the body arrived in %" PRIu64 " ms, but the limit is %" PRIu64
            " ms (--receive-timeout-ms) and a second for every %" PRIu64 " bytes (--receive-rate)",
            bytes, elapsed_ms, options->receive_timeout_ms, rate);
    return true;
}

/* If the client has left, closes the receiving side. Otherwise MHD could miss the end of the connection if it
 * came together with data. MHD still reads this data, and answers a complete request. */
static bool end_reading_if_left(struct mm_connection *connection) {
    if (!has_left(connection->fd))
        return false;
    mm_connection_stop_reading(connection);
    return true;
}

static struct tcp_info ask(int fd) {
    struct tcp_info info;
    socklen_t length = sizeof info;
    memset(&info, 0, sizeof info);
    (void)getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length);
    return info;
}

static bool has_unread_reply(const struct tcp_info *info) {
    return info->tcpi_unacked > 0 || info->tcpi_notsent_bytes > 0;
}

/* Records an upload's pace. Time with unread bytes in the socket does not count: the server is slow then. */
static void look_at_upload(struct mm_request *request, uint64_t now_ns) {
    const size_t bytes = __atomic_load_n(&request->upload.received_bytes, __ATOMIC_RELAXED);
    if (mm_connection_has_unread(request->peer))
        mm_pace_skip(&request->pace, bytes, now_ns);
    else
        mm_pace_look(&request->pace, bytes, mm_upload_byte_ns(request), now_ns);
}

/* Records the pace of a client that reads a reply. Reading may take --timeout-ms. Time does not count while
 * the client has read all sent bytes, because the server is slow then. */
static void look_at_reply(struct mm_request *request, const struct tcp_info *info, uint64_t now_ns) {
    const uint64_t timeout_ns = request->server->options->timeout_ms * NS_PER_MS;
    const double byte_ns = (double)timeout_ns / (double)(request->record.out_bytes + 1);
    if (request->pace.looked_ns < request->record.replied_ns)
        mm_pace_begin(&request->pace, info->tcpi_bytes_acked, now_ns);
    else if (!has_unread_reply(info))
        mm_pace_skip(&request->pace, info->tcpi_bytes_acked, now_ns);
    else
        mm_pace_look(&request->pace, info->tcpi_bytes_acked, byte_ns, now_ns);
}

static void look_at_body(struct mm_connection *connection, uint64_t now_ns) {
    struct mm_request *request = __atomic_load_n(&connection->request, __ATOMIC_ACQUIRE);
    struct mm_error error;
    if (request == NULL || end_reading_if_left(connection))
        return;
    look_at_upload(request, now_ns);
    if (!is_slow_body(request, now_ns, &error))
        return;
    if (!mm_connection_move(connection, MM_PHASE_BODY, MM_PHASE_CUT))
        return;
    mm_upload_drop_all(request);
    const struct mm_problem_reply reply = mm_request_problem(request, &error);
    mm_record_cut(request, &error, mm_connection_cut_from_outside(connection, &reply));
}

/* Begins to measure how fast the client reads, if a part of a reply is unread. */
static void count_read(struct mm_connection *connection, const struct tcp_info *info, uint64_t now_ns) {
    connection->reading_since_ns = has_unread_reply(info) ? now_ns : 0;
    connection->read_bytes = info->tcpi_bytes_acked;
    connection->reading_requests = __atomic_load_n(&connection->requests, __ATOMIC_RELAXED);
}

static bool has_read_enough(const struct mm_options *options, const struct mm_connection *connection,
                            const struct tcp_info *info) {
    const uint64_t rate = options->send_rate;
    const uint64_t bytes = info->tcpi_bytes_acked - connection->read_bytes;
    return bytes / rate * 1000 + bytes % rate * 1000 / rate >= options->send_timeout_ms;
}

/* Drops a client that reads its reply too slowly. Each period of --send-timeout-ms is checked separately,
 * because sockets buffer many bytes at once. If nothing is unread, the server is slow, not the client. A
 * client that has sent its next request has read the reply. */
static void look_at_reader(struct mm_server *server, struct mm_connection *connection,
                           const struct tcp_info *info, uint64_t now_ns) {
    const struct mm_options *options = server->options;
    const unsigned requests = __atomic_load_n(&connection->requests, __ATOMIC_RELAXED);
    const bool begins = connection->reading_since_ns == 0 || !has_unread_reply(info) ||
                        connection->reading_requests != requests;
    if (!begins && since(now_ns, connection->reading_since_ns) <= options->send_timeout_ms * NS_PER_MS)
        return;
    if (begins || has_read_enough(options, connection, info)) {
        count_read(connection, info, now_ns);
        return;
    }
    /* If a request exists, its record counts the drop. */
    if (__atomic_load_n(&connection->request, __ATOMIC_ACQUIRE) == NULL)
        mm_metrics_drop();
    connection->reading_since_ns = 0; /* else the next check could count the drop again */
    mm_connection_drop(connection);
    mm_metrics_closed(MM_CLOSED_SLOW_READER);
}

/* Whether a part of a head has arrived. With TLS, the first head counts as begun at once, because even a
 * client that sends nothing uses memory. */
static bool has_begun(const struct mm_connection *connection, unsigned requests, uint64_t bytes) {
    return bytes != connection->bytes_seen || (connection->tls != NULL && requests == 0);
}

/* Checks how long a head takes. No event tells when a head begins. So a head has begun if bytes have arrived
 * since the sweep first saw the latest request. If the beginning of a head came together with this request,
 * the sweep cannot see it. Then the connection counts as idle, and MHD closes it after a minute. */
static void look_at_head(struct mm_server *server, struct mm_connection *connection,
                         const struct tcp_info *info, uint64_t now_ns) {
    unsigned requests = __atomic_load_n(&connection->requests, __ATOMIC_RELAXED);
    uint64_t limit_ms = server->options->receive_timeout_ms;
    char request_id[MM_REQUEST_ID_MAX + 1];
    struct mm_error error;
    uint64_t bytes = info->tcpi_bytes_received;
    if (info->tcpi_state != ESTABLISHED && end_reading_if_left(connection))
        return;
    if (requests != connection->requests_seen) {
        connection->requests_seen = requests;
        connection->bytes_seen = bytes;
        connection->head_since_ns = 0;
        mm_connection_renew(server, connection, now_ns);
    }
    if (!has_begun(connection, requests, bytes))
        return;
    if (connection->head_since_ns == 0)
        connection->head_since_ns = now_ns;
    if (since(now_ns, connection->head_since_ns) <= limit_ms * NS_PER_MS ||
        mm_connection_has_unread(connection) || !mm_connection_move(connection, MM_PHASE_HEAD, MM_PHASE_CUT))
        return;
    mm_server_make_id(server, request_id);
    mm_fail(&error, MM_REQUEST_TIMEOUT,
            "the head of the request was not complete after %" PRIu64 " ms (--receive-timeout-ms)", limit_ms);
    const struct mm_problem_reply reply = {.form = &mm_problem_details,
                                           .error = &error,
                                           .request_id = request_id,
                                           .traceparent = "",
                                           .cors = mm_cors_decide(server->options, NULL)};
    mm_record_cut_head(request_id, &connection->address, &error,
                       mm_connection_cut_from_outside(connection, &reply),
                       now_ns - connection->head_since_ns);
}

/* Whether a connection is idle. Unread bytes may be a request, even if they arrived before the last check. */
static bool is_idle(const struct mm_connection *connection) {
    const unsigned requests = __atomic_load_n(&connection->requests, __ATOMIC_RELAXED);
    if (mm_connection_phase(connection) != MM_PHASE_HEAD || requests != connection->requests_seen)
        return false;
    if (connection->tls != NULL && requests == 0)
        return !mm_connection_has_unread(connection);
    if (connection->head_since_ns != 0 || connection->reading_since_ns != 0)
        return false;
    const struct tcp_info info = ask(connection->fd);
    return info.tcpi_bytes_received == connection->bytes_seen && !has_unread_reply(&info) &&
           !mm_connection_has_unread(connection);
}

size_t mm_sweep_close_idle(struct mm_server *server, size_t count) {
    size_t closed = 0;
    pthread_mutex_lock(&server->mutex);
    const uint64_t now_ns = mm_clock_ns();
    struct mm_connection *connection = TAILQ_LAST(&server->connections, mm_connections);
    for (; connection != NULL && server->closing < count &&
           since(now_ns, connection->idle_since_ns) >= IDLE_MS_MIN * NS_PER_MS;
         connection = TAILQ_PREV(connection, mm_connections, listed))
        if (is_idle(connection) && mm_connection_close_idle(server, connection, now_ns)) {
            mm_metrics_closed(MM_CLOSED_EVICTED);
            closed++;
        }
    pthread_mutex_unlock(&server->mutex);
    return closed;
}

/* Checks a connection. Adds its request to `abandoned` if the caller must resume it. */
static void look_at(struct mm_server *server, struct mm_connection *connection, bool heads, uint64_t now_ns,
                    struct mm_resumed *abandoned) {
    struct mm_request *request;
    struct tcp_info info;
    switch (mm_connection_phase(connection)) {
    case MM_PHASE_HEAD:
        if (!heads)
            break;
        info = ask(connection->fd);
        look_at_reader(server, connection, &info, now_ns);
        look_at_head(server, connection, &info, now_ns);
        break;
    case MM_PHASE_BODY:
        look_at_body(connection, now_ns);
        break;
    case MM_PHASE_HANDLED:
        request = __atomic_load_n(&connection->request, __ATOMIC_ACQUIRE);
        if (heads && __atomic_load_n(&connection->answers, __ATOMIC_ACQUIRE) != 0) {
            info = ask(connection->fd);
            look_at_reader(server, connection, &info, now_ns);
            if (request != NULL)
                look_at_reply(request, &info, now_ns);
        }
        if (request == NULL || !mm_request_waits(request) || !look_at_waiting(request, now_ns))
            break;
        SLIST_INSERT_HEAD(abandoned, request, resumed);
        break;
    case MM_PHASE_CUT:
        if (since(now_ns, connection->cut_ns) > CUT_LINGER_MS * NS_PER_MS)
            mm_connection_stop_sender(connection);
        break;
    }
}

/* Checks the next SLICE connections. Returns false after the last one. The descriptors stay open meanwhile,
 * because MHD must lock the mutex (in mm_connection_notify) before it closes a descriptor. */
static bool look_at_slice(struct mm_server *server, bool heads) {
    struct mm_resumed abandoned = SLIST_HEAD_INITIALIZER(abandoned);
    uint64_t now_ns = mm_clock_ns();
    pthread_mutex_lock(&server->mutex);
    for (unsigned count = 0; count < SLICE && server->swept != NULL; count++) {
        struct mm_connection *connection = server->swept;
        server->swept = TAILQ_NEXT(connection, listed);
        look_at(server, connection, heads, now_ns, &abandoned);
    }
    bool more = server->swept != NULL;
    pthread_mutex_unlock(&server->mutex);
    mm_request_resume(&abandoned);
    return more;
}

/* Checks all connections. Pauses between slices, because every request needs the mutex. */
static void sweep_once(struct mm_server *server, bool heads) {
    const struct timespec pause = {.tv_nsec = SLICE_PAUSE_NS};
    pthread_mutex_lock(&server->mutex);
    server->swept = TAILQ_FIRST(&server->connections);
    pthread_mutex_unlock(&server->mutex);
    while (look_at_slice(server, heads))
        nanosleep(&pause, NULL);
}

/* Waits until the next sweep. Meanwhile gives memory to waiting requests. */
static void rest(struct mm_server *server) {
    const struct timespec step = {.tv_nsec = SERVE_MS * NS_PER_MS};
    for (unsigned count = 0; count < PERIOD_MS / SERVE_MS; count++) {
        nanosleep(&step, NULL);
        if (mm_budget_is_awaited(&server->budget))
            mm_line_look(server, mm_clock_ns());
    }
}

static void *run(void *argument) {
    struct mm_sweep *sweep = argument;
    for (unsigned count = 1; __atomic_load_n(&sweep->stopping, __ATOMIC_RELAXED) == 0; count++) {
        rest(sweep->server);
        sweep_once(sweep->server, count % HEADS_EVERY == 0);
        const uint64_t now_ns = mm_clock_ns();
        if (sweep->server->store != NULL)
            mm_store_expire(sweep->server->store, now_ns);
        if (count % TRIM_EVERY == 0 && now_ns > KEEP_NS)
            mm_buffers_trim(sweep->server->budget.buffers, now_ns - KEEP_NS);
    }
    return NULL;
}

bool mm_sweep_start(struct mm_sweep *sweep, struct mm_server *server) {
    sweep->server = server;
    if (pthread_create(&sweep->thread, NULL, run, sweep) == 0)
        pthread_setname_np(sweep->thread, "mm-sweep");
    else
        sweep->server = NULL;
    return sweep->server != NULL;
}

void mm_sweep_stop(struct mm_sweep *sweep) {
    if (sweep->server == NULL)
        return;
    __atomic_store_n(&sweep->stopping, 1, __ATOMIC_RELAXED);
    pthread_join(sweep->thread, NULL);
}
