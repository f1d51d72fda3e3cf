/* Sends stdin to a TCP port as it is, so many bytes a write and so many milliseconds apart (2), and copies
 * what comes back to stdout until the other side closes; where that comes before all is sent, the rest is
 * not. With LEAVE it goes without waiting for that, with HALF it closes its sending side. It knows nothing of
 * HTTP. With FOREVER it goes on with zeros, without a pause, until the connection takes no more.
 *
 *   talk HOST PORT PIECE [LEAVE | HALF | FOREVER | PAUSE_MS] */
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { INPUT_MAX = 4 << 20, PATIENCE_S = 30, PAUSE_MS = 2 };

static int connected(const char *host, const char *port) {
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    const struct timeval patience = {.tv_sec = PATIENCE_S};
    const int one = 1;
    struct addrinfo *address = NULL;
    if (getaddrinfo(host, port, &hints, &address) != 0)
        return -1;
    int connection = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connection >= 0 && connect(connection, address->ai_addr, address->ai_addrlen) != 0) {
        close(connection);
        connection = -1;
    }
    freeaddrinfo(address);
    /* Each write is to be a packet of its own. */
    if (connection >= 0)
        (void)setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (connection >= 0)
        (void)setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    return connection;
}

static int is_closed(int connection) {
    struct pollfd other = {.fd = connection, .events = POLLRDHUP};
    return poll(&other, 1, 0) > 0;
}

static int say(int connection, const char *input, size_t bytes, size_t piece, unsigned long pause_ms) {
    const struct timespec pause = {.tv_sec = (time_t)(pause_ms / 1000),
                                   .tv_nsec = (long)(pause_ms % 1000) * 1000000};
    for (size_t sent = 0; sent < bytes && !(pause_ms > PAUSE_MS && is_closed(connection)); sent += piece) {
        size_t count = bytes - sent < piece ? bytes - sent : piece;
        if (send(connection, input + sent, count, MSG_NOSIGNAL) != (ssize_t)count)
            return -1;
        nanosleep(&pause, NULL);
    }
    return 0;
}

static void go_on(int connection, size_t piece) {
    static const char zeros[INPUT_MAX];
    while (send(connection, zeros, piece < sizeof zeros ? piece : sizeof zeros, MSG_NOSIGNAL) > 0)
        continue;
}

static int listen_to(int connection) {
    char buffer[4096];
    ssize_t count;
    while ((count = recv(connection, buffer, sizeof buffer, 0)) > 0)
        fwrite(buffer, 1, (size_t)count, stdout);
    return (int)count;
}

int main(int argc, char **argv) {
    static char input[INPUT_MAX];
    size_t piece = argc >= 4 ? strtoul(argv[3], NULL, 10) : 0;
    int leaves = argc >= 5 && strcmp(argv[4], "LEAVE") == 0;
    int halves = argc >= 5 && strcmp(argv[4], "HALF") == 0;
    int goes_on = argc >= 5 && strcmp(argv[4], "FOREVER") == 0;
    unsigned long pause_ms =
        argc >= 5 && !leaves && !halves && !goes_on ? strtoul(argv[4], NULL, 10) : PAUSE_MS;
    if (piece == 0) {
        fputs("usage: talk HOST PORT PIECE [LEAVE | HALF | FOREVER | PAUSE_MS]\n", stderr);
        return 2;
    }
    size_t bytes = fread(input, 1, sizeof input, stdin);
    int connection = connected(argv[1], argv[2]);
    if (connection < 0 || say(connection, input, bytes, piece, pause_ms) != 0 ||
        (goes_on && (go_on(connection, piece), 0)) || (halves && shutdown(connection, SHUT_WR) != 0) ||
        (!leaves && listen_to(connection) != 0)) {
        perror("talk");
        return 1;
    }
    close(connection);
    return 0;
}
