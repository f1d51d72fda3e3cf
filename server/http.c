/* The listening socket and libmicrohttpd. The flags are what was measured to serve suspended
 * connections best: epoll, an inter-thread channel for resumes, one daemon a thread. The library's own
 * log stays off: it has a line for every caller who leaves. */
#include "server/http.h"

#include "server/budget.h"
#include "server/connection.h"
#include "server/exchange.h"
#include "server/guard.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* The library zeroes a connection's memory pool after each request, so that this size decides the
 * rate of small requests; 64 KiB was measured best, and still reads large bodies at full speed. */
enum {
    CONNECTION_MEMORY_BYTES = 64 << 10,
    IDLE_TIMEOUT_S = 60,
    LISTEN_BACKLOG = 4096,
    SPARE_DESCRIPTORS = 64
};

struct mm_http {
    struct MHD_Daemon *daemon;
    int quiesced_socket; /* -1 while the daemon owns it */
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

static unsigned descriptor_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return 1024 - SPARE_DESCRIPTORS;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    (void)getrlimit(RLIMIT_NOFILE, &limit);
    rlim_t most = limit.rlim_cur > 65536 ? 65536 : limit.rlim_cur;
    return most > 2 * SPARE_DESCRIPTORS ? (unsigned)most - SPARE_DESCRIPTORS : SPARE_DESCRIPTORS;
}

/* As many connections as there can be descriptors, less a few for files and devices, and as a quarter
 * of the memory has room for: what they hold is not counted in the budget. */
static unsigned connection_limit(void) {
    size_t by_memory = mm_budget_memory() / 4 / CONNECTION_MEMORY_BYTES;
    unsigned by_descriptors = descriptor_limit();
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

static struct MHD_Daemon *start_daemon(struct mm_server *server, int listener) {
    unsigned threads = (unsigned)server->options->threads;
    const struct MHD_OptionItem pool[] = {
        {MHD_OPTION_THREAD_POOL_SIZE, (intptr_t)threads, NULL},
        {MHD_OPTION_END, 0, NULL},
    };
    const struct MHD_OptionItem no_pool[] = {{MHD_OPTION_END, 0, NULL}};
    return MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_ITC | MHD_ALLOW_SUSPEND_RESUME, 0, NULL,
                            NULL, mm_exchange_handle, server, MHD_OPTION_NOTIFY_COMPLETED,
                            mm_exchange_completed, server, MHD_OPTION_NOTIFY_CONNECTION, mm_connection_notify,
                            server, MHD_OPTION_UNESCAPE_CALLBACK, unescape, server, MHD_OPTION_LISTEN_SOCKET,
                            listener, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY_BYTES,
                            MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_TIMEOUT_S,
                            MHD_OPTION_CONNECTION_LIMIT, connection_limit(), MHD_OPTION_ARRAY,
                            threads > 1 ? pool : no_pool, MHD_OPTION_END);
}

bool mm_http_start(struct mm_server *server, struct mm_http **http, unsigned *port, char *problem,
                   size_t problem_size) {
    int listener = -1;
    if (!open_listener(server->options, &listener, problem, problem_size))
        return false;
    *port = bound_port(listener);
    struct mm_http *started = malloc(sizeof *started);
    if (started != NULL) {
        started->quiesced_socket = -1;
        started->daemon = start_daemon(server, listener);
    }
    if (started == NULL || started->daemon == NULL) {
        free(started);
        close(listener);
        return fail(problem, problem_size, server->options, "libmicrohttpd could not be started");
    }
    *http = started;
    return true;
}

void mm_http_quiesce(struct mm_http *http) {
    http->quiesced_socket = MHD_quiesce_daemon(http->daemon);
}

void mm_http_stop(struct mm_http *http) {
    if (http == NULL)
        return;
    MHD_stop_daemon(http->daemon);
    if (http->quiesced_socket >= 0)
        close(http->quiesced_socket);
    free(http);
}
