/* The asking side of GET /healthz. HTTP/1.0, since there the reply ends with the connection, so that
 * nothing of it has to be understood but its first line. */
#include "server/healthcheck.h"

#include "gpu/clock.h"
#include "server/tls_client.h"

#include <ctype.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { DEADLINE_MS = 3000, REPLY_BYTES_MAX = 4096 };

static const char request[] = "GET /healthz HTTP/1.0\r\n\r\n";

struct address {
    struct sockaddr_storage data;
    socklen_t bytes;
};

/* The address that a server with these options listens on: the first, as it does itself. */
static bool find_address(const struct mm_options *options, struct address *address, char *problem,
                         size_t size) {
    struct addrinfo *found = NULL;
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    char port[16];
    snprintf(port, sizeof port, "%u", (unsigned)options->port);
    int failure = getaddrinfo(options->host, port, &hints, &found);
    if (failure != 0) {
        snprintf(problem, size, "%s is not found: %s", options->host, gai_strerror(failure));
        return false;
    }
    memset(address, 0, sizeof *address);
    memcpy(&address->data, found->ai_addr, found->ai_addrlen);
    address->bytes = found->ai_addrlen;
    freeaddrinfo(found);
    return true;
}

/* To ask a wildcard is to ask oneself, but not on every system. */
static void wildcard_to_loopback(struct address *address) {
    struct sockaddr_in *v4 = (struct sockaddr_in *)&address->data;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&address->data;
    if (address->data.ss_family == AF_INET && v4->sin_addr.s_addr == htonl(INADDR_ANY))
        v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    else if (address->data.ss_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&v6->sin6_addr))
        v6->sin6_addr = in6addr_loopback;
}

/* Waits for an event; at the deadline it fails with ETIMEDOUT. */
static bool await(int connection, short events, uint64_t deadline_ns) {
    struct pollfd waiting = {.fd = connection, .events = events};
    for (;;) {
        uint64_t now_ns = mm_clock_ns();
        int ready = 0;
        if (now_ns < deadline_ns)
            ready = poll(&waiting, 1, (int)((deadline_ns - now_ns + 999999) / 1000000));
        if (ready > 0)
            return true;
        if (ready == 0)
            errno = ETIMEDOUT;
        if (ready == 0 || errno != EINTR)
            return false;
    }
}

static bool reach(int connection, const struct address *address, uint64_t deadline_ns) {
    int failure = 0;
    socklen_t bytes = sizeof failure;
    if (connect(connection, (const struct sockaddr *)&address->data, address->bytes) == 0)
        return true;
    if (errno != EINPROGRESS || !await(connection, POLLOUT, deadline_ns) ||
        getsockopt(connection, SOL_SOCKET, SO_ERROR, &failure, &bytes) != 0)
        return false;
    errno = failure;
    return failure == 0;
}

/* A new connection has room for these few bytes, so that less than all of them is a failure too. */
static bool ask(int connection) {
    return send(connection, request, sizeof request - 1, MSG_NOSIGNAL) == (ssize_t)(sizeof request - 1);
}

/* Reads to the end of the connection, at most `size` - 1 bytes, as a text. */
static bool read_reply(int connection, char *reply, size_t size, uint64_t deadline_ns) {
    size_t length = 0;
    while (length < size - 1) {
        ssize_t got = recv(connection, reply + length, size - 1 - length, 0);
        if (got == 0)
            break;
        if (got > 0)
            length += (size_t)got;
        else if (errno != EINTR && (errno != EAGAIN || !await(connection, POLLIN, deadline_ns)))
            return false;
    }
    reply[length] = '\0';
    return true;
}

/* The status in "HTTP/1.1 200 OK", of any minor version and reason; 0 if the reply is not HTTP. */
static int status_of(const char *reply) {
    int status = 0;
    if (strncmp(reply, "HTTP/1.", 7) != 0 || !isdigit((unsigned char)reply[7]) || reply[8] != ' ')
        return 0;
    for (size_t index = 9; index < 12; index++) {
        if (!isdigit((unsigned char)reply[index]))
            return 0;
        status = status * 10 + (reply[index] - '0');
    }
    return reply[12] == ' ' || reply[12] == '\r' || reply[12] == '\n' ? status : 0;
}

/* One question: 0, or the status of the reply; -1 with errno where the connection or the time ends first. */
static int converse(int connection, const struct address *address, bool by_tls) {
    uint64_t deadline_ns = mm_clock_ns() + DEADLINE_MS * UINT64_C(1000000);
    char reply[REPLY_BYTES_MAX];
    if (!reach(connection, address, deadline_ns))
        return -1;
    const bool answered = by_tls
                              ? mm_tls_ask(connection, deadline_ns, await, request, reply, sizeof reply)
                              : ask(connection) && read_reply(connection, reply, sizeof reply, deadline_ns);
    return answered ? status_of(reply) : -1;
}

bool mm_healthcheck(const struct mm_options *options, char *problem, size_t problem_size) {
    struct address address;
    if (!find_address(options, &address, problem, problem_size))
        return false;
    wildcard_to_loopback(&address);
    int connection = socket(address.data.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int status = connection < 0 ? -1 : converse(connection, &address, options->tls_cert != NULL);
    if (status < 0)
        snprintf(problem, problem_size, "%s port %u: %s", options->host, (unsigned)options->port,
                 errno == EPROTO ? "what answers is not TLS" : strerror(errno));
    else if (status == 0)
        snprintf(problem, problem_size, "%s port %u: what answers is not HTTP", options->host,
                 (unsigned)options->port);
    else if (status != 200)
        snprintf(problem, problem_size, "%s port %u: GET /healthz is answered with %d", options->host,
                 (unsigned)options->port, status);
    if (connection >= 0)
        close(connection);
    return status == 200;
}
