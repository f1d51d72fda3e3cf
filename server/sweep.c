/* Deadlines, departures, slow senders and slow readers, ten times a second; and memory that nobody has used
 * for long. Knows no route and no codec. */
#include "server/sweep.h"

#include "server/connection.h"
#include "server/exchange.h"

#include <inttypes.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* Heads and readers are looked at less often, since there can be many that are idle, and each costs a
 * question to the system. Who was cut has a moment to read why. */
enum {
    PERIOD_MS = 100,
    HEADS_EVERY = 5,
    TRIM_EVERY = 10,
    SLICE = 128,
    SLICE_PAUSE_NS = 20000,
    CUT_LINGER_MS = 1000
};

#define NS_PER_MS UINT64_C(1000000)

/* How long memory is kept that nobody uses. */
#define KEEP_NS UINT64_C(10000000000)

/* Of tcpi_state. Its name, TCP_ESTABLISHED, is in a header that cannot be had beside linux/tcp.h. */
enum { ESTABLISHED = 1 };

struct mm_sweep {
    struct mm_server *server;
    pthread_t thread;
    pthread_mutex_t mutex; /* guards `stopping` */
    pthread_cond_t changed;
    bool stopping;
};

/* Nanoseconds since then: 0 where that is yet to come, as what began after the sweep read the clock is. */
static uint64_t since(uint64_t now_ns, uint64_t then_ns) {
    return now_ns > then_ns ? now_ns - then_ns : 0;
}

/* Whether the caller has closed its side, or both. That it may have closed its sending side alone and
 * still listen cannot be seen; like other servers we take that for leaving. */
