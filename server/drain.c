#include "server/drain.h"

#include "server/http/connection.h"
#include "server/http/request.h"
#include "server/observe/log.h"

#include <time.h>

enum { POLL_MS = 2, QUIET_POLL_MS = 10, QUIET_LOOKS = 3 };

/* Waits until all accepted requests have ended. Returns false if some have not after most_ms. */
static bool wait_for_accepted(const struct mm_server *server, uint64_t most_ms) {
    const struct timespec poll = {.tv_nsec = POLL_MS * 1000000L};
    uint64_t until_ns = mm_clock_ns() + most_ms * UINT64_C(1000000);
    while (mm_server_accepted(server) > 0) {
        if (mm_clock_ns() >= until_ns)
            return false;
        nanosleep(&poll, NULL);
    }
    return true;
}

/* Waits up to most_ms for clients that still send a refused request, so they can read their replies. */
static void wait_for_refused(struct mm_server *server, uint64_t most_ms) {
    const struct timespec poll = {.tv_nsec = QUIET_POLL_MS * 1000000L};
    const uint64_t until_ns = mm_clock_ns() + most_ms * UINT64_C(1000000);
    unsigned quiet = 0; /* quiet checks in a row; one check can miss bytes that a thread has just read */
    while (quiet < QUIET_LOOKS && mm_clock_ns() < until_ns) {
        quiet = mm_connection_all_quiet(server) ? quiet + 1 : 0;
        nanosleep(&poll, NULL);
    }
}

/* The server still accepts connections during the drain, so health probes learn that it is stopping. */
bool mm_drain(struct mm_server *server, uint64_t accepted_ms, uint64_t last_ms, enum mm_status status,
              const char *detail) {
    struct mm_queue *queue = mm_engine_queue(mm_server_engine(server));
    mm_server_leave(server);
    __atomic_store_n(&server->draining, 1, __ATOMIC_SEQ_CST);
    mm_log_info("draining: %zu requests under way", mm_server_accepted(server));
    const bool drained = wait_for_accepted(server, accepted_ms);
    mm_queue_stop(queue);
    if (!drained) {
        mm_log_error("the drain's time is up with %zu requests under way; those whose body has come are "
                     "answered with 503",
                     mm_server_accepted(server));
        mm_queue_abort(queue, status, detail);
        mm_request_abandon_all(server, status, detail);
        (void)wait_for_accepted(server, last_ms);
    } else {
        wait_for_refused(server, last_ms);
    }
    return drained;
}
