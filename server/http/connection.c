#include "server/http/connection.h"

#include "api/problem.h"
#include "server/http/acceptor.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>

enum { RECEIVED_BYTES = 2 << 20 };

struct mm_connection *mm_connection_of(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info == NULL ? NULL : info->socket_context;
}

enum mm_phase mm_connection_phase(const struct mm_connection *connection) {
    return (enum mm_phase)__atomic_load_n(&connection->phase, __ATOMIC_ACQUIRE);
}

bool mm_connection_move(struct mm_connection *connection, enum mm_phase from, enum mm_phase to) {
    int expected = (int)from;
    return __atomic_compare_exchange_n(&connection->phase, &expected, (int)to, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_ACQUIRE);
}

/* The last reply of a connection, to be sent without MHD. */
struct mm_last_words {
    char head[2048];
    size_t head_bytes;
    char *body;
    size_t body_bytes;
};

/* The buffer is large enough, because the request id and the origin have limits. */
__attribute__((format(printf, 2, 3))) static void put(struct mm_last_words *words, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    words->head_bytes += (size_t)vsnprintf(words->head + words->head_bytes,
                                           sizeof words->head - words->head_bytes, format, arguments);
    va_end(arguments);
    assert(words->head_bytes < sizeof words->head);
}

/* Composes a last reply. If memory runs out, words->body stays NULL. */
static void compose(struct mm_last_words *words, const struct mm_problem_reply *reply) {
    const unsigned http = mm_problem_http(reply->error->status);
    struct mm_headers headers = {.count = 0};
    char date[64];
    size_t length = 0;
    struct tm broken_down;
    time_t now = time(NULL);
    words->body = reply->form->write(reply->error, reply->request_id, &length);
    if (words->body == NULL)
        return;
    gmtime_r(&now, &broken_down);
    strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", &broken_down);
    mm_headers_add_problem(&headers, reply);
    mm_headers_add_common(&headers, reply->request_id, reply->traceparent, reply->cors, true);
    words->head_bytes = 0;
    put(words, "HTTP/1.1 %u %s\r\nDate: %s\r\n", http, MHD_get_reason_phrase_for(http), date);
    for (size_t index = 0; index < headers.count; index++)
        put(words, "%s: %s\r\n", headers.list[index].name, headers.list[index].value);
    put(words, "Content-Length: %zu\r\n\r\n", length);
    words->body_bytes = reply->head_only ? 0 : length;
}

static size_t send_plain(int fd, struct mm_last_words *words) {
    struct iovec parts[] = {{words->head, words->head_bytes}, {words->body, words->body_bytes}};
    const struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    const ssize_t sent = sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    return sent > (ssize_t)words->head_bytes ? (size_t)sent - words->head_bytes : 0;
}

static size_t send_tls(void *session, const struct mm_last_words *words) {
    if (mm_tls_send(session, words->head, words->head_bytes) < words->head_bytes)
        return 0;
    const size_t sent = mm_tls_send(session, words->body, words->body_bytes);
    mm_tls_end(session);
    return sent;
}

static size_t say(const struct mm_connection *connection, struct mm_last_words *words) {
    size_t sent = 0;
    if (words->body != NULL)
        sent = connection->tls == NULL ? send_plain(connection->fd, words) : send_tls(connection->tls, words);
    (void)shutdown(connection->fd, SHUT_WR);
    free(words->body);
    return sent;
}

size_t mm_connection_cut(struct mm_connection *connection, const struct mm_problem_reply *reply) {
    struct mm_last_words words;
    connection->cut_ns = mm_clock_ns();
    compose(&words, reply);
    return say(connection, &words);
}

size_t mm_connection_cut_from_outside(struct mm_connection *connection,
                                      const struct mm_problem_reply *reply) {
    if (connection->tls == NULL)
        return mm_connection_cut(connection, reply);
    struct mm_last_words *words = malloc(sizeof *words);
    connection->cut_ns = mm_clock_ns();
    if (words != NULL)
        compose(words, reply);
    __atomic_store_n(&connection->late, words, __ATOMIC_RELEASE);
    mm_connection_stop_reading(connection);
    return 0;
}

/* Sends the last reply, if any. A TLS read calls it on the connection's thread at the end of the data. */
static void say_late(struct mm_tls_stream *stream) {
    struct mm_connection *connection =
        (struct mm_connection *)((char *)stream - offsetof(struct mm_connection, stream));
    struct mm_last_words *words = __atomic_exchange_n(&connection->late, NULL, __ATOMIC_ACQ_REL);
    if (words != NULL)
        connection->late_bytes = say(connection, words);
    free(words);
}

void mm_connection_say_late(struct mm_server *server, struct mm_connection *connection) {
    pthread_mutex_lock(&server->mutex); /* another thread sets `late` with the mutex held */
    pthread_mutex_unlock(&server->mutex);
    say_late(&connection->stream);
}

