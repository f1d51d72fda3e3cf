/* The state that all requests share. main owns it, and it outlives every request. */
#pragma once

#include "gpu/device/engine.h"
#include "gpu/memory/budget.h"
#include "server/http/address.h"
#include "server/http/client.h"
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
    const struct mm_options *options; /* main has chosen the values that depend on the machine */
    struct mm_limits limits;
    struct mm_networks trusted_proxies;
    struct mm_budget budget;
    struct mm_clients clients;
    struct mm_pool *pool;
    struct mm_acceptor *acceptor; /* NULL before the HTTP server starts and after it stops */
    struct mm_store *store;       /* NULL: matrices cannot be stored */
    uint64_t epoch_ns;            /* Unix time at which mm_clock_ns was 0, measured at the start */
    struct mm_keys *keys;         /* owned by main; NULL: requests need no key */
    bool is_local;                /* only this machine can reach the address; set before the first request */
    bool checks_host;             /* the Host header must be an allowed name; set before the first request */
    double started_seconds;       /* Unix time at which the process started */
    struct mm_engine *engine;     /* NULL until the devices are open; read it by mm_server_engine */

    /* Body of GET /openapi.json, owned. NULL until the engine is set. */
    char *openapi;
    size_t openapi_bytes;

    int leaving; /* 1 from the beginning of the lame duck, or else of the drain; __atomic access only */

    /* Access `draining` and `accepted` by sequentially consistent __atomic operations. If a drain then sees
     * no accepted request, every later request sees that `draining` is 1. */
    int draining;    /* 1 from the beginning of the drain */
    size_t accepted; /* requests from MHD's first callback until refused or ended */

    int benchmarking; /* 1 while a benchmark runs, because only one may run; __atomic access only */

    size_t state_bytes_max; /* bytes in each request for the state of a route's handlers */

    uint64_t id_seed; /* first part of request ids: a random number for this process */
    uint64_t id_next; /* second part of request ids: counts up; __atomic access only */

    /* Guards all members below, and the members that connection.h and request.h name. Never lock this mutex
     * while you hold the queue's mutex. The other order is allowed. */
    pthread_mutex_t mutex;
    TAILQ_HEAD(mm_connections, mm_connection) connections; /* latest activity first */
    struct mm_connection *swept; /* next connection that the sweep checks; NULL: none is left */
    size_t closing;              /* connections closed as idle that are still in the list */
    struct mm_line line;         /* requests that wait for memory */
};

enum { MM_REQUEST_ID_MAX = 128 };

/* Writes a new id for a request whose client sent none. Any thread may call it. */
void mm_server_make_id(struct mm_server *server, char id[MM_REQUEST_ID_MAX + 1]);

/* Takes ownership of an engine with open devices, and builds the OpenAPI document for it. Returns false if
 * out of memory; then the caller still owns the engine. Only main may call it. */
bool mm_server_set_engine(struct mm_server *server, struct mm_engine *engine);

/* Returns the engine, or NULL while its devices are not open. Any thread may call it. */
struct mm_engine *mm_server_engine(const struct mm_server *server);

/* Returns how many requests have begun, were not refused, and have not ended. Any thread may call it. */
size_t mm_server_accepted(const struct mm_server *server);

/* Returns the seconds for the Retry-After header of a request that fails with `status`, or 0 for no header.
 * For MM_BUSY the value is the estimated time of the queued work. Any thread may call it. */
unsigned mm_server_retry_after_s(const struct mm_server *server, enum mm_status status);

/* Checks whether the server accepts jobs. Fails with MM_STOPPING or MM_NOT_READY. Any thread may call it. */
enum mm_status mm_server_takes_jobs(const struct mm_server *server, struct mm_error *error);

/* Tells clients to leave: from now on mm_server_is_ready fails and every response closes its connection. Only
 * the main thread may call it. */
void mm_server_leave(struct mm_server *server);

/* Whether mm_server_leave was called. Any thread may call it. */
bool mm_server_is_leaving(const struct mm_server *server);

/* Checks whether load balancers should send requests here. Fails if mm_server_takes_jobs fails, and with
 * MM_STOPPING after mm_server_leave. Any thread may call it. */
enum mm_status mm_server_is_ready(const struct mm_server *server, struct mm_error *error);
