#include "server/server.h"

#include "api/describe/describe.h"
#include "api/number/digits.h"
#include "api/problem.h"

void mm_server_make_id(struct mm_server *server, char id[MM_REQUEST_ID_MAX + 1]) {
    char *end = mm_put_hex(id, server->id_seed, 16);
    *end++ = '-';
    *mm_put_hex(end, __atomic_fetch_add(&server->id_next, 1, __ATOMIC_RELAXED), 1) = '\0';
}

bool mm_server_set_engine(struct mm_server *server, struct mm_engine *engine) {
    size_t count;
    struct mm_device *const *devices = mm_engine_devices(engine, &count);
    server->openapi = mm_openapi_json(devices, count, MATMULD_VERSION, &server->openapi_bytes);
    if (server->openapi == NULL)
        return false;
    __atomic_store_n(&server->engine, engine, __ATOMIC_RELEASE);
    return true;
}

struct mm_engine *mm_server_engine(const struct mm_server *server) {
    return __atomic_load_n(&server->engine, __ATOMIC_ACQUIRE);
}

size_t mm_server_accepted(const struct mm_server *server) {
    return __atomic_load_n(&server->accepted, __ATOMIC_SEQ_CST);
}

enum mm_status mm_server_takes_jobs(const struct mm_server *server, struct mm_error *error) {
    const struct mm_engine *engine = mm_server_engine(server);
    if (engine != NULL && mm_engine_is_lost(engine))
        mm_fail(error, MM_NOT_READY,
                "a device has failed, so the service stops; try again once it has been restarted");
    else if (__atomic_load_n(&server->draining, __ATOMIC_SEQ_CST) != 0)
        mm_fail(error, MM_STOPPING, "the service is stopping and accepts no new requests; try again later");
    else if (engine == NULL)
        mm_fail(error, MM_NOT_READY, "the service is still opening its devices; try again in a second");
    else
        return MM_OK;
    return error->status;
}

void mm_server_leave(struct mm_server *server) {
    __atomic_store_n(&server->leaving, 1, __ATOMIC_RELEASE);
}

bool mm_server_is_leaving(const struct mm_server *server) {
    return __atomic_load_n(&server->leaving, __ATOMIC_ACQUIRE) != 0;
}

enum mm_status mm_server_is_ready(const struct mm_server *server, struct mm_error *error) {
    const enum mm_status status = mm_server_takes_jobs(server, error);
    if (status != MM_OK || !mm_server_is_leaving(server))
        return status;
    return mm_fail(error, MM_STOPPING,
                   "the service stops soon; it still serves requests, but send new ones elsewhere");
}

unsigned mm_server_retry_after_s(const struct mm_server *server, enum mm_status status) {
    enum { SECONDS_MAX = 3600 };
    struct mm_engine *engine = mm_server_engine(server);
    if (!mm_problem_passes(status))
        return 0;
    if (status != MM_BUSY || engine == NULL)
        return 1;
    const uint64_t seconds = mm_queue_look(mm_engine_queue(engine)).wait_ns / 1000000000 + 1;
    return seconds < SECONDS_MAX ? (unsigned)seconds : SECONDS_MAX;
}
