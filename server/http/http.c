/* The listening socket and libmicrohttpd, with one daemon for each thread. libmicrohttpd's log stays off,
 * because it has a line for every client that disconnects.
 *
 * epoll answered 1.7 times as many small products as poll did (2 threads, 2 cores, 64 connections). select
 * cannot use more than 1,024 descriptors. */
#include "server/http/http.h"

#include "server/http/acceptor.h"
#include "server/http/connection.h"
#include "server/http/request.h"
#include "server/http/head.h"
#include "server/http/routes.h"
#include "server/http/sweep.h"
#include "server/machine.h"
#include "server/auth/tls.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* CONNECTION_MEMORY_BYTES is a compromise. libmicrohttpd reads a body through this memory, and zeroes it
 * after each request. So more memory makes large bodies faster but small requests slower. */
enum {
    CONNECTION_MEMORY_BYTES = 64 << 10,
    IDLE_TIMEOUT_S = 60,
    LISTEN_BACKLOG = 4096,
    DESCRIPTORS_MAX = 65536,
    SPARE_DESCRIPTORS = 256
};

struct mm_http {
    struct mm_sweep sweep;
    struct mm_acceptor *acceptor;
    int listener;
    unsigned daemon_count;
    struct MHD_Daemon *daemons[];
};

static enum mm_status fail(struct mm_error *error, const struct mm_options *options, const char *what) {
    return mm_fail(error, MM_INTERNAL, "cannot listen on %s port %u: %s", options->host,
                   (unsigned)options->port, what);
}

static int bind_socket(const struct addrinfo *address) {
    int one = 1;
    int listener = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0)
        return -1;
    (void)setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener, address->ai_addr, address->ai_addrlen) == 0 && listen(listener, LISTEN_BACKLOG) == 0)
        return listener;
    int failure = errno;
    close(listener);
    errno = failure;
    return -1;
}

static enum mm_status open_listener(const struct mm_options *options, int *listener, struct mm_error *error) {
    struct addrinfo *addresses = NULL;
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    char port[16];
    snprintf(port, sizeof port, "%u", (unsigned)options->port);
    int failure = getaddrinfo(options->host, port, &hints, &addresses);
    if (failure != 0)
        return fail(error, options, gai_strerror(failure));
    *listener = bind_socket(addresses);
    failure = errno;
    freeaddrinfo(addresses);
    return *listener >= 0 ? MM_OK : fail(error, options, strerror(failure));
}

/* Returns the bound port, or 0 if unknown. Sets *is_local if only this machine can reach the address. */
static unsigned look_at_address(int listener, bool *is_local) {
    struct sockaddr_storage address;
    socklen_t length = sizeof address;
    const struct in6_addr *v6 = &((struct sockaddr_in6 *)&address)->sin6_addr;
    memset(&address, 0, sizeof address);
    (void)getsockname(listener, (struct sockaddr *)&address, &length);
    if (address.ss_family == AF_INET6) {
        *is_local =
            IN6_IS_ADDR_LOOPBACK(v6) || (IN6_IS_ADDR_V4MAPPED(v6) && v6->s6_addr[12] == IN_LOOPBACKNET);
        return ntohs(((struct sockaddr_in6 *)&address)->sin6_port);
    }
    const struct sockaddr_in *v4 = (struct sockaddr_in *)&address;
    *is_local =
        address.ss_family == AF_INET && ntohl(v4->sin_addr.s_addr) >> IN_CLASSA_NSHIFT == IN_LOOPBACKNET;
    return address.ss_family == AF_INET ? ntohs(v4->sin_port) : 0;
}

/* Raises the limit of open descriptors, and returns it, at most DESCRIPTORS_MAX. */
static unsigned descriptor_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return 1024;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    (void)getrlimit(RLIMIT_NOFILE, &limit);
    return limit.rlim_cur > DESCRIPTORS_MAX ? DESCRIPTORS_MAX : (unsigned)limit.rlim_cur;
}

/* Returns how many descriptors connections may use: the limit, minus the open descriptors, two for each
 * thread, and a reserve for files and devices. Returns 0 if that is less than one for each thread. */
