/* The floor of small requests: libmicrohttpd with the service's own flags, and nothing else. The body is
 * dropped and the reply is made of zeros.
 *
 *   bare handler|worker THREADS REPLY_BYTES
 *
 * `handler` answers in its handler. `worker` suspends the connection, hands it to one worker thread, which
 * resumes it, and answers then, as a service must whose work is done by another thread. */
#include "tests/load/bytes.h"
#include "tests/load/listener.h"

#include <errno.h>
#include <microhttpd.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As in server/http.c. */
enum { CONNECTION_MEMORY_BYTES = 64 << 10, IDLE_TIMEOUT_S = 60, CONNECTIONS_MAX = 8192 };

enum stage { RECEIVING, WORKING };

/* One a request; a worker's list of them is linked by `next`. */
struct exchange {
    struct MHD_Connection *connection;
    struct exchange *next;
    enum stage stage;
};

struct floor {
    bool has_worker;
    char *reply;
    size_t reply_bytes;
    pthread_mutex_t mutex; /* guards `first` and `last` */
    pthread_cond_t arrived;
    struct exchange *first;
    struct exchange *last;
};

static enum MHD_Result answer(const struct floor *floor, struct MHD_Connection *connection) {
    struct MHD_Response *response =
        MHD_create_response_from_buffer(floor->reply_bytes, floor->reply, MHD_RESPMEM_PERSISTENT);
    enum MHD_Result result = MHD_queue_response(connection, MHD_HTTP_OK, response);
    MHD_destroy_response(response);
    return result;
}

/* Suspended before the worker can see it, since it may be resumed at once. */
static void publish(struct floor *floor, struct exchange *exchange) {
    exchange->stage = WORKING;
    exchange->next = NULL;
    MHD_suspend_connection(exchange->connection);
    pthread_mutex_lock(&floor->mutex);
    if (floor->first == NULL)
        floor->first = exchange;
    else
        floor->last->next = exchange;
    floor->last = exchange;
    pthread_cond_signal(&floor->arrived);
    pthread_mutex_unlock(&floor->mutex);
}

static void *work(void *argument) {
    struct floor *floor = argument;
    for (;;) {
        pthread_mutex_lock(&floor->mutex);
        while (floor->first == NULL)
            pthread_cond_wait(&floor->arrived, &floor->mutex);
        struct exchange *exchange = floor->first;
        floor->first = exchange->next;
        pthread_mutex_unlock(&floor->mutex);
        MHD_resume_connection(exchange->connection);
    }
    return NULL;
}

static enum MHD_Result handle(void *argument, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *data, size_t *bytes,
                              void **state) {
    struct floor *floor = argument;
    struct exchange *exchange = *state;
    (void)url, (void)method, (void)version, (void)data;
    if (exchange == NULL) {
        exchange = mm_load_allocate(sizeof *exchange);
        *exchange = (struct exchange){.connection = connection};
        *state = exchange;
        return MHD_YES;
    }
    if (*bytes > 0) {
        *bytes = 0;
        return MHD_YES;
    }
    if (!floor->has_worker || exchange->stage == WORKING)
        return answer(floor, connection);
    publish(floor, exchange);
    return MHD_YES;
}

static void completed(void *argument, struct MHD_Connection *connection, void **state,
                      enum MHD_RequestTerminationCode code) {
    (void)argument, (void)connection, (void)code;
    free(*state);
    *state = NULL;
}

static struct MHD_Daemon *start(struct floor *floor, unsigned threads, int listener) {
    const struct MHD_OptionItem pool[] = {{MHD_OPTION_THREAD_POOL_SIZE, (intptr_t)threads, NULL},
                                          {MHD_OPTION_END, 0, NULL}};
    return MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_ITC | MHD_ALLOW_SUSPEND_RESUME, 0, NULL,
                            NULL, handle, floor, MHD_OPTION_NOTIFY_COMPLETED, completed, floor,
                            MHD_OPTION_LISTEN_SOCKET, listener, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                            (size_t)CONNECTION_MEMORY_BYTES, MHD_OPTION_CONNECTION_TIMEOUT,
                            (unsigned)IDLE_TIMEOUT_S, MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX,
                            MHD_OPTION_ARRAY, threads > 1 ? pool : &pool[1], MHD_OPTION_END);
}

int main(int argc, char **argv) {
    static struct floor floor = {.mutex = PTHREAD_MUTEX_INITIALIZER, .arrived = PTHREAD_COND_INITIALIZER};
    pthread_t worker;
    unsigned threads = argc == 4 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
    if (threads == 0) {
        fputs("usage: bare handler|worker THREADS REPLY_BYTES\n", stderr);
        return 2;
    }
    floor.has_worker = strcmp(argv[1], "worker") == 0;
    floor.reply_bytes = strtoull(argv[3], NULL, 10);
    floor.reply = mm_load_allocate(floor.reply_bytes);
    memset(floor.reply, 0, floor.reply_bytes);
    if (floor.has_worker && pthread_create(&worker, NULL, work, &floor) != 0)
        return EXIT_FAILURE;
    if (start(&floor, threads, mm_load_listen("127.0.0.1", false)) == NULL) {
        fputs("libmicrohttpd could not be started\n", stderr);
        return EXIT_FAILURE;
    }
    for (;;)
        (void)sigsuspend(&(sigset_t){0});
}
