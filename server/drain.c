/* The drain looks at what is under way again and again: it happens once, and nothing is to tell it. */
#include "server/drain.h"

#include "server/connection.h"
#include "server/exchange.h"
#include "server/log.h"

#include <time.h>

enum { POLL_MS = 2, QUIET_POLL_MS = 10, QUIET_LOOKS = 3 };

/* Waits until no accepted request is under way, for at most `most_ms`. */
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

/* Waits until those who were refused have been told so, for at most `most_ms`: they are not accepted, but are
 * still sending. */
static void wait_for_refused(struct mm_server *server, uint64_t most_ms) {
    const struct timespec poll = {.tv_nsec = QUIET_POLL_MS * 1000000L};
    const uint64_t until_ns = mm_clock_ns() + most_ms * UINT64_C(1000000);
    unsigned quiet = 0; /* what a thread has read and not looked at yet, no look can see */
    while (quiet < QUIET_LOOKS && mm_clock_ns() < until_ns) {
        quiet = mm_connection_all_quiet(server) ? quiet + 1 : 0;
        nanosleep(&poll, NULL);
    }
}

/* Connections are accepted to the end: MHD_quiesce_daemon races with its own busy threads for the listening
 * socket, and ends the process where it loses (0.9.75). */
bool mm_drain(struct mm_server *server, const struct mm_drain_terms *terms) {
    struct mm_queue *queue = mm_engine_queue(mm_server_engine(server));
    __atomic_store_n(&server->draining, 1, __ATOMIC_SEQ_CST);
    mm_log_info("draining: %zu requests under way", mm_server_accepted(server));
    const bool drained = wait_for_accepted(server, terms->accepted_ms);
    mm_queue_stop(queue);
    if (!drained) {
        mm_log_error("the drain's time is up with %zu requests under way; those whose body has come are "
                     "answered with 503",
                     mm_server_accepted(server));
        mm_queue_abort(queue, terms->status, terms->detail);
        mm_exchange_abandon_all(server, terms->status, terms->detail);
        (void)wait_for_accepted(server, terms->last_ms);
    } else {
        wait_for_refused(server, terms->last_ms);
    }
    return drained;
}
