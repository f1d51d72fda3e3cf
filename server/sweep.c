/* Deadlines and departures, ten times a second. Knows no route and no codec. */
#include "server/sweep.h"

#include "server/exchange.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

enum { PERIOD_MS = 100 };

struct mm_sweep {
    struct mm_server *server;
    pthread_t thread;
    pthread_mutex_t mutex; /* guards `stopping` */
    pthread_cond_t changed;
    bool stopping;
};

static int descriptor(const struct mm_exchange *exchange) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(exchange->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info == NULL ? -1 : info->connect_fd;
}

/* Whether the caller has closed its side, or both. That it may have closed its sending side alone and
 * still listen cannot be seen; like other servers we take that for leaving. */
static bool has_left(int fd) {
    struct pollfd peer = {.fd = fd, .events = POLLRDHUP};
    return poll(&peer, 1, 0) > 0 && (peer.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

/* Why a waiting exchange is to be answered without its job; false where it may go on waiting. */
static bool is_over(struct mm_exchange *exchange, uint64_t now_ns, struct mm_error *error) {
    if (exchange->job.deadline_ns != 0 && now_ns > exchange->job.deadline_ns) {
        mm_fail(error, MM_TIMEOUT, "the deadline passed before the result was there");
        return true;
    }
    if (has_left(descriptor(exchange))) {
        mm_fail(error, MM_STOPPING, "the caller has left"); /* nobody reads this */
        exchange->record.left = true;
        return true;
    }
    return false;
}

/* The descriptors stay open meanwhile: MHD closes none before mm_exchange_completed has taken its
 * exchange off the list, for which it needs the mutex. poll() does not block. */
static void sweep_once(struct mm_server *server) {
    struct mm_exchange *abandoned = NULL;
    struct mm_error error;
    uint64_t now_ns = mm_clock_ns();
    pthread_mutex_lock(&server->mutex);
    for (struct mm_exchange *exchange = server->newest; exchange != NULL; exchange = exchange->older) {
        if (exchange->waiting && is_over(exchange, now_ns, &error)) {
            mm_exchange_abandon(exchange, &error);
            exchange->next_resumed = abandoned;
            abandoned = exchange;
        } else if (__atomic_load_n(&exchange->receiving, __ATOMIC_RELAXED) != 0) {
            /* MHD can miss an end that came together with data. Told once more, it reads what there is
             * and then sees the end; a request that is complete is still answered. */
            int fd = descriptor(exchange);
            if (has_left(fd))
                (void)shutdown(fd, SHUT_RD);
        }
    }
    pthread_mutex_unlock(&server->mutex);
    mm_exchange_resume(abandoned);
}

/* Sleeps for a period; false where the sweep is to stop. */
static bool rest(struct mm_sweep *sweep) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += PERIOD_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    pthread_mutex_lock(&sweep->mutex);
    int result = 0;
    while (!sweep->stopping && result == 0)
        result = pthread_cond_timedwait(&sweep->changed, &sweep->mutex, &until);
    bool go_on = !sweep->stopping;
    pthread_mutex_unlock(&sweep->mutex);
    return go_on;
}

static void *run(void *argument) {
    struct mm_sweep *sweep = argument;
    while (rest(sweep))
        sweep_once(sweep->server);
    return NULL;
}

struct mm_sweep *mm_sweep_start(struct mm_server *server) {
    struct mm_sweep *sweep = calloc(1, sizeof *sweep);
    pthread_condattr_t monotonic;
    if (sweep == NULL)
        return NULL;
    sweep->server = server;
    pthread_mutex_init(&sweep->mutex, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&sweep->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    if (pthread_create(&sweep->thread, NULL, run, sweep) == 0) {
        pthread_setname_np(sweep->thread, "mm-sweep");
        return sweep;
    }
    pthread_cond_destroy(&sweep->changed);
    pthread_mutex_destroy(&sweep->mutex);
    free(sweep);
    return NULL;
}

void mm_sweep_stop(struct mm_sweep *sweep) {
    if (sweep == NULL)
        return;
    pthread_mutex_lock(&sweep->mutex);
    sweep->stopping = true;
    pthread_cond_signal(&sweep->changed);
    pthread_mutex_unlock(&sweep->mutex);
    pthread_join(sweep->thread, NULL);
    pthread_cond_destroy(&sweep->changed);
    pthread_mutex_destroy(&sweep->mutex);
    free(sweep);
}
