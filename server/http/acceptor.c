/* Each open connection has a slot, with its HTTP thread and client address. A slot's index is the
 * descriptor. */
#include "server/http/acceptor.h"

#include "gpu/mutex.h"
#include "server/http/address.h"
#include "server/observe/log.h"
#include "server/observe/metrics.h"
#include "server/http/sweep.h"

#include <errno.h>
#include <inttypes.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* Of all connections, 1/RESERVE_SHARE are kept free for new clients, but at most RESERVE_MAX. */
enum { SLOT_COUNT = 1 << 17, RESERVE_SHARE = 16, RESERVE_MAX = 64, NAP_MS = 20, FULL_MS = 1000 };

#define TELL_EVERY_NS UINT64_C(10000000000)

struct address {
    struct mm_address ip; /* must be first, because the tree compares it */
    uint64_t connections;
};

struct slot {
    unsigned thread;         /* number of the HTTP thread, from 1 on; 0: the slot is free */
    struct address *address; /* NULL if addresses are not counted */
};

struct mm_acceptor {
    struct mm_server *server;
    int listener;
    struct MHD_Daemon **daemons;
    unsigned daemon_count;
    unsigned connections_max;
    unsigned kept_max; /* if more connections are open, idle ones are closed */
    pthread_t thread;
    int stopping;  /* __atomic access only */
    unsigned open; /* number of connections; written with the mutex held, read by __atomic */

    pthread_mutex_t mutex; /* guards slots, addresses, open_by_thread; acquire no lock while holding it */
    struct slot slots[SLOT_COUNT];
    void *addresses; /* binary tree of struct address (see tsearch) */

    /* Only the acceptor's thread uses the next five members. */
    unsigned next_thread;       /* the thread to try first for the next connection */
    unsigned full_naps;         /* naps in a row without a free descriptor */
    uint64_t evicted;           /* idle connections closed since the last log line about them */
    uint64_t logged_ns;         /* time of the last warning that accepting failed; 0: never */
    uint64_t evicted_logged_ns; /* time of the last warning about closed idle connections; 0: never */

    unsigned open_by_thread[]; /* one for each HTTP thread */
};

static int compare(const void *one, const void *other) {
    return memcmp(one, other, sizeof(struct mm_address));
}

/* gcc's analyzer reports a leak if only a tree points to memory. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wanalyzer-malloc-leak"
#endif

/* Counts a connection. NULL if the address has too many, or without memory. Call it with the mutex held. */
static struct address *count_address(struct mm_acceptor *acceptor, const struct sockaddr_storage *from) {
    struct address *made = malloc(sizeof *made);
    if (made == NULL)
        return NULL;
    *made = (struct address){.ip = mm_address_of_socket((const struct sockaddr *)from)};
    struct address **found = tsearch(made, &acceptor->addresses, compare);
    struct address *address = found == NULL ? NULL : *found;
    if (address != made)
        free(made);
    if (address == NULL || address->connections >= acceptor->server->options->connections_per_address)
        return NULL;
    address->connections++;
    return address;
}

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

/* Call it with the mutex held. */
static void release_slot(struct mm_acceptor *acceptor, int fd) {
    struct slot *slot = &acceptor->slots[fd];
    struct address *address = slot->address;
    if (slot->thread == 0)
        return;
    acceptor->open_by_thread[slot->thread - 1]--;
    __atomic_sub_fetch(&acceptor->open, 1, __ATOMIC_RELAXED);
    *slot = (struct slot){0};
    if (address == NULL || --address->connections > 0)
        return;
    (void)tdelete(address, &acceptor->addresses, compare);
    free(address);
}

void mm_acceptor_closed(struct mm_acceptor *acceptor, int fd) {
    pthread_mutex_lock(&acceptor->mutex);
    release_slot(acceptor, fd);
    pthread_mutex_unlock(&acceptor->mutex);
}

unsigned mm_acceptor_open(const struct mm_acceptor *acceptor) {
    return acceptor == NULL ? 0 : __atomic_load_n(&acceptor->open, __ATOMIC_RELAXED);
}

/* Call it with the mutex held. */
static unsigned choose_thread(struct mm_acceptor *acceptor) {
    const unsigned count = acceptor->daemon_count;
    unsigned best = acceptor->next_thread;
    for (unsigned step = 1; step < count; step++) {
        const unsigned thread = (acceptor->next_thread + step) % count;
        if (acceptor->open_by_thread[thread] < acceptor->open_by_thread[best])
            best = thread;
    }
    acceptor->next_thread = (best + 1) % count;
    return best;
}

/* Fills the slot and returns the connection's daemon, or NULL if the address has too many connections. The
 * connection of a used slot is gone: MHD closes it silently if memory runs out early. */
