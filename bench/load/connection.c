/* Blocking sockets with a limit on waiting, so that a reply that never comes is a failure and no hang. */
#include "bench/load/connection.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

/* The service answers within its --timeout-ms (60 s) or says so; a head has no need to be longer. */
enum { WAIT_MAX_S = 120, HEAD_BYTES_MAX = 64 << 10, RECEIVE_BYTES = 64 << 10 };

void mm_load_disconnect(struct mm_load_connection *connection) {
    if (connection->socket >= 0)
        close(connection->socket);
    connection->socket = -1;
    mm_load_bytes_free(&connection->received);
}

void mm_load_reset(struct mm_load_connection *connection) {
    const struct linger at_once = {.l_onoff = 1};
    (void)setsockopt(connection->socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    mm_load_disconnect(connection);
}

__attribute__((format(printf, 3, 4))) static bool fail(struct mm_load_connection *connection, char *problem,
                                                       const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(problem, MM_LOAD_PROBLEM_BYTES, format, arguments);
    va_end(arguments);
    mm_load_disconnect(connection);
    return false;
}

bool mm_load_connect(struct mm_load_connection *connection, const struct addrinfo *address, char *problem) {
    const struct timeval wait = {.tv_sec = WAIT_MAX_S};
    const int one = 1;
    connection->received = (struct mm_load_bytes){0};
    connection->socket = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connection->socket < 0)
        return fail(connection, problem, "no socket: %s", strerror(errno));
    (void)setsockopt(connection->socket, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    (void)setsockopt(connection->socket, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
    (void)setsockopt(connection->socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (connect(connection->socket, address->ai_addr, address->ai_addrlen) != 0)
        return fail(connection, problem, "cannot connect: %s", strerror(errno));
    return true;
}

bool mm_load_send(struct mm_load_connection *connection, const char *data, size_t bytes, char *problem) {
    for (size_t sent = 0; sent < bytes;) {
        ssize_t count = send(connection->socket, data + sent, bytes - sent, MSG_NOSIGNAL);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return fail(connection, problem, "after %zu of %zu bytes sent: %s", sent, bytes, strerror(errno));
        sent += (size_t)count;
    }
    return true;
}

/* Receives some more bytes. */
static bool fill(struct mm_load_connection *connection, char *problem) {
    for (;;) {
        char *end = mm_load_bytes_reserve(&connection->received, RECEIVE_BYTES);
        ssize_t count = recv(connection->socket, end, RECEIVE_BYTES, 0);
        if (count > 0) {
            end[count] = '\0';
            connection->received.length += (size_t)count;
            return true;
        }
        if (count == 0)
            return fail(connection, problem,
                        "the server closed the connection with %zu bytes of a reply sent",
                        connection->received.length);
        if (errno == EAGAIN || errno == EWOULDBLOCK)
            return fail(connection, problem, "no reply within %d s", WAIT_MAX_S);
        if (errno != EINTR)
            return fail(connection, problem, "while a reply was awaited: %s", strerror(errno));
    }
}

const char *mm_load_header(const struct mm_load_reply *reply, const char *name) {
    for (size_t index = 0; index < reply->header_count; index++)
        if (strcasecmp(reply->headers[index].name, name) == 0)
            return reply->headers[index].value;
    return NULL;
}

/* Splits one line of the head, which ends at `end`, in place. */
const char *mm_load_header_in(const char *head, const char *name) {
    size_t length = strlen(name);
    for (const char *at = strstr(head, "\r\n"); at != NULL; at = strstr(at + 2, "\r\n"))
        if (strncasecmp(at + 2, name, length) == 0 && at[2 + length] == ':')
            return at + 2 + length + 1 + strspn(at + 2 + length + 1, " ");
    return NULL;
}

static bool take_header(struct mm_load_reply *reply, char *line, char *end) {
    *end = '\0';
    char *colon = strchr(line, ':');
    if (colon == NULL || colon == line || reply->header_count == MM_LOAD_HEADERS_MAX)
        return false;
    *colon = '\0';
    const char *value = colon + 1 + strspn(colon + 1, " \t");
    if (mm_load_header(reply, line) != NULL) /* none that the service sends may come twice */
        return false;
    reply->headers[reply->header_count].name = line;
    reply->headers[reply->header_count++].value = value;
    return true;
}

/* Reads the head in reply->head, which ends with an empty line, in place. */
static bool parse_head(struct mm_load_reply *reply) {
    char *line = reply->head.data;
    char *end = strstr(line, "\r\n");
    reply->header_count = 0;
    if (strncmp(line, "HTTP/1.1 ", 9) != 0 || end - line < 13 || line[12] != ' ' ||
        strspn(line + 9, "0123456789") != 3)
        return false;
    reply->status = (unsigned)strtoul(line + 9, NULL, 10);
    for (line = end + 2; strncmp(line, "\r\n", 2) != 0; line = end + 2) {
        end = strstr(line, "\r\n");
        if (end == NULL || !take_header(reply, line, end))
            return false;
    }
    const char *connection = mm_load_header(reply, "Connection");
    reply->closes = connection != NULL && strcasecmp(connection, "close") == 0;
    return true;
}

static bool body_bytes(const struct mm_load_reply *reply, size_t *bytes) {
    const char *text = mm_load_header(reply, "Content-Length");
    *bytes = 0;
    if (reply->status < 200)
        return true;
    if (text == NULL || text[0] == '\0' || text[strspn(text, "0123456789")] != '\0' || strlen(text) > 12)
        return false;
    *bytes = (size_t)strtoull(text, NULL, 10);
    return true;
}

bool mm_load_receive(struct mm_load_connection *connection, struct mm_load_reply *reply, char *problem) {
    struct mm_load_bytes *received = &connection->received;
    const char *end = NULL;
    size_t bytes;
    while (end == NULL) {
        end = received->length == 0 ? NULL : memmem(received->data, received->length, "\r\n\r\n", 4);
        if (end == NULL && received->length > HEAD_BYTES_MAX)
            return fail(connection, problem, "malformed reply: a head of over %d bytes", HEAD_BYTES_MAX);
        if (end == NULL && !fill(connection, problem))
            return false;
    }
    size_t head_bytes = (size_t)(end - received->data) + 4;
    mm_load_bytes_clear_large(&reply->head);
    mm_load_bytes_add(&reply->head, received->data, head_bytes);
    if (!parse_head(reply) || !body_bytes(reply, &bytes))
        return fail(connection, problem, "malformed reply: its head is '%.300s'", received->data);
    while (received->length < head_bytes + bytes)
        if (!fill(connection, problem))
            return false;
    mm_load_bytes_clear_large(&reply->body);
    mm_load_bytes_add(&reply->body, received->data + head_bytes, bytes);
    mm_load_bytes_drop(received, head_bytes + bytes);
    if (received->length == 0)
        mm_load_bytes_clear_large(received);
    return true;
}

void mm_load_reply_free(struct mm_load_reply *reply) {
    mm_load_bytes_free(&reply->head);
    mm_load_bytes_free(&reply->body);
}
