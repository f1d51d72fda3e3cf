/* How the service comes to its end while it still answers. */
#ifndef MM_SERVER_DRAIN_H
#define MM_SERVER_DRAIN_H

#include "server/server.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct mm_drain_terms {
    uint64_t accepted_ms;  /* for those who were accepted */
    uint64_t last_ms;      /* and then for the replies that tell the others why not */
    enum mm_status status; /* what is told to those who were accepted and are not done in time */
    const char *detail;
};

/* From now on every request is refused but those that were accepted; returns once these were answered, or
 * told why not when their time was up, and false then: some may still be under way. The queue takes no more
 * jobs. Once, by main; HTTP still runs when it returns. */
bool mm_drain(struct mm_server *server, const struct mm_drain_terms *terms);

#ifdef __cplusplus
}
#endif

#endif