static struct MHD_Daemon *fill_slot(struct mm_acceptor *acceptor, int fd,
                                    const struct sockaddr_storage *from) {
    const bool counts_addresses = acceptor->server->options->connections_per_address > 0;
    struct MHD_Daemon *daemon = NULL;
    struct address *address = NULL;
    pthread_mutex_lock(&acceptor->mutex);
    release_slot(acceptor, fd);
    if (counts_addresses)
        address = count_address(acceptor, from);
    if (address != NULL || !counts_addresses) {
        const unsigned thread = choose_thread(acceptor);
        daemon = acceptor->daemons[thread];
        acceptor->slots[fd] = (struct slot){.thread = thread + 1, .address = address};
        acceptor->open_by_thread[thread]++;
        __atomic_add_fetch(&acceptor->open, 1, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&acceptor->mutex);
    return daemon;
}

static void take(struct mm_acceptor *acceptor, int fd, const struct sockaddr_storage *from,
                 socklen_t length) {
    struct MHD_Daemon *daemon = fd < SLOT_COUNT ? fill_slot(acceptor, fd, from) : NULL;
    if (daemon == NULL) {
        close(fd);
        mm_metrics_closed(MM_CLOSED_ADDRESS);
    } else if (MHD_add_connection(daemon, fd, (const struct sockaddr *)from, length) != MHD_YES) {
        mm_acceptor_closed(acceptor, fd); /* MHD has already closed the descriptor */
    }
}

static bool is_stopping(const struct mm_acceptor *acceptor) {
    return __atomic_load_n(&acceptor->stopping, __ATOMIC_RELAXED) != 0;
}

static bool may_log(uint64_t *logged_ns) {
    const uint64_t now_ns = mm_clock_ns();
    if (*logged_ns != 0 && now_ns - *logged_ns < TELL_EVERY_NS)
        return false;
    *logged_ns = now_ns;
    return true;
}

/* Logs a shortage of connections, but only after FULL_MS, because new connections may soon be idle. */
static void log_full(struct mm_acceptor *acceptor) {
    if (++acceptor->full_naps * NAP_MS >= FULL_MS && may_log(&acceptor->logged_ns))
        mm_log_warning(
            "all of at most %u connections are open and none is idle: new ones wait. Allow more open "
            "files (ulimit -n)",
            acceptor->connections_max);
}

static void log_evicted(struct mm_acceptor *acceptor) {
    if (acceptor->evicted == 0 || !may_log(&acceptor->evicted_logged_ns))
        return;
    mm_log_warning("connections that were idle longest were closed to make room for new ones: %" PRIu64
                   ", at most %u can be open. Allow more open files (ulimit -n)",
                   acceptor->evicted, acceptor->connections_max);
    acceptor->evicted = 0;
}

/* Closes idle connections if few descriptors are free. Returns false if no descriptor is free. */
static bool free_descriptor(struct mm_acceptor *acceptor) {
    const unsigned open = mm_acceptor_open(acceptor);
    if (open > acceptor->kept_max)
        acceptor->evicted += mm_sweep_close_idle(acceptor->server, open - acceptor->kept_max);
    log_evicted(acceptor);
    if (open < acceptor->connections_max) {
        acceptor->full_naps = 0;
        return true;
    }
    log_full(acceptor);
    return false;
}

/* Accepts a connection. Returns −1 if that fails or the acceptor is stopping. */
static int accept_one(struct mm_acceptor *acceptor, struct sockaddr_storage *from, socklen_t *length) {
    int fd;
    do
        fd = accept4(acceptor->listener, (struct sockaddr *)from, length, SOCK_CLOEXEC | SOCK_NONBLOCK);
    while (fd < 0 && (errno == ECONNABORTED || errno == EINTR));
    if (fd >= 0 || is_stopping(acceptor))
        return fd;
    if (may_log(&acceptor->logged_ns))
        mm_log_warning("a connection cannot be accepted: %s", strerror(errno));
    acceptor->evicted += mm_sweep_close_idle(acceptor->server, 1);
    return -1;
}

static void *run(void *argument) {
    const struct timespec nap = {.tv_nsec = NAP_MS * 1000000L};
    struct mm_acceptor *acceptor = argument;
    while (!is_stopping(acceptor)) {
        struct sockaddr_storage from;
        socklen_t length = sizeof from;
        const int fd = free_descriptor(acceptor) ? accept_one(acceptor, &from, &length) : -1;
        if (fd >= 0)
            take(acceptor, fd, &from, length);
        else
            nanosleep(&nap, NULL);
    }
    return NULL;
}

struct mm_acceptor *mm_acceptor_start(struct mm_server *server, int listener, struct MHD_Daemon **daemons,
                                      unsigned daemon_count, unsigned connections_max) {
    struct mm_acceptor *made = calloc(1, sizeof *made + daemon_count * sizeof made->open_by_thread[0]);
    if (made == NULL)
        return NULL;
    const unsigned share = connections_max / RESERVE_SHARE;
    const unsigned reserve = share > RESERVE_MAX ? RESERVE_MAX : share > 0 ? share : 1;
    made->server = server;
    made->listener = listener;
    made->daemons = daemons;
    made->daemon_count = daemon_count;
    made->connections_max = connections_max;
    made->kept_max = connections_max - reserve;
    made->mutex = MM_MUTEX_INITIALIZER;
    server->acceptor = made;
    if (pthread_create(&made->thread, NULL, run, made) == 0) {
        pthread_setname_np(made->thread, "mm-accept");
        return made;
    }
    mm_acceptor_free(made);
    return NULL;
}

/* shutdown() interrupts accept4() in the acceptor's thread. */
void mm_acceptor_stop(struct mm_acceptor *acceptor) {
    __atomic_store_n(&acceptor->stopping, 1, __ATOMIC_RELAXED);
    (void)shutdown(acceptor->listener, SHUT_RDWR);
    pthread_join(acceptor->thread, NULL);
}

void mm_acceptor_free(struct mm_acceptor *acceptor) {
    if (acceptor == NULL)
        return;
    for (int fd = 0; fd < SLOT_COUNT; fd++)
        release_slot(acceptor, fd);
    acceptor->server->acceptor = NULL;
    pthread_mutex_destroy(&acceptor->mutex);
    free(acceptor);
}
