/* Sends GET /healthz as HTTP/1.0, so the server closes the connection after the reply. */
#include "server/healthcheck.h"

#include "server/auth/tls.h"

#include <ctype.h>
#include <errno.h>
#include <netdb.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { TIME_S = 3, REPLY_BYTES_MAX = 4096 };

static const char request[] = "GET /healthz HTTP/1.0\r\n\r\n";

/* connect(), send() and recv() share one time limit. When the limit is over, on_alarm shuts the socket
 * down. */
static int connection = -1;
static volatile sig_atomic_t is_late;

static void on_alarm(int number) {
    is_late = 1;
    (void)shutdown(connection, SHUT_RDWR);
}

/* Leaves SA_RESTART out, because the alarm must also interrupt connect(). */
static void set_alarm(void) {
    const struct sigaction action = {.sa_handler = on_alarm};
    sigset_t alarms;
    (void)sigaction(SIGALRM, &action, NULL);
    (void)sigemptyset(&alarms);
    (void)sigaddset(&alarms, SIGALRM);
    (void)sigprocmask(SIG_UNBLOCK, &alarms, NULL); /* the parent process may have blocked SIGALRM */
    (void)alarm(TIME_S);
}

static bool ask(char *reply, size_t size) {
    if (send(connection, request, sizeof request - 1, MSG_NOSIGNAL) < 0)
        return false;
    const ssize_t got = recv(connection, reply, size - 1, MSG_WAITALL);
    reply[got < 0 ? 0 : got] = '\0';
    return got >= 0;
}

static int status_of(const char *reply) {
    int status = 0;
    char after = 0;
    const int read = sscanf(reply, "HTTP/1.%*1[0-9] %3d%c", &status, &after);
    return read == 2 && isspace((unsigned char)after) ? status : 0;
}

int mm_healthcheck(const struct mm_options *options) {
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *address = NULL; /* only the first address is tried, because the server listens on it */
    char port[16], reply[REPLY_BYTES_MAX];
    snprintf(port, sizeof port, "%u", (unsigned)options->port);
    int failure = getaddrinfo(options->host, port, &hints, &address);
    if (failure != 0) {
        fprintf(stderr, "matmuld: not healthy: %s is not found: %s\n", options->host, gai_strerror(failure));
        return EXIT_FAILURE;
    }
    connection = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    set_alarm();
    const bool answered = connection >= 0 &&
                          connect(connection, address->ai_addr, address->ai_addrlen) == 0 &&
                          (options->tls_cert != NULL ? mm_tls_ask(connection, request, reply, sizeof reply)
                                                     : ask(reply, sizeof reply));
    failure = is_late ? ETIMEDOUT : errno;
    (void)alarm(0);
    freeaddrinfo(address);
    if (connection >= 0)
        close(connection);
    const int status = answered && !is_late ? status_of(reply) : 0;
    if (status == 200)
        return EXIT_SUCCESS;
    fprintf(stderr, "matmuld: not healthy: %s port %s: ", options->host, port);
    if (status != 0)
        fprintf(stderr, "GET /healthz is answered with %d\n", status);
    else if (answered && !is_late)
        fputs("what answers is not HTTP\n", stderr);
    else
        fprintf(stderr, "%s\n", failure == EPROTO ? "what answers is not TLS" : strerror(failure));
    return EXIT_FAILURE;
}