static unsigned connection_descriptors(unsigned threads) {
    const unsigned most = descriptor_limit();
    const unsigned spare = most / 4 < SPARE_DESCRIPTORS ? most / 4 : SPARE_DESCRIPTORS;
    struct mm_process process;
    mm_process_look(&process);
    const unsigned taken = (unsigned)process.descriptors + 2 * threads + spare;
    return most >= taken + threads ? most - taken : 0;
}

/* Limits connections by descriptors and a quarter of the RAM. The memory budget does not count
 * connections. */
static unsigned connection_limit(const struct mm_server *server) {
    size_t bytes =
        CONNECTION_MEMORY_BYTES + (server->options->tls_cert == NULL ? 0 : MM_TLS_CONNECTION_BYTES);
    size_t by_memory = mm_machine_memory() / 4 / bytes;
    unsigned by_descriptors = connection_descriptors((unsigned)server->options->threads);
    return by_memory < by_descriptors ? (unsigned)by_memory : by_descriptors;
}

static struct MHD_Daemon *start_daemon(struct mm_server *server) {
    struct MHD_OptionItem tls[MM_TLS_DAEMON_OPTIONS] = {{MHD_OPTION_END, 0, NULL}};
    unsigned flags = MHD_USE_ITC | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_NO_LISTEN_SOCKET;
    if (server->options->tls_cert == NULL) {
        flags |= MHD_USE_EPOLL_INTERNAL_THREAD;
    } else {
        /* With epoll, libmicrohttpd 0.9.75 would use a whole core while a handshake waits for its client. */
        flags |= MHD_USE_POLL_INTERNAL_THREAD | MHD_USE_TLS;
        mm_tls_daemon_options(tls);
    }
    return MHD_start_daemon(
        flags, 0, NULL, NULL, mm_request_handle, server, MHD_OPTION_NOTIFY_COMPLETED, mm_request_completed,
        server, MHD_OPTION_NOTIFY_CONNECTION, mm_connection_notify, server, MHD_OPTION_UNESCAPE_CALLBACK,
        mm_head_unescape, server, MHD_OPTION_URI_LOG_CALLBACK, mm_head_note_target, server,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY_BYTES, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)IDLE_TIMEOUT_S, MHD_OPTION_CONNECTION_LIMIT, (unsigned)DESCRIPTORS_MAX, MHD_OPTION_ARRAY,
        tls, MHD_OPTION_END);
}

/* Starts all threads. Returns false if one does not start; then the caller must stop the started threads. */
static bool start_threads(struct mm_server *server, struct mm_http *http, unsigned connections) {
    const unsigned count = (unsigned)server->options->threads;
    if (!mm_sweep_start(&http->sweep, server))
        return false;
    while (http->daemon_count < count && (http->daemons[http->daemon_count] = start_daemon(server)) != NULL)
        http->daemon_count++;
    if (http->daemon_count < count)
        return false;
    http->acceptor = mm_acceptor_start(server, http->listener, http->daemons, count, connections);
    return http->acceptor != NULL;
}

enum mm_status mm_http_start(struct mm_server *server, struct mm_http **http, unsigned *port,
                             struct mm_error *error) {
    const struct mm_options *options = server->options;
    struct mm_http *started = calloc(1, sizeof *started + options->threads * sizeof *started->daemons);
    if (started == NULL)
        return fail(error, options, "the system has no memory");
    if (open_listener(options, &started->listener, error) != MM_OK) {
        free(started);
        return error->status;
    }
    *port = look_at_address(started->listener, &server->is_local);
    server->state_bytes_max = mm_route_state_bytes_max();
    server->checks_host = server->is_local || options->allowed_hosts != NULL;
    const unsigned connections = connection_limit(server);
    if (connections > 0 && start_threads(server, started, connections)) {
        *http = started;
        return MM_OK;
    }
    mm_http_stop(started);
    return fail(error, options,
                connections > 0 ? "libmicrohttpd or other threads could not be started"
                                : "the limit of open files (ulimit -n) leaves none for connections");
}

void mm_http_stop(struct mm_http *http) {
    if (http == NULL)
        return;
    mm_sweep_stop(&http->sweep);
    if (http->acceptor != NULL)
        mm_acceptor_stop(http->acceptor);
    close(http->listener);
    for (unsigned index = 0; index < http->daemon_count; index++)
        MHD_stop_daemon(http->daemons[index]);
    mm_acceptor_free(http->acceptor);
    free(http);
}
