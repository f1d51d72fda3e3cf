/* Stops the service while clients still get HTTP replies. Only the main thread may call it. */
#pragma once

#include "server/server.h"

#include <stdbool.h>
#include <stdint.h>

/* Refuses new requests, and waits up to accepted_ms until all accepted requests are answered; then it returns
 * true. If the time runs out, it answers the remaining requests with `status` and `detail` and returns false.
 * Their work may still run then. In both cases it waits up to last_ms more until clients have their replies.
 * Afterwards the queue accepts no jobs, but HTTP still runs. Call it once. */
bool mm_drain(struct mm_server *server, uint64_t accepted_ms, uint64_t last_ms, enum mm_status status,
              const char *detail);
