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
    const struct mm_options *options; /* complete: with what depends on the machine */
    struct mm_limits limits;
    struct mm_budget budget;
    struct mm_pool *pool;
    struct mm_acceptor *acceptor; /* NULL: connections are not counted yet, or no longer */
    struct mm_store *store;       /* NULL: switched off */
    uint64_t epoch_ns;      /* nanoseconds from the epoch to the zero of mm_clock_ns, measured at the start */
    struct mm_keys *keys;   /* owned by main; NULL: no key is needed */
    bool is_local;          /* only this machine reaches the address; fixed before the first request */
    bool checks_host;       /* Host must be an allowed name; fixed before the first request */
    double started_seconds; /* start of the process, since the epoch */
    struct mm_engine *engine; /* NULL until its devices are open; use mm_server_engine */

    /* The body of GET /openapi.json; set with the engine; owned. */
    char *openapi;
    size_t openapi_bytes;

    /* Both are sequentially consistent: if a drain sees nothing accepted, every later request sees
     * `draining`. __atomic access only. */
    int draining;    /* not 0 once the process stops */
    size_t accepted; /* requests whose head is being checked or was accepted, until their last callback */

    int benchmarking; /* not 0 while a benchmark runs, because only one may; __atomic access only */

    size_t state_bytes_max; /* mm_route_state_bytes_max(), for each request's memory */

    uint64_t id_seed; /* first part of request ids: random for each process */
    uint64_t id_next; /* second part of request ids, a count; __atomic access only */

    /* Guards everything below, and what connection.h and request.h say. Lock it before the queue's mutex,
     * never after it. */
    pthread_mutex_t mutex;
    TAILQ_HEAD(mm_connections, mm_connection) connections; /* the most recently idle first */
    struct mm_connection *swept;                           /* where the sweep continues; NULL: it is done */
    size_t closing;      /* connections closed as idle that are still on the list */
    struct mm_line line; /* requests that wait for memory */
};

enum { MM_REQUEST_ID_MAX = 128 };

/* Writes an id for a request that brings none. Any thread may call it. */
void mm_server_make_id(struct mm_server *server, char id[MM_REQUEST_ID_MAX + 1]);

/* Takes over an engine with open devices, and builds the document that describes it. False if memory is out;
 * then the engine stays the caller's. Only main calls it. */
bool mm_server_set_engine(struct mm_server *server, struct mm_engine *engine);

/* The engine; NULL while its devices are not open. Any thread may call it. */
struct mm_engine *mm_server_engine(const struct mm_server *server);

/* How many requests are accepted and not over. Any thread may call it. */
size_t mm_server_accepted(const struct mm_server *server);

/* Retry-After for a request that is refused with this status, in seconds; 0: none. For MM_BUSY it is the time
 * that the queued work will take. Any thread may call it. */
unsigned mm_server_retry_after_s(const struct mm_server *server, enum mm_status status);

/* MM_OK, or in *error MM_STOPPING or MM_NOT_READY. Any thread may call it. */
enum mm_status mm_server_takes_jobs(const struct mm_server *server, struct mm_error *error);
