/* How long a program takes from exec to a socket that accepts, and to GET /readyz answered with 200:
 *
 *   startup [--times N] PROGRAM ARGUMENT…
 *
 * It is told --host 127.0.0.1 --port P of a free port, asked every millisecond, and ended by SIGTERM; with
 * --times by SIGKILL, while callers are connected to it and in the midst of requests, and started again on
 * the same port, so often. One line each time: accepts_ms= ready_ms= */
#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WAIT_MAX_MS = 60000, ARGUMENTS_MAX = 64, CALLERS = 64, TIMES_MAX = 10000 };

static double now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* Free a moment ago; nobody else is likely to be given the same one at once. */
static struct sockaddr_in free_address(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int probe = socket(AF_INET, SOCK_STREAM, 0);
    if (probe < 0 || bind(probe, (struct sockaddr *)&address, length) != 0 ||
        getsockname(probe, (struct sockaddr *)&address, &length) != 0) {
        fputs("startup: no free port\n", stderr);
        exit(EXIT_FAILURE);
    }
    close(probe);
    return address;
}

static int connect_to(const struct sockaddr_in *address) {
    int connection = socket(AF_INET, SOCK_STREAM, 0);
    if (connection < 0 || connect(connection, (const struct sockaddr *)address, sizeof *address) == 0)
        return connection;
    close(connection);
    return -1;
}

static bool is_ready(const struct sockaddr_in *address) {
    static const char request[] = "GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    char reply[64] = "";
    int connection = connect_to(address);
    if (connection < 0)
        return false;
    bool good = send(connection, request, sizeof request - 1, MSG_NOSIGNAL) > 0 &&
                recv(connection, reply, sizeof reply - 1, 0) > 0 && strncmp(reply, "HTTP/1.1 200 ", 13) == 0;
    close(connection);
    return good;
}

static bool accepts(const struct sockaddr_in *address) {
    int connection = connect_to(address);
    if (connection >= 0)
        close(connection);
    return connection >= 0;
}

/* The moment at which a question is first answered by yes; below 0 where the process ends, or never says so.
 */
static double await(bool (*question)(const struct sockaddr_in *), const struct sockaddr_in *address,
                    pid_t child) {
    const struct timespec pause = {.tv_nsec = 1000000};
    double until = now_ms() + WAIT_MAX_MS;
    while (now_ms() < until && waitpid(child, NULL, WNOHANG) == 0) {
        if (question(address))
            return now_ms();
        nanosleep(&pause, NULL);
    }
    return -1;
}

/* Callers of whom half were answered and wait, and half are in the midst of a request. Those of the process
 * before have stayed until now. */
static void call(const struct sockaddr_in *address) {
    static const char get[] = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    static const char post[] = "POST /v1/matmul?m=1&k=1000&n=1 HTTP/1.1\r\nHost: localhost\r\n"
                               "Content-Type: application/octet-stream\r\nContent-Length: 8000\r\n\r\nabc";
    static int callers[CALLERS]; /* 0: none yet */
    char reply[64];
    for (unsigned index = 0; index < CALLERS; index++) {
        if (callers[index] > 0)
            close(callers[index]);
        callers[index] = connect_to(address);
        if (index % 2 == 0)
            (void)send(callers[index], post, sizeof post - 1, MSG_NOSIGNAL);
        else if (send(callers[index], get, sizeof get - 1, MSG_NOSIGNAL) > 0)
            (void)recv(callers[index], reply, sizeof reply, 0);
        (void)fcntl(callers[index], F_SETFD, FD_CLOEXEC);
    }
}

/* Starts it, tells how long that took, and ends it. */
static bool start_once(char **arguments, const struct sockaddr_in *address, bool kills) {
    double begun = now_ms();
    pid_t child = fork();
    if (child == 0) {
        execv(arguments[0], arguments);
        _exit(127);
    }
    double accepted = child < 0 ? -1 : await(accepts, address, child);
    double ready = accepted < 0 ? -1 : await(is_ready, address, child);
    if (ready >= 0) {
        printf("accepts_ms=%.2f ready_ms=%.2f\n", accepted - begun, ready - begun);
        fflush(stdout);
    } else {
        fprintf(stderr, "startup: %s was never ready\n", arguments[0]);
    }
    if (kills && ready >= 0)
        call(address);
    if (child > 0)
        kill(child, kills || ready < 0 ? SIGKILL : SIGTERM);
    if (child > 0)
        waitpid(child, NULL, 0);
    return ready >= 0;
}

int main(int argc, char **argv) {
    char *arguments[ARGUMENTS_MAX] = {0};
    char host[] = "--host", local[] = "127.0.0.1", port[] = "--port", number[16];
    bool kills = argc > 2 && strcmp(argv[1], "--times") == 0;
    unsigned long times = kills ? strtoul(argv[2], NULL, 10) : 1;
    int first = kills ? 3 : 1;
    if (argc <= first || argc - first > ARGUMENTS_MAX - 5 || times < 1 || times > TIMES_MAX) {
        fputs("usage: startup [--times N] PROGRAM ARGUMENT...\n", stderr);
        return 2;
    }
    struct sockaddr_in address = free_address();
    snprintf(number, sizeof number, "%u", (unsigned)ntohs(address.sin_port));
    memcpy(arguments, argv + first, (size_t)(argc - first) * sizeof *argv);
    memcpy(arguments + argc - first, (char *[]){host, local, port, number}, 4 * sizeof *argv);
    bool good = true;
    for (unsigned long time = 0; good && time < times; time++)
        good = start_once(arguments, &address, kills);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
