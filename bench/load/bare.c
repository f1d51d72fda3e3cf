/* Minimal servers with libmicrohttpd and the service's limits, for comparison with the service. Responses
 * consist of zeros.
 *
 *   bare handler|worker THREADS REPLY_BYTES         small requests, whose bodies are dropped
 *   bare bodies CONNECTIONS REPLY_BYTES BODY_BYTES  large bodies
 *
 * `handler` responds in libmicrohttpd's handler. `worker` suspends each connection until another thread
 * resumes it. A service must do this if another thread computes the response. `bodies` has a thread for each
 * connection, which copies the body into a buffer. */
#include "bench/load/floor.h"
#include "bench/load/memory.h"

#include <errno.h>
#include <microhttpd.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The limits for memory and idle time are those in server/http/http.c. */
enum { CONNECTION_MEMORY_BYTES = 64 << 10, IDLE_TIMEOUT_S = 60, CONNECTIONS_MAX = 8192 };

enum stage { RECEIVING, WORKING };

struct request {
    struct MHD_Connection *connection;
    struct request *next; /* in the list of the worker thread */
    enum stage stage;
    size_t filled; /* bytes of the body received so far */
};

struct floor {
    bool has_worker;
    char *reply;
    size_t reply_bytes;
    size_t body_bytes; /* size of a thread's buffer for bodies; 0 if bodies are dropped */
    pthread_key_t buffer;
    pthread_mutex_t mutex; /* guards `first` and `last` */
    pthread_cond_t arrived;
    struct request *first;
    struct request *last;
};

static enum MHD_Result answer(const struct floor *floor, struct MHD_Connection *connection) {
    struct MHD_Response *response =
        MHD_create_response_from_buffer(floor->reply_bytes, floor->reply, MHD_RESPMEM_PERSISTENT);
    enum MHD_Result result = MHD_queue_response(connection, MHD_HTTP_OK, response);
    MHD_destroy_response(response);
    return result;
}

/* Queues the request. Suspends the connection first, because the worker may resume it at once. */
static void publish(struct floor *floor, struct request *request) {
    request->stage = WORKING;
    request->next = NULL;
    MHD_suspend_connection(request->connection);
    pthread_mutex_lock(&floor->mutex);
    if (floor->first == NULL)
        floor->first = request;
    else
        floor->last->next = request;
    floor->last = request;
    pthread_cond_signal(&floor->arrived);
    pthread_mutex_unlock(&floor->mutex);
}

static void *work(void *argument) {
    struct floor *floor = argument;
    for (;;) {
        pthread_mutex_lock(&floor->mutex);
        while (floor->first == NULL)
            pthread_cond_wait(&floor->arrived, &floor->mutex);
        struct request *request = floor->first;
        floor->first = request->next;
        pthread_mutex_unlock(&floor->mutex);
        MHD_resume_connection(request->connection);
    }
    return NULL;
}

/* Copies a chunk of the body into the thread's buffer. Ends the process if the body exceeds the buffer. */
static void copy_body(struct floor *floor, struct request *request, const char *data, size_t bytes) {
    if (floor->body_bytes == 0)
        return;
    char *buffer = pthread_getspecific(floor->buffer);
    if (buffer == NULL) {
        buffer = mm_load_resize(NULL, floor->body_bytes);
        (void)pthread_setspecific(floor->buffer, buffer);
    }
    if (bytes > floor->body_bytes - request->filled) {
        fputs("a body is larger than its buffer\n", stderr);
        exit(EXIT_FAILURE);
    }
    memcpy(buffer + request->filled, data, bytes);
    request->filled += bytes;
}

static enum MHD_Result handle(void *argument, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *data, size_t *bytes,
                              void **state) {
    struct floor *floor = argument;
    struct request *request = *state;
    (void)url, (void)method, (void)version;
    if (request == NULL) {
        request = mm_load_resize(NULL, sizeof *request);
        *request = (struct request){.connection = connection};
        *state = request;
        return MHD_YES;
    }
    if (*bytes > 0) {
        copy_body(floor, request, data, *bytes);
        *bytes = 0;
        return MHD_YES;
    }
    if (!floor->has_worker || request->stage == WORKING)
        return answer(floor, connection);
    publish(floor, request);
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
    const unsigned flags = floor->body_bytes > 0
                               ? MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_ITC
                               : MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_ITC | MHD_ALLOW_SUSPEND_RESUME;
    return MHD_start_daemon(flags, 0, NULL, NULL, handle, floor, MHD_OPTION_NOTIFY_COMPLETED, completed,
                            floor, MHD_OPTION_LISTEN_SOCKET, listener, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                            (size_t)CONNECTION_MEMORY_BYTES, MHD_OPTION_CONNECTION_TIMEOUT,
                            (unsigned)IDLE_TIMEOUT_S, MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX,
                            MHD_OPTION_ARRAY, threads > 1 && floor->body_bytes == 0 ? pool : &pool[1],
                            MHD_OPTION_END);
}

int main(int argc, char **argv) {
    static struct floor floor = {.mutex = PTHREAD_MUTEX_INITIALIZER, .arrived = PTHREAD_COND_INITIALIZER};
    pthread_t worker;
    const bool has_bodies = argc == 5 && strcmp(argv[1], "bodies") == 0;
    const unsigned threads = argc == 4 || has_bodies ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
    if (threads == 0) {
        fputs("usage: bare handler|worker THREADS REPLY_BYTES, or bare bodies CONNECTIONS REPLY_BYTES "
              "BODY_BYTES\n",
              stderr);
        return 2;
    }
    floor.has_worker = strcmp(argv[1], "worker") == 0;
    floor.reply_bytes = strtoull(argv[3], NULL, 10);
    floor.reply = mm_load_warm_buffer(floor.reply_bytes);
    floor.body_bytes = has_bodies ? strtoull(argv[4], NULL, 10) : 0;
    if (pthread_key_create(&floor.buffer, free) != 0 ||
        (floor.has_worker && pthread_create(&worker, NULL, work, &floor) != 0))
        return EXIT_FAILURE;
    if (start(&floor, threads, mm_load_listen("127.0.0.1", false)) == NULL) {
        fputs("libmicrohttpd could not be started\n", stderr);
        return EXIT_FAILURE;
    }
    for (;;)
        (void)sigsuspend(&(sigset_t){0});
}
