/* A failure ends the process, because a server is useless without a port or memory. */
#include "bench/load/floor.h"

#include "bench/load/memory.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { BACKLOG = 4096 };

int mm_load_listen(const char *host, bool waits) {
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof address;
    int type = SOCK_STREAM | SOCK_CLOEXEC | (waits ? 0 : SOCK_NONBLOCK);
    int listener = socket(AF_INET, type, 0);
    if (listener < 0 || inet_pton(AF_INET, host, &address.sin_addr) != 1 ||
        bind(listener, (struct sockaddr *)&address, length) != 0 || listen(listener, BACKLOG) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &length) != 0) {
        fprintf(stderr, "cannot listen on %s\n", host);
        exit(EXIT_FAILURE);
    }
    printf("listening on %u\n", (unsigned)ntohs(address.sin_port));
    fflush(stdout);
    return listener;
}

char *mm_load_warm_buffer(size_t bytes) {
    char *buffer = mm_load_resize(NULL, bytes);
    memset(buffer, 0, bytes);
    return buffer;
}
