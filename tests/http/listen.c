/* A server that says what it is told: it answers each connection, after the first bytes that come, with what
 * stood on its stdin, and closes it. With HOLD it leaves them all open; so does nothing at all on stdin
 * make a server that never answers. It prints its port. It knows nothing of HTTP.
 *
 *   listen HOST [HOLD] */
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { REPLY_MAX = 1 << 17, BACKLOG = 16 };

static int listening(const char *host) {
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *address = NULL;
    if (getaddrinfo(host, "0", &hints, &address) != 0)
        return -1;
    int listener = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener >= 0 &&
        (bind(listener, address->ai_addr, address->ai_addrlen) != 0 || listen(listener, BACKLOG) != 0)) {
        close(listener);
        listener = -1;
    }
    freeaddrinfo(address);
    return listener;
}

static unsigned port_of(int listener) {
    struct sockaddr_storage address;
    socklen_t bytes = sizeof address;
    if (getsockname(listener, (struct sockaddr *)&address, &bytes) != 0)
        return 0;
    /* The port lies at the same place in both families. That getsockname writes it, the analyzer does not see
     * through the union of pointers that it takes. NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage) */
    return ntohs(((struct sockaddr_in *)&address)->sin_port);
}

int main(int argc, char **argv) {
    static char reply[REPLY_MAX];
    char question[4096];
    if (argc < 2) {
        fprintf(stderr, "usage: listen HOST [HOLD]\n");
        return 2;
    }
    size_t bytes = fread(reply, 1, sizeof reply, stdin);
    int listener = listening(argv[1]);
    if (listener < 0) {
        perror("listen");
        return 1;
    }
    printf("%u\n", port_of(listener));
    fflush(stdout);
    for (;;) {
        int connection = accept(listener, NULL, NULL);
        if (connection < 0 || recv(connection, question, sizeof question, 0) < 0 ||
            send(connection, reply, bytes, MSG_NOSIGNAL) < 0)
            perror("listen");
        if (argc < 3)
            close(connection);
    }
}
