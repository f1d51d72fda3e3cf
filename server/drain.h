/* Stops the service while clients still get HTTP replies. Only the main thread may call it. */
#pragma once

#include "server/server.h"

#include <stdbool.h>
#include <stdint.h>

/* Refuses new requests, and waits up to accepted_ms for the accepted requests. Returns true if all were
 * answered. Otherwise answers the remaining requests with `status` and `detail`, although their work can
 * still run, and returns false. Before it returns, waits up to last_ms for clients to receive their replies.
 * Afterwards the queue accepts no jobs, but HTTP still runs. Call it once. */
bool mm_drain(struct mm_server *server, uint64_t accepted_ms, uint64_t last_ms, enum mm_status status,
              const char *detail);
