/* The list of connections, their phases, and the reply that MHD does not take. */
#include "server/connection.h"

#include "api/problem.h"
#include "server/bearer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>

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

/* A last reply, ready to be sent. */
struct mm_last_words {
    char head[MM_CORS_LINES_MAX + 512];
    size_t head_bytes;
    char *body; /* owned */
    size_t body_bytes;
};

/* Without memory for it there is no body, and nothing to be said. */
static void compose(struct mm_last_words *words, const struct mm_last_reply *reply) {
    unsigned http = mm_problem_http(reply->error->status);
    char cors[MM_CORS_LINES_MAX];
    char date[64];
    char retry[48] = "";
    size_t length = 0;
    struct tm broken_down;
    time_t now = time(NULL);
    words->body = mm_problem_json(reply->error, reply->request_id, &length);
    if (words->body == NULL)
        return;
    gmtime_r(&now, &broken_down);
    strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", &broken_down);
    if (reply->retry_after_s > 0)
        snprintf(retry, sizeof retry, "Retry-After: %u\r\n", reply->retry_after_s);
    mm_cors_lines(reply->cors, cors);
    words->head_bytes = (size_t)snprintf(
        words->head, sizeof words->head,
        "HTTP/1.1 %u %s\r\nDate: %s\r\nConnection: close\r\nX-Request-Id: %s\r\n%s%s%s%s%s%s"
        "Content-Type: " MM_PROBLEM_TYPE "\r\nContent-Length: %zu\r\n\r\n",
        http, MHD_get_reason_phrase_for(http), date, reply->request_id,
        reply->allow[0] == '\0' ? "" : "Allow: ", reply->allow, reply->allow[0] == '\0' ? "" : "\r\n", retry,
        cors, reply->error->status == MM_UNAUTHORIZED ? "WWW-Authenticate: " MM_BEARER_CHALLENGE "\r\n" : "",
        length);
    words->body_bytes = reply->head_only ? 0 : length;
}

static size_t send_plain(int fd, struct mm_last_words *words) {
    struct iovec pieces[] = {{words->head, words->head_bytes}, {words->body, words->body_bytes}};
    const struct msghdr message = {.msg_iov = pieces, .msg_iovlen = 2};
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

/* Says how many bytes of the body went out. */
static size_t say(const struct mm_connection *connection, struct mm_last_words *words) {
    size_t sent = 0;
    if (words->body != NULL)
        sent = connection->tls == NULL ? send_plain(connection->fd, words) : send_tls(connection->tls, words);
    (void)shutdown(connection->fd, SHUT_WR);
    free(words->body);
    return sent;
}

size_t mm_connection_cut(struct mm_connection *connection, const struct mm_last_reply *reply) {
    struct mm_last_words words;
    compose(&words, reply);
    return say(connection, &words);
}

size_t mm_connection_cut_from_outside(struct mm_connection *connection, const struct mm_last_reply *reply) {
    if (connection->tls == NULL)
        return mm_connection_cut(connection, reply);
    struct mm_last_words *words = malloc(sizeof *words);
    if (words != NULL)
        compose(words, reply);
    __atomic_store_n(&connection->late, words, __ATOMIC_RELEASE);
    mm_connection_stop_reading(connection);
    return 0;
}

/* The connection's thread has read to the end by TLS, which it was told is there: the last moment in which
 * GnuTLS sends something. */
static void say_late(struct mm_tls_stream *stream) {
    struct mm_connection *connection =
        (struct mm_connection *)((char *)stream - offsetof(struct mm_connection, stream));
    struct mm_last_words *words = __atomic_exchange_n(&connection->late, NULL, __ATOMIC_ACQ_REL);
    if (words != NULL)
        connection->late_bytes = say(connection, words);
    free(words);
}

bool mm_connection_has_unread(const struct mm_connection *connection) {
    int bytes = 0;
    return ioctl(connection->fd, FIONREAD, &bytes) == 0 && bytes > 0;
}

bool mm_connection_all_quiet(struct mm_server *server) {
    bool quiet = true;
    pthread_mutex_lock(&server->mutex);
    for (const struct mm_connection *peer = server->newest; peer != NULL && quiet; peer = peer->older)
        quiet = __atomic_load_n(&peer->exchange, __ATOMIC_RELAXED) == NULL && !mm_connection_has_unread(peer);
    pthread_mutex_unlock(&server->mutex);
    return quiet;
}

void mm_connection_stop_reading(struct mm_connection *connection) {
    (void)shutdown(connection->fd, SHUT_RD);
}

/* Its close will be a reset. */
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

static void opened(struct mm_server *server, struct MHD_Connection *mhd, void **context) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct mm_connection *connection = calloc(1, sizeof *connection);
    *context = connection;
    if (connection == NULL) { /* by TLS nothing would bound what it sends, so that it is to end at once */
        if (server->tls != NULL && info != NULL)
            (void)shutdown(info->connect_fd, SHUT_RDWR);
        return;
    }
    connection->fd = info == NULL ? -1 : info->connect_fd;
    info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    connection->tls = info == NULL ? NULL : info->tls_session;
    connection->stream = (struct mm_tls_stream){.fd = connection->fd, .ended = say_late};
    if (connection->tls != NULL)
        mm_tls_attach(connection->tls, &connection->stream);
    connection->phase = MM_PHASE_HEAD;
    pthread_mutex_lock(&server->mutex);
    connection->older = server->newest;
    if (server->newest != NULL)
        server->newest->newer = connection;
    server->newest = connection;
    pthread_mutex_unlock(&server->mutex);
}

/* MHD closes the descriptor after this, not before. */
static void closed(struct mm_server *server, void **context) {
    struct mm_connection *connection = *context;
    *context = NULL;
    if (connection == NULL)
        return;
    pthread_mutex_lock(&server->mutex);
    if (server->swept == connection)
        server->swept = connection->older;
    if (connection->newer != NULL)
        connection->newer->older = connection->older;
    else
        server->newest = connection->older;
    if (connection->older != NULL)
        connection->older->newer = connection->newer;
    pthread_mutex_unlock(&server->mutex);
    if (connection->late != NULL)
        free(connection->late->body);
    free(connection->late);
    free(connection);
}

void mm_connection_notify(void *server, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode code) {
    if (code == MHD_CONNECTION_NOTIFY_STARTED)
        opened(server, connection, context);
    else
        closed(server, context);
}
