/* The state that all requests share. Made and ended by main; everything here outlives every request. */
#ifndef MM_SERVER_SERVER_H
#define MM_SERVER_SERVER_H

#include "gpu/engine.h"
#include "gpu/buffer.h"
#include "server/options.h"

#include <pthread.h>

#ifdef __cplusplus
extern "C" {
#endif

struct mm_connection;
struct mm_crew;
struct mm_keys;
struct mm_metrics;
struct mm_tls;

struct mm_server {
    const struct mm_options *options; /* with what comes from the machine filled in */
    struct mm_limits limits;
    struct mm_buffers *buffers;
    struct mm_metrics *metrics;
    struct mm_crew *crew;
    struct mm_keys *keys;     /* main's; NULL: none are asked for */
    struct mm_tls *tls;       /* main's; NULL: no TLS */
    double started_seconds;   /* of the process, since the epoch */
    struct mm_engine *engine; /* NULL until it is open; __atomic access only (mm_server_engine) */

    /* Sequentially consistent both, so that a drain that sees nothing accepted knows that every later
     * request sees `draining`. __atomic access only. */
    int draining;    /* not 0 once the process was told to stop */
    size_t accepted; /* requests whose head is being judged or was not refused, up to their last callback */

    int benchmarking; /* not 0 while a benchmark is under way: there is one at a time; __atomic access only */

    uint64_t id_seed; /* request ids: random once a process, counted up */
    uint64_t id_next; /* __atomic access only */

    /* Guards `newest` and what connection.h and exchange.h say. Taken before the queue's own mutex, never
     * after. */
    pthread_mutex_t mutex;
    struct mm_connection *newest; /* of all connections, each linked to the older */
    struct mm_connection *swept;  /* where the sweep goes on; NULL: it is through */
};

enum { MM_REQUEST_ID_MAX = 128 };

/* Makes a request id, for a request that brings none. Any thread. */
void mm_server_make_id(struct mm_server *server, char id[MM_REQUEST_ID_MAX + 1]);

/* The engine, or NULL while it is not open yet. Any thread. */
struct mm_engine *mm_server_engine(const struct mm_server *server);

/* Any thread. */
bool mm_server_draining(const struct mm_server *server);
size_t mm_server_accepted(const struct mm_server *server);

/* The value of Retry-After for a request that is refused with this status, in seconds: 0 where another time
 * would be no better, and with MM_BUSY what the work before it will take. Any thread. */
unsigned mm_server_retry_after_s(const struct mm_server *server, enum mm_status status);

/* MM_OK where new jobs are taken; else MM_STOPPING or MM_NOT_READY with Retry-After. Any thread. */
enum mm_status mm_server_takes_jobs(const struct mm_server *server, struct mm_error *error);

#ifdef __cplusplus
}
#endif
#endif
