/* The state that all requests share. main makes and frees it; it outlives every request. */
#pragma once

#include "gpu/device/engine.h"
#include "gpu/memory/budget.h"
#include "server/http/line.h"
#include "server/options.h"

#include <pthread.h>
#include <sys/queue.h>

struct mm_acceptor;
struct mm_connection;
struct mm_pool;
struct mm_request;
struct mm_keys;
struct mm_store;

struct mm_server {
    const struct mm_options *options; /* complete: with what comes from the machine */
    struct mm_limits limits;
    struct mm_budget budget;
    struct mm_pool *pool;
    struct mm_acceptor *acceptor; /* NULL: connections are not counted yet or any more */
    struct mm_store *store;       /* NULL: switched off */
    uint64_t epoch_ns;            /* what mm_clock_ns lacks to nanoseconds since the epoch, at the start */
    struct mm_keys *keys;         /* of main; NULL: no key is needed */
    bool is_local;                /* only this machine reaches the address; fixed before the first request */
    bool checks_host;             /* Host must be an allowed name; likewise */
    double started_seconds;       /* start of the process, since the epoch */
    struct mm_engine *engine;     /* NULL until it is open; use mm_server_engine */

    /* GET /openapi.json: there once the engine is; owned. */
    char *openapi;
    size_t openapi_bytes;

    /* Both sequentially consistent: if a drain sees nothing accepted, every later request sees `draining`.
     * __atomic access only. */
    int draining;    /* not 0 once the process is to stop */
    size_t accepted; /* requests whose head is checked now or was not refused, up to their last callback */

    int benchmarking; /* not 0 while a benchmark runs: one at a time; __atomic access only */

    size_t state_bytes_max; /* mm_route_state_bytes_max */

    uint64_t id_seed; /* request ids: random per process, then counted up */
    uint64_t id_next; /* __atomic access only */

    /* Guards what follows, and what connection.h and request.h say. Locked before the queue's mutex, never
     * after it. */
    pthread_mutex_t mutex;
    TAILQ_HEAD(mm_connections, mm_connection) connections; /* the most recently idle first */
    struct mm_connection *swept;                           /* where the sweep goes on; NULL: done */
    size_t closing;      /* connections closed as idle that are still on the list */
    struct mm_line line; /* requests that wait for memory */
};

enum { MM_REQUEST_ID_MAX = 128 };

/* For a request that brings no id. Any thread. */
void mm_server_make_id(struct mm_server *server, char id[MM_REQUEST_ID_MAX + 1]);

/* Takes over the engine, whose devices are open, and makes the document that describes it. False, and nothing
 * taken, if memory runs out. From main. */
bool mm_server_set_engine(struct mm_server *server, struct mm_engine *engine);

/* NULL while it is not open yet. Any thread. */
struct mm_engine *mm_server_engine(const struct mm_server *server);

/* Any thread. */
size_t mm_server_accepted(const struct mm_server *server);

/* Retry-After for a request that is refused with this status, in seconds; 0: none. For MM_BUSY, the time that
 * the queued work will take. Any thread. */
unsigned mm_server_retry_after_s(const struct mm_server *server, enum mm_status status);

/* MM_OK, or MM_STOPPING or MM_NOT_READY in *error. Any thread. */
enum mm_status mm_server_takes_jobs(const struct mm_server *server, struct mm_error *error);
