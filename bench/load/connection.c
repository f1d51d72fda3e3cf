/* TCP sockets without a delay for small packets. */
#include "bench/load/connection.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

void mm_load_disconnect(struct mm_load_connection *connection) {
    if (connection->socket >= 0)
        close(connection->socket);
    connection->socket = -1;
    mm_load_bytes_free(&connection->received);
}

bool mm_load_connect(struct mm_load_connection *connection, const struct addrinfo *address, char *problem) {
    const int one = 1;
    connection->received = (struct mm_load_bytes){0};
    connection->socket = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connection->socket >= 0 && connect(connection->socket, address->ai_addr, address->ai_addrlen) == 0) {
        (void)setsockopt(connection->socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        return true;
    }
    snprintf(problem, MM_LOAD_PROBLEM_BYTES, "cannot connect: %s", strerror(errno));
    mm_load_disconnect(connection);
    return false;
}

const char *mm_load_header_in(const char *head, const char *name) {
    size_t length = strlen(name);
    for (const char *at = strstr(head, "\r\n"); at != NULL; at = strstr(at + 2, "\r\n"))
        if (strncasecmp(at + 2, name, length) == 0 && at[2 + length] == ':')
            return at + 2 + length + 1 + strspn(at + 2 + length + 1, " ");
    return NULL;
}