static bool has_left(int fd) {
    struct pollfd peer = {.fd = fd, .events = POLLRDHUP};
    return poll(&peer, 1, 0) > 0 && (peer.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

/* A waiting exchange goes on without its job where its deadline has passed or its caller has left; false
 * where it may go on waiting. */
static bool look_at_waiting(struct mm_exchange *exchange, uint64_t now_ns) {
    struct mm_error late;
    if (exchange->job.deadline_ns != 0 && now_ns > exchange->job.deadline_ns) {
        mm_fail(&late, MM_TIMEOUT, "the deadline passed before the result was there");
        mm_exchange_abandon(exchange, &late);
        return true;
    }
    if (!has_left(exchange->peer->fd))
        return false;
    mm_exchange_abandon(exchange, NULL);
    return true;
}

/* Whether a body takes longer than it may: the process's limit, the caller's own, or the least rate. */
static bool is_slow_body(const struct mm_exchange *exchange, uint64_t now_ns, struct mm_error *error) {
    const struct mm_options *options = exchange->server->options;
    uint64_t elapsed_ms = since(now_ns, exchange->started_ns) / NS_PER_MS;
    uint64_t bytes = __atomic_load_n(&exchange->received_bytes, __ATOMIC_RELAXED);
    if (now_ns > exchange->deadline_ns) {
        bool own = exchange->deadline_ns - exchange->started_ns < options->timeout_ms * NS_PER_MS;
        mm_fail(error, own ? MM_TIMEOUT : MM_REQUEST_TIMEOUT,
                "the deadline passed with %" PRIu64 " bytes of the body received", bytes);
        return true;
    }
    uint64_t rate = options->receive_rate;
    uint64_t gained_ms = bytes / rate * 1000 + bytes % rate * 1000 / rate;
    if (elapsed_ms <= options->receive_timeout_ms + gained_ms ||
        mm_connection_has_unread(exchange->peer)) /* it is we who are slow */
        return false;
    mm_fail(error, MM_REQUEST_TIMEOUT,
            "%" PRIu64 " bytes of the body came in %" PRIu64 " ms, but %" PRIu64
            " ms and one second more for every %" PRIu64 " bytes are the limit",
            bytes, elapsed_ms, options->receive_timeout_ms, rate);
    return true;
}

/* Where the caller of a head or a body has left: MHD can miss an end that came together with data. Told
 * once more, it reads what there is and then sees the end; a request that is complete is still answered. */
static bool tell_end(struct mm_connection *connection) {
    if (!has_left(connection->fd))
        return false;
    mm_connection_stop_reading(connection);
    return true;
}

/* A body that still comes: its sender may have left, or be too slow. */
static void look_at_body(struct mm_connection *connection, uint64_t now_ns) {
    struct mm_exchange *exchange = __atomic_load_n(&connection->exchange, __ATOMIC_ACQUIRE);
    struct mm_error error;
    if (exchange == NULL || tell_end(connection) || !is_slow_body(exchange, now_ns, &error))
        return;
    if (!mm_connection_move(connection, MM_PHASE_BODY, MM_PHASE_CUT))
        return;
    connection->cut_ns = now_ns;
    const struct mm_last_reply reply = {
        .error = &error, .request_id = exchange->request_id, .allow = "", .cors = exchange->cors};
    mm_record_cut(exchange, &error, mm_connection_cut_from_outside(connection, &reply));
}

/* What the system says of a connection; all 0 where it says nothing. */
static struct tcp_info ask(int fd) {
    struct tcp_info info;
    socklen_t length = sizeof info;
    memset(&info, 0, sizeof info);
    (void)getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length);
    return info;
}

/* Whether some of a reply was handed to the system and not yet taken by the caller. */
static bool has_untaken(const struct tcp_info *info) {
    return info->tcpi_unacked > 0 || info->tcpi_notsent_bytes > 0;
}

/* What the caller takes is counted from now on, if anything waits for it. */
static void count_taken(struct mm_connection *connection, const struct tcp_info *info, uint64_t now_ns) {
    connection->taking_since_ns = has_untaken(info) ? now_ns : 0;
    connection->taken_bytes = info->tcpi_bytes_acked;
    connection->taking_requests = __atomic_load_n(&connection->requests, __ATOMIC_RELAXED);
}

/* Whether as much was taken as must be in --send-timeout-ms. */
static bool has_taken_enough(const struct mm_options *options, const struct mm_connection *connection,
                             const struct tcp_info *info) {
    const uint64_t rate = options->send_rate;
    const uint64_t bytes = info->tcpi_bytes_acked - connection->taken_bytes;
    return bytes / rate * 1000 + bytes % rate * 1000 / rate >= options->send_timeout_ms;
}

/* A reply that waits to be taken, in MHD's hands or all of it in the system's. Each while is judged by
 * itself, since what sockets hold is taken at once and says nothing of the caller. Where nothing waits, it is
 * we who are slow; and who has sent the next request has had the reply before. */
static void look_at_reader(struct mm_server *server, struct mm_connection *connection,
                           const struct tcp_info *info, uint64_t now_ns) {
    const struct mm_options *options = server->options;
    const unsigned requests = __atomic_load_n(&connection->requests, __ATOMIC_RELAXED);
    const bool begins =
        connection->taking_since_ns == 0 || !has_untaken(info) || connection->taking_requests != requests;
    if (!begins && since(now_ns, connection->taking_since_ns) <= options->send_timeout_ms * NS_PER_MS)
        return;
    if (begins || has_taken_enough(options, connection, info))
        count_taken(connection, info, now_ns);
    else
        mm_connection_drop(connection);
}

/* Whether a head is under way by the system's count of bytes. By TLS the first one is from the beginning: a
 * handshake comes before it, and who begins none costs as much. */
static bool has_begun(const struct mm_connection *connection, unsigned requests, uint64_t bytes) {
    return bytes != connection->bytes_seen || (connection->tls != NULL && requests == 0);
}

/* Nothing tells when a head begins, so that the system's count of bytes has to: a head is under way once
 * more has come than when the connection was first seen after its last request. One that is silent
 * is idle, which MHD ends after a minute; so is one whose part of a head came together with the request
 * before. */
static void look_at_head(struct mm_server *server, struct mm_connection *connection,
                         const struct tcp_info *info, uint64_t now_ns) {
    unsigned requests = __atomic_load_n(&connection->requests, __ATOMIC_RELAXED);
    uint64_t limit_ms = server->options->receive_timeout_ms;
    char request_id[MM_REQUEST_ID_MAX + 1];
    struct mm_error error;
    uint64_t bytes = info->tcpi_bytes_received;
    if (info->tcpi_state != ESTABLISHED && tell_end(connection))
        return;
    if (requests != connection->requests_seen) {
        connection->requests_seen = requests;
        connection->bytes_seen = bytes;
        connection->head_since_ns = 0;
    }
    if (!has_begun(connection, requests, bytes))
        return;
    if (connection->head_since_ns == 0)
        connection->head_since_ns = now_ns;
    if (since(now_ns, connection->head_since_ns) <= limit_ms * NS_PER_MS ||
        mm_connection_has_unread(connection) || !mm_connection_move(connection, MM_PHASE_HEAD, MM_PHASE_CUT))
        return;
    mm_server_make_id(server, request_id);
    mm_fail(&error, MM_REQUEST_TIMEOUT, "the head of the request was not complete after %" PRIu64 " ms",
            limit_ms);
    connection->cut_ns = now_ns;
    const struct mm_last_reply reply = {
        .error = &error, .request_id = request_id, .allow = "", .cors = mm_cors_judge(server->options, NULL)};
    mm_record_cut_head(server, request_id, &error, mm_connection_cut_from_outside(connection, &reply),
                       now_ns - connection->head_since_ns);
}

/* Between two requests: the reply to the one before may still wait to be taken, and the next may come. */
static void look_between(struct mm_server *server, struct mm_connection *connection, uint64_t now_ns) {
    const struct tcp_info info = ask(connection->fd);
    look_at_reader(server, connection, &info, now_ns);
    look_at_head(server, connection, &info, now_ns);
}

/* Looks at one connection; an exchange that is to be resumed is added to the list. */
static void look_at(struct mm_server *server, struct mm_connection *connection, bool heads, uint64_t now_ns,
                    struct mm_exchange **abandoned) {
    struct mm_exchange *exchange;
    struct tcp_info info;
    switch (mm_connection_phase(connection)) {
    case MM_PHASE_HEAD:
        if (heads)
            look_between(server, connection, now_ns);
        break;
    case MM_PHASE_BODY:
        look_at_body(connection, now_ns);
        break;
    case MM_PHASE_HANDLED:
        if (heads && __atomic_load_n(&connection->answers, __ATOMIC_RELAXED) != 0) {
            info = ask(connection->fd);
            look_at_reader(server, connection, &info, now_ns);
        }
        exchange = __atomic_load_n(&connection->exchange, __ATOMIC_ACQUIRE);
        if (exchange == NULL || !exchange->waiting || !look_at_waiting(exchange, now_ns))
            break;
        exchange->next_resumed = *abandoned;
        *abandoned = exchange;
        break;
    case MM_PHASE_CUT:
        if (since(now_ns, connection->cut_ns) > CUT_LINGER_MS * NS_PER_MS)
            mm_connection_stop_sender(connection);
        break;
    }
}

/* Looks at the next few connections; false once there are no more. The descriptors stay open meanwhile: MHD
 * closes none before mm_connection_notify has taken its connection off the list, for which it needs the
 * mutex. */
static bool look_at_slice(struct mm_server *server, bool heads) {
    struct mm_exchange *abandoned = NULL;
    uint64_t now_ns = mm_clock_ns();
    pthread_mutex_lock(&server->mutex);
    for (unsigned count = 0; count < SLICE && server->swept != NULL; count++) {
        struct mm_connection *connection = server->swept;
        server->swept = connection->older;
        look_at(server, connection, heads, now_ns, &abandoned);
    }
    bool more = server->swept != NULL;
    pthread_mutex_unlock(&server->mutex);
    mm_exchange_resume(abandoned);
    return more;
}

/* Every request takes the mutex: between two slices it is left to those who wait for it. */
static void sweep_once(struct mm_server *server, bool heads) {
    const struct timespec pause = {.tv_nsec = SLICE_PAUSE_NS};
    pthread_mutex_lock(&server->mutex);
    server->swept = server->newest;
    pthread_mutex_unlock(&server->mutex);
    while (look_at_slice(server, heads))
        nanosleep(&pause, NULL);
}

/* Sleeps for a period; false where the sweep is to stop. */
static bool rest(struct mm_sweep *sweep) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += PERIOD_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    pthread_mutex_lock(&sweep->mutex);
    int result = 0;
    while (!sweep->stopping && result == 0)
        result = pthread_cond_timedwait(&sweep->changed, &sweep->mutex, &until);
    bool go_on = !sweep->stopping;
    pthread_mutex_unlock(&sweep->mutex);
    return go_on;
}

