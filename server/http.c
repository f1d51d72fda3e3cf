/* The listening socket and libmicrohttpd. Its own log stays off: it has a line for every caller who leaves.
 *
 * The flags and numbers are what was measured by tests/load/steady (2026-11-22). How it waits for sockets, on
 * 2 cores with the CPU backend by 64 connections, in thousands of products a second, medians of five turns:
 *
 *                             epoll  poll  select (which ends at 1,024 descriptors)
 *     4×4,   1 thread           144   140     140
 *     4×4,   2 threads          246   140     230
 *     64×64, 2 threads           93    84      88
 *
 * An inter-thread channel wakes it for resumes. Threads, on 16 cores with an H200 by 32 connections, products
 * a second (before small ones were collected, see gpu/pipeline.h):
 *
 *     threads               2        4        6        8       12       16
 *     1×1              83,000  157,000  191,000  187,000  179,000  175,000
 *     64×64            70,000  100,000  115,000  135,000  141,000  148,000
 *     256×256          10,000   19,600   26,500   22,300   21,100   21,300
 *     1024×1024           512      893    1,290    1,300    1,310    1,370
 *
 * so that as many as cores serve all well. */
#include "server/http.h"

#include "server/budget.h"
#include "server/connection.h"
#include "server/exchange.h"
#include "server/guard.h"
#include "server/process.h"
#include "server/tls.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* The library zeroes a connection's memory pool after each request, and reads a body through it. With 8
 * threads on 16 cores and an H200 (as above) pools of 32, 64 and 256 KiB had 193,000, 187,000 and 173,000
 * products of 1×1 answered a second, 139,000, 135,000 and 128,000 of 64×64, and 1,260, 1,300 and 1,420 of
 * 1024×1024. */
enum {
    CONNECTION_MEMORY_BYTES = 64 << 10,
    IDLE_TIMEOUT_S = 60,
    LISTEN_BACKLOG = 4096,
    DESCRIPTORS_MAX = 65536,
    SPARE_DESCRIPTORS = 256
};

struct mm_http {
    struct MHD_Daemon *daemon;
    bool is_local;
};

static bool fail(char *problem, size_t size, const struct mm_options *options, const char *what) {
    snprintf(problem, size, "cannot listen on %s port %u: %s", options->host, (unsigned)options->port, what);
    return false;
}

