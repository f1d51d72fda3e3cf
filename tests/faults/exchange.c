/* A request is sent while the reply is read: a server that refuses early does not read to the end. */
#include "tests/faults/exchange.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* What is not answered in this time hangs; on a busy machine a sanitizer's thousand-fold slower reply is not.
 */
enum { PATIENCE_MS = 60000, REPLY_MAX = 2 << 20 };

static uint64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

int exchange_connect(unsigned port) {
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int connection = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connection >= 0 && connect(connection, (const struct sockaddr *)&address, sizeof address) != 0) {
        close(connection);
        return -1;
    }
    return connection;
}

const char *reply_header(const struct reply *reply, const char *name, size_t name_bytes) {
    const char *line = reply->head == NULL ? NULL : strchr(reply->head, '\n');
    while (line != NULL && line + 1 < reply->head + reply->head_bytes) {
        if (strncasecmp(line + 1, name, name_bytes) == 0 && line[1 + name_bytes] == ':')
            return line + 2 + name_bytes + strspn(line + 2 + name_bytes, " ");
        line = strchr(line + 1, '\n');
    }
    return NULL;
}

/* Takes apart what has come; false where more is to come. */
static bool is_complete(struct reply *reply) {
    const char *head = reply->text;
    const char *end = strstr(head, "\r\n\r\n");
    while (end != NULL && strncmp(head, "HTTP/1.1 1", 10) == 0) {
        head = end + 4;
        end = strstr(head, "\r\n\r\n");
    }
    if (end == NULL || strncmp(head, "HTTP/1.1 ", 9) != 0)
        return false;
    reply->status = (unsigned)strtoul(head + 9, NULL, 10);
    reply->head = head;
    reply->body = end + 4;
    reply->head_bytes = (size_t)(reply->body - head);
    reply->body_bytes = reply->text_bytes - (size_t)(reply->body - reply->text);
    const char *length = reply_header(reply, "Content-Length", 14);
    return length == NULL ? reply->status == 204 : reply->body_bytes >= strtoull(length, NULL, 10);
}

/* False where the connection has ended. */
static bool read_more(int connection, struct reply *reply) {
    const ssize_t got = recv(connection, reply->text + reply->text_bytes, REPLY_MAX - reply->text_bytes, 0);
    if (got <= 0)
        return false;
    reply->text_bytes += (size_t)got;
    reply->text[reply->text_bytes] = '\0';
    return true;
}

void exchange_talk(int connection, const char *request, size_t request_bytes, struct reply *reply) {
    const uint64_t until_ms = now_ms() + PATIENCE_MS;
    size_t sent = 0;
    const bool to_end = strstr(request, "\r\nConnection: close\r\n") != NULL;
    *reply = (struct reply){.ending = HUNG, .text = malloc(REPLY_MAX + 1)};
    if (reply->text != NULL)
        reply->text[0] = '\0';
    while (reply->text != NULL && reply->ending == HUNG && now_ms() < until_ms) {
        struct pollfd ready = {.fd = connection, .events = POLLIN};
        if (sent < request_bytes)
            ready.events |= POLLOUT;
        if (poll(&ready, 1, (int)(until_ms - now_ms())) <= 0)
            continue;
        if ((ready.revents & POLLOUT) != 0) {
            const ssize_t took =
                send(connection, request + sent, request_bytes - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
            sent = took < 0 ? request_bytes : sent + (size_t)took; /* who refuses may still reply */
        }
        if ((ready.revents & ~POLLOUT) != 0 && !read_more(connection, reply))
            reply->ending = CLOSED;
        if (is_complete(reply) && (!to_end || reply->ending == CLOSED))
            reply->ending = COMPLETE;
    }
}

void reply_free(struct reply *reply) {
    free(reply->text);
    reply->text = NULL;
}
