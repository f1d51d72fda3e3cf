/* Starts a server as main does, but without signal handlers or a listening socket. */
#include "tests/fuzz/in_process.h"

#include "server/http/pool.h"
#include "server/http/request.h"
#include "server/http/head.h"
#include "server/http/routes.h"
#include "server/auth/keys.h"
#include "server/observe/log.h"
#include "server/observe/metrics.h"

#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { CONNECTION_MEMORY_BYTES = 16 << 10, WAIT_MS = 10, WAIT_ROUNDS_MAX = 1000, IDLE_ROUNDS = 3 };

static struct mm_options options;
static struct mm_server server;
static struct mm_keys *keys;
static struct MHD_Daemon *mhd;

/* Replaces the log output. Checks that each entry is one line with one JSON object. */
void __wrap_mm_log_put(const char *line, size_t bytes, bool one_of_many);
void __wrap_mm_log_put(const char *line, size_t bytes, bool one_of_many) {
    (void)one_of_many;
    REQUIRE(bytes > 0 && memchr(line, '\n', bytes) == line + bytes - 1);
    json_t *object = json_loadb(line, bytes, JSON_REJECT_DUPLICATES, NULL);
    REQUIRE(json_is_object(object));
    json_decref(object);
}

static void open_server(void) {
    static char program[] = "matmuld", backend[] = "--backend=cpu", body[] = "--max-body=64KiB",
                dimension[] = "--max-dimension=256", budget[] = "--memory-budget=4MiB",
                jobs[] = "--cpu-jobs=1", flops[] = "--benchmark-flops=100000000",
                run[] = "--benchmark-run-flops=1000000", repeats[] = "--benchmark-repeats=3",
                format[] = "--log-format=json";
    static char *argv[] = {program, backend, body,    dimension, budget, jobs,
                           flops,   run,     repeats, format,    NULL};
    struct mm_error error;
    REQUIRE(mm_options_parse(&options, 10, argv, &error) == MM_OK);
    options.threads = 1;
    options.api_key = IN_PROCESS_KEY;
    mm_log_set_format(MM_LOG_JSON);
    REQUIRE(mm_keys_open(&options, &keys, &error) == MM_OK);
    options.allowed_hosts = "fuzz";
    server.checks_host = true;
    server.options = &options;
    REQUIRE(mm_budget_open(&server.budget, options.memory_budget_bytes));
    server.limits = (struct mm_limits){.dimension_max = options.dimension_max,
                                       .body_bytes_max = options.body_bytes_max,
                                       .memory_bytes_max = server.budget.part_bytes[MM_BUDGET_MAIN]};
    pthread_mutex_init(&server.mutex, NULL);
    TAILQ_INIT(&server.connections);
    mm_line_open(&server.line);
    server.state_bytes_max = mm_route_state_bytes_max();
    server.pool = mm_pool_start(1);
    REQUIRE(server.pool != NULL);
    const struct mm_engine_options wanted = {
        .backend = options.backend,
        .host_jobs = 1,
        .queue = {.jobs_max = options.queue_depth, .wait_ns_max = options.queue_wait_ms * UINT64_C(1000000)}};
    struct mm_engine *engine = NULL;
    REQUIRE(mm_engine_open(&wanted, &engine, &error) == MM_OK);
    REQUIRE(mm_server_set_engine(&server, engine));
}

static void open_daemon(void) {
    mhd = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_ITC | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL,
        mm_request_handle, &server, MHD_OPTION_NOTIFY_COMPLETED, mm_request_completed, &server,
        MHD_OPTION_NOTIFY_CONNECTION, mm_connection_notify, &server, MHD_OPTION_UNESCAPE_CALLBACK,
        mm_head_unescape, &server, MHD_OPTION_URI_LOG_CALLBACK, mm_head_note_target, &server,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY_BYTES, MHD_OPTION_END);
    REQUIRE(mhd != NULL);
}