static int bind_socket(const struct addrinfo *address) {
    int one = 1;
    int listener = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
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

static bool open_listener(const struct mm_options *options, int *listener, char *problem, size_t size) {
    struct addrinfo *addresses = NULL;
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    char port[16];
    snprintf(port, sizeof port, "%u", (unsigned)options->port);
    int failure = getaddrinfo(options->host, port, &hints, &addresses);
    if (failure != 0)
        return fail(problem, size, options, gai_strerror(failure));
    *listener = bind_socket(addresses);
    failure = errno;
    freeaddrinfo(addresses);
    return *listener >= 0 ? true : fail(problem, size, options, strerror(failure));
}

static unsigned bound_port(int listener) {
    struct sockaddr_storage address;
    socklen_t length = sizeof address;
    memset(&address, 0, sizeof address);
    if (getsockname(listener, (struct sockaddr *)&address, &length) != 0)
        return 0;
    if (address.ss_family == AF_INET6)
        return ntohs(((struct sockaddr_in6 *)&address)->sin6_port);
    return ntohs(((struct sockaddr_in *)&address)->sin_port);
}

/* Whether only this machine reaches the address; where it cannot be told, not. */
static bool is_loopback(int listener) {
    struct sockaddr_storage address;
    socklen_t length = sizeof address;
    memset(&address, 0, sizeof address);
    if (getsockname(listener, (struct sockaddr *)&address, &length) != 0)
        return false;
    const struct in6_addr *v6 = &((struct sockaddr_in6 *)&address)->sin6_addr;
    if (address.ss_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(v6) || (IN6_IS_ADDR_V4MAPPED(v6) && v6->s6_addr[12] == IN_LOOPBACKNET);
    return address.ss_family == AF_INET &&
           ntohl(((struct sockaddr_in *)&address)->sin_addr.s_addr) >> IN_CLASSA_NSHIFT == IN_LOOPBACKNET;
}

/* As many descriptors as the process may have, up to a limit of ours. */
static unsigned descriptor_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return 1024;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    (void)getrlimit(RLIMIT_NOFILE, &limit);
    return limit.rlim_cur > DESCRIPTORS_MAX ? DESCRIPTORS_MAX : (unsigned)limit.rlim_cur;
}

/* Those that are left for connections beside what is open now and two for each thread; some are spared for
 * files and devices, fewer where there are few. 0 where they would not do for one connection each thread: a
 * thread that the system denies its only one tries again without end. */
static unsigned connection_descriptors(unsigned threads) {
    const unsigned most = descriptor_limit();
    const unsigned spare = most / 4 < SPARE_DESCRIPTORS ? most / 4 : SPARE_DESCRIPTORS;
    struct mm_process process;
    mm_process_look(&process);
    const unsigned taken = (unsigned)process.descriptors + 2 * (threads + 1) + spare;
    return most >= taken + threads ? most - taken : 0;
}

/* As many connections as there can be descriptors, less a few for files and devices, and as a quarter
 * of the memory has room for: what they hold is not counted in the budget. */
static unsigned connection_limit(const struct mm_server *server) {
    size_t bytes = CONNECTION_MEMORY_BYTES + (server->tls == NULL ? 0 : MM_TLS_CONNECTION_BYTES);
    size_t by_memory = mm_budget_memory() / 4 / bytes;
    unsigned by_descriptors = connection_descriptors((unsigned)server->options->threads);
    return by_memory < by_descriptors ? (unsigned)by_memory : by_descriptors;
}

/* MHD hands the handler a C string, which %00 would end early: /healthz%00x would be /healthz. */
static size_t unescape(void *server, struct MHD_Connection *connection, char *text) {
    (void)server;
    (void)connection;
    size_t bytes = MHD_http_unescape(text);
    mm_guard_show_zeros(text, bytes);
    return bytes;
}

static struct MHD_Daemon *start_daemon(struct mm_server *server, int listener, unsigned connections) {
    unsigned threads = (unsigned)server->options->threads;
    const struct MHD_OptionItem pool[] = {
        {MHD_OPTION_THREAD_POOL_SIZE, (intptr_t)threads, NULL},
        {MHD_OPTION_END, 0, NULL},
    };
    const struct MHD_OptionItem no_pool[] = {{MHD_OPTION_END, 0, NULL}};
    struct MHD_OptionItem tls[MM_TLS_DAEMON_OPTIONS] = {{MHD_OPTION_END, 0, NULL}};
    unsigned flags = MHD_USE_ITC | MHD_ALLOW_SUSPEND_RESUME;
    if (server->tls == NULL) {
        flags |= MHD_USE_EPOLL_INTERNAL_THREAD;
    } else {
        /* By epoll a thread with a handshake that waits for the caller is never idle (0.9.75). */
        flags |= MHD_USE_POLL_INTERNAL_THREAD | MHD_USE_TLS;
        mm_tls_daemon_options(tls);
    }
    return MHD_start_daemon(flags, 0, NULL, NULL, mm_exchange_handle, server, MHD_OPTION_NOTIFY_COMPLETED,
                            mm_exchange_completed, server, MHD_OPTION_NOTIFY_CONNECTION, mm_connection_notify,
                            server, MHD_OPTION_UNESCAPE_CALLBACK, unescape, server, MHD_OPTION_LISTEN_SOCKET,
                            listener, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY_BYTES,
                            MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_TIMEOUT_S,
                            MHD_OPTION_CONNECTION_LIMIT, connections, MHD_OPTION_PER_IP_CONNECTION_LIMIT,
                            (unsigned)server->options->connections_per_address, MHD_OPTION_ARRAY,
                            threads > 1 ? pool : no_pool, MHD_OPTION_ARRAY, tls, MHD_OPTION_END);
}

bool mm_http_start(struct mm_server *server, struct mm_http **http, unsigned *port, char *problem,
                   size_t problem_size) {
    int listener = -1;
    if (!open_listener(server->options, &listener, problem, problem_size))
        return false;
    *port = bound_port(listener);
    const unsigned connections = connection_limit(server);
    if (connections == 0) {
        close(listener);
        return fail(problem, problem_size, server->options,
                    "the limit of open files (ulimit -n) leaves none for connections");
    }
    struct mm_http *started = malloc(sizeof *started);
    if (started != NULL) {
        started->is_local = is_loopback(listener);
        started->daemon = start_daemon(server, listener, connections);
    }
    if (started == NULL || started->daemon == NULL) {
        free(started);
        close(listener);
        return fail(problem, problem_size, server->options, "libmicrohttpd could not be started");
    }
    *http = started;
    return true;
}

bool mm_http_is_local(const struct mm_http *http) {
    return http->is_local;
}

void mm_http_stop(struct mm_http *http) {
    if (http == NULL)
        return;
    MHD_stop_daemon(http->daemon);
    free(http);
}
