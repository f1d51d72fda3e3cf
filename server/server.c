/* What can be asked of the shared state. */
#include "server/server.h"

#include "api/problem.h"
#include "server/digits.h"

void mm_server_make_id(struct mm_server *server, char id[MM_REQUEST_ID_MAX + 1]) {
    uint64_t number = __atomic_fetch_add(&server->id_next, 1, __ATOMIC_RELAXED);
    char *end = mm_put_hex(id, server->id_seed, MM_HEX_DIGITS_MAX);
    *end++ = '-';
    *mm_put_hex(end, number, 1) = '\0';
}

struct mm_engine *mm_server_engine(const struct mm_server *server) {
    return __atomic_load_n(&server->engine, __ATOMIC_ACQUIRE);
}

bool mm_server_draining(const struct mm_server *server) {
    return __atomic_load_n(&server->draining, __ATOMIC_SEQ_CST) != 0;
}

size_t mm_server_accepted(const struct mm_server *server) {
    return __atomic_load_n(&server->accepted, __ATOMIC_SEQ_CST);
}

enum mm_status mm_server_takes_jobs(const struct mm_server *server, struct mm_error *error) {
    const struct mm_engine *engine = mm_server_engine(server);
    if (engine != NULL && mm_engine_is_lost(engine))
        mm_fail(error, MM_NOT_READY, "a device has failed, and the service ends, to be started anew");
    else if (mm_server_draining(server))
        mm_fail(error, MM_STOPPING, "the service is draining and takes no new jobs");
    else if (engine == NULL)
        mm_fail(error, MM_NOT_READY, "the devices are being opened");
    else
        return MM_OK;
    return error->status;
}

unsigned mm_server_retry_after_s(const struct mm_server *server, enum mm_status status) {
    enum { SECONDS_MAX = 3600 };
    struct mm_engine *engine = mm_server_engine(server);
    if (!mm_problem_passes(status))
        return 0;
    if (status != MM_BUSY || engine == NULL)
        return 1;
    const uint64_t seconds = mm_queue_wait_ns(mm_engine_queue(engine)) / 1000000000 + 1;
    return seconds < SECONDS_MAX ? (unsigned)seconds : SECONDS_MAX;
}