static void *run(void *argument) {
    struct mm_sweep *sweep = argument;
    for (unsigned count = 1; rest(sweep); count++) {
        sweep_once(sweep->server, count % HEADS_EVERY == 0);
        const uint64_t now_ns = mm_clock_ns();
        if (count % TRIM_EVERY == 0 && now_ns > KEEP_NS)
            mm_buffers_trim(sweep->server->buffers, now_ns - KEEP_NS);
    }
    return NULL;
}

struct mm_sweep *mm_sweep_start(struct mm_server *server) {
    struct mm_sweep *sweep = calloc(1, sizeof *sweep);
    pthread_condattr_t monotonic;
    if (sweep == NULL)
        return NULL;
    sweep->server = server;
    pthread_mutex_init(&sweep->mutex, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&sweep->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    if (pthread_create(&sweep->thread, NULL, run, sweep) == 0) {
        pthread_setname_np(sweep->thread, "mm-sweep");
        return sweep;
    }
    pthread_cond_destroy(&sweep->changed);
    pthread_mutex_destroy(&sweep->mutex);
    free(sweep);
    return NULL;
}

void mm_sweep_stop(struct mm_sweep *sweep) {
    if (sweep == NULL)
        return;
    pthread_mutex_lock(&sweep->mutex);
    sweep->stopping = true;
    pthread_cond_signal(&sweep->changed);
    pthread_mutex_unlock(&sweep->mutex);
    pthread_join(sweep->thread, NULL);
    pthread_cond_destroy(&sweep->changed);
    pthread_mutex_destroy(&sweep->mutex);
    free(sweep);
}
