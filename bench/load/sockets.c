/* A server that shows the least time in which large bodies can be received and answered. It receives a body
 * into one buffer and sends a prepared response of zeros. Of HTTP it understands only Content-Length.
 *
 *   sockets HOST STREAMS BODY_BYTES_MAX REPLY_BYTES
 *
 * Each of STREAMS threads serves one connection at a time. */
#include "bench/load/floor.h"
#include "bench/load/memory.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HEAD_BYTES_MAX = 4096 };

struct stream {
    pthread_t thread;
    int listener;
    char *buffer;
    size_t body_bytes_max;
    char *reply;
    size_t reply_bytes; /* including the response head */
};

static bool receive(const struct stream *stream, int connection, size_t received, size_t bytes) {
    while (received < bytes) {
        ssize_t count = recv(connection, stream->buffer + received, bytes - received, 0);
        if (count <= 0)
            return false;
        received += (size_t)count;
    }
    return true;
}

static bool send_reply(const struct stream *stream, int connection) {
    for (size_t sent = 0; sent < stream->reply_bytes;) {
        ssize_t count = send(connection, stream->reply + sent, stream->reply_bytes - sent, MSG_NOSIGNAL);
        if (count <= 0)
            return false;
        sent += (size_t)count;
    }
    return true;
}

static bool serve_one(const struct stream *stream, int connection) {
    size_t received = 0;
    const char *end = NULL;
    while (end == NULL) {
        ssize_t count = recv(connection, stream->buffer + received, HEAD_BYTES_MAX - received, 0);
        if (count <= 0)
            return false;
        received += (size_t)count;
        end = memmem(stream->buffer, received, "\r\n\r\n", 4);
    }
    const char *length = strstr(stream->buffer, "Content-Length: ");
    size_t bytes = length == NULL ? 0 : strtoull(length + 16, NULL, 10);
    return bytes <= stream->body_bytes_max &&
           receive(stream, connection, received, (size_t)(end - stream->buffer) + 4 + bytes) &&
           send_reply(stream, connection);
}

static void *run(void *argument) {
    const struct stream *stream = argument;
    const int one = 1;
    for (;;) {
        int connection = accept(stream->listener, NULL, NULL);
        if (connection < 0)
            return NULL;
        (void)setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        while (serve_one(stream, connection))
            ;
        close(connection);
    }
}

static void prepare(struct stream *stream, size_t body_bytes_max, size_t reply_bytes) {
    char head[128];
    int length = snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", reply_bytes);
    stream->body_bytes_max = body_bytes_max;
    stream->buffer = mm_load_warm_buffer(HEAD_BYTES_MAX + body_bytes_max);
    stream->reply_bytes = (size_t)length + reply_bytes;
    stream->reply = mm_load_warm_buffer(stream->reply_bytes);
    memcpy(stream->reply, head, (size_t)length);
}

int main(int argc, char **argv) {
    size_t count = argc == 5 ? strtoull(argv[2], NULL, 10) : 0;
    if (count == 0) {
        fputs("usage: sockets HOST STREAMS BODY_BYTES_MAX REPLY_BYTES\n", stderr);
        return 2;
    }
    struct stream *streams = mm_load_resize(NULL, count * sizeof *streams);
    for (size_t index = 0; index < count; index++)
        prepare(&streams[index], strtoull(argv[3], NULL, 10), strtoull(argv[4], NULL, 10));
    int listener = mm_load_listen(argv[1], true);
    for (size_t index = 0; index < count; index++) {
        streams[index].listener = listener;
        if (pthread_create(&streams[index].thread, NULL, run, &streams[index]) != 0)
            return EXIT_FAILURE;
    }
    for (size_t index = 0; index < count; index++)
        pthread_join(streams[index].thread, NULL);
    return EXIT_FAILURE; /* reached only if accept fails, because signals end the process */
}
