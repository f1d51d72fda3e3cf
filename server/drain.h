/* The end of the service, while it still answers. Only the main thread calls it. */
#ifndef MM_SERVER_DRAIN_H
#define MM_SERVER_DRAIN_H

#include "server/server.h"

#include <stdbool.h>
#include <stdint.h>

struct mm_drain_terms {
    uint64_t accepted_ms;  /* for requests that were accepted */
    uint64_t last_ms;      /* and then for the refusals of the others */
    enum mm_status status; /* the reply to accepted requests that are not done in time */
    const char *detail;
};

/* Refuses new requests, and returns once the accepted ones were answered; false: their time was up, they got
 * terms->status, and some may still run. The queue takes no more jobs. Once, from main; HTTP still runs when
 * it returns. */
bool mm_drain(struct mm_server *server, const struct mm_drain_terms *terms);

#endif