bool mm_connection_has_unread(const struct mm_connection *connection) {
    int bytes = 0;
    return ioctl(connection->fd, FIONREAD, &bytes) == 0 && bytes > 0;
}

bool mm_connection_all_quiet(struct mm_server *server) {
    bool quiet = true;
    pthread_mutex_lock(&server->mutex);
    const struct mm_connection *peer = TAILQ_FIRST(&server->connections);
    for (; peer != NULL && quiet; peer = TAILQ_NEXT(peer, listed))
        quiet = __atomic_load_n(&peer->request, __ATOMIC_RELAXED) == NULL && !mm_connection_has_unread(peer);
    pthread_mutex_unlock(&server->mutex);
    return quiet;
}

void mm_connection_stop_reading(struct mm_connection *connection) {
    (void)shutdown(connection->fd, SHUT_RD);
}

/* Raising SO_RCVLOWAT enlarges the buffer, and the buffer stays large afterwards. SO_RCVBUF is worse: it
 * cannot exceed net.core.rmem_max, and it fixes the buffer's size. */
void mm_connection_widen(struct mm_connection *connection) {
    const int bytes = RECEIVED_BYTES, none = 1;
    (void)setsockopt(connection->fd, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof bytes);
    (void)setsockopt(connection->fd, SOL_SOCKET, SO_RCVLOWAT, &none, sizeof none);
}

static void make_reset(const struct mm_connection *connection) {
    const struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    (void)setsockopt(connection->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

void mm_connection_drop(struct mm_connection *connection) {
    make_reset(connection);
    (void)shutdown(connection->fd, SHUT_RDWR);
}

void mm_connection_stop_sender(struct mm_connection *connection) {
    if (mm_connection_has_unread(connection))
        make_reset(connection);
    mm_connection_stop_reading(connection);
}

/* Call it with server->mutex held. */
static void link_first(struct mm_server *server, struct mm_connection *connection, uint64_t now_ns) {
    connection->idle_since_ns = now_ns;
    TAILQ_INSERT_HEAD(&server->connections, connection, listed);
}

/* Call it with server->mutex held. */
static void unlink_it(struct mm_server *server, struct mm_connection *connection) {
    if (server->swept == connection)
        server->swept = TAILQ_NEXT(connection, listed);
    TAILQ_REMOVE(&server->connections, connection, listed);
}

void mm_connection_renew(struct mm_server *server, struct mm_connection *connection, uint64_t now_ns) {
    unlink_it(server, connection);
    link_first(server, connection, now_ns);
}

bool mm_connection_close_idle(struct mm_server *server, struct mm_connection *connection, uint64_t now_ns) {
    if (!mm_connection_move(connection, MM_PHASE_HEAD, MM_PHASE_CUT))
        return false;
    connection->cut_ns = now_ns;
    connection->is_closing = true;
    server->closing++;
    (void)shutdown(connection->fd, SHUT_RDWR);
    return true;
}

static void opened(struct mm_server *server, struct MHD_Connection *mhd, void **context) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct mm_connection *connection = calloc(1, sizeof *connection);
    *context = connection;
    if (connection == NULL) { /* without state, a TLS client would have no limits */
        if (server->options->tls_cert != NULL && info != NULL)
            (void)shutdown(info->connect_fd, SHUT_RDWR);
        return;
    }
    connection->fd = info == NULL ? -1 : info->connect_fd;
    info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    if (info != NULL)
        connection->address = mm_address_of_socket(info->client_addr);
    info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    connection->tls = info == NULL ? NULL : info->tls_session;
    connection->stream = (struct mm_tls_stream){.fd = connection->fd, .ended = say_late};
    if (connection->tls != NULL)
        mm_tls_attach(connection->tls, &connection->stream);
    connection->phase = MM_PHASE_HEAD;
    pthread_mutex_lock(&server->mutex);
    link_first(server, connection, mm_clock_ns());
    pthread_mutex_unlock(&server->mutex);
}

/* MHD calls it before MHD closes the descriptor. */
static void closed(struct mm_server *server, struct MHD_Connection *mhd, void **context) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct mm_connection *connection = *context;
    *context = NULL;
    if (server->acceptor != NULL && info != NULL)
        mm_acceptor_closed(server->acceptor, info->connect_fd);
    if (connection == NULL)
        return;
    pthread_mutex_lock(&server->mutex);
    unlink_it(server, connection);
    server->closing -= connection->is_closing;
    pthread_mutex_unlock(&server->mutex);
    if (connection->late != NULL)
        free(connection->late->body);
    free(connection->late);
    free(connection->spare);
    free(connection);
}

void mm_connection_notify(void *server, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode code) {
    if (code == MHD_CONNECTION_NOTIFY_STARTED)
        opened(server, connection, context);
    else
        closed(server, connection, context);
}