void in_process_begin(bool asks_keys, bool has_cors) {
    if (mhd == NULL) {
        open_server();
        open_daemon();
    }
    server.keys = asks_keys ? keys : NULL;
    options.cors_origin = has_cors ? "*" : NULL;
}

void talk_begin(struct talk *talk) {
    int pair[2];
    const struct sockaddr_un address = {.sun_family = AF_UNIX};
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) == 0);
    *talk = (struct talk){.fd = pair[0], .reply = calloc(1, 1)};
    REQUIRE(talk->reply != NULL);
    REQUIRE(MHD_add_connection(mhd, pair[1], (const struct sockaddr *)&address, sizeof address) == MHD_YES);
}

static bool receive(struct talk *talk) {
    char chunk[16 << 10];
    bool any = false;
    while (!talk->is_over) {
        const ssize_t got = recv(talk->fd, chunk, sizeof chunk, 0);
        if (got < 0) {
            REQUIRE(errno == EAGAIN || errno == ECONNRESET);
            if (errno == EAGAIN)
                break;
        }
        any = true;
        talk->is_over = got <= 0;
        if (got <= 0)
            break;
        char *grown = realloc(talk->reply, talk->reply_bytes + (size_t)got + 1);
        REQUIRE(grown != NULL);
        memcpy(grown + talk->reply_bytes, chunk, (size_t)got);
        talk->reply = grown;
        talk->reply_bytes += (size_t)got;
        grown[talk->reply_bytes] = '\0';
    }
    return any;
}

static bool is_waiting(void) {
    bool waits = false;
    pthread_mutex_lock(&server.mutex);
    const struct mm_connection *connection = TAILQ_FIRST(&server.connections);
    const struct mm_request *request = connection == NULL ? NULL : connection->request;
    if (request != NULL)
        waits = mm_request_waits(request) || mm_request_state(request) == MM_ANSWERING;
    pthread_mutex_unlock(&server.mutex);
    return waits;
}

static void await_others(void) {
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(mhd, MHD_DAEMON_INFO_EPOLL_FD);
    struct pollfd ready = {.fd = info->epoll_fd, .events = POLLIN};
    (void)poll(&ready, 1, WAIT_MS);
}

static void settle(struct talk *talk) {
    unsigned waited = 0;
    for (unsigned idle = 0; idle < IDLE_ROUNDS && !talk->is_over;) {
        REQUIRE(MHD_run(mhd) == MHD_YES);
        if (receive(talk)) {
            idle = 0;
        } else if (is_waiting()) {
            REQUIRE(waited++ < WAIT_ROUNDS_MAX);
            await_others();
        } else {
            idle++;
        }
    }
}

void talk_send(struct talk *talk, const char *bytes, size_t count) {
    unsigned stuck = 0;
    while (count > 0 && !talk->is_over) {
        const ssize_t sent = send(talk->fd, bytes, count, MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN)
            break;
        stuck = sent < 0 ? stuck + 1 : 0;
        REQUIRE(stuck < WAIT_ROUNDS_MAX);
        bytes += sent < 0 ? 0 : sent;
        count -= sent < 0 ? 0 : (size_t)sent;
        settle(talk);
    }
}

void talk_end(struct talk *talk) {
    settle(talk);
    shutdown(talk->fd, SHUT_WR);
    for (unsigned round = 0; !TAILQ_EMPTY(&server.connections); round++) {
        REQUIRE(round < WAIT_ROUNDS_MAX);
        REQUIRE(MHD_run(mhd) == MHD_YES);
        (void)receive(talk);
        if (is_waiting())
            await_others();
    }
    (void)receive(talk);
    close(talk->fd);
    REQUIRE(mm_server_accepted(&server) == 0);
    REQUIRE(mm_budget_used(&server.budget) == 0);
    REQUIRE(__atomic_load_n(&server.benchmarking, __ATOMIC_RELAXED) == 0);
}

void talk_free(struct talk *talk) {
    free(talk->reply);
}
